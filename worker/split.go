package worker

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// giveUp prepares the end of a run that is no longer retried. What the model has not
// answered yet did no harm to the world, but one of these messages may be what kills
// the process: none of them is shown to a model again. Where there are several
// messages, each of those comes again as a message of its own, which runs alone, so
// that the one at fault takes no other with it. It reports whether a recipient of the end
// is left.
func (p *pass) giveUp(ctx context.Context) (tell bool) {
	if p.history == nil {
		return true // what it has done is not known
	}
	records := p.history.Records()
	fresh := make(map[claybot.MessageID]bool)
	for _, id := range unanswered(records, p.run.ID) {
		fresh[id] = true
	}
	for _, m := range p.messages {
		if len(p.messages) == 1 || !fresh[m.ID] || m.Alone || m.Run != "" || m.Silent {
			tell = tell || !m.Silent
			continue
		}
		m.ID, m.Keys, m.Alone = m.ID+"/alone", nil, true
		p.again = append(p.again, storage.Posting{To: p.agent.ID, Message: m})
	}
	note := claybot.Record{
		Type: claybot.RecordNote, At: claybot.Now(), Run: p.run.ID, Level: "warn", Interrupted: true,
		Text: "given up; what was not answered is left out from here on",
	}
	if err := p.history.Buffer(ctx, note); err != nil { // the end of the run saves it
		p.log.Warn("failed to record that the run was given up", "err", err)
	}
	return tell
}

// unanswered are the messages of a run behind the last record that the model or a
// tool made in it.
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

// leftOut are the messages that models no longer see: those that were not
// answered in runs that were given up.
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
