package agentsystem

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot/people"

	"github.com/claybot/claybot/texts"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

// What becomes of a question, in this order; a crash in between has the rest
// done by the next pass:
//
//	question record → the run is paused, with the message in the chat →
//	the answer, a message → the run goes on → answer record → result of the call

// byTime and byMessage are who ends a run that asks: time, when nobody answered,
// and a person who says something else.
const (
	byTime    = "timeout"
	byMessage = "message"
)

// asking prepares a pause in which a person is asked: the questions are
// recorded, each once, and it returns what the person is to read with the
// pause. What stands there of the answer is brought to an end, because the rest
// will come below the questions.
func (p *pass) asking(ctx context.Context, qs []claybot.Question) ([]claybot.Outgoing, error) {
	if len(qs) == 0 {
		return nil, nil
	}
	out := p.settleDraft()
	for _, q := range qs {
		if _, known := p.round[q.ID]; known {
			continue
		}
		if err := p.record(ctx, claybot.Record{Type: claybot.RecordQuestion, Question: &q}); err != nil {
			return nil, err
		}
	}
	asked, err := p.questions(ctx, qs)
	return append(out, asked...), err
}

// settleDraft makes the visible beginning of an answer a message of its own,
// with the whole text that came before the questions.
func (p *pass) settleDraft() []claybot.Outgoing {
	if p.live.draft() == nil {
		return nil
	}
	text := p.live.shown()
	for _, r := range slices.Backward(p.history.Records()) {
		if r.Type == claybot.RecordAssistant && r.Run == p.run.ID {
			if r.Text != "" {
				text = r.Text
			}
			break
		}
	}
	if text == "" {
		text = p.live.leftover(texts.NeedsInput)
	}
	return p.reply(claybot.OutgoingAnswer, text)
}

// hears records what was said to the questions of the run since its last pass,
// and returns the records. What expired unanswered has its default; without
// one, end is how the run ends.
func (p *pass) hears(ctx context.Context, records []claybot.Record) (said []claybot.Record, end, err error) {
	p.round = make(map[string]claybot.Question)
	answered := make(map[string]bool)
	var open []claybot.Question
	for _, r := range records {
		if r.Type == claybot.RecordAnswer && r.Answer != nil {
			answered[r.Answer.Question] = true
		}
	}
	for _, r := range records {
		if r.Type != claybot.RecordQuestion || r.Question == nil {
			continue
		}
		q := *r.Question
		if !answered[q.ID] {
			if q.Expires, err = p.closes(ctx, q.ID); err != nil {
				return nil, nil, err
			}
			open = append(open, q)
		}
		p.round[q.ID] = q
	}
	if len(p.round) > 0 {
		p.turns.Begin(p.run.ID, p.work())
	}
	for _, q := range open {
		a, err := p.answered(ctx, q)
		switch {
		case err != nil:
			return nil, nil, err
		case a == nil:
			continue
		case len(a.Value) == 0:
			if err := p.tell(ctx, "unanswered", texts.Unanswered(q)); err != nil {
				return nil, nil, err
			}
			end = &inbox.CanceledError{By: byTime}
			continue
		}
		if err := p.mark(ctx, q, *a); err != nil {
			return nil, nil, err
		}
		if a.Scope == claybot.ApproveAlways && string(a.Value) == "true" {
			if err := p.approveAlways(ctx, p.agent.ID, cmp.Or(q.Rule, q.Tool), a.By); err != nil {
				return nil, nil, err
			}
		}
		said = append(said, claybot.Record{
			Type: claybot.RecordAnswer, At: claybot.Now(), Run: p.run.ID, Answer: a, Aside: p.profile.Forget,
		})
	}
	if len(said) == 0 {
		return nil, end, nil
	}
	if err := p.history.Append(ctx, said...); err != nil {
		return nil, nil, fmt.Errorf("append history: %w", err)
	}
	return said, end, nil
}

