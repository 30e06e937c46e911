package questions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// maxThere bounds the questions of a person that one message is compared with.
const maxThere = 1000

// A thereAsked is a question of another agent, such as that of a flow, that was asked in the chat of a
// message and is for its sender.
type thereAsked struct {
	storage.OpenQuestion
	run     claybot.Run
	replied bool // the message replies to the one that asks
}

// there returns the questions of other agents that a message may answer, the oldest first: typed ones, no
// approvals, that its sender could read before in the same place. One that replies to another
// message, was said to others, comes from a program or a recording, has files, or had a secret in it answers
// none.
func (x *TextAnswers) there(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (all []thereAsked, err error) {
	if !to.Foreground() || m.From.Program || m.Spoken || m.Context.Unaddressed || len(m.Masked) > 0 || len(m.Files) > 0 {
		return nil, nil
	}
	if m.At == 0 {
		m.At = claybot.Now()
	}
	by := m.Speaker(to)
	open, err := x.ledger.asked.OpenQuestionsFor(ctx, x.respondents.people.Identities(by), maxThere)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	repliedTo, err := x.notices.repliedTo(ctx, to, m)
	if err != nil {
		return nil, err
	}
	for _, q := range open {
		if q.Type == claybot.QuestionConfirm || q.Explicit || q.Expires <= claybot.Now() {
			continue
		}
		e, err := x.ledger.index.IndexedAgentByID(ctx, q.Agent)
		if err == nil && (e.Descriptor.Foreground() || !x.respondents.May(q.Question, e.Descriptor, by)) {
			continue
		}
		var run claybot.Run
		if err == nil {
			run, err = x.ledger.runs.Run(ctx, q.Run)
		}
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if run.State != claybot.RunAwaiting || run.Cancel != "" {
			continue
		}
		here, replied, err := x.notices.askedIn(ctx, q.Question, to, by, m, repliedTo)
		if err != nil {
			return nil, err
		}
		if here {
			all = append(all, thereAsked{q, run, replied})
		}
	}
	return all, nil
}

// askedIn reports whether a question was asked in the place where a message was written, and could be
// read before, and whether the message replies to it, or to the notice that an answer did not fit.
func (n *Notices) askedIn(ctx context.Context, q claybot.Question, to claybot.Descriptor, by string, m claybot.AgentMessage, repliedTo []claybot.Outgoing) (here, replied bool, err error) {
	for place := 1; place <= len(q.Approvers); place++ {
		if !slices.Contains(n.respondents.people.Identities(q.Approvers[place-1]), by) {
			continue
		}
		first, err := n.outbox.OutgoingByID(ctx, questionOutgoing(q, place, 1))
		if errors.Is(err, storage.ErrNotFound) || err == nil && (first.Route.Connector != to.Connector || first.Route.ChannelID != to.ChannelID) {
			continue
		}
		if err != nil {
			return false, false, err
		}
		parts, read, err := n.asked(ctx, q, place, m.At)
		if err != nil {
			return false, false, err
		}
		if !read {
			continue
		}
		for _, o := range repliedTo {
			if strings.HasPrefix(o.ID, "unfit/"+q.ID) {
				parts = append(parts, o)
			}
		}
		if slices.ContainsFunc(parts, func(o claybot.Outgoing) bool {
			return o.Receipt != "" && (o.Receipt == m.Context.Answers || o.Receipt == m.Context.ThreadID)
		}) {
			return true, true, nil
		}
		here = here || m.Context.Answers == "" && first.Route.ThreadID == m.Context.ThreadID
	}
	return here, false, nil
}

// repliedTo returns the messages to the chat of an agent that a message replies to. As settled does, it waits
// a moment while the newest one in that chat may not have its receipt yet.
func (n *Notices) repliedTo(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (sent []claybot.Outgoing, err error) {
	if m.Context.Answers == "" {
		return nil, nil
	}
	dest := claybot.Route{Connector: to.Connector, ChannelID: to.ChannelID}.Dest()
	for range settleTries {
		// Before the look-up: the receipt may be stored in between.
		unsent, err := n.outbox.Unsent(ctx, dest, 0, 1)
		if err != nil {
			return nil, err
		}
		sent, err = n.outbox.SentAs(ctx, dest, m.Context.Answers)
		if err != nil || len(sent) > 0 || len(unsent) == 0 || unsent[0].State != claybot.SendAttempted {
			return sent, err
		}
		settlePause(ctx)
	}
	return nil, nil
}

// pauseFor is the pause of the run that asks one of these questions.
func (x *TextAnswers) pauseFor(agent claybot.Agent, by string, q thereAsked, text string) pause {
	return pause{
		answers: x, agent: agent, asker: q.Agent, run: q.run, by: by, text: text, open: []claybot.Question{q.Question},
		other: true, replied: q.replied,
	}
}

// meant returns the pause that a message answers: that of the agent itself, or of another one that
// asked in the same chat. A reply answers the question that it replies to, and a text that begins with the id of
// one, that one. which are the questions of which the sender has to choose.
func (x *TextAnswers) meant(ctx context.Context, own pause, m claybot.AgentMessage) (w pause, which []claybot.Question, err error) {
	there, err := x.there(ctx, own.agent.Descriptor, m)
	if err != nil || len(there) == 0 {
		return own, nil, err
	}
	all := slices.Clone(own.open)
	for _, q := range there {
		all = append(all, q.Question)
	}
	named, rest, isNamed := byID(all, m.Text)
	for _, q := range there {
		switch {
		case isNamed && q.ID == named.ID:
			q.replied = true
			return x.pauseFor(own.agent, own.by, q, rest), nil, nil
		case q.replied && !isNamed:
			return x.pauseFor(own.agent, own.by, q, m.Text), nil, nil
		}
	}
	if isNamed {
		own.open, own.text = []claybot.Question{named}, rest
		return own, nil, nil
	}
	if len(own.open) > 0 && !own.elsewhere(m.Text) {
		replied, err := x.notices.repliesTo(ctx, own.open, m)
		if replied || err != nil {
			return own, nil, err
		}
		own.open = all
		return own, all, nil
	}
	if len(there) > 1 {
		return pause{answers: x, agent: own.agent, other: true, by: own.by}, all[len(own.open):], nil
	}
	return x.pauseFor(own.agent, own.by, there[0], m.Text), nil, nil
}

// repliesTo reports whether a message replies to one that asks questions where their run answers.
func (n *Notices) repliesTo(ctx context.Context, qs []claybot.Question, m claybot.AgentMessage) (bool, error) {
	if m.Context.Answers == "" {
		return false, nil
	}
	for _, q := range qs {
		parts, _, err := n.asked(ctx, q, 0, m.At)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(parts, func(o claybot.Outgoing) bool { return o.Receipt == m.Context.Answers }) {
			return true, nil
		}
	}
	return false, nil
}

// repliedFirst returns questions that a run asks together, the one first that a message replies to: a text
// answers the first one.
func (n *Notices) repliedFirst(ctx context.Context, qs []claybot.Question, m claybot.AgentMessage) ([]claybot.Question, error) {
	for i := 1; i < len(qs); i++ {
		replied, err := n.repliesTo(ctx, qs[i:i+1], m)
		if err != nil {
			return nil, err
		}
		if replied {
			return append([]claybot.Question{qs[i]}, slices.Delete(slices.Clone(qs), i, i+1)...), nil
		}
	}
	return qs, nil
}

// idPrefix is how much of the id of a question begins a text that answers it.
const idPrefix = 6

// byID returns the question whose id a text begins with, in the form "id: answer", and the answer.
func byID(qs []claybot.Question, text string) (q claybot.Question, rest string, ok bool) {
	id, rest, has := strings.Cut(strings.TrimSpace(text), ":")
	id = strings.ToLower(strings.Trim(id, " \t*`"))
	if !has || len(id) < idPrefix {
		return q, "", false
	}
	i := slices.IndexFunc(qs, func(q claybot.Question) bool { return strings.HasPrefix(q.ID, id) })
	if i < 0 {
		return q, "", false
	}
	return qs[i], strings.TrimSpace(rest), true
}

// unclear asks which of several questions a text answers. Where no run of the agent itself waits for it,
// it does so once: what is written then goes to the agent.
func (p pause) unclear(ctx context.Context, which []claybot.Question, out *storage.Posting) error {
	notice := p.say(out.Message, texts.Of(ctx).WhichQuestion(which))
	if len(notice) == 0 {
		return nil
	}
	if p.other {
		told := "which/" + which[len(which)-1].ID
		known, err := p.told(ctx, told)
		if known || err != nil {
			return err
		}
		notice[0].ID = told
	}
	out.Skip, out.Replies = SkippedUnfit, notice
	return nil
}

// told reports whether a notice was sent already.
func (p pause) told(ctx context.Context, id string) (bool, error) {
	_, err := p.answers.outbox.OutgoingByID(ctx, id)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, storage.ErrNotFound):
		return false, nil
	}
	return false, fmt.Errorf("look up the notice about an invalid answer: %w", err)
}

