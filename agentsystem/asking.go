package agentsystem

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

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
	return append(out, p.questions(qs)...), nil
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
		p.turns.begin(p)
	}
	for _, q := range open {
		a, err := p.answered(ctx, q)
		switch {
		case err != nil:
			return nil, nil, err
		case a == nil:
			continue
		case len(a.Value) == 0:
			if err := p.tell(ctx, "unanswered", textUnanswered(q)); err != nil {
				return nil, nil, err
			}
			end = &inbox.CanceledError{By: byTime}
			continue
		}
		if err := p.mark(ctx, q, *a); err != nil {
			return nil, nil, err
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
func (s *System) closes(ctx context.Context, id string) (claybot.Time, error) {
	q, err := s.Asked.Question(ctx, id)
	return q.Expires, ignore(err, storage.ErrNotFound)
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
	late := claybot.Answered{Question: q.ID, Value: defaultOf(q, p.System), Via: claybot.ViaDefault}
	if _, err := p.postAnswer(ctx, p.agent.ID, p.run.ID, late); err != nil {
		return nil, fmt.Errorf("post the default of question %s: %w", q.ID, err)
	}
	return p.answerOf(ctx, q)
}

// defaultOf is the answer to a question that nobody answered; nil when there is
// none. Silence approves nothing.
func defaultOf(q claybot.Question, s *System) json.RawMessage {
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

// mark shows at the message of a question what was said elsewhere. Where the
// answer was typed into the chat, it stands there already.
func (p *pass) mark(ctx context.Context, q claybot.Question, a claybot.Answered) error {
	if a.Via == claybot.ViaText {
		return nil
	}
	o := p.outgoing(claybot.OutgoingNotice)
	if out := p.compose(o, textAnswered(q, a)); len(out) > 0 {
		o = out[0]
		o.ID, o.EditOf, o.Shown = questionOutgoing(q, 1)+"/answered", questionOutgoing(q, 1), "question/"+q.ID
		o.Part, o.Parts = 1, 1
		stored, err := p.Outbox.Enqueue(ctx, o)
		if err != nil {
			return fmt.Errorf("show an answer: %w", err)
		}
		p.post.hand(stored)
	}
	return nil
}

// questionOutgoing is the id of a part of the message that asks q.
func questionOutgoing(q claybot.Question, part int) string {
	return fmt.Sprintf("question/%s/%d", q.ID, part)
}

// questions are the messages that ask.
func (p *pass) questions(qs []claybot.Question) (out []claybot.Outgoing) {
	for i, q := range qs {
		parts := p.compose(p.outgoing(claybot.OutgoingNotice), textQuestion(q, i, qs, p.zone()))
		for k := range parts {
			parts[k].ID = questionOutgoing(q, k+1)
		}
		out = append(out, parts...)
	}
	return out
}

// takeTyped does what follows from texts that answered a question and were
// stored by an earlier process, which may have died before it could.
func (s *System) takeTyped(ctx context.Context) {
	open, err := s.Asked.OpenQuestions(ctx, "", maxQuestions)
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
