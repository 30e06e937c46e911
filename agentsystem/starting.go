package agentsystem

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// skippedFlow is why a message has no run in the agent of its chat: a flow took it.
const skippedFlow = "flow"

// started returns the message with which a flow begins, and its agent, if a trigger takes m; other
// messages stay as they are, and so does the answer to what a flow has asked in the chat. The chat of a person notes first that they wrote there, as with any
// message, so that the flow can ask them. It is idempotent.
func (p *parking) started(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (claybot.Descriptor, claybot.AgentMessage, error) {
	if p.flows == nil || m.Type != claybot.MessageUser || m.Command != "" {
		return to, m, nil
	}
	m = p.intake.cleaned(m)
	flow, start, taken := p.flows.Take(to, m)
	if !taken || m.From.Program || m.From.Bot {
		return flow, start, nil
	}
	answers, err := p.intake.questions.Texts.Answers(p.people.Speaking(ctx, to, m), to, m)
	if answers || err != nil {
		return to, m, err
	}
	agent, err := p.intake.agents.AgentFor(ctx, to)
	if err == nil {
		note := claybot.AgentMessage{ID: m.ID + "/chat", Type: m.Type, At: m.At, From: m.From, Context: m.Context, Route: m.Route}
		note.Context.GroupID, note.Context.Quote = "", ""
		_, err = p.intake.post(ctx, agent, storage.Posting{To: agent.ID, Message: note, Skip: skippedFlow})
	}
	if err != nil {
		return to, m, fmt.Errorf("note the chat of %s: %w", m.ID, err)
	}
	return flow, start, nil
}
