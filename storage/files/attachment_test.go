package files

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claybot/claybot/storage"
)

func TestFileName(t *testing.T) {
	tests := []struct{ name, want string }{
		{"notes.txt", "notes.txt"},
		{"../../etc/passwd", "passwd"},
		{`C:\\Users\\me\\plan.pdf`, "plan.pdf"},
		{"...hidden", "hidden"},
		{"", "file"},
		{"...", "file"},
		{"a/", "file"},
		{"a\x00b\nc\u202ed.txt", "abcd.txt"},
		{" spaced name.md ", "spaced name.md"},
		{"\xff\xfe.bin", "bin"},
		{"Grüße.txt", "Grüße.txt"},
	}
	for _, tt := range tests {
		if got := storage.FileName(tt.name); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzFileName(f *testing.F) {
	f.Add("notes.txt")
	f.Add(strings.Repeat("é", 200))
	f.Add("../..\\x\x00")
	f.Fuzz(func(t *testing.T, name string) {
		got := storage.FileName(name)
		if got == "" || len(got) > 120 || !utf8.ValidString(got) || strings.ContainsAny(got, "/\\\x00\n\r") || got[0] == '.' {
			t.Fatalf("%q became %q", name, got)
		}
	})
}