// Answers reports whether a message answers a question of another agent in its chat. It is to be
// asked before a message starts anything else.
func (x *TextAnswers) Answers(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	if !m.FirstHand || m.Type != claybot.MessageUser || m.Engine != "" {
		return false, nil
	}
	there, err := x.there(ctx, to, m)
	if err != nil {
		return false, err
	}
	var all []claybot.Question
	for _, q := range there {
		if q.replied {
			return true, nil
		}
		all = append(all, q.Question)
	}
	if _, _, named := byID(all, m.Text); named || len(there) != 1 {
		return named, nil
	}
	_, faults, _ := x.pauseFor(claybot.Agent{Descriptor: to}, "", there[0], m.Text).tried(texts.Of(ctx))
	return len(faults) == 0, nil
}

// recoverThere applies the consequences of an answer to a question of another agent that an earlier process
// stored in the chat where it was asked.
func (x *TextAnswers) recoverThere(ctx context.Context, q storage.OpenQuestion) error {
	for place := 1; place <= len(q.Approvers); place++ {
		first, err := x.outbox.OutgoingByID(ctx, questionOutgoing(q.Question, place, 1))
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		agents, err := x.ledger.index.ChannelAgents(ctx, first.Route.Connector, first.Route.ChannelID)
		if err != nil {
			return err
		}
		for _, e := range agents {
			r, err := x.ledger.receipts.LastReceipt(ctx, e.ID)
			if errors.Is(err, storage.ErrNotFound) || err == nil && (r.Message.Answer == nil || r.Message.Answer.RunID != q.Run) {
				continue
			}
			if err != nil {
				return err
			}
			chat := claybot.Agent{ID: e.ID, Descriptor: e.Descriptor}
			w := pause{answers: x, agent: chat, asker: q.Agent, run: claybot.Run{ID: q.Run, Agent: q.Agent}, by: r.Message.Speaker(e.Descriptor), other: true}
			if err := w.follow(ctx, r.Message); err != nil {
				return err
			}
		}
	}
	return nil
}
