package worker

import (
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// visible returns a history without hidden records: those of other runs without
// memory or, for a run without memory, those of all other runs. It adjusts the
// counts of records that summaries keep. A history with nothing hidden is returned
// as it is.
func visible(all []claybot.Record, hidden func(*claybot.Record) bool) []claybot.Record {
	first := 0
	for first < len(all) && !hidden(&all[first]) {
		first++
	}
	if first == len(all) {
		return slices.Clip(all)
	}
	seen := make([]claybot.Record, 0, len(all))
	places := make([]int, 0, len(all)) // of the seen ones in all
	for i, r := range all {
		if i >= first && hidden(&r) {
			continue
		}
		if r.Type == claybot.RecordSummary {
			first := i - r.Keep
			keep := 0
			for k := len(places) - 1; k >= 0 && places[k] >= first; k-- {
				keep++
			}
			r.Keep = keep
		}
		seen = append(seen, r)
		places = append(places, i)
	}
	return seen
}

// keptInFile is how many of the last records of all hold the last keep visible
// ones. Older summaries do not count in a file: none is kept.
func keptInFile(all []claybot.Record, hidden func(*claybot.Record) bool, keep int) int {
	n := 0
	for i := len(all) - 1; i >= 0 && keep > 0; i-- {
		if all[i].Type != claybot.RecordSummary {
			n++
		}
		if !hidden(&all[i]) {
			keep--
		}
	}
	return n
}

// unanswered returns the messages of a run after its last record of the model or a
// tool, and the call with which their skill was used, if any: no model has made it.
func unanswered(records []claybot.Record, run claybot.RunID) (ids []claybot.MessageID, used string) {
	for _, r := range records {
		switch {
		case r.Run != run:
		case usesSkill(r):
			used = r.ToolCalls[0].ID
		case r.Type == claybot.RecordTool && used != "" && r.ToolCallID == used:
		case r.Type == claybot.RecordAssistant || r.Type == claybot.RecordTool:
			ids, used = nil, ""
		case r.MessageID != "":
			ids = append(ids, r.MessageID)
		}
	}
	return ids, used
}

// usesSkill reports whether a record is the use of a skill by a command: a call without a model.
func usesSkill(r claybot.Record) bool {
	return r.Type == claybot.RecordAssistant && r.Tokens == nil && len(r.ToolCalls) == 1 && r.ToolCalls[0].Name == tools.UseSkill
}

// omitted are the records that models no longer see.
type omitted struct {
	messages map[claybot.MessageID]bool
	used     map[claybot.RunID]string // the call of a skill by its command
}

// has is safe for nil.
func (o *omitted) has(r *claybot.Record) bool {
	if o == nil {
		return false
	}
	if r.MessageID != "" && o.messages[r.MessageID] {
		return true
	}
	call := o.used[r.Run]
	return call != "" && (r.ToolCallID == call || usesSkill(*r) && r.ToolCalls[0].ID == call)
}

// leftOut returns the records that models no longer see: the unanswered messages of runs
// that were given up. It is nil for none.
func leftOut(records []claybot.Record) *omitted {
	var out *omitted
	for i := range records {
		r := &records[i]
		if r.Type != claybot.RecordNote || !r.Interrupted {
			continue
		}
		if out == nil {
			out = &omitted{make(map[claybot.MessageID]bool), make(map[claybot.RunID]string)}
		}
		ids, used := unanswered(records, r.Run)
		for _, id := range ids {
			out.messages[id] = true
		}
		out.used[r.Run] = used
	}
	return out
}
