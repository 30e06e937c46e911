package worker

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
)

// lost is Turn.Lost.
func (p *pass) lost(model string, u claybot.Usage) {
	u.LLMCalls = max(u.LLMCalls, 1)
	p.charge(model, "a call of the model came to nothing", u)
}

// charge counts what leaves no record of its own. A note in history keeps it, as
// the sums of a run are made of its records; the engine does not see the note.
func (p *pass) charge(model, text string, u claybot.Usage) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.box.Context()), storeTime)
	defer cancel()
	note := claybot.Record{
		Type: claybot.RecordNote, At: claybot.Now(), Run: p.run.ID, Level: "info", Text: text,
		Model: model, Tokens: &u, Aside: p.profile.Forget,
	}
	if err := p.history.Append(ctx, note); err != nil {
		p.broken = fmt.Errorf("append history: %w", err)
		return
	}
	if p.repaired { // else that counts it with the others
		p.usage = p.usage.Add(u)
		p.spend(note)
	}
}

// isCharge reports a note that only counts something.
func isCharge(r claybot.Record) bool { return r.Type == claybot.RecordNote && r.Tokens != nil }
