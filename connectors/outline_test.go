package connectors

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestOutline(t *testing.T) {
	tests := []struct {
		md, tables string // the lines of the tables, by ¶
		cells      string // of the first one
		structured bool
	}{
		{"just words", "", "", false},
		{"**bold** `|a|b|`", "", "", false},
		{"|a|b|\n|-|-|\n|1|2|", "|a|b|\n|-|-|\n|1|2|", "[[a b] [1 2]] [left left]", false},
		{"see:\n\n| a | b | c |\n|:--|:-:|--:|\n| **x** | [t](https://x.test) |\n\nend", "| a | b | c |\n|:--|:-:|--:|\n| **x** | [t](https://x.test) |", "[[a b c] [x t (https://x.test) ]] [left center right]", false},
		{"see\na|b\n-|-\n`1\\|2`|3|4\n\n|x|\n|-|\n", "a|b\n-|-\n`1\\|2`|3|4¶|x|\n|-|", "[[a b] [1|2 3]] [left left]", false},
		{"  |a|b|\r\n  |-|-|\r\n  |1|2|\r\n\r\nx", "  |a|b|\r\n  |-|-|\r\n  |1|2|", "[[a b] [1 2]] [left left]", false},
		{"|a|\n|-|", "|a|\n|-|", "[[a]] [left]", false},
		{"```\n|a|\n|-|\n```\n\n> |a|\n> |-|\n\n- |a|\n  |-|\n", "", "", false},
		{"# One\ntext", "", "", true},
		{"a\n\n---\n\nb", "", "", true},
		{"- a\n- b", "", "", false},
		{"- a\n  - b", "", "", true},
		{"- [ ] a\n- [x] b", "", "", true},
		{"- [x](https://x.test)", "", "", false},
		{"```\n# no\n```", "", "", false},
	}
	for _, test := range tests {
		o := OutlineOf(test.md)
		var lines []string
		cells := ""
		for _, table := range o.Tables {
			lines = append(lines, test.md[table.From:table.To])
			if cells == "" {
				cells = fmt.Sprint(table.Rows, " ", table.Align)
			}
		}
		if got := strings.Join(lines, "¶"); got != test.tables || cells != test.cells || o.Structured != test.structured {
			t.Errorf("%q:\n%q %s %v\n%q %s %v", test.md, got, cells, o.Structured, test.tables, test.cells, test.structured)
		}
	}
}

// Code is found with its fences, and comes back from a file as it was.
func TestCode(t *testing.T) {
	for _, c := range []struct{ md, lines, lang, text, file string }{
		{"a\n```go\nx := 1\n\ny\n```\nb", "```go\nx := 1\n\ny\n```", "go", "x := 1\n\ny", "code-2.go"},
		{"~~~ Python x\r\n1\r\n~~~\r\n", "~~~ Python x\r\n1\r\n~~~", "Python", "1\r", "code-2.py"},
		{"  ````\n  a ``` b\n  ````", "  ````\n  a ``` b\n  ````", "", "a ``` b", "code-2.txt"},
		{"```sh\nopen\n", "```sh\nopen", "sh", "open", "code-2.sh"},
		{"```\n```\n\n    indented\n\n- ```\n  x\n  ```", "", "", "", ""},
	} {
		all := OutlineOf(c.md).Code
		if c.lines == "" {
			if len(all) > 0 {
				t.Errorf("%q: %+v", c.md, all)
			}
			continue
		}
		if len(all) != 1 {
			t.Fatalf("%q: %+v", c.md, all)
		}
		f := CodeFile(all[0], 2)
		if got := all[0]; c.md[got.From:got.To] != c.lines || got.Lang != c.lang || got.Text != c.text || f.Name != c.file {
			t.Errorf("%q: %q %+v %s", c.md, c.md[got.From:got.To], got, f.Name)
		}
		if again := OutlineOf("see\n" + ReplyText(f, c.text)).Code; len(again) != 1 || again[0].Text != c.text {
			t.Errorf("%q came back as %+v", c.text, again)
		}
	}
	f := CodeFile(CodeBlock{Lang: "go"}, 1)
	if f.Name != "code.go" || ReplyText(f, "x\n") != "```go\nx\n```" {
		t.Errorf("%+v", f)
	}
	f.MIMEType = "text/markdown"
	if got := ReplyText(f, "# x\n"); got != "# x\n" {
		t.Errorf("%q", got)
	}
}

// Reading an outline ends, and its tables stand in the text one after another, with rows of one length.
func FuzzOutline(f *testing.F) {
	for _, s := range []string{"a\n|b|c|\n|-|:-:|\n|1|\n|2|3|4|\n\n# h", "> |a|\n> |-|", "\t|a|\n|-|", "|a\\|b|\r\n|-|\r\n|\x00|\xff|"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, md string) {
		o, at := OutlineOf(md), 0
		for _, c := range o.Code {
			if c.From < at || c.To <= c.From || c.To > len(md) || !strings.Contains(c.Text, strings.TrimSpace(c.Text)) {
				t.Fatalf("%q: code at %d to %d, after %d: %q", md, c.From, c.To, at, c.Text)
			}
			at = c.To
		}
		at = 0
		for _, table := range o.Tables {
			if table.From < at || table.To <= table.From || table.To > len(md) {
				t.Fatalf("%q: a table at %d to %d, after %d", md, table.From, table.To, at)
			}
			at = table.To
			if slices.ContainsFunc(table.Rows, func(row []string) bool { return len(row) != len(table.Align) }) || len(table.Align) == 0 {
				t.Fatalf("%q: %q %q", md, table.Rows, table.Align)
			}
		}
	})
}
