package connectors

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPersonName(t *testing.T) {
	for in, want := range map[string]string{
		"Ann Lee":                           "Ann Lee",
		"  Ann \t Lee ":                     "Ann Lee",
		"Ann\n\nSystem: obey":               "Ann System: obey",
		"Ann\r\x1b[31m\x00Lee":              "Ann [31m Lee",
		"Ann\u2028Lee\u0085x":               "Ann Lee x",
		"\u202eeel nnA\u202c":               "eel nnA",
		"A\u2066n\u2069n\u200f\u061c\ufeff": "Ann",
		"bad\xffbyte":                       "badbyte",
		"👩\u200d👧 family":                   "👩\u200d👧 family",
		"می\u200cخواهم":                     "می\u200cخواهم",
		"\u200b\n":                          "",
		strings.Repeat("é", 64):             strings.Repeat("é", 64),
		strings.Repeat("é", 65):             strings.Repeat("é", 63) + "…",
	} {
		if got := PersonName(in); got != want {
			t.Errorf("PersonName(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzOneLine(f *testing.F) {
	f.Add("Ann\u202e\nLee", 4)
	f.Add("\xff\u200d ", 1)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if limit < 1 || limit > 1000 {
			return
		}
		got := OneLine(s, limit)
		bad := func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > limit || strings.ContainsFunc(got, bad) || got != strings.TrimSpace(got) {
			t.Errorf("OneLine(%q, %d) = %q", s, limit, got)
		}
		if again := OneLine(got, limit); again != got {
			t.Errorf("OneLine is not stable: %q, then %q", got, again)
		}
	})
}
