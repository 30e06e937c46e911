package webchat

import (
	"regexp"
	"strings"
	"testing"

	"github.com/claybot/claybot/connectors"
)

func TestPageHTML(t *testing.T) {
	for _, tc := range []struct{ md, want string }{
		{"hi", "<p>hi</p>"},
		{"a\nb", "<p>a<br>b</p>"},
		{"**b** *e* ~~s~~ `c<`", "<p><strong>b</strong> <em>e</em> <del>s</del> <code>c&lt;</code></p>"},
		{"```go\nx < 1\n```", `<pre data-lang="go"><code>x &lt; 1</code></pre>`},
		{"# T", "<h1>T</h1>"},
		{"- a\n- b", "<ul><li>a</li>\n<li>b</li></ul>"},
		{"3. a\n4. b", "<ol start=\"3\"><li>a</li>\n<li>b</li></ol>"},
		{"> q", "<blockquote><p>q</p></blockquote>"},
		{"[x](https://example.org/?a=1&b=2)", `<p><a href="https://example.org/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer nofollow">x</a></p>`},
		{"![x](https://example.org/p.png)", `<p><a href="https://example.org/p.png" target="_blank" rel="noopener noreferrer nofollow">x</a></p>`},
		{"<img src=x onerror=alert(1)>", "<p>&lt;img src=x onerror=alert(1)&gt;</p>"},
	} {
		if got := connectors.Render(tc.md, page); got != tc.want {
			t.Errorf("%q\n got %s\nwant %s", tc.md, got, tc.want)
		}
	}
}

// tags are all the tags that the page may contain, with their attributes.
var tags = regexp.MustCompile(`^</?(p|strong|em|del|code|pre|h[1-6]|blockquote|li|ul|ol|hr|br)>$` +
	`|^<pre data-lang="[^"<>]*">$|^<ol start="-?\d+">$|^</a>$` +
	`|^<a href="(https?|mailto):[^"<>]*" target="_blank" rel="noopener noreferrer nofollow">$`)

// checkHTML reports the first tag that is not on the list.
func checkHTML(s string) string {
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			return ""
		}
		j := strings.IndexByte(s[i:], '>')
		if j < 0 {
			return s[i:]
		}
		if one := s[i : i+j+1]; !tags.MatchString(one) {
			return one
		}
		s = s[i+j+1:]
	}
}

// hostile are texts that try to become more than text.
var hostile = []string{
	"<script>alert(1)</script>",
	"[x](javascript:alert(1))",
	"[x](JaVaScRiPt:alert(1))",
	"[x](data:text/html;base64,PHNjcmlwdD4=)",
	"[x](https://a\" onclick=\"alert(1))",
	"[x](<https://a/' onmouseover=alert(1)>)",
	"<https://a/\"onclick=alert(1)>",
	"![\"onerror=\"alert(1)](https://a/b)",
	"```\"><script>\nx\n```",
	"``` \" onload=x\nx\n```",
	"`</code><script>`",
	"<svg/onload=alert(1)>",
	"<!-- --><b>",
	"&lt;script&gt; &#60;script&#62;",
	"[a]: javascript:x\n\n[a]",
	"<a href=\"https://x\" onclick=y>",
	"# <iframe>",
	"| <b> | `|` |\n|-|-|\n| <i> | </pre> |",
}

func TestHostileTextStaysText(t *testing.T) {
	for _, md := range hostile {
		if got := connectors.Render(md, page); checkHTML(got) != "" {
			t.Errorf("%q became %s: %s is not allowed", md, got, checkHTML(got))
		}
	}
	if checkHTML(`<p onclick="x">`) == "" || checkHTML(`<a href="javascript:x">`) == "" {
		t.Error("the check itself lets hostile tags through")
	}
}

func FuzzPageHTML(f *testing.F) {
	for _, md := range hostile {
		f.Add(md)
	}
	f.Fuzz(func(t *testing.T, md string) {
		got := connectors.Render(md, page)
		if bad := checkHTML(got); bad != "" {
			t.Errorf("%q became %s: %s is not allowed", md, got, bad)
		}
	})
}

func FuzzPost(f *testing.F) {
	f.Add(`{"text":"a"}`)
	f.Add(`{"id":"\u0000","text":"/new"}`)
	f.Fuzz(func(t *testing.T, text string) {
		s := clean(text)
		if strings.ContainsRune(s, 0) || strings.ToValidUTF8(s, "") != s {
			t.Errorf("clean(%q) = %q", text, s)
		}
		if validID(text) && strings.ContainsAny(text, "/\x00 .") {
			t.Errorf("%q is taken as an id", text)
		}
	})
}
