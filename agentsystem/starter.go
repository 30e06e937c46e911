package agentsystem

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

const (
	// lookEnds is how often a call of Invoke looks for results of other members that no
	// hint named, and lookSoon how long it waits after a hint.
	lookEnds = 2 * time.Second
	lookSoon = 200 * time.Millisecond
)

// ErrUsed is returned for a message id that was used for another agent or another message.
var ErrUsed = errors.New("the message id was used for another message")

// Accepted is what became of a message that starts a run.
type Accepted struct {
	Run     claybot.RunID     `json:"runId"` // the one that was reserved, or that the message joined
	Agent   claybot.AgentID   `json:"agentId"`
	Message claybot.MessageID `json:"messageId"`
	State   claybot.RunState  `json:"state"`
	// Answers are the questions of Run that the message answered, where it started no
	// run.
	Answers []string `json:"-"`
}

// A Starter posts messages for callers that want to know their run or its result. It does
// not check access: its callers have.
type Starter struct {
	inboxes  *inbox.Inboxes
	intake   *intake
	parking  *parking
	files    *Attachments
	index    storage.Index
	receipts storage.Receipts
	answers  *questions.Answers
	results  *results
	work     *runs.AtWork
	members  *cluster.Membership
	changed  *inbox.Signal // another member has written something
	profile  func(claybot.Descriptor) profiles.Profile
	log      *slog.Logger
}

// StartRun posts a message to an agent and reserves the id of the run that will take it.
// The same message under the same id gets the same ids again and nothing new; another one
// is refused with ErrUsed. A message to a background agent becomes a system message; one to a
// shared agent is of no member of its group, whatever user id the caller has.
func (s *Starter) StartRun(ctx context.Context, to Address, m claybot.AgentMessage) (Accepted, error) {
	m.Run = claybot.RunID(runs.NewID())
	if err := s.intake.room.fits(ctx, m); err != nil {
		return Accepted{}, err
	}
	if err := s.intake.room.check(ctx, m); err != nil {
		return Accepted{}, err
	}
	agent, err := s.files.addressed(ctx, to)
	if err != nil {
		return Accepted{}, err
	}
	if !agent.Descriptor.Foreground() {
		m.Type, m.Kind = claybot.MessageSystem, cmp.Or(m.Kind, claybot.KindMessage)
	}
	if agent.Descriptor.Shared() {
		m.From.UserID = ""
	}
	if err := checkMessage(agent.Descriptor, m); err != nil {
		return Accepted{}, err
	}
	if err := s.files.check(ctx, agent.ID, m.Files); err != nil {
		return Accepted{}, err
	}
	if err := s.parking.unparkFirst(ctx, agent.Descriptor); err != nil {
		return Accepted{}, err
	}
	done, err := s.intake.acceptFor(ctx, agent, m)
	switch {
	case err != nil:
		return Accepted{}, err
	case !done.Added:
		r, err := s.receipts.Receipt(ctx, m.ID)
		if err != nil {
			return Accepted{}, fmt.Errorf("read the receipt of %s: %w", m.ID, err)
		}
		return s.acceptedBefore(ctx, r, agent.ID, m)
	}
	a := Accepted{Run: m.Run, Agent: agent.ID, Message: m.ID, State: claybot.RunPending}
	if done.Skipped != "" {
		a.State = claybot.RunCanceled
	}
	return a, nil
}

// Known returns what became of a message that was posted before; known is false when none
// has that id. It needs the id of m, its text, and of each file the id or the SHA256; it
// refuses another message, or one for another agent, with ErrUsed. It creates no agent.
func (s *Starter) Known(ctx context.Context, to Address, m claybot.AgentMessage) (a Accepted, known bool, err error) {
	r, err := s.receipts.Receipt(ctx, m.ID)
	if errors.Is(err, storage.ErrNotFound) {
		return Accepted{}, false, nil
	}
	if err != nil {
		return Accepted{}, false, fmt.Errorf("read the receipt of %s: %w", m.ID, err)
	}
	id := to.Agent
	if to.Descriptor != nil {
		id, err = s.index.IndexedAgent(ctx, *to.Descriptor)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return Accepted{}, false, err
		}
	}
	a, err = s.acceptedBefore(ctx, r, id, m)
	return a, err == nil, err
}

