package connectors

import "strings"

// Spoken returns Markdown as a text to read aloud: without marks, addresses of links and code
// blocks. It is empty if nothing is left.
func Spoken(md string) string {
	const block = "\uE000" // stands for a code block: a text of blocks alone would not be rendered
	inner := func(s string) string { return s }
	text := Render(md, Style{
		Text: inner, Strong: inner, Emphasis: inner, Strike: inner, Code: inner, Quote: inner, Spoiler: inner, Underline: inner,
		Paragraph: inner, Rule: "\n", WideTable: 1,
		Fence:   func(string, string) string { return block },
		Link:    func(inner, _ string) string { return inner },
		Heading: func(_ int, inner string) string { return inner },
		Item: func(marker, inner string) string {
			if marker == "•" {
				return inner
			}
			return marker + " " + inner
		},
	})
	return strings.TrimSpace(strings.ReplaceAll(text, block, ""))
}
