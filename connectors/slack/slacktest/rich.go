package slacktest

import (
	"slices"
	"strings"
)

// The limits of docs.slack.dev/reference/block-kit/blocks/markdown-block and …/table-block, read
// 2026-11-30.
const (
	maxMarkdown     = 12_000 // of all markdown blocks of a message
	maxRows         = 100
	maxCells        = 20     // of a row, and settings of columns
	maxTableContent = 10_000 // of all cells of a message
)

// only refuses fields that Slack does not document.
func only(o object, fields ...string) error {
	for key := range o {
		if !slices.Contains(fields, key) {
			return invalid("unknown field %s of %v", key, o["type"])
		}
	}
	return nil
}

// markdown checks a block of Markdown.
func (c *checker) markdown(b object) error {
	text, ok := b["text"].(string)
	c.md += chars(text)
	c.chars += chars(text)
	if !ok || strings.TrimSpace(text) == "" || c.md > maxMarkdown || c.view {
		return invalid("markdown with %d characters, of 1 to %d in a message, or in a view", c.md, maxMarkdown)
	}
	return only(b, "type", "text", "block_id")
}

// table checks a table.
func (c *checker) table(b object) error {
	rows, _ := b["rows"].([]any)
	if c.tables++; c.tables > 1 || c.view || len(rows) == 0 || len(rows) > maxRows {
		return invalid("table %d of the message with %d rows, of 1 to %d, or in a view", c.tables, len(rows), maxRows)
	}
	for _, x := range rows {
		cells, _ := x.([]any)
		if len(cells) == 0 || len(cells) > maxCells {
			return invalid("a row has %d cells, of 1 to %d", len(cells), maxCells)
		}
		for _, x := range cells {
			if err := c.cell(x); err != nil {
				return err
			}
		}
	}
	if c.cells > maxTableContent {
		return invalid("the cells have %d characters, of %d", c.cells, maxTableContent)
	}
	columns, err := optional[[]any](b, "column_settings")
	if err != nil || len(columns) > maxCells {
		return invalid("column_settings: %v", b["column_settings"])
	}
	for _, x := range columns {
		o, _ := x.(object)
		align, err := optional[string](o, "align")
		if err == nil {
			_, err = optional[bool](o, "is_wrapped")
		}
		if err == nil {
			err = only(o, "align", "is_wrapped")
		}
		if err != nil || o == nil || o["align"] != nil && !slices.Contains([]string{"left", "center", "right"}, align) {
			return invalid("settings of a column: %v", x)
		}
	}
	return only(b, "type", "rows", "block_id", "column_settings")
}

// cell checks a cell of plain text; the bot sends no others.
func (c *checker) cell(x any) error {
	o, _ := x.(object)
	text, ok := o["text"].(string)
	if !ok || o["type"] != "raw_text" || text == "" {
		return invalid("a cell must be raw_text with a character or more: %v", x)
	}
	c.cells += chars(text)
	return only(o, "type", "text")
}

// grid is how a person reads a table: its rows on lines, with bars between the cells.
func grid(b object) string {
	var lines []string
	rows, _ := b["rows"].([]any)
	for _, x := range rows {
		var line []string
		cells, _ := x.([]any)
		for _, x := range cells {
			o, _ := x.(object)
			text, _ := o["text"].(string)
			line = append(line, text)
		}
		lines = append(lines, strings.Join(line, " │ "))
	}
	return strings.Join(lines, "\n")
}
