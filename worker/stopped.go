package worker

import (
	"context"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// stopStopped is why the record of a stopped answer ends.
const stopStopped = "canceled"

// A growing is the text of the step that a model is writing.
type growing struct {
	mu   sync.Mutex
	step int
	text string
}

func (g *growing) set(step int, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.step, g.text = step, text
}

// after is the text of a step that comes after one; empty when there is none yet.
func (g *growing) after(step int) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.step <= step {
		return ""
	}
	return strings.TrimSpace(g.text)
}

// keepPartial records what a stopped run had written of its answer, marked as
// stopped, and returns it: empty where it had written nothing. The record is one of
// the assistant, so that the page shows it after a reload and the model knows what the
// person has read. A new conversation remembers nothing of the run, so by says who
// stopped it.
func (p *pass) keepPartial(ctx context.Context, by string) (string, error) {
	if by == "reset" || p.history == nil || !p.repaired {
		return "", nil
	}
	text := p.growing.after(p.step)
	if runs.IsNoReply(text) || runs.MayBeNoReply(text) {
		text = ""
	}
	if text != "" {
		err := p.record(ctx, claybot.Record{
			Type: claybot.RecordAssistant, At: claybot.Now(), Run: p.run.ID, Step: p.step + 1,
			Text: text + "\n\n" + texts.MarkStopped, Stop: stopStopped,
		})
		if err != nil {
			return "", err
		}
	}
	text = strings.Join(p.answer, "")
	if strings.TrimSpace(text) == "" || runs.IsNoReply(text) {
		return "", nil
	}
	if !strings.HasSuffix(text, texts.MarkStopped) { // it was whole, and stopped in the last moment
		text += "\n\n" + texts.MarkStopped
	}
	return text, nil
}

// stoppedReply is what a reader keeps of a stopped answer: where they saw it grow,
// its text takes the place of what stands there.
func (p *pass) stoppedReply(partial string) []claybot.Outgoing {
	begun := p.live.shown()
	d := p.live.draft()
	switch {
	case d != nil && d.Receipt != "" && partial != "":
		return p.reply(claybot.OutgoingAnswer, partial)
	case d != nil && d.Receipt != "":
		return p.reply(claybot.OutgoingNotice, strings.TrimSpace(begun+"\n\n"+texts.MarkStopped))
	case p.live.preview != nil && partial != "":
		return p.reply(claybot.OutgoingAnswer, partial)
	}
	return nil
}
