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

func TestFenced(t *testing.T) {
	for code, want := range map[string]string{"x\n": "```go\nx\n```", "a ``` b": "````go\na ``` b\n````"} {
		if got := Fenced("go", code); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Reading an outline ends, and its tables stand in the text one after another, with rows of one length.
func FuzzOutline(f *testing.F) {
	for _, s := range []string{"a\n|b|c|\n|-|:-:|\n|1|\n|2|3|4|\n\n# h", "> |a|\n> |-|", "\t|a|\n|-|", "|a\\|b|\r\n|-|\r\n|\x00|\xff|"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, md string) {
		at := 0
		for _, table := range OutlineOf(md).Tables {
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
