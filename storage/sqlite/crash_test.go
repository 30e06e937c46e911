package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A logMoment is what was confirmed when the log had a size.
type logMoment struct {
	size int64
	ids  []claybot.MessageID
}

// copyStore copies database and log to a new directory, the log cut to size.
func copyStore(t *testing.T, path string, size int64) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "claybot.db")
	for _, ext := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + ext)
		if err != nil {
			t.Fatal(err)
		}
		if ext != "" {
			b = b[:min(size, int64(len(b)))]
		}
		if err := os.WriteFile(to+ext, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestTornLog cuts the log at many places: the store opens and has everything
// confirmed before the cut, and nothing but a beginning of what was posted.
func TestTornLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	db := openAt(t, path)
	if err := db.IndexAgents(t.Context(), theAgent); err != nil {
		t.Fatal(err)
	}
	var moments []logMoment
	var all []claybot.MessageID
	for i := range 12 {
		id := claybot.MessageID(fmt.Sprint("m", i))
		if _, err := db.Post(t.Context(), storage.Posting{To: theAgent.ID, Message: textMessage(id)}); err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
		st, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		moments = append(moments, logMoment{st.Size(), slices.Clone(all)})
	}
	end := moments[len(moments)-1].size
	first := moments[0].size // before it the agent itself may be missing
	for cut := first; cut <= end; cut += (end - first) / 41 {
		var confirmed []claybot.MessageID
		for _, m := range moments {
			if m.size <= cut {
				confirmed = m.ids
			}
		}
		torn := openAt(t, copyStore(t, path, cut))
		got := waitingIDs(t, torn)
		if len(got) < len(confirmed) || !slices.Equal(got, all[:len(got)]) {
			t.Fatalf("log cut at %d of %d: got %v, confirmed %v", cut, end, got, confirmed)
		}
		if _, err := torn.Post(t.Context(), storage.Posting{To: theAgent.ID, Message: textMessage("after")}); err != nil {
			t.Fatalf("log cut at %d: %v", cut, err)
		}
		if err := torn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCopyAtEveryStep copies the files after each step of a message's life, as
// a kill leaves them, and reopens: the agent is due again unless all is done.
func TestCopyAtEveryStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	db := openAt(t, path)
	ctx := t.Context()
	if err := db.IndexAgents(ctx, theAgent); err != nil {
		t.Fatal(err)
	}
	var lease storage.Lease
	out := claybot.Outgoing{ID: "o1", Route: theAgent.Descriptor.Route(), Text: "hello"}
	steps := []struct {
		name    string
		do      func() error
		waiting int
		run     claybot.RunState
		send    claybot.SendState
	}{
		{"post", func() error {
			_, err := db.Post(ctx, storage.Posting{To: theAgent.ID, Message: textMessage("m1")})
			return err
		}, 1, "", ""},
		{"acquire", func() error {
			acquired, _, err := db.Acquire(ctx, "n", 1e9, 1, 10)
			if len(acquired) == 1 {
				lease = acquired[0].Lease
			}
			return err
		}, 1, "", ""},
		{"begin", func() error {
			_, err := db.Begin(ctx, lease, "r1", []claybot.MessageID{"m1"}, storage.Beginning{})
			return err
		}, 0, claybot.RunRunning, ""},
		{"append", func() error {
			return db.Append(ctx, lease, "r1", true, claybot.Event{Type: claybot.EventAssistantMessage})
		}, 0, claybot.RunRunning, ""},
		{"finish", func() error {
			_, err := db.Finish(ctx, lease, "r1", storage.Outcome{
				State:  claybot.RunSucceeded,
				Events: []claybot.Event{{Type: claybot.EventRunFinished}}, Replies: []claybot.Outgoing{out},
			})
			return err
		}, 0, claybot.RunSucceeded, claybot.SendWaiting},
		{"attempt", func() error { return db.Attempt(ctx, storage.Claim{}, "o1") }, 0, claybot.RunSucceeded, claybot.SendAmbiguous},
		{"resolve", func() error {
			return db.Resolve(ctx, storage.Claim{}, "o1", storage.Resolution{State: claybot.SendSent})
		}, 0, claybot.RunSucceeded, claybot.SendSent},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatal(s.name, err)
		}
		after := openAt(t, copyStore(t, path, 1<<40))
		f, err := after.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if f.Waiting != s.waiting || s.run != "" && f.Runs[s.run] != 1 || s.send != "" && f.Outbox[s.send] != 1 {
			t.Errorf("after %s: %+v, want %d waiting, run %q, outgoing %q", s.name, f, s.waiting, s.run, s.send)
		}
		acquired, _, err := after.Acquire(ctx, "n", 1e9, 1, 10)
		if err != nil {
			t.Fatal(err)
		}
		if due := s.waiting > 0 || s.run == claybot.RunRunning; due != (len(acquired) == 1) {
			t.Errorf("after %s: acquired %d", s.name, len(acquired))
		}
		checkFigures(t, after)
	}
}

// A connection that is given up after an I/O error leaves the log, as a kill does, even
// when no other is open: a start that finds none after a kill knows that it was removed.
func TestGivenUpConnectionKeepsTheLog(t *testing.T) {
	for name, want := range map[string]bool{"given up": true, "closed": false} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "claybot.db")
			if err := prepareFile(path); err != nil {
				t.Fatal(err)
			}
			c, err := connect(t.Context(), path, writerPragmas)
			if err != nil {
				t.Fatal(err)
			}
			if err := migrate(c); err != nil {
				t.Fatal(err)
			}
			if want {
				c.giveUp()
			} else if err := c.close(); err != nil {
				t.Fatal(err)
			}
			if got, err := HasLog(path); err != nil || got != want {
				t.Errorf("there is a log: %v, %v; want %v", got, err, want)
			}
		})
	}
}
