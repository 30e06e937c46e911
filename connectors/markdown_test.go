package connectors

import (
	"fmt"
	"html"
	"strings"
	"testing"
	"unicode/utf8"
)

// marks is a style in which every function leaves a visible trace.
var marks = Style{
	Text:     html.EscapeString,
	Strong:   func(s string) string { return "<b>" + s + "</b>" },
	Emphasis: func(s string) string { return "<i>" + s + "</i>" },
	Strike:   func(s string) string { return "<s>" + s + "</s>" },
	Code:     func(s string) string { return "<code>" + html.EscapeString(s) + "</code>" },
	Fence:    func(lang, s string) string { return "<pre " + lang + ">" + html.EscapeString(s) + "</pre>" },
	Link:     func(s, url string) string { return "<a " + html.EscapeString(url) + ">" + s + "</a>" },
	Heading:  func(n int, s string) string { return fmt.Sprintf("<h%d>%s</h%d>", n, s, n) },
	Quote:    func(s string) string { return "<q>" + s + "</q>" },
}

func TestRender(t *testing.T) {
	tests := []struct{ name, md, want string }{
		{"words", "just words.\nsecond line\n\nsecond paragraph", "just words.\nsecond line\n\nsecond paragraph"},
		{"inline", "**b** *i* ~~s~~ `a<b`", "<b>b</b> <i>i</i> <s>s</s> <code>a&lt;b</code>"},
		{"nested", "**b *bi* b**", "<b>b <i>bi</i> b</b>"},
		{"heading", "# One\ntext", "<h1>One</h1>\n\ntext"},
		{"fence", "```go\na := 1 < 2\n\n  b\n```", "<pre go>a := 1 &lt; 2\n\n  b</pre>"},
		{"open fence", "see\n```\nx", "see\n\n<pre >x</pre>"},
		{"indented code", "a\n\n    b\n    c", "a\n\n<pre >b\nc</pre>"},
		{"link", "[t](https://x.test/a?b=1&c=2)", "<a https://x.test/a?b=1&amp;c=2>t</a>"},
		{"bare link", "see https://x.test/a.", "see <a https://x.test/a>https://x.test/a</a>."},
		{"www", "www.x.test", "<a http://www.x.test>www.x.test</a>"},
		{"mail", "<a@x.test>", "<a mailto:a@x.test>a@x.test</a>"},
		{"script link", "[t](javascript:alert)", "t (javascript:alert)"},
		{"relative link", "[t](docs/a.md)", "t (docs/a.md)"},
		{"image", "![cat](https://x.test/c.png)", "<a https://x.test/c.png>cat</a>"},
		{"html is text", "a <b>x</b> &lt;", "a &lt;b&gt;x&lt;/b&gt; &lt;"},
		{"html block", "<div>\nx\n</div>", "&lt;div&gt;\nx\n&lt;/div&gt;"},
		{"list", "- a\n- b\n  - c\n- d", "• a\n• b\n  • c\n• d"},
		{"ordered", "3. a\n4. b", "3. a\n4. b"},
		{"paren ordered", "1) a\n2) b", "1) a\n2) b"},
		{"loose", "- a\n\n- b", "• a\n\n• b"},
		{"fence in item", "- a\n  ```\n  x\n    y\n  ```", "• a\n<pre >x\n  y</pre>"},
		{"quote", "> a\n> b\n\nc", "<q>a\nb</q>\n\nc"},
		{"rule", "a\n\n---\n\nb", "a\n\n———\n\nb"},
		{"hard break", "a  \nb\\\nc", "a\nb\nc"},
		{"escapes", `\*a\* \&amp; &amp; &copy; &#65;`, "*a* &amp;amp; &amp; © A"},
		{"lonely definition", "[a]: https://x.test", "[a]: https://x.test"},
		{"snake", "a snake_case_name", "a snake_case_name"},
		{"table", "| a | n |\n|---|--:|\n| x | 1 |\n| **yy** | 22 |", "<pre >a    n\n--  --\nx    1\nyy  22</pre>"},
		{"wide table", "|k|v|\n|-|-|\n|日本|1|", "<pre >k     v\n----  -\n日本  1</pre>"},
		{"nul", "a\x00b *c*", "a\uFFFDb <i>c</i>"},
		{"bad utf8", "a\xffb", "a\uFFFDb"},
		{"empty", " \n ", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Render(tt.md, marks); got != tt.want {
				t.Errorf("Render(%q)\n got %q\nwant %q", tt.md, got, tt.want)
			}
		})
	}
}

func TestRenderZeroStyleIsPlainText(t *testing.T) {
	got := Render("# T\n**b** `c` [x](https://x.test)\n\n- i", Style{})
	if want := "T\n\nb c x (https://x.test)\n\n• i"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRenderParagraphsAndBreaks(t *testing.T) {
	s := Style{Paragraph: func(p string) string { return "<p>" + p + "</p>" }, Break: "<br>"}
	for _, md := range []string{"a\nb\n\nc", "a\nb\n\n*c*"} {
		if got, want := Render(md, s), "<p>a<br>b</p>\n\n<p>c</p>"; got != want {
			t.Errorf("Render(%q) = %q, want %q", md, got, want)
		}
	}
}

// Hostile nesting must cost no more than time in proportion to its length.
func TestRenderDeepNesting(t *testing.T) {
	for _, unit := range []string{"> ", "- ", "**a ", "[", "![", "*a_ ", "`", "<", "1. "} {
		md := strings.Repeat(unit, 1000) + "end"
		if got := Render(md, marks); !strings.Contains(got, "end") {
			t.Errorf("%q repeated: the end is lost", unit)
		}
	}
}

// FuzzRender (F08) checks that rendering is total, valid, never blank, and
// that the short cut for plain words yields what the parser would.
func FuzzRender(f *testing.F) {
	for _, s := range []string{"**a** _b_", "- a\n  - b\n\n> q", "|a|b|\n|-|-|\n|1|2|", "```go\nx", "a:b\nc", "1 a\n2. b", "[a](b \"c\")", "&#0;&amp\\", "Title\n=====", "é\u0301 👩‍👩‍👧"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, md string) {
		if len(md) > 20_000 {
			t.Skip()
		}
		out := Render(md, marks)
		if !utf8.ValidString(out) {
			t.Fatalf("invalid UTF-8: %q", out)
		}
		if strings.TrimSpace(md) != "" && strings.TrimSpace(out) == "" {
			t.Fatalf("blank from %q", md)
		}
		// An HTML comment forces the parser; it must agree with the short cut.
		if trimmed := strings.Trim(md, " \t\r\n"); plain(trimmed) && trimmed != "" && utf8.ValidString(trimmed) && !strings.Contains(trimmed, "\x00") {
			want := Render("*x*\n\n"+trimmed, marks)
			if got := "<i>x</i>\n\n" + Render(trimmed, marks); got != want {
				t.Fatalf("short cut: got %q, parser %q", got, want)
			}
		}
	})
}

func BenchmarkRenderPlain(b *testing.B) {
	for b.Loop() {
		Render("Sure, the train leaves at half past nine.\n\nHave a nice day!", marks)
	}
}

func BenchmarkRenderMarkdown(b *testing.B) {
	for b.Loop() {
		Render("**Sure**, the `train` leaves at *half past nine*.\n\n- one\n- two\n\n```go\nx := 1\n```", marks)
	}
}
