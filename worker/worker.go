// Package worker takes a held agent through one pass: a reset, a compaction, or one run of
// its engine, as far as it goes.
//
// It guarantees that history is durable before its event, and the event before the next
// step; that a pass ends in the end of its run, in a pause, or in an error after which the
// run goes on later; that the end of a run, its replies and what other agents hear of it
// commit together; that a run which fails or kills the process again and again is given
// up; and that an agent whose files cannot be used waits without holding up another.
//
// The package must not import the AgentSystem, which starts workers, or an implementation
// of anything.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// The bounds of a run.
const (
	defaultDeadline = 2 * time.Hour   // of a whole run
	stateEvery      = 1 * time.Minute // state.json is written at most this often for its counters
)

// Work takes one held agent through one pass: a reset, or one batch through
// its engine. Afterwards the agent is free; when more waits, it is due again.
func (s *Worker) Work(box *inbox.AgentInbox, leave func()) {
	var err error
	defer func() { s.Recovery.leave(box, err == nil) }()
	slot := leave
	leave = func() { s.Recovery.leave(box, false); slot() } // the first call counts
	defer func() {
		if x := recover(); x != nil { // outside the engine, whose panics end its run
			s.meter.Panicked("worker")
			s.log.Error("worker panicked", "agent", box.Lease.Agent, "panic", fmt.Sprint(x), "stack", string(debug.Stack()))
			err = &storage.Fault{Class: storage.ClassMessage, Err: fmt.Errorf("panic: %v", x)}
			s.release(box, inbox.Policy{}, err, leave)
		}
	}()
	ctx, id := box.Context(), box.Lease.Agent
	if err = s.enter(box); err != nil {
		s.release(box, inbox.Policy{}, err, leave)
		return
	}
	agent, err := s.agentOf(ctx, box)
	doom := s.stoppedBy(box, err)
	if errors.Is(err, storage.ErrDamaged) {
		doom = &runs.Error{Code: "damaged", Text: "the files of the agent cannot be read", Err: err}
	}
	if doom != nil {
		if err = s.abandon(ctx, box, err, doom); err == nil {
			s.Faults.Left(id)
			return
		}
	}
	if err != nil {
		s.release(box, inbox.Policy{}, err, leave)
		return
	}
	profile := s.parts.Profiles.Of(agent.ID, agent.Descriptor)
	switch {
	case s.holds(box, agent, profile.Policy):
		err = s.hold(ctx, box, agent, profile)
	case box.Run == nil && box.Waiting[0].Type == claybot.MessageReset:
		err = s.reset(ctx, box, agent, profile)
	case box.Run == nil && loud(box.Waiting).Type == claybot.MessageCompact:
		err = s.compact(ctx, box, agent, profile)
	default:
		err = s.placed(ctx, box, agent, profile, leave)
	}
	if err != nil {
		s.release(box, profile.Policy, err, leave)
		return
	}
	s.Faults.Left(id) // whatever key it was known by
	s.Faults.Over(agent.Descriptor.Key())
	s.Health.Stored(nil)
	s.Health.passed()
}

// agentOf returns the agent of a box.
func (s *Worker) agentOf(ctx context.Context, box *inbox.AgentInbox) (claybot.Agent, error) {
	if box.Agent != nil {
		return *box.Agent, nil
	}
	return s.stores.Agents.Agent(ctx, box.Lease.Agent)
}

