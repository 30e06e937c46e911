package connectorstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

var errDisk = errors.New("disk full")

// intake are the checks of receiving.
var intake = []check{
	{"Receiving", "durable before acknowledged", func(w *world) {
		w.inbox.held("")
		w.start()
		w.write(Ann, "hello")
		synctest.Wait()
		w.wantUnacked(1)
		w.wantTexts()
		w.inbox.release()
		w.wantUnacked(0)
		w.wantTexts("hello")
	}},
	{"Receiving", "full store keeps the message at the platform", func(w *world) {
		var room atomic.Bool
		w.inbox.deciding(func(context.Context, claybot.AgentMessage) error {
			if !room.Load() {
				return errDisk
			}
			return nil
		})
		w.start()
		w.write(Ann, "hello")
		time.Sleep(time.Minute)
		synctest.Wait()
		w.wantTexts()
		w.wantUnacked(1)
		if h := w.conn.Health(); h.State == connectors.StateStopped {
			w.Errorf("health %+v", h)
		}
		room.Store(true)
		w.redelivered()
		w.wantTexts("hello")
		w.wantUnacked(0)
	}},
	{"Receiving", "unstorable message is dropped", func(w *world) {
		w.inbox.deciding(func(_ context.Context, m claybot.AgentMessage) error {
			if m.Text == "bad" {
				return w.h.Unstorable
			}
			return nil
		})
		w.start()
		w.write(Ann, "bad")
		w.write(Ann, "next")
		w.redelivered()
		w.wantTexts("next")
		w.wantUnacked(0)
	}},
	{"Receiving", "redelivery has the same id", func(w *world) {
		var mu sync.Mutex
		var ids []claybot.MessageID
		w.inbox.deciding(func(_ context.Context, m claybot.AgentMessage) error {
			mu.Lock()
			defer mu.Unlock()
			if ids = append(ids, m.ID); len(ids) == 1 {
				return errDisk
			}
			return nil
		})
		w.start()
		w.write(Ann, "hello")
		w.redelivered()
		mu.Lock()
		defer mu.Unlock()
		if len(ids) < 2 || len(slices.Compact(slices.Clone(ids))) != 1 || ids[0] == "" {
			w.Errorf("posted as %q", ids)
		}
		w.wantTexts("hello")
	}},
	{"Receiving", "shutdown acknowledges nothing that is not stored", func(w *world) {
		w.inbox.held("slow")
		w.start()
		w.write(Ann, "fast")
		synctest.Wait()
		w.write(Bob, "slow")
		synctest.Wait()
		w.stop()
		time.Sleep(time.Second)
		synctest.Wait()
		if stored, unacked := len(w.inbox.all()), w.p.Unacked(); stored+unacked < 2 {
			w.Errorf("%d stored and %d unacknowledged, of 2", stored, unacked)
		}
		w.inbox.release()
		if err := w.end(); !errors.Is(err, errStop) {
			w.Errorf("Run = %v, want the cause of its end", err)
		}
		w.restart()
		w.redelivered()
		w.wantTexts("fast", "slow")
		w.wantUnacked(0)
	}},
	{"Receiving", "crash after storing stores once", func(w *world) {
		w.inbox.after = errStop // the process ends before it can acknowledge
		w.start()
		w.write(Ann, "hello")
		synctest.Wait()
		w.wantUnacked(1)
		w.stop()
		synctest.Wait()
		w.inbox.mu.Lock()
		w.inbox.after = nil
		w.inbox.mu.Unlock()
		_ = w.end() // as it crashes
		w.restart()
		w.redelivered()
		w.wantTexts("hello")
		w.wantUnacked(0)
		w.inbox.mu.Lock()
		defer w.inbox.mu.Unlock()
		if w.inbox.posts < 2 {
			w.Errorf("posted %d times, want again after the crash", w.inbox.posts)
		}
	}},
	{"Receiving", "order in a chat", func(w *world) {
		const n = 10
		random := []time.Duration{9, 2, 7, 0, 5}
		var posts atomic.Int64
		w.inbox.deciding(func(context.Context, claybot.AgentMessage) error {
			time.Sleep(random[int(posts.Add(1))%len(random)] * time.Millisecond)
			return nil
		})
		w.start()
		want := make(map[Chat][]string)
		for i := range n {
			for _, c := range []Chat{Ann, Bob} {
				text := fmt.Sprint(c.N, "/", i)
				w.write(c, text)
				want[c] = append(want[c], text)
			}
		}
		w.redelivered()
		got := make(map[string][]string)
		for _, m := range w.inbox.all() {
			got[m.to.UserID] = append(got[m.to.UserID], m.Text)
		}
		for c, want := range want {
			if user := w.p.User(c.N); !slices.Equal(got[user], want) {
				w.Errorf("user %s wrote %q, stored %q", user, want, got[user])
			}
		}
		if w.inbox.most != 1 {
			w.Errorf("%d posts of one user at once", w.inbox.most)
		}
	}},
	{"Receiving", "flood of one user is stored once, in order", func(w *world) {
		const n = 10_000
		var want []string
		for i := range n {
			want = append(want, fmt.Sprint(i))
		}
		w.start()
		for _, text := range want {
			w.write(Ann, text)
		}
		time.Sleep(time.Minute)
		w.redelivered()
		if got := w.inbox.texts(); !slices.Equal(got, want) {
			w.Errorf("stored %d of %d messages, or in another order", len(got), n)
		}
		w.wantUnacked(0)
	}},
	{"Receiving", "slow chat holds up no other", func(w *world) {
		w.inbox.held("slow")
		w.write(Ann, "slow")
		w.write(Bob, "hello")
		w.start()
		w.redelivered()
		w.wantTexts("hello")
		w.inbox.release()
		w.redelivered()
		w.wantTexts("hello", "slow")
	}},
	{"Receiving", "sender and context", func(w *world) {
		w.start()
		now := time.Now()
		w.write(Ann, "hello")
		w.redelivered()
		all := w.inbox.all()
		if len(all) != 1 {
			w.Fatalf("stored %+v", all)
		}
		m, route := all[0], w.p.Route(Ann, 1)
		want := claybot.User(w.conn.Name(), route.ChannelID, w.p.User(1))
		if m.to != want || m.From.UserID != w.p.User(1) || m.Context.Group || m.Context.MessageID == "" || m.Type != claybot.MessageUser || !m.FirstHand {
			w.Errorf("for %+v, want %+v: %+v", m.to, want, m.AgentMessage)
		}
		if late := m.At.Time().Sub(now); late < -time.Second || late > time.Second {
			w.Errorf("written at %v", m.At.Time())
		}
	}},
	{"Receiving", "unknown events are acknowledged", func(w *world) {
		w.need(w.p.Unknown != nil)
		w.start()
		w.p.Unknown()
		w.write(Ann, "next")
		w.redelivered()
		w.wantTexts("next")
		w.wantUnacked(0)
	}},
	{"Receiving", "malformed events hold up nothing", func(w *world) {
		w.need(w.p.Malformed != nil)
		w.start()
		w.p.Malformed()
		w.write(Ann, "next")
		w.redelivered()
		w.wantTexts("next")
		w.wantUnacked(0)
	}},
	{"Receiving", "groups need a mention", func(w *world) {
		w.start()
		w.p.Write(Written{Chat: Team, User: 1, Text: "to the others"})
		w.p.Write(Written{Chat: Team, User: 2, Text: "what now", Mention: true})
		w.redelivered()
		w.wantTexts("what now")
		w.wantUnacked(0)
		for _, m := range w.inbox.all() {
			if !m.Context.Group || m.to.UserID != w.p.User(2) || m.to.ChannelID != w.p.Route(Team, 2).ChannelID {
				w.Errorf("for %+v: %+v", m.to, m.AgentMessage)
			}
		}
	}},
	{"Receiving", "edits name the message", func(w *world) {
		w.need(w.p.Edit != nil)
		w.start()
		w.write(Ann, "one")
		w.redelivered()
		w.p.Edit("two")
		w.redelivered()
		w.wantAmended(claybot.MessageEdit, "two")
	}},
	{"Receiving", "deletions name the message", func(w *world) {
		w.need(w.p.Unsend != nil)
		w.start()
		w.write(Ann, "one")
		w.redelivered()
		w.p.Unsend()
		w.redelivered()
		w.wantAmended(claybot.MessageDelete, "")
	}},
	{"Receiving", "files come as references", func(w *world) {
		f, ok := w.conn.(connectors.Fetcher)
		w.need(ok)
		w.start()
		w.p.Write(Written{Chat: Ann, User: 1, Text: "read this", File: &File{"a.txt", "the bytes"}})
		w.redelivered()
		all := w.inbox.all()
		if len(all) != 1 || len(all[0].Files) != 1 || !all[0].Tainted || all[0].Text != "read this" {
			w.Fatalf("stored %+v", all)
		}
		ref := all[0].Files[0]
		for range 2 {
			if got := w.fetch(f, ref); got != "the bytes" {
				w.Errorf("fetched %q", got)
			}
		}
		w.p.LoseFile()
		_, err := f.Fetch(w.Context(), ref)
		var refused *connectors.RefusedError
		if !errors.As(err, &refused) || refused.Text == "" {
			w.Errorf("a file that is gone: %v", err)
		}
		w.noSecret("the error", fmt.Sprint(err))
	}},
}
