package agentsystem_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
)

// errDead is what the parts of a dead process get.
var errDead = errors.New("this process is dead")

// A fuse is the life of one process. It counts everything that reaches the
// disk or the platform; when it blows, nothing does any more.
type fuse struct {
	beginning atomic.Pointer[func()] // happens once, right before a run begins; optional
	mu        sync.Mutex
	after     int // blows after so many steps; negative: never by itself
	steps     []string
	blown     bool
	fell      chan struct{} // closed when it blows
}

func newFuse(after int) *fuse { return &fuse{after: after, fell: make(chan struct{})} }

// blow ends the process's life at this moment.
func (f *fuse) blow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.blown {
		f.blown = true
		close(f.fell)
	}
}

// blowIn makes it blow after n more steps; 0: never by itself.
func (f *fuse) blowIn(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after = -1
	if n > 0 {
		f.after = len(f.steps) + n
	}
}

// last is the newest step; empty for none.
func (f *fuse) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.steps) == 0 {
		return ""
	}
	return f.steps[len(f.steps)-1]
}

func (f *fuse) dead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.blown
}

// step does one thing that outlives the process, while the process lives. The
// last one happens, but the process does not learn of it.
func (f *fuse) step(name string, do func() error) error {
	f.mu.Lock()
	if f.after == 0 && !f.blown {
		f.blown = true
		close(f.fell)
	}
	if f.blown {
		f.mu.Unlock()
		return errDead
	}
	f.steps = append(f.steps, name)
	last := len(f.steps) == f.after
	f.mu.Unlock()
	err := do()
	if last {
		f.blow()
	}
	if f.dead() {
		return errDead
	}
	return err
}

// quiet does something that leaves no trace worth counting.
func (f *fuse) quiet(do func() error) error {
	if f.dead() {
		return errDead
	}
	return do()
}

// stores puts the fuse between a system and its stores.
func (f *fuse) stores(s agentsystem.Stores) agentsystem.Stores {
	s.Agents = fusedAgents{s.Agents, f}
	s.Inbox = fusedInbox{s.Inbox, f}
	s.Runs = fusedRuns{s.Runs, f}
	s.Outbox = fusedOutbox{s.Outbox, f}
	s.Later = fusedReminders{s.Later, f}
	if s.Marks != nil {
		s.Marks = fusedMarks{s.Marks, f}
	}
	s.Parking = fusedParking{s.Parking, f}
	return s
}

type fusedBoots struct {
	storage.Boots
	f *fuse
}

func (b fusedBoots) Update(sync bool, change func(*storage.Boot)) error {
	return b.f.quiet(func() error { return b.Boots.Update(sync, change) })
}

type fusedMarks struct {
	storage.CheckpointSet
	f *fuse
}

func (m fusedMarks) Checkpoint(ctx context.Context, key string) (value string, err error) {
	err = m.f.quiet(func() error { value, err = m.CheckpointSet.Checkpoint(ctx, key); return err })
	return value, err
}

func (m fusedMarks) SetCheckpoint(ctx context.Context, key, value string) error {
	return m.f.quiet(func() error { return m.CheckpointSet.SetCheckpoint(ctx, key, value) })
}

type fusedParking struct {
	agentsystem.Parking
	f *fuse
}

func (p fusedParking) Park(ctx context.Context, m storage.Parked, r storage.ParkRules) (added bool, err error) {
	err = p.f.step("park", func() error { added, err = p.Parking.Park(ctx, m, r); return err })
	return added, err
}

func (p fusedParking) Unpark(ctx context.Context, id claybot.MessageID) error {
	return p.f.step("unpark", func() error { return p.Parking.Unpark(ctx, id) })
}

func (p fusedParking) EndParked(ctx context.Context, m storage.Parked, reason string) (ended bool, err error) {
	err = p.f.step("end parked", func() error { ended, err = p.Parking.EndParked(ctx, m, reason); return err })
	return ended, err
}

func (p fusedParking) ParkedOf(ctx context.Context, key string, limit int) (list []storage.Parked, err error) {
	err = p.f.quiet(func() error { list, err = p.Parking.ParkedOf(ctx, key, limit); return err })
	return list, err
}

// reminders is the contract under a name that its own method does not hide.
type reminders = storage.Reminders

type fusedReminders struct {
	reminders
	f *fuse
}

func (r fusedReminders) AddReminder(ctx context.Context, x storage.Reminder, limit int) error {
	return r.f.step("add reminder", func() error { return r.reminders.AddReminder(ctx, x, limit) })
}

func (r fusedReminders) Remind(ctx context.Context, now claybot.Time, posting func(storage.Reminder) (storage.Posting, error)) (n int, next claybot.Time, err error) {
	err = r.f.quiet(func() error { n, next, err = r.reminders.Remind(ctx, now, posting); return err })
	return n, next, err
}

type fusedAgents struct {
	agentsystem.Agents
	f *fuse
}

func (a fusedAgents) AgentFor(ctx context.Context, d claybot.Descriptor) (agent claybot.Agent, err error) {
	err = a.f.step("agent for", func() error { agent, err = a.Agents.AgentFor(ctx, d); return err })
	return agent, err
}

func (a fusedAgents) NewAgent(ctx context.Context, d claybot.Descriptor, b claybot.Background) (agent claybot.Agent, err error) {
	err = a.f.step("new agent", func() error { agent, err = a.Agents.NewAgent(ctx, d, b); return err })
	return agent, err
}

