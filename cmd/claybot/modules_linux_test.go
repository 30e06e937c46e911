package main

import (
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// TestModules keeps the binary from growing unnoticed: it compares the modules that are
// linked into it on Linux with testdata/modules.txt. Before you add one there, compare the sizes of
// the stripped binary with and without it, and write the difference into the commit.
func TestModules(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok || len(info.Deps) == 0 {
		t.Fatal("the test binary has no build information")
	}
	b, err := os.ReadFile("testdata/modules.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields(string(b))
	for _, m := range info.Deps {
		i := slices.Index(known, m.Path)
		if i < 0 {
			t.Errorf("%s is new in the binary", m.Path)
			continue
		}
		known = slices.Delete(known, i, i+1)
	}
	for _, m := range known {
		t.Errorf("%s is no longer in the binary: remove it from testdata/modules.txt", m)
	}
}
