package react

import (
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// keepNewest is how many messages stay as they are beside a summary.
const keepNewest = 20

// A fold is a plan to replace old records by a summary.
//
//	… folded before │ old │ kept ……………………………… │ the new summary
//	                first start (20 messages, all of the run)
type fold struct {
	history []claybot.Record // what the agent remembers
	summary *claybot.Record  // that stands for what is before first; nil: nothing is
	first   int
	start   int
	run     int // where the records of the run begin; len(history): there are none
}

// plan finds what can be compacted. The newest messages and the run stay, also
// when that is more; the newest messages only as far as they leave room. No
// call is parted from its result.
func (w *window) plan(records []claybot.Record, run claybot.RunID) fold {
	f := fold{history: claybot.Restored(records)}
	for i, r := range slices.Backward(f.history) {
		if r.Type == claybot.RecordSummary {
			f.summary, f.first = &f.history[i], i-min(max(r.Keep, 0), i)
			break
		}
	}
	f.run = len(f.history)
	if i := slices.IndexFunc(f.history[f.first:], func(r claybot.Record) bool { return ofRun(r, run) }); i >= 0 {
		f.run = f.first + i
	}
	f.start = len(f.history)
	for left := keepNewest; left > 0 && f.start > f.first; {
		f.start--
		if shown(f.history[f.start]) {
			left--
		}
	}
	f.start = f.whole(min(f.start, f.run))
	most := max(w.bytes(w.room())*keptPart/100-w.fixed(), 0)
	for f.start < f.run && w.weigh(f.history[f.start:]) > most {
		f.start++
		for f.start < f.run && f.whole(f.start) != f.start {
			f.start++
		}
	}
	return f
}

// ofRun reports whether r is a record that the run needs to go on: a summary or
// a note is none.
func ofRun(r claybot.Record, run claybot.RunID) bool {
	return r.Run != "" && r.Run == run && shown(r)
}

// shown reports whether a record is a message of a chat.
func shown(r claybot.Record) bool {
	return r.Type != claybot.RecordSummary && llm.Bytes(&r) > 0
}

// whole is start, or an earlier place from which on each result has its call.
func (f fold) whole(start int) int {
	for at := start; ; start = at {
		called := map[string]bool{}
		for _, r := range f.history[start:] {
			for _, c := range r.ToolCalls {
				called[c.ID] = true
			}
			if r.Type != claybot.RecordTool || called[r.ToolCallID] {
				continue
			}
			if i := f.caller(start, r.ToolCallID); i >= 0 {
				at = min(at, i)
			}
		}
		if at == start {
			return start
		}
	}
}

// caller is where the newest call with an id stands before a place; -1 when
// there is none.
func (f fold) caller(before int, id string) int {
	for i := before - 1; i >= f.first; i-- {
		if slices.ContainsFunc(f.history[i].ToolCalls, func(c claybot.ToolCall) bool { return c.ID == id }) {
			return i
		}
	}
	return -1
}

// old are the records that will be compacted.
func (f fold) old() []claybot.Record {
	var old []claybot.Record
	for _, r := range f.history[f.first:f.start] {
		if shown(r) {
			old = append(old, r)
		}
	}
	return old
}

// keep is how many records directly before the end stay.
func (f fold) keep() int { return len(f.history) - f.start }

// before is the text of the summary so far.
func (f fold) before() string {
	if f.summary == nil {
		return ""
	}
	return f.summary.Text
}

// cut moves start to the first message of a person or of the system from which
// on the records fit beside a summary; where none does, it stays.
func (w *window) cut(f fold) fold {
	most := w.bytes(w.room())*keptPart/100 - w.fixed() - len(f.before())
	weight := w.weigh(f.history[f.start:])
	for i := f.start - 1; i >= f.first; i-- {
		if weight += w.weight(&f.history[i]); weight > most {
			break
		}
		if said(f.history[i]) {
			f.start = i
		}
	}
	return f
}
