package agentsystem

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// What came of a call to a run that waits for it.
const (
	CallTaken = "taken"
	CallAgain = "again" // an earlier one was taken
	CallLate  = "late"  // nothing waits for it any more
)

// errExpired is the result of a wait to which no program sent anything.
const errExpired = "expired"

// Call gives a run what a program sent to it, once: the first call counts that comes before Close, and before
// the end of the run. It is durable when Call returns CallTaken.
func (s *Starter) Call(ctx context.Context, run claybot.Run, id claybot.MessageID, value json.RawMessage) (string, error) {
	if s.intake.secrets() != KeepSecrets {
		value = maskedJSON(value)
	}
	return s.conclude(ctx, run, id, claybot.Result{OK: true, Value: value, Tainted: true})
}

// Called returns what a program sent to a run; nil while it has sent nothing. With closed, nothing that comes later
// is taken, and a result without OK says that nothing had come.
func (s *Starter) Called(ctx context.Context, run claybot.Run, id claybot.MessageID, closed bool) (*claybot.Result, error) {
	if closed {
		if _, err := s.conclude(ctx, run, id, claybot.Result{Error: errExpired}); err != nil {
			return nil, err
		}
	}
	r, err := s.receipts.Receipt(ctx, id)
	if err != nil {
		return nil, storage.Ignore(err, storage.ErrNotFound)
	}
	return r.Message.Answer, nil
}

// conclude posts the result of a wait. The first one counts.
func (s *Starter) conclude(ctx context.Context, run claybot.Run, id claybot.MessageID, result claybot.Result) (string, error) {
	done, err := s.inboxes.Post(ctx, storage.Posting{To: run.Agent, Message: claybot.AgentMessage{
		ID: id, Type: claybot.MessageAnswer, Run: run.ID, At: claybot.Now(), Answer: &result,
	}})
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return CallLate, nil
	case err != nil:
		return "", err
	case done.Added && done.Skipped == "":
		return CallTaken, nil
	case done.Added:
		return CallLate, nil
	}
	r, err := s.receipts.Receipt(ctx, id)
	if err != nil {
		return "", err
	}
	if r.Skipped == "" && r.Message.Answer != nil && r.Message.Answer.OK {
		return CallAgain, nil
	}
	return CallLate, nil
}