// acceptedBefore returns what became of the message of a receipt, which is given again as
// m for an agent; ErrUsed when it is another one. A message to an agent that was deleted
// stays the same message: its conversation may have a new agent.
func (s *Starter) acceptedBefore(ctx context.Context, r storage.Receipt, agent claybot.AgentID, m claybot.AgentMessage) (Accepted, error) {
	sameFile := func(a, b claybot.FileReference) bool {
		return a.ID != "" && a.ID == b.ID || a.SHA256 != "" && a.SHA256 == b.SHA256
	}
	text := claybot.Clean(m.Text)
	other := text != r.Message.Text && s.intake.secrets.masked(text) != r.Message.Text || m.Engine != r.Message.Engine || m.Stateless != r.Message.Stateless || !slices.EqualFunc(m.Files, r.Message.Files, sameFile)
	other = other || !sameFormat(m.Format, r.Message.Format)
	other = other || compact(m.Payload) != compact(r.Message.Payload) && compact(maskedJSON(m.Payload)) != compact(r.Message.Payload)
	if m.Flow != nil && r.Message.Flow != nil {
		a, b := *m.Flow, *r.Message.Flow
		other = other || a.Name != b.Name || a.Trigger != b.Trigger || a.Dry != b.Dry || !reflect.DeepEqual(a.Replay, b.Replay)
	}
	if r.Agent != agent && !other {
		_, err := s.index.IndexedAgentByID(ctx, r.Agent)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return Accepted{}, err
		}
		other = err == nil
	}
	if other {
		return Accepted{}, fmt.Errorf("message %s: %w", m.ID, ErrUsed)
	}
	a := Accepted{Run: r.Message.Run, Agent: r.Agent, Message: m.ID, State: claybot.RunPending}
	if answer := r.Message.Answer; r.Message.Type == claybot.MessageUser && answer != nil && answer.OK {
		run, answered, err := s.answers.SaidAgain(ctx, r)
		if err != nil {
			return Accepted{}, err
		}
		a.Run, a.State, a.Answers = run.ID, run.State, answered
	} else if r.Run != nil {
		a.Run, a.State = r.Run.ID, r.Run.State
	} else if r.Skipped != "" {
		a.State = claybot.RunCanceled
	}
	return a, nil
}

// sameFormat reports whether two messages ask for the same form of the answer.
func sameFormat(a, b *claybot.AnswerFormat) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && a.Strict == b.Strict && compact(a.Schema) == compact(b.Schema)
}

// compact is JSON as the store keeps it.
func compact(raw json.RawMessage) string {
	b, err := json.Marshal(raw)
	if err != nil {
		return string(raw)
	}
	return string(b)
}

// Invoke posts messages and waits until all of them have ended. It returns one result for
// each, in order, and the error of the first that did not succeed.
//
// Messages settle in tokens: under oneByOne each is its own, under allTogether all of one
// call are one. A token succeeds when all of its messages do; it is rejected with the
// first that does not, and its messages that still wait are dropped. ctx ends only the
// waiting.
func (s *Starter) Invoke(ctx context.Context, to claybot.Descriptor, ms ...claybot.AgentMessage) ([]inbox.Result, error) {
	waiters := &s.results.waiters
	tokens := waiters.Add(s.profile(to).Policy.ProcessBuffer != inbox.OneByOne, ms)
	defer waiters.Remove(tokens)
	for i, m := range ms {
		if err := checkMessage(to, m); err != nil {
			return nil, err
		}
		if err := s.parking.unparkFirst(ctx, to); err != nil {
			return nil, err
		}
		if tokens[min(i, len(tokens)-1)].Rejected() {
			continue
		}
		done, err := s.intake.accept(ctx, to, m)
		if err == nil && !done.Added {
			err = s.settleKnown(ctx, m.ID)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, t := range tokens {
		if err := s.await(ctx, t); err != nil {
			return nil, err
		}
	}
	return waiters.Collect(ms, tokens)
}

// settleKnown settles the waiters of a message that was posted before, if it has ended.
func (s *Starter) settleKnown(ctx context.Context, id claybot.MessageID) error {
	r, err := s.receipts.Receipt(ctx, id)
	if errors.Is(err, storage.ErrNotFound) { // known under another id, by one of its keys
		s.results.waiters.Ended(inbox.Result{Err: inbox.ErrDropped}, id)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the receipt of %s: %w", id, err)
	}
	if res, ended := resultOf(r); ended {
		s.results.waiters.Ended(res, id)
	}
	return nil
}

// await waits until a token is settled, by this member or by what another one writes.
func (s *Starter) await(ctx context.Context, t *inbox.Token) error {
	for look := s.members.Elsewhere(lookEnds); ; {
		select {
		case <-t.Settled:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.changed.Next():
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
		look = s.members.Elsewhere(lookEnds)
		if err := s.settleElsewhere(ctx, t); err != nil {
			s.log.Warn("failed to look for the end of messages, retrying", "err", err)
		}
	}
}

// settleElsewhere settles the messages of a token that ended on another member. A run at
// work here settles its own, with its whole text.
func (s *Starter) settleElsewhere(ctx context.Context, t *inbox.Token) error {
	for _, id := range s.results.waiters.Open(t) {
		r, err := s.receipts.Receipt(ctx, id)
		if errors.Is(err, storage.ErrNotFound) {
			continue // not posted yet
		}
		if err != nil {
			return fmt.Errorf("read the receipt of %s: %w", id, err)
		}
		if r.Run != nil && s.work.Here(r.Run.ID) {
			continue
		}
		if res, ended := resultOf(r); ended {
			s.results.end(r.Agent, res, id)
		}
	}
	return nil
}

// shutdown settles all waiters: what still waits runs after the next start.
func (s *Starter) shutdown() { s.results.waiters.Shutdown() }