// closes is when a question expires. It is 0 for one that no run was paused for:
// the process died before, so nobody could read it and its time begins anew.
func (s *AgentSystem) closes(ctx context.Context, id string) (claybot.Time, error) {
	q, err := s.Asked.Question(ctx, id)
	return q.Expires, storage.Ignore(err, storage.ErrNotFound)
}

// answered is what was said to a question, or what time says to it; nil when it
// is open.
func (p *pass) answered(ctx context.Context, q claybot.Question) (*claybot.Answered, error) {
	a, err := p.answerOf(ctx, q)
	if a != nil || err != nil || p.run.Cancel != "" || q.Expires == 0 || claybot.Now() < q.Expires {
		return a, err
	}
	// The answer of time is a message like any other, so there is one answer
	// only, whoever comes at the same moment.
	late := claybot.Answered{Question: q.ID, Value: defaultOf(q, p.AgentSystem), Via: claybot.ViaDefault}
	if _, err := p.postAnswer(ctx, p.agent.ID, p.run.ID, late); err != nil {
		return nil, fmt.Errorf("post the default of question %s: %w", q.ID, err)
	}
	return p.answerOf(ctx, q)
}

// defaultOf is the answer to a question that nobody answered; nil when there is
// none. Silence approves nothing.
func defaultOf(q claybot.Question, s *AgentSystem) json.RawMessage {
	if q.Type == claybot.QuestionConfirm {
		return json.RawMessage("false")
	}
	if q.Default == "" {
		return nil
	}
	v, err := q.Check(q.Default, s.zone())
	if err != nil {
		return nil
	}
	return v
}

// mark shows at the messages of a question what was said to it, and takes their
// buttons away.
func (s *AgentSystem) mark(ctx context.Context, q claybot.Question, a claybot.Answered) error {
	out, err := s.replaced(ctx, q, "answered", texts.Answered(q, a))
	if err != nil || len(out) == 0 {
		return err
	}
	for i := range out { // what was typed stands there already
		out[i].EditOnly = a.Via == claybot.ViaText
	}
	if _, err := s.deliverer.Send(ctx, out...); err != nil {
		return fmt.Errorf("show an answer: %w", err)
	}
	return nil
}

// unanswered are the questions of the run without an answer in its history.
func (p *pass) unanswered() (open []claybot.Question) {
	if p.history == nil {
		return nil
	}
	for _, r := range p.history.Records() {
		switch {
		case r.Run != p.run.ID:
		case r.Type == claybot.RecordQuestion && r.Question != nil:
			open = append(open, *r.Question)
		case r.Type == claybot.RecordAnswer && r.Answer != nil:
			open = slices.DeleteFunc(open, func(q claybot.Question) bool { return q.ID == r.Answer.Question })
		}
	}
	return open
}

