package questions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
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

// Notices are the messages that ask questions, and what replaces them.
type Notices struct {
	ledger      *Ledger
	respondents Respondents
	readers     Readers
	outbox      Outbox
	sender      Sender
	log         *slog.Logger
}

// Asking returns the messages that ask qs, addressed to the people who may answer. o has
// what they have in common, and the route of the run.
func (n *Notices) Asking(ctx context.Context, agent claybot.Agent, o claybot.Outgoing, qs []claybot.Question) (out []claybot.Outgoing, err error) {
	var here []claybot.Question
	for i, q := range qs {
		own, others := agent.Descriptor.Foreground(), false
		switch {
		case own && n.respondents.May(q, agent.Descriptor, personOf(q, agent.Descriptor)):
			parts := n.parts(q, 0, o, texts.Of(ctx).Question(q, i, qs, agent.Descriptor.Connector))
			here = append(here, q)
			if last := len(parts) - 1; last >= 0 && i > 0 && len(here) == len(qs) { // a connector that sends nothing has no parts
				parts[last].Round = round(here)
			}
			out = append(out, parts...)
		case own && len(q.Approvers) > 0:
			others = true
		}
		elsewhere, err := n.askElsewhere(ctx, agent, o, q)
		if err != nil {
			return nil, err
		}
		if others {
			for k, x := range n.sender.Compose(o, texts.Of(ctx).OthersDecide(q, len(elsewhere) > 0)) {
				x.ID = questionOutgoing(q, 0, k+1)
				out = append(out, x)
			}
		}
		out = append(out, elsewhere...)
	}
	return out, nil
}

// round returns questions that one form can ask; nil where one of them is an approval, which has buttons.
func round(qs []claybot.Question) []claybot.Question {
	if slices.ContainsFunc(qs, func(q claybot.Question) bool { return q.Type == claybot.QuestionConfirm }) {
		return nil
	}
	return qs
}

