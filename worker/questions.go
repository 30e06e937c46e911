package worker

import (
	"cmp"
	"context"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/texts"
)

// The steps of a question, in this order; after a crash the next pass does the rest:
//
//	question record → the run is paused, with the message in the chat →
//	the answer, a message → the run goes on → answer record → result of the call

// askAbout records the questions of a pause, each once, and returns the messages to the
// user. It ends a visible draft first, because the rest of the answer comes below the
// questions.
func (p *pass) askAbout(ctx context.Context, qs []claybot.Question) ([]claybot.Outgoing, error) {
	if len(qs) == 0 {
		return nil, nil
	}
	out := p.settleDraft()
	for _, q := range qs {
		if _, known := p.job.asked[q.ID]; known {
			continue
		}
		if err := p.record(ctx, claybot.Record{Type: claybot.RecordQuestion, Question: &q}); err != nil {
			return nil, err
		}
	}
	asked, err := p.worker.parts.Questions.Notices.Asking(ctx, p.job.agent, p.job.outgoing(claybot.OutgoingNotice), qs)
	return append(out, asked...), err
}

// settleDraft turns a visible draft into a message of its own, with the whole text
// before the questions.
func (p *pass) settleDraft() []claybot.Outgoing {
	text := p.view.shown()
	if text == "" && p.view.visible() == nil {
		return nil
	}
	for _, r := range slices.Backward(p.talk.history.Records()) {
		if r.Type == claybot.RecordAssistant && r.Run == p.job.run.ID {
			text = cmp.Or(r.Text, text)
			break
		}
	}
	if text == "" {
		text = p.view.leftover(p.job.voice().In(texts.NeedsInput))
	}
	return p.view.reply(p.job.outgoing(claybot.OutgoingAnswer), text)
}

// takeAnswers records the answers that arrived since the last pass, and returns the
// records. An expired question gets its default; without one, end is the error that
// ends the run.
func (p *pass) takeAnswers(ctx context.Context, records []claybot.Record) (taken []claybot.Record, end, err error) {
	open, err := p.openQuestions(ctx, records)
	if err != nil {
		return nil, nil, err
	}
	asked := p.worker.parts.Questions
	for _, q := range open {
		a, err := asked.Ledger.Answer(ctx, p.job.run, q)
		switch {
		case err != nil:
			return nil, nil, err
		case a == nil:
			continue
		case len(a.Value) == 0 && p.job.flows(): // it has an edge for that
			if err := asked.Notices.Expired(ctx, q); err != nil {
				return nil, nil, err
			}
			taken = append(taken, claybot.Record{
				Type: claybot.RecordAnswer, At: claybot.Now(), Run: p.job.run.ID, Answer: a, Aside: p.job.forgets(),
			})
			continue
		case len(a.Value) == 0:
			if err := p.Tell(ctx, "unanswered", p.job.voice().Unanswered(q)); err != nil {
				return nil, nil, err
			}
			end = &inbox.CanceledError{By: questions.ByTime}
			continue
		}
		if err := asked.Notices.Answered(ctx, q, *a); err != nil {
			return nil, nil, err
		}
		if a.Scope == claybot.ApproveAlways && string(a.Value) == "true" {
			if err := p.worker.parts.Profiles.ApproveAlways(ctx, p.job.agent.ID, cmp.Or(q.Rule, q.Tool), a.By); err != nil {
				return nil, nil, err
			}
		}
		taken = append(taken, claybot.Record{
			Type: claybot.RecordAnswer, At: claybot.Now(), Run: p.job.run.ID, Answer: a, Aside: p.job.forgets(),
		})
	}
	if len(taken) == 0 {
		return nil, end, nil
	}
	if err := p.talk.append(ctx, taken...); err != nil {
		return nil, nil, err
	}
	return taken, end, nil
}

// openQuestions returns the questions in the records of the run without an answer
// there. It makes all questions known to the tools of the run.
func (p *pass) openQuestions(ctx context.Context, records []claybot.Record) (open []claybot.Question, err error) {
	p.job.asked = make(map[string]claybot.Question)
	unanswered := p.talk.unanswered()
	for _, r := range records {
		if r.Type != claybot.RecordQuestion || r.Question == nil {
			continue
		}
		q := *r.Question
		if slices.ContainsFunc(unanswered, func(o claybot.Question) bool { return o.ID == q.ID }) {
			if q.Expires, err = p.worker.parts.Questions.Ledger.Closes(ctx, q.ID); err != nil {
				return nil, err
			}
			open = append(open, q)
		}
		p.job.asked[q.ID] = q
	}
	if len(p.job.asked) > 0 {
		p.worker.parts.AtWork.Begin(p.job.run.ID, p.job.work())
	}
	return open, nil
}
