package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the licences of the modules that claybot is linked with")

// The licences in the binary are those of what it is linked with.
func TestLicenses(t *testing.T) {
	t.Chdir("../..")
	want, err := licenses(t.Context(), strings.Split(platforms, ","))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(licensesFile, want, 0o644); err != nil { //nolint:gosec // it is published
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(licensesFile)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not up to date (%v): run go test -run TestLicenses ./cmd/release -update", licensesFile, err)
	}
}

func TestModuleWithoutLicence(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/readme.md", []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := addLicenses(new(bytes.Buffer), "example.org/m v1.0.0", dir); err == nil || !strings.Contains(err.Error(), "example.org/m v1.0.0 has no licence") {
		t.Errorf("err %v", err)
	}
}