// withdraw closes the messages of the questions that nobody answered.
func (p *pass) withdraw(ctx context.Context) (all []claybot.Outgoing, err error) {
	for _, q := range p.unanswered() {
		out, err := p.replaced(ctx, q, "withdrawn", texts.Withdrawn(q))
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
func (s *AgentSystem) replaced(ctx context.Context, q claybot.Question, end, text string) (all []claybot.Outgoing, err error) {
	for place := range 1 + len(q.Approvers) {
		first, err := s.Outbox.OutgoingByID(ctx, questionOutgoing(q, place, 1))
		if errors.Is(err, storage.ErrNotFound) {
			continue // nobody was asked there
		}
		if err != nil {
			return nil, fmt.Errorf("find the message of a question: %w", err)
		}
		o := claybot.Outgoing{Kind: first.Kind, Run: first.Run, Agent: first.Agent, Message: first.Message, Route: first.Route}
		out := s.deliverer.Compose(o, text)
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

// questionOutgoing is the id of a part of a message that asks q. Place 0 is where
// the run answers, the others are those of the approvers, in their order.
func questionOutgoing(q claybot.Question, place, part int) string {
	if place > 0 {
		return fmt.Sprintf("question/%s@%d/%d", q.ID, place, part)
	}
	return fmt.Sprintf("question/%s/%d", q.ID, part)
}

// questions are the messages that ask, each where the ones are who may answer.
func (p *pass) questions(ctx context.Context, qs []claybot.Question) (out []claybot.Outgoing, err error) {
	for i, q := range qs {
		own, others := p.agent.Descriptor.Foreground(), false
		switch {
		case own && p.mayAnswer(q, p.agent.Descriptor, p.agent.Descriptor.OwnerID()):
			out = append(out, p.asked(q, 0, p.outgoing(claybot.OutgoingNotice), texts.Question(q, i, qs, p.agent.Descriptor.Connector, p.zone()))...)
		case own && len(q.Approvers) > 0:
			others = true
		}
		elsewhere, err := p.askElsewhere(ctx, q)
		if err != nil {
			return nil, err
		}
		if others {
			for k, o := range p.deliverer.Compose(p.outgoing(claybot.OutgoingNotice), texts.OthersDecide(q, len(elsewhere) > 0)) {
				o.ID = questionOutgoing(q, 0, k+1)
				out = append(out, o)
			}
		}
		out = append(out, elsewhere...)
	}
	return out, nil
}

// asked are the parts of one message that asks q; the last one has the buttons.
func (p *pass) asked(q claybot.Question, place int, o claybot.Outgoing, text string) []claybot.Outgoing {
	out := p.deliverer.Compose(o, text)
	for k := range out {
		out[k].ID = questionOutgoing(q, place, k+1)
	}
	if len(out) > 0 {
		out[len(out)-1].Question = &q
	}
	return out
}

// askElsewhere asks the approvers of a question where they wrote last. The
// agent's own person is asked where the run answers. It logs who cannot be asked:
// operators of this machine are one person, asked in any of their chats.
func (p *pass) askElsewhere(ctx context.Context, q claybot.Question) (out []claybot.Outgoing, err error) {
	var asked, missing []string
	for i, owner := range q.Approvers {
		if p.agent.Descriptor.Foreground() && slices.Contains(p.People.Identities(owner), p.agent.Descriptor.OwnerID()) {
			asked = append(asked, owner)
			continue
		}
		e, err := p.People.PlaceOf(ctx, owner)
		if errors.Is(err, storage.ErrNotFound) {
			missing = append(missing, owner)
			continue
		}
		if err != nil {
			return nil, err
		}
		c, err := p.People.LastContext(ctx, e.ID)
		if err != nil {
			return nil, err
		}
		o := p.outgoing(claybot.OutgoingNotice)
		o.Route = claybot.AgentMessage{Context: c}.ReplyRoute(e.Descriptor)
		out = append(out, p.asked(q, i+1, o, texts.Elsewhere(q, p.zone()))...)
		asked = append(asked, owner)
	}
	console := func(owner string) bool { return slices.Contains(people.OperatorConsoles, owner) }
	for _, owner := range missing {
		if !console(owner) || !slices.ContainsFunc(asked, console) {
			p.log.Warn("approver has not written to claybot yet and is not asked in a chat", "approver", owner, "question", q.ID)
		}
	}
	return out, nil
}

// takeTyped does what follows from texts that answered a question and were
// stored by an earlier process, which may have died before it could.
func (s *AgentSystem) takeTyped(ctx context.Context) {
	open, err := s.Asked.OpenQuestions(ctx, "", allQuestions)
	if err != nil {
		s.Log.Error("cannot look for open questions", "err", err)
		return
	}
	var known []claybot.AgentID
	for _, q := range open {
		if slices.Contains(known, q.Agent) {
			continue
		}
		known = append(known, q.Agent)
		agent, err := s.Agents.Agent(ctx, q.Agent)
		if err == nil {
			err = s.typedBefore(ctx, agent)
		}
		if err != nil {
			s.Log.Error("cannot look for typed answers", "agent", q.Agent, "run", q.Run, "err", err)
		}
	}
}