// release frees an agent whose pass could not be brought to an end. What is
// durable stays; the next holder goes on from there. No other worker can work on
// the agent until it is released, so this goes on until the store answers. While it
// only waits for a fault of the agent to pass, it leaves its slot to another agent.
func (s *Worker) release(box *inbox.AgentInbox, policy inbox.Policy, err error, leave func()) {
	log := s.log.With("agent", box.Lease.Agent)
	if box.Run != nil {
		log = log.With("run", box.Run.ID)
	}
	s.Health.Stored(err)
	if errors.Is(err, storage.ErrLeaseLost) || errors.Is(err, inbox.ErrLapsed) {
		s.leasesLost.Add(1)
	}
	orderly := errors.Is(err, inbox.ErrShutdown) || waits(err) || errors.Is(err, inbox.ErrLapsed)
	// A store that fails is not asked in a tight loop, nor is an agent that
	// fails at every pass tried in one.
	wait := time.Second
	if box.Run != nil {
		wait <<= min(box.Run.Attempts, 5)
	}
	switch {
	case errors.Is(err, storage.ErrLeaseLost):
		s.Faults.Left(box.Lease.Agent)
		log.Warn("lease lost to another member")
		return
	case errors.Is(err, inbox.ErrShutdown):
		if s.members.Others() > 0 {
			log.Info("run interrupted by shutdown; another member resumes it")
		} else {
			log.Info("run interrupted by shutdown; it resumes at the next start")
		}
		wait = 0
	case waits(err) && storage.ClassOf(err) != storage.ClassStore:
		wait = s.faulted(box, err)
		if storage.ClassOf(err) == storage.ClassMember {
			defer s.Health.pause()()
		}
		leave()
	default:
		log.Error("pass failed, retrying", "err", err, "in", wait)
		if !orderly {
			s.charges.failed(box)
		}
	}
	stopped := box.Context().Done()
	if box.Context().Err() != nil { // that is what ended the pass
		stopped = nil
	}
	for {
		s.pause(wait, stopped)
		stopped = nil // a stop is a reason for one try
		ctx, cancel := context.WithTimeout(context.Background(), storeTime)
		err := s.stores.Leases.Release(ctx, box.Lease, policy.Wait(), orderly && box.Working() != "") // else no attempt was counted
		cancel()
		s.Health.Stored(err)
		if errors.Is(err, storage.ErrLeaseLost) { // deleted, or another node has it
			s.Faults.Left(box.Lease.Agent)
		}
		if err == nil || errors.Is(err, storage.ErrLeaseLost) {
			return
		}
		if s.isDraining() {
			log.Warn("failed to release the agent; the next start releases it", "err", err)
			return
		}
		if wait = time.Second; waits(err) && storage.ClassOf(err) != storage.ClassStore {
			leave()
			wait = s.faulted(box, err)
		}
	}
}

// pause waits for d, or less when a shutdown begins or until is closed.
func (s *Worker) pause(d time.Duration, until <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-until:
	case <-s.draining:
	}
}

func (s *Worker) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

// reset begins a new context: the marker first, then, with the message's end,
// the confirmation and the text that followed the command.
func (s *Worker) reset(ctx context.Context, box *inbox.AgentInbox, agent claybot.Agent, profile profiles.Profile) error {
	m := box.Waiting[0]
	ctx = s.parts.People.Speaking(ctx, agent.Descriptor, m)
	history, err := s.stores.Histories.OpenHistory(ctx, box.Lease)
	if err != nil {
		return err
	}
	defer history.Close() // its writes are synced; closing has nothing to report
	if history.Marker().MessageID != m.ID {
		marker := claybot.Record{Type: claybot.RecordReset, At: claybot.Now(), By: resetBy(m), MessageID: m.ID}
		if err := history.Append(ctx, marker); err != nil {
			return err
		}
	}
	for _, scope := range []string{"", "/undo"} { // what runs have replaced of them, too
		if err := s.stores.Texts.DropDocuments(ctx, documentScope(agent.ID)+scope, ""); err != nil {
			return err
		}
	}
	end := storage.Settlement{Reason: "reset", Wait: profile.Policy.Wait(), End: storage.EndOf(ctx, history)}
	if resetBy(m) == "user" { // an operator's is silent
		end.Replies = s.parts.Deliverer.Compose(delivery.ReplyTo(agent, m, claybot.OutgoingCommand), texts.Of(ctx).In(texts.Reset))
	}
	if m.Text != "" {
		end.Posts = []claybot.AgentMessage{m.FollowUp()}
	}
	out, err := s.stores.Leases.Settle(ctx, box.Lease, m.ID, end)
	if err != nil {
		return err
	}
	s.parts.Deliverer.Hand(out)
	s.parts.Waiters.Ended(inbox.Result{Text: texts.Of(ctx).In(texts.Reset)}, m.ID)
	return nil
}

