package worker

import (
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// A tally is the usage and the side effects of a run so far.
type tally struct {
	usage   claybot.Usage
	calls   []storage.ModelCall // that usage is made of
	context int64               // tokens of the newest request
	effects []claybot.Undo      // that can be undone
	acted   bool                // a tool that does more than read was started
}

// used counts a model call or a tool call.
func (t *tally) used(u claybot.Usage) {
	t.usage = t.usage.Add(u)
	if u.LLMCalls > 0 {
		t.context = u.Input
	}
}

// called counts the model call of a record, without its usage.
func (t *tally) called(r claybot.Record) {
	if r.Tokens != nil {
		t.calls = append(t.calls, storage.ModelCall{Model: r.Model, Usage: *r.Tokens, MS: r.MS})
	}
}

// earlier counts what a record of an earlier pass used.
func (t *tally) earlier(r claybot.Record) {
	t.called(r)
	if r.Tokens != nil {
		t.usage = t.usage.Add(*r.Tokens)
	}
	if r.Tokens != nil && !isCharge(r) {
		t.context = r.Tokens.Input
	}
	if r.Type == claybot.RecordTool {
		t.usage.ToolCalls++
	}
}

// started notes that a tool was started, with its effect class as ToolStarted has it.
func (t *tally) started(effect string) {
	t.acted = t.acted || effect != tools.ReadOnly.String()
}

// affect records an effect that can be undone. All additions of one call are one effect.
func (t *tally) affect(u claybot.Undo) {
	same := func(x claybot.Undo) bool {
		return u.Call != nil && x.Call != nil && u.Call.Name == x.Call.Name && u.Call.Args == x.Call.Args
	}
	if !slices.ContainsFunc(t.effects, same) {
		t.effects = append(t.effects, u)
	}
}

// undoable reports whether one of the effects can be undone.
func (t *tally) undoable() bool {
	return slices.ContainsFunc(t.effects, func(u claybot.Undo) bool { return u.Call != nil })
}

// isCharge reports whether r is a note that only counts usage.
func isCharge(r claybot.Record) bool { return r.Type == claybot.RecordNote && r.Tokens != nil }
