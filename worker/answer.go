package worker

import (
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// An answer is the output of the model so far: the recorded texts, and the one that is
// being generated.
type answer struct {
	texts []string // of the assistant since the last tool call, or the last answer that was pushed back
	step  int      // of the newest assistant record
	sent  bool     // a tool has sent something

	mu      sync.Mutex
	growing string
	at      int // the step of the unfinished text
}

// note adds a record.
func (a *answer) note(r claybot.Record) {
	a.step = max(a.step, r.Step)
	a.sent = a.sent || r.Type == claybot.RecordTool && r.OK && slices.Contains(tools.Sends, r.Name)
	switch {
	case r.Type == claybot.RecordAssistant && len(r.ToolCalls) == 0:
		a.texts = append(a.texts, r.Text)
	case r.Type == claybot.RecordAssistant || r.Type == claybot.RecordTool || r.Kind == claybot.KindPushBack:
		a.texts = nil
	}
}

// text returns the final text so far.
func (a *answer) text() string { return strings.Join(a.texts, "") }

// report returns the final text for another agent, truncated; empty for NO_REPLY.
func (a *answer) report() string {
	text := strings.TrimSpace(a.text())
	if runs.IsNoReply(text) {
		return ""
	}
	return texts.Shorten(text, maxReport)
}

// grow sets the unfinished text of a step. It is safe for concurrent use.
func (a *answer) grow(step int, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at, a.growing = step, text
}

// unrecorded returns the text of a step without a record.
func (a *answer) unrecorded() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at <= a.step {
		return ""
	}
	return strings.TrimSpace(a.growing)
}

// partial returns the text that a stopped run leaves, with a mark that says so; empty for
// none.
func (a *answer) partial(mark string) string {
	text := a.text()
	if strings.TrimSpace(text) == "" || runs.IsNoReply(text) {
		return ""
	}
	if !strings.HasSuffix(text, mark) { // the text was complete when the run was stopped
		text += "\n\n" + mark
	}
	return text
}
