package telegram

import (
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

func TestFormat(t *testing.T) {
	tests := []struct{ name, md, want string }{
		{"plain", "a < b & c", "a &lt; b &amp; c"},
		{"bold in a heading", "# a **b**", "<b>a b</b>"},
		{"bold in bold", "**a __b__ c**", "<b>a b c</b>"},
		{"nested quotes", "> a\n> > b", "<blockquote>a\n\nb</blockquote>"},
		{"link", `[a "b"](https://x.test/?q="1")`, "a &quot;b&quot; (https://x.test/?q=&quot;1&quot;)"},
		{"plain link", "[t](https://x.test/?a=1&b=2)", `<a href="https://x.test/?a=1&amp;b=2">t</a>`},
		{"language", "```c++\nx<y>\n```", `<pre><code class="language-c++">x&lt;y&gt;</code></pre>`},
		{"empty fence", "```\n```", "```\n```"},
		{"spoiler", "it is ||the *butler*||!", "it is <tg-spoiler>the <i>butler</i></tg-spoiler>!"},
		{"two spoilers", "||a|| and ||b||", "<tg-spoiler>a</tg-spoiler> and <tg-spoiler>b</tg-spoiler>"},
		{"spoiler over lines", "||a\nb||", "<tg-spoiler>a\nb</tg-spoiler>"},
		{"no spoiler", "if a || b || c, `x||y||z`, ||open", "if a || b || c, <code>x||y||z</code>, ||open"},
		{"no spoiler, escaped", `\|\|a\|\|`, "||a||"},
		{"empty spoiler", "a |||| b", "a |||| b"},
		{"underline", "a <u>**b** c</u> <ins>d</ins>", "a <u><b>b</b> c</u> <u>d</u>"},
		{"underline in a spoiler", "||a <u>b</u>||", "<tg-spoiler>a <u>b</u></tg-spoiler>"},
		{"marks that cross", "||a <u>b|| c</u>", "<tg-spoiler>a &lt;u&gt;b</tg-spoiler> c&lt;/u&gt;"},
		{"lone tags", "<u>a <b>b</b> </i>", "&lt;u&gt;a &lt;b&gt;b&lt;/b&gt; &lt;/i&gt;"},
		{"nested underline", "<u>a <u>b</u> c</u>", "<u>a &lt;u&gt;b</u> c&lt;/u&gt;"},
		{"long quote", "> " + strings.Repeat("word ", 100) + "\n> > deep", "<blockquote expandable>" + strings.TrimSpace(strings.Repeat("word ", 100)) + "\n\ndeep</blockquote>"},
		{"quote of many lines", "> a\n> b\n> c\n> d\n> e\n> f\n> g", "<blockquote expandable>a\nb\nc\nd\ne\nf\ng</blockquote>"},
		{"wide table", "|Name|What *it* does|Price|\n|-|-|-|\n|**Ann**|something that takes long to say|3 < 4|\n||only `this`||", "<b>Ann</b>\n• What it does: something that takes long to say\n• Price: 3 &lt; 4\n\n• What it does: only <code>this</code>"},
		{"wide table without rows", "|a long heading of a table|and another one|\n|-|-|", "a long heading of a table, and another one"},
		{"table", "|a|b|\n|-|-|\n|1|2|", "<pre>a  b\n-  -\n1  2</pre>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := format(tt.md)
			if strings.ReplaceAll(got, "&quot;", `"`) != strings.ReplaceAll(tt.want, "&quot;", `"`) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if _, _, err := telegramtest.ParseHTML(got); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// The name of a stranger is code in the answer to /pair: no link, and no entry of the list. In
// other texts, a name is what it is.
func TestNamesAreLiteral(t *testing.T) {
	evil := "[Free](https://evil.example)"
	v := texts.Voice{}
	list := v.PairingList([]storage.Pairing{{Connector: "telegram", UserID: "7", Name: "x), until 23:59: /pair ABCD2345", Code: "WXYZ6789"}})
	for md, want := range map[string]string{
		v.HasAccess("telegram", "7", evil): "telegram:7 (<code>[Free](https://evil.example)</code>) now has access.",
		list:                               "Pending requests:\n\n• telegram:7 (<code>x), until 23:59: /pair ABCD2345</code>), until ",
		v.Recovered(evil):                  "The scheduled task “[Free](https://evil.example)” works again.",
		v.NotDelivered(claybot.Outgoing{File: &claybot.FileReference{Name: "*x* <b>"}}): "I couldn't deliver the file “*x* &lt;b&gt;” here.",
	} {
		if got := format(md); !strings.HasPrefix(got, want) {
			t.Errorf("%q is shown as %q, want %q", md, got, want)
		}
	}
}

// checkFormat holds format and split to what Telegram accepts.
func checkFormat(t *testing.T, md string) {
	t.Helper()
	if strings.TrimSpace(md) == "" {
		return
	}
	for _, part := range (*Connector).Split(nil, md) {
		html := format(part)
		text, entities, err := telegramtest.ParseHTML(html)
		if err != nil {
			t.Fatalf("%q: %q is refused: %v", part, html, err)
		}
		if text != visible(html) {
			t.Fatalf("%q: Telegram shows %q, we expected %q", part, text, visible(html))
		}
		if n := len(entities); n > maxEntities {
			t.Fatalf("%d entities from %q", n, part)
		}
		if n := texts.ResentRoom() + connectors.UTF16Len(text); n > maxTextUTF16 {
			t.Fatalf("%d UTF-16 units from %q", n, part)
		}
		if strings.TrimSpace(text) == "" && strings.TrimSpace(part) != "" {
			t.Fatalf("nothing to see of %q", part)
		}
	}
}

func TestSplitFitsOnceFormatted(t *testing.T) {
	for name, md := range map[string]string{
		"exact":         strings.Repeat("x", maxPartUTF16),
		"pairs":         strings.Repeat("😀", maxPartUTF16/2),
		"pairs and one": strings.Repeat("😀", maxPartUTF16/2) + "xy",
		"joined":        strings.Repeat("👩‍👩‍👧", 900),
		"escapes":       strings.Repeat("<&>", 3000),
		"code":          "```go\n" + strings.Repeat("if a < b && c > d {\n", 900) + "```\nend",
		"words":         strings.Repeat("**bold** and `code`. ", 900),
		"growing table": "| a | b |\n|---|---|\n| " + strings.Repeat("w", 400) + " | x |\n" + strings.Repeat("| y | z |\n", 200),
		"headings":      strings.Repeat("# h\ntext\n", 800),
		"entities":      strings.Repeat("`x` *y* ", 300),
		"ordered":       strings.Repeat("1. x\n", 1500),
	} {
		t.Run(name, func(t *testing.T) {
			checkFormat(t, md)
			if parts := (*Connector).Split(nil, md); (len(parts) == 1) != (name == "exact" || name == "pairs") {
				t.Errorf("%d parts", len(parts))
			}
		})
	}
}

// FuzzFormat is F08 for Telegram: what we write is accepted, and shows what
// we count on.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{"**a** _b_ `c`", "# h\n> q\n> > r", "```x\"y\n<b>", "[a](https://x.test \"t\") ![i](http://y.test)", "|a|b|\n|-|-|\n|<|&amp;|", "||a <u>b|| c</u> ||d||", "> a\n> b\n> c\n> d\n> e\n> f\n> g\n> > h", "|a|b|\n|-|-|\n|a cell that is very wide indeed|b ||c|| `d`|", "- a\n  1. b\n     ```\n     c", "<https://x.test>&lt;/b&gt;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, md string) {
		if len(md) < 10_000 {
			checkFormat(t, md)
		}
	})
}

func BenchmarkFormat(b *testing.B) {
	for b.Loop() {
		format("Sure, **the train** leaves at half past nine.\n\n- platform 3\n- `ICE 70`")
	}
}
