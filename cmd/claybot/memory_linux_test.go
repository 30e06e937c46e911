package main

import (
	"fmt"
	"os"
	"slices"
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
		got, ok := constant(tt.line, "/usr/bin/claybot")
		if got != (addressRange{tt.from, tt.size}) || ok != (tt.size > 0) {
			t.Errorf("%s: %#x, %v", name, got, ok)
		}
	}
}

// mapping is an entry of /proc/self/smaps.
func mapping(header string, values ...string) string {
	return header + "                    /usr/bin/claybot\nSize:                684 kB\nRss:                 684 kB\n" +
		strings.Join(values, "\n") + "\nAnonHugePages:         0 kB\nSwapPss:               0 kB\nVmFlags: rd mr mw me sd \n"
}

// A position-independent executable whose relocated constants were read from the file again
// crashed, two seconds after its start.
func TestConstants(t *testing.T) {
	const none, some, noSwap = "Anonymous:             0 kB", "Anonymous:           156 kB", "Swap:                  0 kB"
	for name, tt := range map[string]struct {
		smaps []string
		want  []addressRange
	}{
		"an executable": {[]string{
			mapping("00400000-004af000 r-xp 00000000 fe:00 42", none, noSwap),
			mapping("004af000-00595000 r--p 000af000 fe:00 42", none, noSwap),
			mapping("00595000-005a0000 rw-p 00195000 fe:00 42", "Anonymous:            16 kB", noSwap),
		}, []addressRange{{0x400000, 0xaf000}, {0x4af000, 0xe6000}}},
		"a position-independent executable": {[]string{
			mapping("5608cc5ad000-5608cc65c000 r-xp 00000000 fe:00 42", none, noSwap),
			mapping("5608cc65c000-5608cc743000 r--p 000af000 fe:00 42", none, noSwap),
			mapping("5608cc743000-5608cc76d000 r--p 00196000 fe:00 42", some, noSwap),
			mapping("5608cc76d000-5608cc779000 rw-p 001c0000 fe:00 42", "Anonymous:            32 kB", noSwap),
		}, []addressRange{{0x5608cc5ad000, 0xaf000}, {0x5608cc65c000, 0xe7000}}},
		"private pages that were swapped out": {[]string{
			mapping("5608cc743000-5608cc76d000 r--p 00196000 fe:00 42", none, "Swap:                156 kB"),
			mapping("5608cc5ad000-5608cc65c000 r-xp 00000000 fe:00 42", none),
		}, []addressRange{{0x5608cc5ad000, 0xaf000}}},
		"a system that does not tell": {[]string{mapping("00400000-004af000 r-xp 00000000 fe:00 42")}, nil},
	} {
		if got := constants(strings.NewReader(strings.Join(tt.smaps, "")), "/usr/bin/claybot"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %#x, want %#x", name, got, tt.want)
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
	before, known := resident(), mappedFiles()
	unmapBinary()
	if after := resident(); after >= before {
		t.Errorf("%d kB of files in memory, before %d kB", after, before)
	}
	if now := mappedFiles(); now >= known {
		t.Errorf("%d bytes of files mapped, before %d", now, known)
	}
}