// resetBy names the requester of a reset: the person, or an operator.
func resetBy(m claybot.AgentMessage) string {
	if m.From.Name == people.Operator && m.From.UserID == "" {
		return people.Operator
	}
	return "user"
}

// documentScope is where the texts of an agent are kept that end with its
// conversation.
func documentScope(id claybot.AgentID) string { return "agent/" + string(id) }

// pass takes one batch, or the rest of an interrupted or paused run, to its end or its
// next pause; where it is doomed, to its end at once.
func (s *Worker) pass(ctx context.Context, box *inbox.AgentInbox, agent claybot.Agent, profile profiles.Profile, doom error) error {
	batch := profile.Policy.Batch(box.Waiting)
	runID := claybot.RunID(runs.NewID())
	if box.Run != nil {
		batch, runID = nil, box.Run.ID
	}
	ids := make([]claybot.MessageID, len(batch))
	for i, m := range batch {
		ids[i] = m.ID
	}
	charges, err := s.charges.interrupted(ctx, box)
	if err != nil {
		return err
	}
	if charges.Deadly() && doom == nil {
		doom = errInterrupted
	}
	if doom == nil {
		if err := s.probe(ctx, box, agent, runID); err != nil {
			if doom = s.stoppedBy(box, err); doom == nil {
				return err
			}
		}
	}
	var run claybot.Run
	if box.Started {
		run = *box.Run
	} else if run, err = s.stores.Runs.Begin(ctx, box.Lease, runID, ids, s.beginsWith(batch, profile)); errors.Is(err, storage.ErrNotFound) && box.Run == nil {
		// The batch has changed since it was read, as by a deletion: the next pass reads it as it is.
		return s.stores.Leases.Release(ctx, box.Lease, profile.Policy.Wait(), true)
	} else if err != nil {
		return err
	}
	box.Begun(run.ID)
	messages := withoutAnswers(append(box.Bound, batch...))
	ctx = s.parts.People.Speaking(ctx, agent.Descriptor, runs.Work{Messages: messages}.Newest())
	ctx = claybot.WithTrace(ctx, runs.TraceOf(run.ID, messages))
	p := s.newPass(&job{
		box: box, agent: Asked(agent, messages...), profile: profile, run: run, messages: messages, voice: func() texts.Voice { return texts.Of(ctx) },
		charges: charges, log: s.runLog(agent, run.ID),
	})
	p.job.log.Debug("run started", "attempt", run.Attempts, "messages", len(p.job.messages), "message", newestID(run.Messages))
	p.events.show(runs.Began(run, messages))
	if doom != nil {
		if run.Cancel != "" {
			doom = &inbox.CanceledError{By: run.Cancel}
		}
		p.view = s.watch(ctx, p.job)
		defer p.view.end()
		defer p.view.close()
		return p.end(doom)
	}
	return p.do(ctx)
}

// runLog is the log of a run.
func (s *Worker) runLog(agent claybot.Agent, run claybot.RunID) *slog.Logger {
	if c := agent.Descriptor.Connector; c != "" {
		return s.log.With("agent", agent.ID, "run", run, "connector", c)
	}
	return s.log.With("agent", agent.ID, "run", run)
}

// newestID is the last of the ids; empty when there is none.
func newestID(ids []claybot.MessageID) claybot.MessageID {
	if len(ids) == 0 {
		return ""
	}
	return ids[len(ids)-1]
}

// loud is the first of the waiting messages that is not silent; what is silent
// waits on for a turn.
func loud(waiting []claybot.AgentMessage) claybot.AgentMessage {
	for _, m := range waiting {
		if !m.Silent {
			return m
		}
	}
	return claybot.AgentMessage{}
}

// withoutAnswers drops what only resumed a run; the tool that waited for it has read it.
func withoutAnswers(ms []claybot.AgentMessage) []claybot.AgentMessage {
	return slices.DeleteFunc(ms, func(m claybot.AgentMessage) bool { return m.Type == claybot.MessageAnswer })
}
