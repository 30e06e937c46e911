package agentsystem_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// lateEnds are runs whose first end is heard of late: it is stored, but who
// committed it learns of it when the next run has ended.
type lateEnds struct {
	agentsystem.Runs
	first *atomic.Bool
}

func (x lateEnds) Finish(ctx context.Context, l storage.Lease, id claybot.RunID, o storage.Outcome) ([]claybot.Outgoing, error) {
	out, err := x.Runs.Finish(ctx, l, id, o)
	if x.first.CompareAndSwap(false, true) {
		time.Sleep(5 * time.Second)
	}
	return out, err
}

// Answers arrive in the order in which they were stored, also where a later one is
// handed over first: to a chat that is idle, and to one with a send under way.
func TestOrderOfLateHandovers(t *testing.T) {
	for _, busy := range []bool{false, true} {
		bubble(t, func(r *rig) {
			r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
				s.Runs = lateEnds{s.Runs, new(atomic.Bool)}
				return s
			}
			r.start()
			var want []string
			if busy {
				var once sync.Once
				r.chat.judge = func(claybot.Outgoing) verdict {
					once.Do(func() { r.chat.mu.Unlock(); time.Sleep(time.Second); r.chat.mu.Lock() })
					return verdict{}
				}
				r.post(ann, command("c", "start"))
				synctest.Wait()
				want = append(want, "Hello! Send me a message and I'll answer. /help shows what I can do.")
			}
			r.say("one")
			synctest.Wait()
			r.say("two")
			after(10 * time.Second)
			r.wants(append(want, "re: one", "re: two")...)
			if n := len(r.chat.sent()); n != len(want)+2 {
				t.Errorf("%d sends", n)
			}
		})
	}
}

// reads counts how often the outbox is read for what is unsent.
type reads struct {
	agentsystem.Outbox
	n *atomic.Int64
}

func (x reads) Unsent(ctx context.Context, dest string, after int64, limit int) ([]claybot.Outgoing, error) {
	x.n.Add(1)
	return x.Outbox.Unsent(ctx, dest, after, limit)
}

// Messages for a connector that is gone wait for it, however many they become, and
// none of them is read meanwhile.
func TestConnectorGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var n atomic.Int64
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Outbox = reads{s.Outbox, &n}
			return s
		}
		r.chat.judge = func(claybot.Outgoing) verdict { return slow(time.Hour, false) }
		r.start()
		r.say("a")
		synctest.Wait()
		r.shut()
		n.Store(0)
		r.line = func(l *line) connectors.Connector { l.name = "another"; return l }
		r.start()
		after(time.Minute)
		for _, text := range []string{"b", "c"} {
			r.say(text)
			after(time.Minute)
		}
		r.wants()
		if n := n.Load(); n != 0 {
			t.Errorf("read %d times", n)
		}
		r.shut()
		r.chat.judge = nil
		r.line = func(l *line) connectors.Connector { return l }
		r.start()
		after(time.Hour)
		r.wants("re: a", "re: b", "re: c")
	})
}
