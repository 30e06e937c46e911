package slacktest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Blocks of Markdown and tables are refused where Slack refuses them:
// docs.slack.dev/reference/block-kit/blocks/markdown-block and …/table-block, read 2026-11-30.
func TestRichBlocks(t *testing.T) {
	long := func(n int) string { return strings.Repeat("é", n) }
	md := func(text string) string { return fmt.Sprintf(`{"type":"markdown","text":"%s"}`, text) }
	cell := func(text string) string { return fmt.Sprintf(`{"type":"raw_text","text":"%s"}`, text) }
	row := func(n int, text string) string { return list(many(n, func(int) string { return cell(text) })...) }
	table := func(rows, more string) string { return `{"type":"table","rows":` + rows + more + `}` }
	grid := func(rows, cells int, text string) string {
		return list(many(rows, func(int) string { return row(cells, text) })...)
	}
	for _, c := range []struct{ blocks, want string }{
		{list(md("# hi")), ""},
		{list(md("")), "invalid_blocks"},
		{list(md(long(12_000))), ""},
		{list(md(long(6_000)), md(long(6_001))), "invalid_blocks"},
		{list(`{"type":"markdown","text":{"type":"mrkdwn","text":"hi"}}`), "invalid_blocks"},
		{list(`{"type":"markdown","text":"hi","verbatim":true}`), "invalid_blocks"},
		{list(md("hi"), table(grid(100, 20, "x"), ""), md("end")), ""},
		{list(table(grid(101, 1, "x"), "")), "invalid_blocks"},
		{list(table(grid(1, 21, "x"), "")), "invalid_blocks"},
		{list(table("[]", "")), "invalid_blocks"},
		{list(table("[[]]", "")), "invalid_blocks"},
		{list(table(grid(1, 1, ""), "")), "invalid_blocks"},
		{list(table(`[[null]]`, "")), "invalid_blocks"},
		{list(table(`[[{"type":"mrkdwn","text":"x"}]]`, "")), "invalid_blocks"},
		{list(table(`[[{"type":"raw_text","text":"x","emoji":true}]]`, "")), "invalid_blocks"},
		{list(table(grid(10, 10, long(100)), "")), ""},
		{list(table(grid(10, 10, long(101)), "")), "invalid_blocks"},
		{list(table(grid(1, 1, "x"), ""), table(grid(1, 1, "x"), "")), "invalid_blocks"},
		{list(table(grid(1, 2, "x"), `,"column_settings":[{"align":"right","is_wrapped":true},{"is_wrapped":false}]`)), ""},
		{list(table(grid(1, 1, "x"), `,"column_settings":[{"align":"up"}]`)), "invalid_blocks"},
		{list(table(grid(1, 1, "x"), `,"column_settings":[{"align":""}]`)), "invalid_blocks"},
		{list(table(grid(1, 1, "x"), `,"column_settings":[null]`)), "invalid_blocks"},
		{list(table(grid(1, 1, "x"), `,"column_settings":[{"wide":true}]`)), "invalid_blocks"},
		{list(table(grid(1, 1, "x"), `,"column_settings":[`+strings.TrimSuffix(strings.Repeat(`{},`, 21), ",")+`]`)), "invalid_blocks"},
		{list(table(grid(1, 1, "x"), `,"caption":"x"`)), "invalid_blocks"},
	} {
		err := CheckBlocks([]byte(c.blocks))
		var refused *blockError
		if errors.As(err, &refused); (err != nil) != (c.want != "") || err != nil && refused.code != c.want {
			t.Errorf("%.120s: %v, want %q", c.blocks, err, c.want)
		}
	}
	for _, block := range []string{md("hi"), table(grid(1, 1, "x"), "")} {
		if c := (&checker{view: true, limit: maxViewBlocks}); c.blocks(must(readBlocks([]byte(list(block))))) == nil {
			t.Errorf("a view takes %s", block)
		}
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
