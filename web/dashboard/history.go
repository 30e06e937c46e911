package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/claybot/claybot"
)

const (
	// historyLines is how many lines of a conversation are shown at once, and
	// historyMost how many when newer ones have come since the page was opened.
	historyLines = 40
	historyMost  = 200
	// textLimit is the most bytes of one text that a page carries.
	textLimit = 20_000
)

// A line is one line of a conversation. The results of tools are folded into
// the calls that they belong to.
type line struct {
	claybot.Record
	Key   string
	Calls []callView
}

// A callView is a tool call with what came of it.
type callView struct {
	claybot.ToolCall
	Result *claybot.Record // nil while it has not ended
}

// State is how far the call has come.
func (c callView) State() string {
	switch {
	case c.Result == nil:
		return "running"
	case c.Result.OK:
		return "ok"
	}
	return "failed"
}

// A historyView is a part of a conversation, the newest line at the end.
type historyView struct {
	Lines  []line
	Fresh  string // the address of these lines and what comes after them
	Before string // the address of those before them, empty at the beginning
	Total  int
}

func (b *agentPages) history(r *http.Request) (any, error) { return b.readHistory(r) }

// readHistory shows the lines from ?from= on, or those before ?before=, or the
// newest ones.
func (b *agentPages) readHistory(r *http.Request) (historyView, error) {
	records, err := b.agents.Remembered(r.Context(), agentOf(r))
	if err != nil {
		return historyView{}, err
	}
	all := linesOf(records)
	v := historyView{Total: len(all)}
	end := len(all)
	if n, err := strconv.Atoi(r.URL.Query().Get("before")); err == nil {
		end = min(max(n, 0), end)
	}
	start := max(0, end-historyLines)
	if n, err := strconv.Atoi(r.URL.Query().Get("from")); err == nil && n >= 0 && n < end && end-n <= historyMost {
		start = n // an older place than all is from before a reset
	}
	v.Lines = all[start:end]
	base := "/ui/agents/" + url.PathEscape(string(agentOf(r)))
	v.Fresh = fmt.Sprintf("%s/history?from=%d", base, start)
	if start > 0 {
		v.Before = fmt.Sprintf("%s/earlier?before=%d", base, start)
	}
	return v, nil
}

// linesOf folds records into lines. A result without its call stands alone; what
// a graph notes for itself is left out.
func linesOf(records []claybot.Record) []line {
	lines := make([]line, 0, len(records))
	type place struct{ line, call int }
	calls := make(map[string]place)
	for i, rec := range records {
		if rec.Type == claybot.RecordNode { // the page of the run has its graph
			continue
		}
		rec.Text = clip(rec.Text)
		if rec.Type == claybot.RecordTool {
			if at, ok := calls[rec.ToolCallID]; ok {
				lines[at.line].Calls[at.call].Result = &rec
				delete(calls, rec.ToolCallID) // ids may come again in later steps
				continue
			}
		}
		l := line{Record: rec, Key: fmt.Sprintf("line-%d", i)}
		for n, c := range rec.ToolCalls {
			c.Args = clip(c.Args)
			l.Calls = append(l.Calls, callView{ToolCall: c})
			calls[c.ID] = place{len(lines), n}
		}
		lines = append(lines, l)
	}
	return lines
}

// clip cuts a text that is too long for a page, and says so.
func clip(text string) string {
	if len(text) <= textLimit {
		return text
	}
	end := textLimit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "\n… cut here: " + grouped(int64(len(text)-end)) + " more bytes are in the history of the agent."
}
