package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

const (
	// mostWait is the maximum time between two attempts for an agent with a
	// fault.
	mostWait = time.Minute
	// noticeAfter is how long a fault lasts before the user is notified; a shorter
	// one only delays the reply.
	noticeAfter = 2 * time.Second
	// forgotten is how long a fault counts after its last attempt here, because
	// another member may have the agent.
	forgotten = 3 * mostWait
)

// waits reports whether a pass that failed with err is retried without limit and without a charge:
// the store is unavailable, or the files or rows of the agent cannot be used at present. Damage is
// permanent and ends the run.
func waits(err error) bool {
	return storage.Unavailable(err) || storage.ClassOf(err) == storage.ClassAgent && !errors.Is(err, storage.ErrDamaged)
}

// OfOne reports whether an error concerns only one agent or message, so that other
// messages of the source need not wait. An error of the member counts as one: if it
// affects all agents, the store fails as well.
func (s *Worker) OfOne(ctx context.Context, err error) bool {
	class := storage.ClassOf(err)
	if class == storage.ClassMember {
		s.Health.Met("", err)
	}
	return ctx.Err() == nil && class != storage.ClassNone && class != storage.ClassStore
}

// Faults are the agents whose files or rows this member cannot use at present,
// by the key of their descriptor. The zero value is ready.
type Faults struct {
	mu sync.Mutex
	of map[string]*fault
}

// A fault is one episode in which an agent cannot be used.
type fault struct {
	agent    claybot.AgentID // empty if unknown
	since    time.Time
	tried    time.Time
	cause    string // of the latest attempt
	tries    int
	notified bool
	intake   bool // found when a message was refused; ends when one is accepted
}

// Met records an attempt that failed with err. wait is the time until the next one,
// notify reports whether to notify the user now, and first whether the fault is new.
// id is empty if unknown.
func (f *Faults) Met(key string, id claybot.AgentID, err error) (wait time.Duration, notify, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget()
	x := f.of[key]
	if first = x == nil; first {
		if f.of == nil {
			f.of = make(map[string]*fault)
		}
		x = &fault{since: time.Now()}
		f.of[key] = x
	}
	x.intake = false
	x.agent, x.tried, x.cause = cmp.Or(id, x.agent), time.Now(), connectors.OneLine(err.Error(), 300)
	wait = min(time.Second<<min(x.tries, 10), mostWait)
	x.tries++
	return wait, !x.notified && time.Since(x.since) >= noticeAfter, first
}

// Refused is like Met for a message that its source keeps.
func (f *Faults) Refused(key string, err error) (notify bool) {
	f.mu.Lock()
	before := f.of[key] != nil && f.of[key].intake
	f.mu.Unlock()
	_, notify, first := f.Met(key, "", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.of[key]; x != nil {
		x.intake = first || before
	}
	return notify
}

// Taken records that a message of an agent was accepted.
func (f *Faults) Taken(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.of[key]; x != nil && x.intake {
		delete(f.of, key)
	}
}

// notified records that the user was notified.
func (f *Faults) notified(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.of[key]; x != nil {
		x.notified = true
	}
}

// At returns the fault of the agent with a key; ok is false if it has none.
func (f *Faults) At(key string) (x Fault, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget()
	if p := f.of[key]; p != nil {
		return Fault{key, p.agent, p.since, p.cause}, true
	}
	return Fault{}, false
}

// lasts reports whether the fault of an agent has lasted so long that its user was
// notified.
func (f *Faults) lasts(id claybot.AgentID) bool {
	x, ok := f.OfAgent(id)
	return ok && time.Since(x.Since) >= noticeAfter
}

// OfAgent is like At for the agent with an id.
func (f *Faults) OfAgent(id claybot.AgentID) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget()
	for key, x := range f.of {
		if x.agent == id {
			return Fault{key, x.agent, x.since, x.cause}, true
		}
	}
	return Fault{}, false
}

// Over records that an agent works again.
func (f *Faults) Over(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, key)
}

// Left records that an agent no longer belongs to this member: it was deleted, or
// another member has it.
func (f *Faults) Left(id claybot.AgentID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.of, func(_ string, x *fault) bool { return x.agent == id })
}

// forget removes faults without a recent attempt. It needs mu.
func (f *Faults) forget() {
	maps.DeleteFunc(f.of, func(_ string, x *fault) bool { return time.Since(x.tried) > forgotten })
}

// faulted records a fault of the agent of a box, notifies the waiting user once
// it lasts, and returns the time until the next attempt.
func (s *Worker) faulted(box *inbox.AgentInbox, err error) time.Duration {
	id := box.Lease.Agent
	log := s.log.With("agent", id)
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	d, lookErr := s.stores.Index.IndexedDescriptor(ctx, id)
	key := string(id)
	if lookErr == nil {
		key = d.Key()
	}
	if storage.ClassOf(err) == storage.ClassMember {
		s.Health.Met(key, err)
	}
	wait, notify, first := s.Faults.Met(key, id, err)
	if first {
		log.Error("agent unusable, messages parked", "class", storage.ClassOf(err).String(), "err", err)
	} else {
		log.Debug("agent still unusable", "err", err, "in", wait)
	}
	if notify && lookErr == nil {
		if err := s.NotifyOf(ctx, key, d, id, slices.Concat(box.Bound, box.Waiting)); err != nil {
			log.Warn("failed to notify the user of a fault, retrying", "err", err)
		}
	}
	return wait
}

