package worker

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/texts"
)

// What becomes of a question, in this order; a crash in between has the rest
// done by the next pass:
//
//	question record → the run is paused, with the message in the chat →
//	the answer, a message → the run goes on → answer record → result of the call

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
	asked, err := p.Questions.Messages(ctx, p.agent, p.outgoing(claybot.OutgoingNotice), qs)
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
			if q.Expires, err = p.Questions.Closes(ctx, q.ID); err != nil {
				return nil, nil, err
			}
			open = append(open, q)
		}
		p.round[q.ID] = q
	}
	if len(p.round) > 0 {
		p.AtWork.Begin(p.run.ID, p.work())
	}
	for _, q := range open {
		a, err := p.Questions.Answered(ctx, p.run, q)
		switch {
		case err != nil:
			return nil, nil, err
		case a == nil:
			continue
		case len(a.Value) == 0:
			if err := p.tell(ctx, "unanswered", texts.Unanswered(q)); err != nil {
				return nil, nil, err
			}
			end = &inbox.CanceledError{By: questions.ByTime}
			continue
		}
		if err := p.Questions.Mark(ctx, q, *a); err != nil {
			return nil, nil, err
		}
		if a.Scope == claybot.ApproveAlways && string(a.Value) == "true" {
			if err := p.Profiles.ApproveAlways(ctx, p.agent.ID, cmp.Or(q.Rule, q.Tool), a.By); err != nil {
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