func (a fusedAgents) Delete(ctx context.Context, id claybot.AgentID) error {
	return a.f.step("delete agent", func() error { return a.Agents.Delete(ctx, id) })
}

func (a fusedAgents) SaveState(ctx context.Context, l storage.Lease, s claybot.AgentState) error {
	return a.f.step("save state", func() error { return a.Agents.SaveState(ctx, l, s) })
}

func (a fusedAgents) OpenHistory(ctx context.Context, l storage.Lease) (h storage.History, err error) {
	err = a.f.quiet(func() error { h, err = a.Agents.OpenHistory(ctx, l); return err })
	if err != nil {
		return nil, err
	}
	return fusedHistory{h, a.f}, nil
}

type fusedHistory struct {
	storage.History
	f *fuse
}

func (h fusedHistory) Append(ctx context.Context, r ...claybot.Record) error {
	return h.f.step("append history", func() error { return h.History.Append(ctx, r...) })
}

func (h fusedHistory) End(ctx context.Context) storage.Checkpoint {
	return storage.EndOf(ctx, h.History)
}

func (h fusedHistory) Buffer(ctx context.Context, r ...claybot.Record) error {
	return h.f.step("buffer history", func() error { return h.History.Buffer(ctx, r...) })
}

type fusedInbox struct {
	agentsystem.Inbox
	f *fuse
}

func (i fusedInbox) Post(ctx context.Context, p storage.Posting) (done storage.Posted, err error) {
	err = i.f.step("post", func() error { done, err = i.Inbox.Post(ctx, p); return err })
	return done, err
}

func (i fusedInbox) Release(ctx context.Context, l storage.Lease, w storage.Wait, orderly bool) error {
	return i.f.quiet(func() error { return i.Inbox.Release(ctx, l, w, orderly) })
}

func (i fusedInbox) Take(ctx context.Context, l storage.Lease, run claybot.RunID, limit int, accept func(claybot.AgentMessage) bool) (ms []claybot.AgentMessage, err error) {
	err = i.f.step("take", func() error { ms, err = i.Inbox.Take(ctx, l, run, limit, accept); return err })
	return ms, err
}

func (i fusedInbox) Drop(ctx context.Context, a claybot.AgentID, reason string, ids ...claybot.MessageID) (out []claybot.MessageID, err error) {
	err = i.f.step("drop", func() error { out, err = i.Inbox.Drop(ctx, a, reason, ids...); return err })
	return out, err
}

func (i fusedInbox) Settle(ctx context.Context, l storage.Lease, id claybot.MessageID, s storage.Settlement) (out []claybot.Outgoing, err error) {
	err = i.f.step("settle", func() error { out, err = i.Inbox.Settle(ctx, l, id, s); return err })
	return out, err
}

type fusedRuns struct {
	agentsystem.Runs
	f *fuse
}

func (r fusedRuns) Begin(ctx context.Context, l storage.Lease, id claybot.RunID, batch []claybot.MessageID, with storage.Beginning) (run claybot.Run, err error) {
	if do := r.f.beginning.Swap(nil); do != nil {
		(*do)()
	}
	err = r.f.step("begin", func() error { run, err = r.Runs.Begin(ctx, l, id, batch, with); return err })
	return run, err
}

func (r fusedRuns) Append(ctx context.Context, l storage.Lease, id claybot.RunID, progress bool, ev ...claybot.Event) error {
	return r.f.step("append events", func() error { return r.Runs.Append(ctx, l, id, progress, ev...) })
}

func (r fusedRuns) Rate(ctx context.Context, id claybot.RunID, f claybot.Feedback) (changed bool, err error) {
	err = r.f.step("rate", func() error { changed, err = r.Runs.Rate(ctx, id, f); return err })
	return changed, err
}

func (r fusedRuns) SaveDraft(ctx context.Context, l storage.Lease, id claybot.RunID, d claybot.Draft) error {
	return r.f.step("save draft", func() error { return r.Runs.SaveDraft(ctx, l, id, d) })
}

func (r fusedRuns) Suspend(ctx context.Context, l storage.Lease, id claybot.RunID, p storage.Pause) error {
	return r.f.step("suspend", func() error { return r.Runs.Suspend(ctx, l, id, p) })
}

func (r fusedRuns) Finish(ctx context.Context, l storage.Lease, id claybot.RunID, o storage.Outcome) (out []claybot.Outgoing, err error) {
	err = r.f.step("finish", func() error { out, err = r.Runs.Finish(ctx, l, id, o); return err })
	return out, err
}

type fusedOutbox struct {
	agentsystem.Outbox
	f *fuse
}

func (o fusedOutbox) Enqueue(ctx context.Context, out ...claybot.Outgoing) (stored []claybot.Outgoing, err error) {
	err = o.f.step("enqueue", func() error { stored, err = o.Outbox.Enqueue(ctx, out...); return err })
	return stored, err
}

func (o fusedOutbox) Attempt(ctx context.Context, c storage.Claim, id string) error {
	return o.f.step("attempt", func() error { return o.Outbox.Attempt(ctx, c, id) })
}

func (o fusedOutbox) Resolve(ctx context.Context, c storage.Claim, id string, r storage.Resolution) error {
	return o.f.step("resolve", func() error { return o.Outbox.Resolve(ctx, c, id, r) })
}
