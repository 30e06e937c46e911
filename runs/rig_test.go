package runs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// A rig is a store with a hub that hears of its commits, and runs in it.
type rig struct {
	t     testing.TB
	path  string
	db    *sqlite.DB
	hub   *runs.Hub
	count int
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "claybot.db"), hub: runs.NewHub()}
	r.db = openDB(t, r.path, r.hub.Committed)
	return r
}

func openDB(t testing.TB, path string, committed func(storage.Commit)) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, sqlite.Config{Committed: committed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// reopen closes the store and opens it with another hub, as a process does that
// was killed and started again.
func (r *rig) reopen() {
	r.t.Helper()
	r.must(r.db.Close())
	r.hub = runs.NewHub()
	r.db = openDB(r.t, r.path, r.hub.Committed)
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// A live is an unfinished run with the lease of its agent.
type live struct {
	*rig
	agent claybot.AgentID
	id    claybot.RunID
	lease storage.Lease
	seq   int64 // of its last event
}

// post gives a new agent a message that reserves a run id.
func (r *rig) post(reserve claybot.RunID) *live {
	r.t.Helper()
	r.count++
	agent := claybot.Agent{ID: claybot.AgentID(fmt.Sprintf("atestagent%014d", r.count)), Descriptor: claybot.User("web", fmt.Sprint(r.count), "U")}
	r.must(r.db.IndexAgents(r.t.Context(), agent))
	l := &live{rig: r, agent: agent.ID, id: claybot.RunID(fmt.Sprintf("run%d", r.count))}
	l.say("first", reserve)
	return l
}

func (l *live) messageID(name string) claybot.MessageID {
	return claybot.MessageID(name + "/" + string(l.agent))
}

func (l *live) say(name string, reserve claybot.RunID) {
	l.t.Helper()
	_, err := l.db.Post(l.t.Context(), storage.Posting{To: l.agent, Message: claybot.AgentMessage{
		ID: l.messageID(name), Type: claybot.MessageUser, Text: name, At: claybot.Now(), Run: reserve,
	}})
	l.must(err)
}

// acquire takes the lease of the agent, the only one that is due.
func (l *live) acquire() {
	l.t.Helper()
	acquired, _, err := l.db.Acquire(l.t.Context(), "node", time.Hour, 1, 10)
	l.must(err)
	if len(acquired) != 1 || acquired[0].Lease.Agent != l.agent {
		l.t.Fatalf("acquired %+v", acquired)
	}
	l.lease = acquired[0].Lease
}

// begin starts the run with the agent's waiting message.
func (l *live) begin() *live {
	l.t.Helper()
	l.acquire()
	run, err := l.db.Begin(l.t.Context(), l.lease, l.id, []claybot.MessageID{l.messageID("first")}, storage.Beginning{})
	l.must(err)
	l.id, l.seq = run.ID, run.LastSeq
	return l
}

// start makes an agent with a run that is under way; it has one event.
func (r *rig) start() *live {
	r.t.Helper()
	return r.post("").begin()
}

// resume takes up the run after the store was opened again.
func (l *live) resume() {
	l.t.Helper()
	l.acquire()
	run, err := l.db.Begin(l.t.Context(), l.lease, l.id, nil, storage.Beginning{})
	l.must(err)
	l.seq = run.LastSeq
}

// add appends n events.
func (l *live) add(n int) {
	l.t.Helper()
	events := make([]claybot.Event, n)
	for i := range events {
		events[i] = runs.NodeBegan(l.id, "model", int(l.seq)+i+1)
	}
	l.must(l.append(l.t.Context(), events...))
}

func (l *live) append(ctx context.Context, events ...claybot.Event) error {
	err := l.db.Append(ctx, l.lease, l.id, false, events...)
	if err == nil {
		l.seq += int64(len(events))
	}
	return err
}

// said appends the event of an answer of the model.
func (l *live) said(step int, text string) {
	l.t.Helper()
	ev, ok := runs.EventOf(claybot.Record{Type: claybot.RecordAssistant, Run: l.id, At: claybot.Now(), Step: step, Text: text})
	if !ok {
		l.t.Fatal("no event")
	}
	l.must(l.append(l.t.Context(), ev))
}

// finish ends the run.
func (l *live) finish() {
	l.t.Helper()
	_, err := l.db.Finish(l.t.Context(), l.lease, l.id, storage.Outcome{
		State: claybot.RunSucceeded, Events: []claybot.Event{runs.Finished(l.id, "bye", claybot.Usage{})}, Output: "bye",
	})
	l.must(err)
	l.seq++
}

// ended is a run with n events.
func (r *rig) ended(n int) *live {
	r.t.Helper()
	l := r.start()
	if n > 2 {
		l.add(n - 2)
	}
	l.finish()
	return l
}

// events yields the events of a Watch alone.
func (r *rig) events(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[claybot.Event, error] {
	return func(yield func(claybot.Event, error) bool) {
		for u, err := range runs.Watch(ctx, r.db, r.hub, id, after) {
			switch {
			case err != nil:
				yield(claybot.Event{}, err)
				return
			case u.Event != nil && !yield(*u.Event, nil):
				return
			}
		}
	}
}

// seqs collects the seqs of a run until its end, and checks what each event
// says.
func (r *rig) seqs(id claybot.RunID, after int64) ([]int64, error) {
	var got []int64
	for e, err := range r.events(r.t.Context(), id, after) {
		if err != nil {
			return got, err
		}
		if e.V != 1 || e.Type == "" || e.At == 0 || !json.Valid(e.Data) {
			r.t.Errorf("event %+v", e)
		}
		got = append(got, e.Seq)
	}
	return got, nil
}

// span is from..to.
func span(from, to int64) []int64 {
	var s []int64
	for i := from; i <= to; i++ {
		s = append(s, i)
	}
	return s
}

// pause is how a run is suspended until it has its answers.
func pause(run claybot.RunID, a claybot.Awaiting) storage.Pause {
	return storage.Pause{Events: []claybot.Event{runs.Paused(run, a)}, Awaiting: a}
}
