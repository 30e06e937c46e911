package worker

import "github.com/claybot/claybot"

// visible leaves out the hidden records of a history: those of other runs
// without memory, or, without memory itself, those of all other runs. Summaries
// keep as many of the records before them as are left.
func visible(all []claybot.Record, hidden func(claybot.Record) bool) []claybot.Record {
	seen := make([]claybot.Record, 0, len(all))
	places := make([]int, 0, len(all)) // of the seen ones in all
	for i, r := range all {
		if hidden(r) {
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
func keptInFile(all []claybot.Record, hidden func(claybot.Record) bool, keep int) int {
	n := 0
	for i := len(all) - 1; i >= 0 && keep > 0; i-- {
		if all[i].Type != claybot.RecordSummary {
			n++
		}
		if !hidden(all[i]) {
			keep--
		}
	}
	return n
}

// unanswered are the messages of a run behind the last record that the model or a tool
// made in it.
func unanswered(records []claybot.Record, run claybot.RunID) (ids []claybot.MessageID) {
	for _, r := range records {
		switch {
		case r.Run != run:
		case r.Type == claybot.RecordAssistant || r.Type == claybot.RecordTool:
			ids = nil
		case r.MessageID != "":
			ids = append(ids, r.MessageID)
		}
	}
	return ids
}

// leftOut are the messages that models no longer see: those that were not answered in
// runs that were given up. It is nil for none.
func leftOut(records []claybot.Record) map[claybot.MessageID]bool {
	var out map[claybot.MessageID]bool
	for _, r := range records {
		if r.Type != claybot.RecordNote || !r.Interrupted {
			continue
		}
		if out == nil {
			out = make(map[claybot.MessageID]bool)
		}
		for _, id := range unanswered(records, r.Run) {
			out[id] = true
		}
	}
	return out
}
