package worker

import (
	"slices"

	"github.com/claybot/claybot"
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
// tool.
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

// leftOut returns the messages that models no longer see: the unanswered ones of runs
// that were given up. It is nil for none.
func leftOut(records []claybot.Record) map[claybot.MessageID]bool {
	var out map[claybot.MessageID]bool
	for i := range records {
		r := &records[i]
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
