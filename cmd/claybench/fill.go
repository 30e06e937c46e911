package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
)

// A filled store is one with a past.
type filled struct {
	agent   claybot.AgentID   // that remembers something
	run     claybot.RunID     // one of many
	message claybot.MessageID // that it is for
	long    claybot.RunID     // with many events
}

// fillAtOnce is how many things are stored at the same time: they share commits.
const fillAtOnce = 256

// A filler makes a past.
type filler struct {
	db     *sqlite.DB
	agents *files.Store
	ids    []claybot.AgentID
	past   filled
}

// fill makes a data directory with agents, runs that have ended, and one run of
// many events, by the same calls that a daemon makes.
func fill(ctx context.Context, data string, size watchSize) (past filled, err error) {
	lock, err := files.Lock(data)
	if err != nil {
		return past, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	db, err := sqlite.Open(ctx, filepath.Join(data, "claybot.db"), sqlite.Config{})
	if err != nil {
		return past, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	store, err := files.Open(files.Config{Dir: data, Index: db, FS: unsyncedFS{}})
	if err != nil {
		return past, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	f := &filler{db: db, agents: store, ids: make([]claybot.AgentID, size.agents)}
	err = parallel(ctx, size.agents, func(ctx context.Context, i int) error {
		a, err := store.AgentFor(ctx, claybot.User("telegram", fmt.Sprint(i), fmt.Sprint(i)))
		f.ids[i] = a.ID
		return err
	})
	if err != nil {
		return past, err
	}
	if err := f.longRun(ctx, size.events); err != nil {
		return past, fmt.Errorf("a run of %d events: %w", size.events, err)
	}
	for made := 0; made < size.runs; { // an agent has one run at a time
		n := min(len(f.ids), size.runs-made)
		if err := f.wave(ctx, made, n); err != nil {
			return past, err
		}
		made += n
	}
	return f.past, nil
}

// parallel calls fn for 0 to n-1, some at a time.
func parallel(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(fillAtOnce)
	for i := range n {
		g.Go(func() error { return fn(ctx, i) })
	}
	return g.Wait()
}

func fillMessage(i int) claybot.AgentMessage {
	return claybot.AgentMessage{
		ID: claybot.MessageID(fmt.Sprintf("telegram/1000/%d", i)), Type: claybot.MessageUser, Text: "What is the weather like today?",
		From: claybot.Sender{UserID: "12345678", Name: "Ann"}, At: claybot.Now(),
	}
}

// wave makes one run each for so many agents. Numbers of messages begin at
// first.
func (f *filler) wave(ctx context.Context, first, n int) error {
	err := parallel(ctx, n, func(ctx context.Context, i int) error {
		_, err := f.db.Post(ctx, storage.Posting{To: f.ids[i], Message: fillMessage(first + i)})
		return err
	})
	if err != nil {
		return err
	}
	for done := 0; done < n; {
		acquired, _, err := f.db.Acquire(ctx, "bench", time.Hour, 1000, 1)
		if err == nil && len(acquired) == 0 {
			err = fmt.Errorf("%d of %d agents have nothing to do", n-done, n)
		}
		if err != nil {
			return err
		}
		err = parallel(ctx, len(acquired), func(ctx context.Context, i int) error { return f.life(ctx, acquired[i], first+done+i) })
		if err != nil {
			return err
		}
		done += len(acquired)
	}
	return nil
}

// oldRun is the id of a run that is older than all that a daemon makes: such ids
// sort by time.
func oldRun(n int) claybot.RunID { return claybot.RunID(fmt.Sprintf("c%024d", n)) }

// life is a run with one answer. One in a thousand fails.
func (f *filler) life(ctx context.Context, h storage.Acquired, n int) error {
	id, message := oldRun(n+1), h.Waiting[0].ID
	if n == 0 {
		f.past.run, f.past.message = id, message
	}
	if _, err := f.db.Begin(ctx, h.Lease, id, []claybot.MessageID{message}, storage.Beginning{}); err != nil {
		return err
	}
	reply := claybot.Outgoing{
		ID: string(id) + ".1", Kind: claybot.OutgoingAnswer, Run: id, Agent: h.Lease.Agent, Text: "Sunny, 21 degrees.", Part: 1, Parts: 1,
		Route: claybot.Route{Connector: "telegram", ChannelID: fmt.Sprint(n % len(f.ids))}, At: claybot.Now(),
	}
	usage := claybot.Usage{Input: 1000, Output: 100, LLMCalls: 1}
	answer, _ := runs.EventOf(claybot.Record{Type: claybot.RecordAssistant, At: claybot.Now(), Run: id, Text: reply.Text, Model: "bench", MS: 700, Step: 1})
	out := storage.Outcome{
		State: claybot.RunSucceeded, Output: reply.Text, Usage: usage, Calls: []storage.ModelCall{{Model: "bench", Usage: usage, MS: 700}},
		Events: []claybot.Event{answer, runs.Finished(id, reply.Text, usage)}, Replies: []claybot.Outgoing{reply},
	}
	if n%1000 == 7 {
		cause := claybot.RunError{Code: "model_down", Text: "the model cannot be reached"}
		out.State, out.Error, out.Events = claybot.RunFailed, &cause, []claybot.Event{runs.Failed(id, cause, 1)}
	}
	if _, err := f.db.Finish(ctx, h.Lease, id, out); err != nil {
		return err
	}
	claim, err := f.db.Claim(ctx, "bench", storage.DestClaim(reply.Route.Dest()))
	if err != nil {
		return err
	}
	if err := f.db.Attempt(ctx, claim, reply.ID); err != nil {
		return err
	}
	return f.db.Resolve(ctx, claim, reply.ID, storage.Resolution{State: claybot.SendSent, Receipt: fmt.Sprint(n)})
}

// longRun makes a run of many events, and an agent that remembers something.
func (f *filler) longRun(ctx context.Context, events int) error {
	f.past.agent, f.past.long = f.ids[0], oldRun(0)
	id := f.past.long
	m := fillMessage(-1)
	if _, err := f.db.Post(ctx, storage.Posting{To: f.past.agent, Message: m}); err != nil {
		return err
	}
	acquired, _, err := f.db.Acquire(ctx, "bench", time.Hour, 1, 1)
	if err != nil || len(acquired) != 1 {
		return fmt.Errorf("acquired %d: %w", len(acquired), err)
	}
	l := acquired[0].Lease
	if err := f.remember(ctx, l, id); err != nil {
		return err
	}
	if _, err := f.db.Begin(ctx, l, id, []claybot.MessageID{m.ID}, storage.Beginning{}); err != nil {
		return err
	}
	for seq := 1; seq < events-1; {
		batch := make([]claybot.Event, min(1000, events-1-seq))
		for i := range batch {
			batch[i] = longEvent(id, seq+i)
		}
		if err := f.db.Append(ctx, l, id, true, batch...); err != nil {
			return err
		}
		seq += len(batch)
	}
	_, err = f.db.Finish(ctx, l, id, storage.Outcome{State: claybot.RunSucceeded, Events: []claybot.Event{runs.Finished(id, "done", claybot.Usage{})}})
	return err
}

// longEvent is an event of a long run: nodes and tools in turn.
func longEvent(id claybot.RunID, n int) claybot.Event {
	step := n / 4
	call := claybot.ToolCall{ID: fmt.Sprintf("call-%d", step), Name: "current_time", Args: `{"zone":"Europe/Berlin"}`}
	switch n % 4 {
	case 0:
		return runs.NodeBegan(id, "tools", step)
	case 1:
		return runs.ToolCalled(id, call, "read-only")
	case 2:
		e, _ := runs.EventOf(claybot.Record{
			Type: claybot.RecordTool, At: claybot.Now(), Run: id, ToolCallID: call.ID, Name: call.Name, OK: true, MS: 12,
			Text: "Saturday, 21 November 2026, 23:01:15 CET (+01:00)",
		})
		return e
	default:
		return runs.NodeEnded(id, "tools", step, "ok", 12*time.Millisecond)
	}
}

// remember gives an agent a long conversation.
func (f *filler) remember(ctx context.Context, l storage.Lease, id claybot.RunID) (err error) {
	h, err := f.agents.OpenHistory(ctx, l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	var all []claybot.Record
	for i := range 250 {
		all = append(all,
			claybot.Record{Type: claybot.RecordUser, At: claybot.Now(), Run: id, MessageID: claybot.MessageID(fmt.Sprint("telegram/1000/-", i)), Text: "And what is the weather like **now**?"},
			claybot.Record{Type: claybot.RecordAssistant, At: claybot.Now(), Run: id, Text: "Sunny, 21 degrees, with `light` wind.", Model: "bench", Step: i + 1},
		)
	}
	return h.Append(ctx, all...)
}

// unsyncedFS is a file system for directories that are measured and then removed.
type unsyncedFS struct{}

type unsyncedFile struct{ *os.File }

func (unsyncedFile) Sync() error { return nil }

func (unsyncedFS) Open(name string, flag int) (files.File, error) {
	f, err := os.OpenFile(filepath.Clean(name), flag, 0o600)
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

func (unsyncedFS) Mkdir(name string) error                    { return os.Mkdir(name, 0o700) }
func (unsyncedFS) Rename(from, to string) error               { return os.Rename(from, to) }
func (unsyncedFS) Remove(name string) error                   { return os.RemoveAll(name) }
func (unsyncedFS) SyncDir(string) error                       { return nil }
func (unsyncedFS) ReadDir(name string) ([]os.DirEntry, error) { return os.ReadDir(name) }
