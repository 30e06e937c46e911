package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
)

// Invoke posts messages and waits until all of them have ended. It returns one
// result for each, in order, and the error of the first that did not succeed.
//
// Messages settle in tokens: under oneByOne each is its own, under allTogether
// all of one call are one. A token ends well when all of its messages ran well;
// it is rejected with the first that did not, and its messages that still wait
// are dropped. ctx ends the waiting only. Access is not checked: Invoke is for
// callers who have done so.
func (s *AgentSystem) Invoke(ctx context.Context, to claybot.Descriptor, ms ...claybot.AgentMessage) ([]inbox.Result, error) {
	together := s.Profile(to).Policy.ProcessBuffer != inbox.OneByOne
	tokens := s.waiters.Add(together, ms)
	defer s.waiters.Remove(tokens)
	for i, m := range ms {
		if err := checkMessage(to, m); err != nil {
			return nil, err
		}
		if err := s.unparkFirst(ctx, to); err != nil {
			return nil, fmt.Errorf("take in earlier messages: %w", err)
		}
		if tokens[min(i, len(tokens)-1)].Rejected() {
			continue // an earlier message of the token was turned away
		}
		done, err := s.accept(ctx, to, m)
		if err != nil {
			return nil, err
		}
		if done.Added {
			continue
		}
		if err := s.catchUp(ctx, m.ID); err != nil {
			return nil, err
		}
	}
	for _, t := range tokens {
		if err := s.await(ctx, t); err != nil {
			return nil, err
		}
	}
	return s.waiters.Collect(ms, tokens)
}

// await waits until a token is settled. Where other nodes work on messages, too, it
// looks into the store by itself: soon after a hint, and every two seconds.
func (s *AgentSystem) await(ctx context.Context, t *inbox.Token) error {
	var look <-chan time.Time
	for {
		var heard <-chan struct{}
		if !s.Members.IsAlone() {
			heard = s.elsewhere.Next()
			if look == nil {
				look = time.After(lookEnds)
			}
		}
		select {
		case <-t.Settled:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-heard:
			look = time.After(lookSoon)
			select {
			case <-t.Settled:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-look:
			}
		case <-look:
		}
		look = nil
		if err := s.endedElsewhere(ctx, t); err != nil {
			s.Log.Warn("cannot look for the end of messages; trying again", "err", err)
		}
	}
}

// endedElsewhere notes the ends of messages of a token that came without this
// process. The run that is at work here tells its own, and has the whole text.
func (s *AgentSystem) endedElsewhere(ctx context.Context, t *inbox.Token) error {
	for _, id := range s.waiters.Open(t) {
		r, err := s.Inbox.Receipt(ctx, id)
		if errors.Is(err, storage.ErrNotFound) {
			continue // not posted yet
		}
		if err != nil {
			return fmt.Errorf("read the receipt of %s: %w", id, err)
		}
		if r.Run != nil && s.turns.Here(r.Run.ID) {
			continue
		}
		res, ended := resultOf(r)
		if !ended {
			continue
		}
		doomed := []claybot.MessageID(nil)
		if res.Err != nil {
			doomed = s.dropDoomed(r.Agent, []claybot.MessageID{id})
		}
		s.waiters.Ended(res, id)
		s.waiters.Ended(inbox.Result{Err: inbox.ErrDropped}, doomed...)
	}
	return nil
}

// catchUp settles the waiter of a message that was posted before and may have
// ended already.
func (s *AgentSystem) catchUp(ctx context.Context, id claybot.MessageID) error {
	r, err := s.Inbox.Receipt(ctx, id)
	switch {
	case errors.Is(err, storage.ErrNotFound): // known under another id, by one of its keys
		s.waiters.Ended(inbox.Result{Err: inbox.ErrDropped}, id)
	case err != nil:
		return fmt.Errorf("read the receipt of %s: %w", id, err)
	default:
		if res, ended := resultOf(r); ended {
			s.waiters.Ended(res, id)
		}
	}
	return nil
}

// resultOf is how a message ended, as the store has it: the text is that of the
// run, shortened. False while it has not.
func resultOf(r storage.Receipt) (inbox.Result, bool) {
	switch {
	case r.Skipped != "":
		return inbox.Result{Err: errSkipped(r)}, true
	case r.Run == nil || !r.Run.State.Ended():
		return inbox.Result{}, false
	}
	res := inbox.Result{Run: r.Run.ID, State: r.Run.State, Text: r.Run.Output}
	switch {
	case r.Run.State == claybot.RunFailed && r.Run.Error != nil:
		res.Err = &inbox.RunFailedError{Run: r.Run.ID, Code: r.Run.Error.Code}
	case r.Run.State != claybot.RunSucceeded && r.Run.Cancel == "reset":
		res.Err = inbox.ErrReset
	case r.Run.State != claybot.RunSucceeded:
		res.Err = inbox.ErrCanceled
	}
	return res, true
}

// errSkipped is why a message that no run took did not end well; nil where its end
// is what it asked for.
func errSkipped(r storage.Receipt) error {
	switch r.Skipped {
	case "command", questions.SkippedAnswer, questions.SkippedUnfit:
		return nil
	case "reset":
		if r.Message.Type == claybot.MessageReset {
			return nil
		}
		return inbox.ErrReset
	case "canceled":
		return inbox.ErrCanceled
	}
	return inbox.ErrDropped
}

// Drop discards waiting messages of an agent, all of them when none is named,
// and returns those that still waited; storage.ErrNotFound when there is no such
// agent. It is for operators.
func (s *AgentSystem) Drop(ctx context.Context, agent claybot.AgentID, ids ...claybot.MessageID) ([]claybot.MessageID, error) {
	if _, err := s.Index.IndexedAgentByID(ctx, agent); err != nil {
		return nil, err
	}
	dropped, err := s.Inbox.Drop(ctx, agent, "operator", ids...)
	if err != nil {
		return nil, fmt.Errorf("drop messages of %s: %w", agent, err)
	}
	s.reject(agent, inbox.ErrDropped, dropped...)
	return dropped, nil
}

// reject settles the waiters of messages that will never run.
func (s *AgentSystem) reject(agent claybot.AgentID, why error, ids ...claybot.MessageID) {
	doomed := s.dropDoomed(agent, ids)
	s.waiters.Ended(inbox.Result{Err: why}, ids...)
	s.waiters.Ended(inbox.Result{Err: inbox.ErrDropped}, doomed...)
}

// dropDoomed drops what must not run because a message of the same token did
// not succeed, and returns it. Its waiters are told by the caller, after those
// of the message itself.
func (s *AgentSystem) dropDoomed(agent claybot.AgentID, ids []claybot.MessageID) []claybot.MessageID {
	doomed := s.waiters.Beside(ids)
	if len(doomed) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	dropped, err := s.Inbox.Drop(ctx, agent, "token_rejected", doomed...)
	if err != nil {
		s.Log.Error("cannot drop messages of a rejected call", "agent", agent, "err", err)
	}
	return dropped
}
