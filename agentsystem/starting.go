package agentsystem

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// started returns the message with which a flow begins, and its agent, if a trigger takes m; other
// messages stay as they are, and so does the answer to what a flow has asked in the chat. The parts of an album
// go where its first part went. The chat of a person notes first that they wrote there, as with any
// message, so that the flow can ask them. It is idempotent.
func (p *parking) started(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (claybot.Descriptor, claybot.AgentMessage, error) {
	if p.flows == nil || m.Type != claybot.MessageUser || m.Command != "" {
		return to, m, nil
	}
	m = p.intake.secrets.cleaned(m)
	first, known, err := p.firstPart(ctx, to, m)
	if err != nil || known && first.To == nil {
		return to, m, err
	}
	var flow claybot.Descriptor
	var start claybot.AgentMessage
	taken := known
	if known {
		flow, start = *first.To, first.with(to, m)
	} else if flow, start, taken = p.flows.Take(to, m); taken && !m.From.Program && !m.From.Bot {
		answers, err := p.intake.questions.Texts.Answers(p.people.Speaking(ctx, to, m), to, m)
		if answers || err != nil {
			return to, m, err
		}
	}
	if !known {
		if err := p.noteFirstPart(ctx, to, m, taken, flow, start); err != nil {
			return to, m, err
		}
	}
	if !taken || m.From.Program || m.From.Bot {
		return flow, start, nil
	}
	agent, err := p.intake.agents.AgentFor(ctx, to)
	if err == nil {
		note := claybot.AgentMessage{ID: m.ID + "/chat", Type: m.Type, At: m.At, From: m.From, Context: m.Context, Route: m.Route}
		note.Context.GroupID, note.Context.Quote = "", ""
		_, err = p.intake.post(ctx, agent, storage.Posting{To: agent.ID, Message: note, Skip: storage.SkippedFlow + startedBy(start)})
	}
	if err != nil {
		return to, m, fmt.Errorf("note the chat of %s: %w", m.ID, err)
	}
	return flow, start, nil
}

// startedBy is the name of the flow that a message starts.
func startedBy(m claybot.AgentMessage) string {
	if m.Flow == nil {
		return ""
	}
	return m.Flow.Name
}

// An albumStart is where the first part of an album went. A platform delivers the parts as messages of their
// own, and only one has the caption.
type albumStart struct {
	Message claybot.MessageID   `json:"message"`
	To      *claybot.Descriptor `json:"to,omitempty"` // the agent of a flow; nil: the chat's own agent
	Flow    *claybot.FlowStart  `json:"flow,omitempty"`
}

// with returns a further part: it goes with the run of the first one, and starts none.
func (a albumStart) with(to claybot.Descriptor, m claybot.AgentMessage) claybot.AgentMessage {
	route := m.ReplyRoute(to)
	m.Type, m.Kind, m.FirstHand, m.Spoken, m.Engine = claybot.MessageSystem, claybot.KindTrigger, false, false, ""
	m.Flow, m.Alone, m.Silent, m.Route = a.Flow, true, true, &route
	return m
}

// firstPart returns where an earlier part of the album of m went; known is false if m is the first one.
func (p *parking) firstPart(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (a albumStart, known bool, err error) {
	if m.Context.GroupID == "" || p.marks == nil {
		return a, false, nil
	}
	mark, err := p.marks.Checkpoint(ctx, firstPartMark(to, m))
	if err != nil || mark == "" {
		return a, false, err
	}
	_, said, _ := strings.Cut(mark, " ")
	if err := json.Unmarshal([]byte(said), &a); err != nil {
		return a, false, fmt.Errorf("read where the album of %s went: %w", m.ID, err)
	}
	return a, a.Message != m.ID, nil
}

// noteFirstPart stores where the first part of an album goes, before it goes there: a crash in between
// delivers it once more. It is removed after a day.
func (p *parking) noteFirstPart(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage, taken bool, flow claybot.Descriptor, start claybot.AgentMessage) error {
	if m.Context.GroupID == "" || p.marks == nil {
		return nil
	}
	a := albumStart{Message: m.ID}
	if taken {
		a.To, a.Flow = &flow, start.Flow
	}
	said, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return p.marks.SetCheckpoint(ctx, firstPartMark(to, m), fmt.Sprintf("%013d %s", claybot.Now(), said))
}

func firstPartMark(to claybot.Descriptor, m claybot.AgentMessage) string {
	return storage.CheckpointRepeats + "album-of/" + m.Speaker(to) + "/" + to.ChannelID + "/" + m.Context.GroupID
}
