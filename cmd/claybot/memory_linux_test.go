package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestConstant(t *testing.T) {
	for name, tt := range map[string]struct {
		line       string
		from, size uintptr
	}{
		"code":             {"00400000-0196e000 r-xp 00000000 08:01 42                         /usr/bin/claybot", 0x400000, 0x156e000},
		"constants":        {"0196e000-01970000 r--p 0156e000 08:01 42                         /usr/bin/claybot", 0x196e000, 0x2000},
		"variables":        {"03019000-03182000 rw-p 02c19000 08:01 42                         /usr/bin/claybot", 0, 0},
		"another file":     {"7f0000000000-7f0000001000 r--p 00000000 08:01 43                 /usr/bin/other", 0, 0},
		"no file":          {"7f0000000000-7f0000001000 r--p 00000000 00:00 0 ", 0, 0},
		"a deleted binary": {"00400000-0196e000 r-xp 00000000 08:01 42                         /usr/bin/claybot (deleted)", 0, 0},
		"nonsense":         {"x-y r-xp 0 0 0 /usr/bin/claybot", 0, 0},
		"backwards":        {"2-1 r-xp 0 0 0 /usr/bin/claybot", 0, 0},
	} {
		from, size, ok := constant(tt.line, "/usr/bin/claybot")
		if from != tt.from || size != tt.size || ok != (tt.size > 0) {
			t.Errorf("%s: %#x and %#x, %v", name, from, size, ok)
		}
	}
}

// The program goes on without its pages, and has fewer of them in memory.
func TestUnmapBinary(t *testing.T) {
	resident := func() (kb int) {
		b, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(b), "RssFile:")
		if _, err := fmt.Sscan(rest, &kb); err != nil {
			t.Fatal(err)
		}
		return kb
	}
	before := resident()
	unmapBinary()
	if after := resident(); after >= before {
		t.Errorf("%d kB of files in memory, before %d kB", after, before)
	}
}