// parts returns the parts of one message that asks q; the last one has the buttons.
func (n *Notices) parts(q claybot.Question, place int, o claybot.Outgoing, text string) []claybot.Outgoing {
	out := n.sender.Compose(o, text)
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
func (n *Notices) askElsewhere(ctx context.Context, agent claybot.Agent, o claybot.Outgoing, q claybot.Question) (out []claybot.Outgoing, err error) {
	var asked, missing []string
	for i, owner := range q.Approvers {
		if agent.Descriptor.Foreground() && slices.Contains(n.respondents.people.Identities(owner), personOf(q, agent.Descriptor)) {
			asked = append(asked, owner)
			continue
		}
		e, err := n.readers.PlaceOf(ctx, owner)
		if errors.Is(err, storage.ErrNotFound) {
			missing = append(missing, owner)
			continue
		}
		if err != nil {
			return nil, err
		}
		c, err := n.readers.LastContext(ctx, e.ID)
		if err != nil {
			return nil, err
		}
		o.Route = claybot.AgentMessage{Context: c}.ReplyRoute(e.Descriptor)
		out = append(out, n.parts(q, i+1, o, n.readers.VoiceAt(ctx, e.Descriptor, o.Route).Elsewhere(q, o.Route))...)
		asked = append(asked, owner)
	}
	console := func(owner string) bool { return slices.Contains(people.OperatorConsoles, owner) }
	for _, owner := range missing {
		if !console(owner) || !slices.ContainsFunc(asked, console) {
			n.log.Warn("approver has no chat with claybot, not asked", "agent", agent.ID, "run", o.Run, "approver", owner, "question", q.ID)
		}
	}
	return out, nil
}

// questionOutgoing returns the id of a part of a message that asks q. Place 0 is where the
// run answers, the others are those of the approvers, in their order.
func questionOutgoing(q claybot.Question, place, part int) string {
	if place > 0 {
		return fmt.Sprintf("question/%s@%d/%d", q.ID, place, part)
	}
	return fmt.Sprintf("question/%s/%d", q.ID, part)
}

// Answered edits the messages of a question to show its answer, and removes their buttons.
func (n *Notices) Answered(ctx context.Context, q claybot.Question, a claybot.Answer) error {
	out, err := n.replaced(ctx, q, "answered", func(v texts.Voice) string { return v.Answered(q, a) })
	if err != nil || len(out) == 0 {
		return err
	}
	for i := range out { // a text answer is in the chat already
		out[i].EditOnly = a.Via == claybot.ViaText
	}
	if _, err := n.sender.Send(ctx, out...); err != nil {
		return fmt.Errorf("show an answer: %w", err)
	}
	return nil
}

// Expired edits the messages of a question that got no answer in time, and removes their buttons.
func (n *Notices) Expired(ctx context.Context, q claybot.Question) error {
	out, err := n.Withdrawn(ctx, []claybot.Question{q})
	if err == nil && len(out) > 0 {
		_, err = n.sender.Send(ctx, out...)
	}
	if err != nil {
		return fmt.Errorf("show that a question expired: %w", err)
	}
	return nil
}

// Withdrawn returns what closes the messages of questions that were not answered.
func (n *Notices) Withdrawn(ctx context.Context, open []claybot.Question) (all []claybot.Outgoing, err error) {
	for _, q := range open {
		out, err := n.replaced(ctx, q, "withdrawn", func(v texts.Voice) string { return v.Withdrawn(q) })
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

// replaced returns the messages that replace those that asked q: the last part of each,
// which has the buttons.
func (n *Notices) replaced(ctx context.Context, q claybot.Question, end string, say func(texts.Voice) string) (all []claybot.Outgoing, err error) {
	for place := range 1 + len(q.Approvers) {
		first, err := n.outbox.OutgoingByID(ctx, questionOutgoing(q, place, 1))
		if errors.Is(err, storage.ErrNotFound) {
			continue // not sent there
		}
		if err != nil {
			return nil, fmt.Errorf("find the message of a question: %w", err)
		}
		o := claybot.Outgoing{Kind: first.Kind, Run: first.Run, Agent: first.Agent, Message: first.Message, Route: first.Route}
		out := n.sender.Compose(o, say(n.readers.VoiceOf(ctx, o)))
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

// Pending adds a notice to a message that has to wait behind an open question, once for
// each question and, of a shared agent, each member. The notice commits together with the message. When the question cannot be
// read, the message has no notice.
func (n *Notices) Pending(ctx context.Context, agent claybot.Agent, p *storage.Posting) {
	if p.Skip != "" || p.Message.Type != claybot.MessageUser || !agent.Descriptor.Foreground() {
		return
	}
	_, q, ok, err := n.ledger.PausedRun(ctx, agent.ID)
	if err != nil {
		n.log.Warn("failed to look up the pending question", "agent", agent.ID, "message", p.Message.ID, "err", err)
		return
	}
	if !ok {
		return
	}
	by, id := p.Message.Speaker(agent.Descriptor), "pending/"+q.ID
	if agent.Descriptor.Shared() {
		id += "/" + by
	}
	out := n.sender.Compose(delivery.ReplyTo(agent, p.Message, claybot.OutgoingNotice), texts.Of(ctx).Pending(q, agent.Descriptor.Connector, n.respondents.May(q, agent.Descriptor, by)))
	for i := range out {
		out[i].ID = fmt.Sprintf("%s/%d", id, i+1)
	}
	p.Replies = append(p.Replies, out...)
}

// readBefore reports whether a person could read a question before they wrote a message:
// all of it had been sent to a chat of theirs.
func (n *Notices) readBefore(ctx context.Context, q claybot.Question, agent claybot.Agent, m claybot.AgentMessage) (bool, error) {
	by := m.Speaker(agent.Descriptor)
	for place := range 1 + len(q.Approvers) {
		if place > 0 && !slices.Contains(n.respondents.people.Identities(q.Approvers[place-1]), by) {
			continue
		}
		parts, read, err := n.asked(ctx, q, place, m.At)
		if err != nil {
			return false, err
		}
		if read && place == 0 && claybot.User(parts[0].Route.Connector, parts[0].Route.ChannelID, parts[0].Route.UserID).OwnerID() != by {
			continue // it was sent to another person
		}
		if read {
			return true, nil
		}
	}
	return false, nil
}

// asked returns the parts of the message that asks a question at one of its places, and whether
// all of them had been sent at a time.
func (n *Notices) asked(ctx context.Context, q claybot.Question, place int, at claybot.Time) (parts []claybot.Outgoing, read bool, err error) {
	read = true
	for part := 1; part == 1 || part <= parts[0].Parts; part++ {
		o, err := n.settled(ctx, questionOutgoing(q, place, part))
		if err != nil {
			return nil, false, storage.Ignore(err, storage.ErrNotFound)
		}
		parts = append(parts, o)
		read = read && o.State == claybot.SendSent && o.Tried <= at+grain
	}
	return parts, read, nil
}

// settled returns an outgoing message. It waits a moment for one whose attempt is not
// resolved yet, because its reader may be quicker than its receipt.
func (n *Notices) settled(ctx context.Context, id string) (o claybot.Outgoing, err error) {
	for range settleTries {
		o, err = n.outbox.OutgoingByID(ctx, id)
		if err != nil || o.State != claybot.SendAttempted {
			break
		}
		settlePause(ctx)
	}
	return o, err
}

// settleTries is how often a message that is being sent is looked up, with a settlePause in between.
const settleTries = 40

func settlePause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}

// grain is how coarse the times of messages are, in milliseconds: some platforms
// tell whole seconds.
const grain = 999
