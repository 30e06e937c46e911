package questions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// A Ledger reads what runs ask and what was answered, and posts answers. An answer is a
// message with an id made of its question, so the first one counts.
type Ledger struct {
	asked    storage.Questions
	receipts Receipts
	inbox    Inbox
	index    Index
	runs     Runs
	zone     func() *time.Location
}

// Closes is when a question expires. It is 0 for one that no run was paused for:
// the process crashed before, so the question was never shown and its time starts again.
func (l *Ledger) Closes(ctx context.Context, id string) (claybot.Time, error) {
	q, err := l.asked.Question(ctx, id)
	return q.Expires, storage.Ignore(err, storage.ErrNotFound)
}

// Answer returns the answer to a question of a run, which is its default once it has
// expired, or nil while it is open.
func (l *Ledger) Answer(ctx context.Context, run claybot.Run, q claybot.Question) (*claybot.Answer, error) {
	a, err := l.stored(ctx, q)
	if a != nil || err != nil || run.Cancel != "" || q.Expires == 0 || claybot.Now() < q.Expires {
		return a, err
	}
	// An expiry is posted as a message like any answer, so only one of concurrent
	// answers counts.
	late := claybot.Answer{Question: q.ID, Value: l.defaultOf(q), Via: claybot.ViaDefault}
	if _, err := l.Post(ctx, run.Agent, run.ID, late); err != nil {
		return nil, fmt.Errorf("post the default of question %s: %w", q.ID, err)
	}
	return l.stored(ctx, q)
}

// stored returns the stored answer to a question, or nil.
func (l *Ledger) stored(ctx context.Context, q claybot.Question) (*claybot.Answer, error) {
	r, err := l.receipts.Receipt(ctx, q.AnswerID())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read an answer: %w", err)
	case r.Message.Answer == nil || r.Message.Answer.To == nil:
		return nil, fmt.Errorf("the answer to question %s cannot be read", q.ID)
	}
	return r.Message.Answer.To, nil
}

// defaultOf returns the answer to a question that expired, or nil. An expired approval is
// denied.
func (l *Ledger) defaultOf(q claybot.Question) json.RawMessage {
	if q.Type == claybot.QuestionConfirm {
		return json.RawMessage("false")
	}
	if q.Default == "" {
		return nil
	}
	v, err := q.Check(q.Default, l.zone())
	if err != nil {
		return nil
	}
	return v
}

// Post posts an answer to a paused run. It reports whether this answer counts, which is
// true for a repetition of the one that does.
func (l *Ledger) Post(ctx context.Context, agent claybot.AgentID, run claybot.RunID, a claybot.Answer) (bool, error) {
	id := claybot.Question{ID: a.Question}.AnswerID()
	done, err := l.inbox.Post(ctx, storage.Posting{To: agent, Message: claybot.AgentMessage{
		ID: id, Type: claybot.MessageAnswer, Run: run, At: claybot.Now(), From: claybot.Sender{UserID: a.By},
		Answer: &claybot.Result{OK: true, Output: texts.ValueText(a.Value), RunID: run, To: &a},
	}})
	return err == nil && done.Added && done.Skipped == "", err
}

// PausedRun returns the run of an agent that waits for answers and the first question
// without one; ok is false where there is none.
func (l *Ledger) PausedRun(ctx context.Context, id claybot.AgentID) (run claybot.Run, q claybot.Question, ok bool, err error) {
	run, open, err := l.unanswered(ctx, id, func(claybot.Question) bool { return true })
	if len(open) > 0 {
		q = open[0]
	}
	return run, q, len(open) > 0, err
}

// asks reports whether an agent has a question that is not closed.
func (l *Ledger) asks(ctx context.Context, id claybot.AgentID) (bool, error) {
	some, err := l.asked.OpenQuestions(ctx, id, 1)
	return len(some) > 0, err
}

// unanswered returns the unfinished run of an agent and, while it is paused, those of the
// questions picked by want that have no answer and are not expired.
func (l *Ledger) unanswered(ctx context.Context, id claybot.AgentID, want func(claybot.Question) bool) (run claybot.Run, open []claybot.Question, err error) {
	asks, err := l.asks(ctx, id) // most messages are no answers, and this costs the least
	if err != nil || !asks {
		return run, nil, err
	}
	e, err := l.index.IndexedAgentByID(ctx, id)
	if err != nil || e.Run == "" {
		return run, nil, storage.Ignore(err, storage.ErrNotFound)
	}
	if run, err = l.runs.Run(ctx, e.Run); err != nil {
		return run, nil, storage.Ignore(err, storage.ErrNotFound)
	}
	if run.State != claybot.RunAwaiting || run.Cancel != "" || run.Awaiting == nil {
		return run, nil, nil
	}
	for _, q := range run.Awaiting.Questions {
		if !want(q) {
			continue
		}
		a, err := l.stored(ctx, q)
		if err != nil {
			return run, nil, err
		}
		if a == nil && claybot.Now() < q.Expires {
			open = append(open, q)
		}
	}
	return run, open, nil
}
