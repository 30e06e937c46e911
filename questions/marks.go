package questions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// ByTime and ByMessage say what ended a run with open questions: their expiry, or a message
// that answers none of them.
const (
	ByTime    = "timeout"
	ByMessage = "message"
)

// Messages are the messages that ask, each where the people are who may answer. o has
// what they have in common, and the route of the run.
func (s *Questions) Messages(ctx context.Context, agent claybot.Agent, o claybot.Outgoing, qs []claybot.Question) (out []claybot.Outgoing, err error) {
	for i, q := range qs {
		own, others := agent.Descriptor.Foreground(), false
		switch {
		case own && s.MayAnswer(q, agent.Descriptor, agent.Descriptor.OwnerID()):
			out = append(out, s.parts(q, 0, o, texts.Question(q, i, qs, agent.Descriptor.Connector, s.Zone()))...)
		case own && len(q.Approvers) > 0:
			others = true
		}
		elsewhere, err := s.askElsewhere(ctx, agent, o, q)
		if err != nil {
			return nil, err
		}
		if others {
			for k, x := range s.Sender.Compose(o, texts.OthersDecide(q, len(elsewhere) > 0)) {
				x.ID = questionOutgoing(q, 0, k+1)
				out = append(out, x)
			}
		}
		out = append(out, elsewhere...)
	}
	return out, nil
}

// parts are the parts of one message that asks q; the last one has the buttons.
func (s *Questions) parts(q claybot.Question, place int, o claybot.Outgoing, text string) []claybot.Outgoing {
	out := s.Sender.Compose(o, text)
	for k := range out {
		out[k].ID = questionOutgoing(q, place, k+1)
	}
	if len(out) > 0 {
		out[len(out)-1].Question = &q
	}
	return out
}

// askElsewhere asks the approvers of a question where they wrote last. The
// agent's own person is asked where the run answers. It logs approvers without a chat:
// local operators count as one person, asked in any of their chats.
func (s *Questions) askElsewhere(ctx context.Context, agent claybot.Agent, o claybot.Outgoing, q claybot.Question) (out []claybot.Outgoing, err error) {
	var asked, missing []string
	for i, owner := range q.Approvers {
		if agent.Descriptor.Foreground() && slices.Contains(s.People.Identities(owner), agent.Descriptor.OwnerID()) {
			asked = append(asked, owner)
			continue
		}
		e, err := s.People.PlaceOf(ctx, owner)
		if errors.Is(err, storage.ErrNotFound) {
			missing = append(missing, owner)
			continue
		}
		if err != nil {
			return nil, err
		}
		c, err := s.People.LastContext(ctx, e.ID)
		if err != nil {
			return nil, err
		}
		o.Route = claybot.AgentMessage{Context: c}.ReplyRoute(e.Descriptor)
		out = append(out, s.parts(q, i+1, o, texts.Elsewhere(q, s.Zone()))...)
		asked = append(asked, owner)
	}
	console := func(owner string) bool { return slices.Contains(people.OperatorConsoles, owner) }
	for _, owner := range missing {
		if !console(owner) || !slices.ContainsFunc(asked, console) {
			s.Log.Warn("approver has no chat with claybot, not asked", "agent", agent.ID, "run", o.Run, "approver", owner, "question", q.ID)
		}
	}
	return out, nil
}

// questionOutgoing is the id of a part of a message that asks q. Place 0 is where
// the run answers, the others are those of the approvers, in their order.
func questionOutgoing(q claybot.Question, place, part int) string {
	if place > 0 {
		return fmt.Sprintf("question/%s@%d/%d", q.ID, place, part)
	}
	return fmt.Sprintf("question/%s/%d", q.ID, part)
}

// Closes is when a question expires. It is 0 for one that no run was paused for:
// the process crashed before, so the question was never shown and its time starts again.
func (s *Questions) Closes(ctx context.Context, id string) (claybot.Time, error) {
	q, err := s.Asked.Question(ctx, id)
	return q.Expires, storage.Ignore(err, storage.ErrNotFound)
}

// Answered returns the answer to a question, which is its default once it has expired, or
// nil while it is open.
func (s *Questions) Answered(ctx context.Context, run claybot.Run, q claybot.Question) (*claybot.Answer, error) {
	a, err := s.answerOf(ctx, q)
	if a != nil || err != nil || run.Cancel != "" || q.Expires == 0 || claybot.Now() < q.Expires {
		return a, err
	}
	// An expiry is posted as a message like any answer, so only one of concurrent
	// answers counts.
	late := claybot.Answer{Question: q.ID, Value: s.defaultOf(q), Via: claybot.ViaDefault}
	if _, err := s.PostAnswer(ctx, run.Agent, run.ID, late); err != nil {
		return nil, fmt.Errorf("post the default of question %s: %w", q.ID, err)
	}
	return s.answerOf(ctx, q)
}

// defaultOf returns the answer to a question that expired, or nil. An expired approval is
// denied.
func (s *Questions) defaultOf(q claybot.Question) json.RawMessage {
	if q.Type == claybot.QuestionConfirm {
		return json.RawMessage("false")
	}
	if q.Default == "" {
		return nil
	}
	v, err := q.Check(q.Default, s.Zone())
	if err != nil {
		return nil
	}
	return v
}

// Mark edits the messages of a question to show its answer, and removes their buttons.
func (s *Questions) Mark(ctx context.Context, q claybot.Question, a claybot.Answer) error {
	out, err := s.replaced(ctx, q, "answered", texts.Answered(q, a))
	if err != nil || len(out) == 0 {
		return err
	}
	for i := range out { // what was typed stands there already
		out[i].EditOnly = a.Via == claybot.ViaText
	}
	if _, err := s.Sender.Send(ctx, out...); err != nil {
		return fmt.Errorf("show an answer: %w", err)
	}
	return nil
}

// Withdraw returns what closes the messages of questions that were not answered.
func (s *Questions) Withdraw(ctx context.Context, open []claybot.Question) (all []claybot.Outgoing, err error) {
	for _, q := range open {
		out, err := s.replaced(ctx, q, "withdrawn", texts.Withdrawn(q))
		if err != nil {
			return nil, err
		}
		for i := range out {
			out[i].EditOnly = true
		}
		all = append(all, out...)
	}
	return all, nil
}

// replaced are the messages that take the places of those that asked q: of the
// last part of each, which has the buttons.
func (s *Questions) replaced(ctx context.Context, q claybot.Question, end, text string) (all []claybot.Outgoing, err error) {
	for place := range 1 + len(q.Approvers) {
		first, err := s.Outbox.OutgoingByID(ctx, questionOutgoing(q, place, 1))
		if errors.Is(err, storage.ErrNotFound) {
			continue // not sent there
		}
		if err != nil {
			return nil, fmt.Errorf("find the message of a question: %w", err)
		}
		o := claybot.Outgoing{Kind: first.Kind, Run: first.Run, Agent: first.Agent, Message: first.Message, Route: first.Route}
		out := s.Sender.Compose(o, text)
		if len(out) == 0 {
			continue
		}
		o = out[0]
		asked := questionOutgoing(q, place, first.Parts)
		o.ID, o.EditOf, o.Shown = asked+"/"+end, asked, "question/"+q.ID
		o.Part, o.Parts = 1, 1
		all = append(all, o)
	}
	return all, nil
}
