package agentsystem_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm/llmtest"
)

// A drawer is where people see drafts that are no messages.
type drawer struct {
	mu     sync.Mutex
	drafts []sending
	none   bool
	err    error
	texts  bool // answers grow there
}

func (d *drawer) line() func(l *line) connectors.Connector {
	return func(l *line) connectors.Connector { return draftLine{streamingLine{l}, d} }
}

// texts of the drafts, in order.
func (d *drawer) all() (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.drafts {
		all = append(all, s.out.Text)
	}
	return all
}

// A draftLine shows a typing sign and drafts, like Telegram in private chats.
type draftLine struct {
	streamingLine
	drawer *drawer
}

func (l draftLine) Streaming(r claybot.Route) connectors.Streaming {
	s := l.streamingLine.Streaming(r)
	s.Drafts = l.drawer.texts
	return s
}

func (l draftLine) Draft(_ context.Context, o claybot.Outgoing) (bool, error) {
	d := l.drawer
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.none || d.err != nil {
		return false, d.err
	}
	d.drafts = append(d.drafts, sending{time.Now(), o})
	return true, nil
}

// A long tool is named by drafts, which are shown again before the platform forgets them, and
// no message is made for them.
func TestStillWorkingByDrafts(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]*drawer{"answers by edits": {}, "answers by drafts": {texts: true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.line = d.line()
				r.mind.plan("begin", use("work"), llmtest.Say("done"))
				r.bench.work = func(ctx context.Context) { _ = rest(ctx, 70*time.Second) }
				r.start()
				r.say("begin")
				after(14 * time.Second)
				r.wants()
				if all := d.all(); len(all) > 0 {
					t.Errorf("drafts %q", all)
				}
				after(50 * time.Second)
				r.wants()
				all := d.all()
				if len(all) < 3 || all[0] != stillWork || all[len(all)-1] != stillWork {
					t.Errorf("drafts %q", all)
				}
				d.mu.Lock()
				for i := 1; i < len(d.drafts); i++ {
					if gap := d.drafts[i].at.Sub(d.drafts[i-1].at); gap > 25*time.Second {
						t.Errorf("draft %d came %v after the one before; the platform forgets them after 30s", i, gap)
					}
				}
				d.mu.Unlock()
				after(time.Minute)
				r.wants("done")
				if p := r.chat.posts[0]; p.out.Text == stillWork { // it may grow by edits of its own
					t.Error("the answer is no message of its own")
				}
				shown := len(d.all())
				after(5 * time.Minute)
				if n := len(d.all()); n != shown {
					t.Errorf("%d drafts after the end", n-shown)
				}
			})
		})
	}
}

// Where the platform turns out to have no drafts, a long tool is named by a message, which the
// answer replaces; people see a typing sign, so that takes longer.
func TestStillWorkingWithoutDrafts(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]*drawer{"none there": {none: true}, "failing": {err: errors.New("HTTP status 500")}, "and no answers": {none: true, texts: true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.line = d.line()
				r.mind.plan("begin", use("work"), llmtest.Say(half1+half2))
				r.bench.work = func(ctx context.Context) { _ = rest(ctx, 70*time.Second) }
				r.start()
				r.say("begin")
				after(55 * time.Second)
				r.wants()
				after(10 * time.Second)
				r.wants(stillWork)
				after(time.Minute)
				r.wants(half1 + half2)
				if n := len(r.chat.posts); n != 1 {
					t.Errorf("%d messages", n)
				}
			})
		})
	}
}

// An answer grows as a draft and then comes as one message. Drafts keep their distance, a crash
// leaves nothing behind, and the platform's wish for a pause is heard.
func TestAnswerGrowsAsADraft(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		d := &drawer{texts: true}
		r.grow(d.line(), half1+half2)
		r.start()
		r.say("begin")
		after(time.Second)
		r.wants()
		if all := d.all(); len(all) != 1 || all[0]+" " != half1 {
			t.Errorf("drafts %q", all)
		}
		r.crash()
		shown := len(d.all())
		d.mu.Lock()
		d.err = &connectors.RetryError{After: time.Hour, Err: errors.New("429")}
		d.mu.Unlock()
		r.start()
		after(time.Minute)
		r.wants(half1 + half2)
		if n := len(r.chat.posts); n != 1 || r.chat.posts[0].edits != 0 || len(d.all()) != shown {
			t.Errorf("%d messages, %d edits, drafts %q", n, r.chat.posts[0].edits, d.all())
		}
	})
	bubble(t, func(r *rig) {
		d := &drawer{texts: true}
		r.line = d.line()
		r.mind.before = nil
		r.engine = drip{r, 100 * time.Millisecond, []string{"a long beginning of an answer", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v"}}
		r.start()
		r.say("begin")
		after(time.Minute)
		synctest.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.drafts) < 2 || len(d.drafts) > 4 {
			t.Errorf("%d drafts in 2.2 s", len(d.drafts))
		}
		for i := 1; i < len(d.drafts); i++ {
			if gap := d.drafts[i].at.Sub(d.drafts[i-1].at); gap < time.Second {
				t.Errorf("draft %d after %v", i, gap)
			}
		}
	})
}

// A typing sign is there within a second of the start of a run, is shown again before the
// platform forgets it after five seconds, and ends with the run, however it ends.
func TestTyping(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig){
		"an answer":  func(*rig) {},
		"a stop":     func(r *rig) { r.post(ann, stop("s")) },
		"a question": func(r *rig) {},
		"a failure":  func(*rig) {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.line = streams
				r.slowModel(30 * time.Second)
				switch name {
				case "a question":
					r.mind.plan("begin", askColour(nil))
				case "a failure":
					r.mind.plan("begin", llmtest.Reply{Err: errors.New("the model is gone")})
				}
				r.start()
				began := time.Now()
				r.say("begin")
				after(25 * time.Second)
				end(r)
				after(10 * time.Second)
				r.chat.mu.Lock()
				at := r.chat.typed
				r.chat.mu.Unlock()
				if len(at) == 0 || at[0].Sub(began) > time.Second {
					t.Fatalf("typing at %v", at)
				}
				for i := 1; i < len(at); i++ {
					if gap := at[i].Sub(at[i-1]); gap > 5*time.Second {
						t.Errorf("a typing sign %v after the one before", gap)
					}
				}
				if last := at[len(at)-1].Sub(began); last < 20*time.Second || last > 31*time.Second && name != "a failure" {
					t.Errorf("the last typing sign came after %v", last)
				}
			})
		})
	}
}
