package slack

import (
	"slices"
	"strings"
	"unicode/utf8"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/texts"
)

// What mrkdwn cannot show is sent as blocks: a table as a table block, and the text around it, or one
// with headings, rules, nested lists or tasks, as markdown blocks. The text of the message stays for
// notifications, for readers of screens and for when Slack refuses the blocks.
//
// Shapes: docs.slack.dev/reference/block-kit/blocks/markdown-block and …/table-block, read 2026-11-30:
// all markdown blocks of a message have 12,000 characters at most, a table 100 rows of 20 cells, and all
// cells of a message 10,000 characters; a cell is not empty. A message has one table block. Cells are
// shown as they are. A markdown block is read by Slack: text that may mention a person there stays mrkdwn,
// in which all of it is escaped.

// layouts returns the blocks with which a message may be sent, the best ones first. The last are none,
// with which Slack shows the text.
func (c *Connector) layouts(v texts.Voice, o claybot.Outgoing, text string) (all [][]slackapi.Block) {
	below := c.controls(v, o)
	// A growing text changes its form once, at its end. A question stays in sections, which are always
	// expanded, because people must see what they approve.
	if !o.Progress && o.Question == nil {
		if blocks := rich(text); len(blocks) > 0 {
			all = append(all, append(blocks, below...))
		}
	}
	if len(below) > 0 {
		all = append(all, append(sections(text), below...))
	}
	return append(all, nil)
}

// rich returns the blocks of a text that mrkdwn cannot show as it is meant, nil for all others, and where they are
// too long: tables that are aligned text may be far longer than in Markdown.
func rich(md string) (all []slackapi.Block) {
	outline := connectors.OutlineOf(md)
	if len(outline.Tables) == 0 && (!outline.Structured || mayMention(md)) || utf8.RuneCountInString(md) > maxMarkdownChars {
		return nil
	}
	words, at, native, room := "", 0, false, maxMarkdownChars
	flush := func() {
		room -= utf8.RuneCountInString(words)
		switch text := strings.Trim(words, "\r\n"); {
		case strings.TrimSpace(text) == "":
		case mayMention(text):
			all = append(all, sections(text)...)
		default:
			all = append(all, slackapi.NewMarkdownBlock("", text))
		}
		words = ""
	}
	for _, t := range outline.Tables {
		words += md[at:t.From]
		at = t.To
		block := tableBlock(t)
		if native || block == nil {
			words += connectors.Fenced("", connectors.Render(md[t.From:t.To], connectors.Style{}))
			continue
		}
		flush()
		all, native = append(all, block), true
	}
	words += md[at:]
	if flush(); room < 0 {
		return nil
	}
	return all
}

// mentions matches what Slack may read as a mention of a person or a channel in Markdown, also where a backslash,
// marks or entities of HTML stand for its characters.
var mentions = lazyregexp.New(`(?i)<[^\s\pL\pN/=\-]|&(lt|#)|&(commat|excl|num);`)

// mayMention reports whether Slack could find a mention in md.
func mayMention(md string) bool { return mentions.MatchString(md) }

// tableBlock returns the block of a table, nil if it does not fit.
func tableBlock(t connectors.Table) slackapi.Block {
	if len(t.Rows) > maxTableRows || len(t.Align) > maxTableColumns {
		return nil
	}
	b, used := slackapi.NewTableBlock(""), 0
	for _, row := range t.Rows {
		cells := make([]slackapi.TableCell, len(row))
		for i, cell := range row {
			if cell == "" {
				cell = " "
			}
			used += utf8.RuneCountInString(cell)
			cells[i] = slackapi.NewTableRawTextCell(cell)
		}
		b.AddRow(cells...)
	}
	if used > maxTableChars {
		return nil
	}
	for _, align := range t.Align {
		b.ColumnSettings = append(b.ColumnSettings, slackapi.ColumnSetting{Align: slackapi.ColumnAlignment(align), IsWrapped: true})
	}
	return b
}

// apart cuts a text between its tables, because a message has one table block, and a table that does
// not fit into one message between its rows: each part of it begins with the headings. A text with many
// tables is not cut, because that would be a message for each of them. A part may be longer than limit.
func apart(md string, limit int) (parts []string) {
	at := 0
	add := func(to int) {
		if part := strings.Trim(md[at:to], "\r\n"); strings.TrimSpace(part) != "" {
			parts = append(parts, part)
		}
		at = to
	}
	tables := connectors.OutlineOf(md).Tables
	if len(tables) > maxTables {
		return []string{md}
	}
	for i, t := range tables {
		end := t.To
		if i == len(tables)-1 {
			end = len(md)
		}
		if whole(md[at:end], t, limit) {
			if i < len(tables)-1 {
				add(end)
			}
			continue
		}
		add(t.From)
		parts = append(parts, rowsApart(md[t.From:t.To], limit)...)
		at = t.To
	}
	if at == 0 {
		return []string{md}
	}
	add(len(md))
	return parts
}

// whole reports whether a text keeps its table t when it is split.
func whole(md string, t connectors.Table, limit int) bool {
	return len(t.Rows) <= maxTableRows && slices.ContainsFunc(connectors.Split(md, limit, escapedChars), func(part string) bool {
		tables := connectors.OutlineOf(part).Tables
		return len(tables) > 0 && len(tables[0].Rows) == len(t.Rows)
	})
}

// rowsApart cuts the lines of a table into tables with its headings. A row that does not fit stays as
// it is.
func rowsApart(table string, limit int) (parts []string) {
	lines := strings.Split(table, "\n")
	if len(lines) < 3 {
		return []string{table}
	}
	head, rows := strings.Join(lines[:2], "\n"), lines[2:]
	if escapedChars(head) > limit/2 { // else most of each message would be headings
		return []string{table}
	}
	for len(rows) > 0 {
		part, n := head+"\n"+rows[0], 1
		for n < min(len(rows), maxTableRows-1) && escapedChars(part)+1+escapedChars(rows[n]) <= limit {
			part += "\n" + rows[n]
			n++
		}
		parts, rows = append(parts, part), rows[n:]
	}
	return parts
}