// NotifyOf notifies the user who waits for an agent with a fault: the person who wrote one of
// the messages, or the owner of a background agent, where its task answers.
func (s *Worker) NotifyOf(ctx context.Context, key string, d claybot.Descriptor, id claybot.AgentID, ms []claybot.AgentMessage) error {
	ms = slices.DeleteFunc(ms, func(m claybot.AgentMessage) bool { return m.Type == claybot.MessageAnswer })
	for _, m := range ms {
		if m.Type != claybot.MessageSystem {
			return s.NotifyFault(ctx, key, d, m, m.ID)
		}
	}
	if len(ms) == 0 {
		return nil
	}
	m := ms[0]
	var err error
	switch route := m.ReplyRoute(d); {
	case route.Connector != "":
		err = s.sendFault(ctx, m, route, s.parts.People.VoiceAt(ctx, d, route).TaskWaits(d, m), m.ID)
	default:
		var e storage.IndexEntry
		if e, err = s.parts.People.Recent(ctx, d, id); err == nil {
			err = s.parts.People.NotifyAt(ctx, e, "parked/"+string(m.ID), func(v texts.Voice) string { return v.TaskWaits(d, m) })
		}
	}
	if errors.Is(err, storage.ErrNotFound) {
		s.log.Warn("no recipient for a fault of a subagent", "agent", id)
		err = nil
	}
	if err == nil {
		s.Faults.notified(key)
	}
	return err
}

// NotifyFault notifies the sender of m that it has to wait.
func (s *Worker) NotifyFault(ctx context.Context, key string, to claybot.Descriptor, m claybot.AgentMessage, episode claybot.MessageID) error {
	err := s.sendFault(ctx, m, m.ReplyRoute(to), texts.Of(s.parts.People.Speaking(ctx, to, m)).In(texts.Parked), episode)
	if err == nil {
		s.Faults.notified(key)
	}
	return err
}

// sendFault sends the notice of a fault that holds up m. Its id is made of that of an
// episode, so each episode has one.
func (s *Worker) sendFault(ctx context.Context, m claybot.AgentMessage, to claybot.Route, text string, episode claybot.MessageID) error {
	o := claybot.Outgoing{Kind: claybot.OutgoingNotice, Message: m.ID, Route: to}
	if err := s.parts.Deliverer.SendOnce(ctx, o, fmt.Sprintf("parked/%s", episode), text); err != nil {
		return fmt.Errorf("notify of a fault: %w", err)
	}
	return nil
}

// probe writes a note to the history of an agent that could not be used before. Until
// that succeeds, no run starts or resumes, so that no model is called whose answer
// could not be stored. Errors that a retry cannot fix are left to the run.
func (s *Worker) probe(ctx context.Context, box *inbox.AgentInbox, agent claybot.Agent, run claybot.RunID) error {
	if _, known := s.Faults.At(agent.Descriptor.Key()); !known {
		return nil
	}
	history, err := s.stores.Histories.OpenHistory(ctx, box.Lease)
	if err == nil {
		defer history.Close() // its writes are synced; closing has nothing to report
		err = history.Append(ctx, claybot.Record{Type: claybot.RecordNote, At: claybot.Now(), Run: run, Level: "info", Text: "resumed after a fault"})
	}
	if err != nil && waits(err) {
		return fmt.Errorf("try the history of an agent that could not be used: %w", err)
	}
	return nil
}

// stoppedBy returns the cancel error of a run of a box that met err, if the run can end
// without the agent's files, which cannot be used; nil otherwise. For a new fault it
// returns nil, because the fault may pass and the history can then record the end.
func (s *Worker) stoppedBy(box *inbox.AgentInbox, err error) error {
	if box.Run == nil || box.Run.Cancel == "" || !waits(err) || storage.ClassOf(err) == storage.ClassStore || !s.Faults.lasts(box.Lease.Agent) {
		return nil
	}
	return &inbox.CanceledError{By: box.Run.Cancel}
}

// A Fault is why an agent cannot be used.
type Fault struct {
	Key   string          // of the descriptor
	Agent claybot.AgentID // empty if unknown
	Since time.Time
	Cause string // of the latest attempt
}

// List returns all faults, the longest first.
func (f *Faults) List() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget()
	all := make([]Fault, 0, len(f.of))
	for key, x := range f.of {
		all = append(all, Fault{key, x.agent, x.since, x.cause})
	}
	slices.SortFunc(all, func(a, b Fault) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Agent, b.Agent)) })
	return all
}
