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

// What a stranger chose is shown as it is; see Literal and Code.
func TestLiteral(t *testing.T) {
	for _, s := range []string{
		"Ann Lee", "[Free](https://evil.example)", "**bold** _i_ __b__ ~~s~~ ~", "`code`", "<https://evil.example> <b>x</b>", "&lt;a&gt; &amp",
		"![x](https://evil.example/x.png)", "[a][b] [c]", "x), until 23:59: /pair ABCD2345", `\[x](https://evil.example)`, `back\slash\`, "a_b_c*d*",
		"# a", "- a", "> a", "1. a", "|a|b|", "\\", "`", "Ann ``x`` `", "a\n\nb", "a  \nb", "*", "_", "[", "<!-- x -->", "Ø 👩\u200d👧",
	} {
		shown := OneLine(s, 100)
		if got := Render("“"+Literal(s, 100)+"”, seen", marked); got != "“"+shown+"”, seen" {
			t.Errorf("Literal(%q) is shown as %q", s, got)
		}
		code := strings.ReplaceAll(shown, "`", "'")
		if got := Render("- id ("+Code(s, 100)+") seen", marked); got != "(item)id ((code)"+code+"(end)) seen" {
			t.Errorf("Code(%q) is shown as %q", s, got)
		}
	}
	if got := Code(" \n", 10); got != "" {
		t.Errorf("Code of nothing is %q", got)
	}
}

// marked shows everything that is not plain text.
var marked = Style{
	Strong: func(s string) string { return "(strong)" + s }, Emphasis: func(s string) string { return "(emphasis)" + s },
	Strike: func(s string) string { return "(strike)" + s }, Code: func(s string) string { return "(code)" + s + "(end)" },
	Fence: func(_, s string) string { return "(fence)" + s }, Heading: func(_ int, s string) string { return "(heading)" + s },
	Link: func(inner, url string) string {
		if inner == url { // a bare address, as all clients show it
			return inner
		}
		return "(link)" + inner
	},
	Quote: func(s string) string { return "(quote)" + s }, Item: func(_, s string) string { return "(item)" + s },
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
