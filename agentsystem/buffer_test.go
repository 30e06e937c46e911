package agentsystem_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
)

// An arrival is a message, named by its text, at a moment after the start.
type arrival struct {
	at   time.Duration
	text string
}

// When a run starts and what it takes (IN-11 to IN-16).
func TestBuffering(t *testing.T) {
	const ms = time.Millisecond
	debounce := func(quiet, most time.Duration) inbox.Policy {
		return inbox.Policy{Debounce: quiet, DebounceMax: most}
	}
	tests := []struct {
		name     string
		policy   inbox.Policy
		arrivals []arrival
		want     []string // "<ms>: <texts>" of each run
	}{
		{"at once", inbox.Policy{}, []arrival{{0, "a"}, {40 * ms, "b"}}, []string{"0: a", "40: b"}},
		{"quiet time starts anew", debounce(50*ms, 0), []arrival{{0, "a"}, {40 * ms, "b"}}, []string{"90: a b"}},
		{"quiet time passes", debounce(50*ms, 0), []arrival{{0, "a"}, {60 * ms, "b"}}, []string{"50: a", "110: b"}},
		{
			"never later than the most", debounce(50*ms, 100*ms),
			[]arrival{{0, "a"}, {40 * ms, "b"}, {80 * ms, "c"}, {120 * ms, "d"}},
			[]string{"100: a b c", "170: d"},
		},
		{
			"ten times by default", debounce(50*ms, 0),
			steady(40*ms, 14),
			[]string{"500: 1 2 3 4 5 6 7 8 9 10 11 12 13", "570: 14"},
		},
		{
			"one by one",
			inbox.Policy{Debounce: 50 * ms, ProcessBuffer: inbox.OneByOne},
			[]arrival{{0, "a"}, {40 * ms, "b"}},
			[]string{"90: a", "90: b"},
		},
		{
			"largest batch",
			inbox.Policy{Debounce: 50 * ms, MaxBatch: 2},
			[]arrival{{0, "a"}, {10 * ms, "b"}, {20 * ms, "c"}},
			[]string{"70: a b", "70: c"},
		},
		{
			"an album waits for its parts",
			inbox.Policy{},
			[]arrival{{0, "x/1"}, {500 * ms, "x/2"}, {1000 * ms, "x/3"}},
			[]string{"1750: x/1 x/2 x/3"},
		},
		{
			"an album is one message",
			inbox.Policy{ProcessBuffer: inbox.OneByOne},
			[]arrival{{0, "x/1"}, {100 * ms, "x/2"}, {200 * ms, "b"}},
			[]string{"850: x/1 x/2", "850: b"},
		},
		{
			"an endless album",
			inbox.Policy{},
			albumOf(700*ms, 9),
			[]string{"5000: x/1 x/2 x/3 x/4 x/5 x/6 x/7 x/8", "6350: x/9"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.setPolicy(tt.policy)
				r.start()
				began := time.Now()
				for _, a := range tt.arrivals {
					time.Sleep(time.Until(began.Add(a.at)))
					m := msg(a.text, a.text)
					if album, _, ok := strings.Cut(a.text, "/"); ok {
						m.Context.GroupID = album
					}
					r.post(ann, m)
				}
				after(time.Minute)
				if got := r.runsSince(began); !slices.Equal(got, tt.want) {
					t.Errorf("runs %q, want %q", got, tt.want)
				}
			})
		})
	}
}

func steady(every time.Duration, n int) (all []arrival) {
	for i := range n {
		all = append(all, arrival{time.Duration(i) * every, fmt.Sprint(i + 1)})
	}
	return all
}

func albumOf(every time.Duration, n int) []arrival {
	all := steady(every, n)
	for i := range all {
		all[i].text = "x/" + all[i].text
	}
	return all
}

// runsSince lists the runs of Ann: when they began and which messages they took.
func (r *rig) runsSince(began time.Time) (all []string) {
	r.Helper()
	var last claybot.RunID
	for _, rec := range r.records(ann) {
		if rec.Type != claybot.RecordUser && rec.Type != claybot.RecordSystem {
			continue
		}
		if rec.Run != last {
			last = rec.Run
			run, err := r.db.Run(r.Context(), rec.Run)
			if err != nil {
				r.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%d:", run.Started.Time().Sub(began).Milliseconds()))
		}
		all[len(all)-1] += " " + rec.Text
	}
	return all
}

// Batched messages stay apart, and the model sees them one after another
// (IN-15).
func TestBatchKeepsMessagesApart(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.setPolicy(batched)
		r.start()
		r.say("a", "b", "c")
		after(time.Second)
		if got, want := r.history(ann), []string{"user_message a", "user_message b", "user_message c", "assistant_message re: c"}; !slices.Equal(got, want) {
			t.Errorf("history %q, want %q", got, want)
		}
		asked := r.mind.asked()
		var users []string
		for _, m := range asked[0].Messages {
			if m.Role == llm.RoleUser {
				users = append(users, said(m.Content))
			}
		}
		if len(asked) != 1 || strings.Join(users, " ") != "a b c" {
			t.Errorf("%d calls, the first with %q", len(asked), users)
		}
	})
}

// What happens to messages that arrive in the middle of a run (IN-20 to IN-25).
func TestWhenBusy(t *testing.T) {
	// The run: a model call from 0 to 1 s, a tool to 2 s, a call to 3 s, a tool
	// to 4 s, the last call to 5 s.
	const s = time.Second
	debounced := inject
	debounced.Debounce = 2 * s
	tests := []struct {
		name     string
		policy   inbox.Policy
		arrivals []arrival
		want     []string // history without results
	}{
		{"wait", together, []arrival{{3 * s / 2, "b"}}, []string{"begin", "[work]", "[work]", "end", "b", "re: b"}},
		{
			"inject all", inject,
			[]arrival{{5 * s / 4, "b"}, {3 * s / 2, "c"}},
			[]string{"begin", "[work]", "b", "c", "re: c"},
		},
		{
			"inject one at each step", injectOne,
			[]arrival{{5 * s / 4, "b tool"}, {3 * s / 2, "c"}, {7 * s / 4, "d"}},
			[]string{"begin", "[work]", "b tool", "[work]", "c", "re: c", "d", "re: d"},
		},
		{"not before the first call", inject, []arrival{{s / 2, "b"}}, []string{"begin", "[work]", "b", "re: b"}},
		{"not due yet", debounced, []arrival{{3*s/2 + 2*s, "b"}}, []string{"begin", "[work]", "[work]", "end", "b", "re: b"}},
		{"due at the second step", debounced, []arrival{{3 * s / 2, "b"}}, []string{"begin", "[work]", "[work]", "b", "re: b"}},
		{"too late", inject, []arrival{{9 * s / 2, "b"}}, []string{"begin", "[work]", "[work]", "end", "b", "re: b"}},
		{"another thread", inject, []arrival{{3 * s / 2, "t1/b"}}, []string{"begin", "[work]", "[work]", "end", "t1/b", "re: t1/b"}},
		{"system", inject, []arrival{{3 * s / 2, "!tick"}}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.mind.hold("", s)
				r.mind.plan("begin", use("work"), use("work"), llmtest.Say("end"))
				r.mind.plan("tool", use("work"))
				r.bench.work = restALittle
				r.start()
				r.say("begin")
				synctest.Wait()
				r.setPolicy(tt.policy)
				began := time.Now()
				for _, a := range tt.arrivals {
					time.Sleep(time.Until(began.Add(a.at)))
					m := msg(a.text, a.text)
					if thread, _, ok := strings.Cut(a.text, "/"); ok {
						m.Context.ThreadID = thread
					}
					if text, ok := strings.CutPrefix(a.text, "!"); ok {
						m.Type, m.Text = claybot.MessageSystem, text
					}
					r.post(ann, m)
				}
				after(time.Minute)
				var got []string
				for _, line := range r.history(ann) {
					kind, text, _ := strings.Cut(line, " ")
					if kind != "result" {
						got = append(got, text)
					}
				}
				if tt.want == nil { // keeps its kind
					if h := r.history(ann); !slices.Contains(h, "system_message tick") || !r.sameRun("begin", "!tick") {
						t.Errorf("history %q", h)
					}
				} else if !slices.Equal(got, tt.want) {
					t.Errorf("history %q, want %q", got, tt.want)
				}
				r.checkEvents(ann)
			})
		})
	}
}

// A change of settings moves what waits, both ways, and loses nothing (IN-40,
// IN-41).
func TestLiveChange(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.setPolicy(inbox.Policy{Debounce: time.Minute})
		r.start()
		began := time.Now()
		r.say("a", "b")
		after(10 * time.Second)
		r.setPolicy(inbox.Policy{Debounce: 2 * time.Minute})
		after(80 * time.Second)
		if got := r.mind.asked(); len(got) != 0 {
			t.Fatalf("the longer debounce did not count: %d calls", len(got))
		}
		r.setPolicy(inbox.Policy{Debounce: 100 * time.Second, ProcessBuffer: inbox.OneByOne})
		after(time.Minute)
		if got, want := r.runsSince(began), []string{"100000: a", "100000: b"}; !slices.Equal(got, want) {
			t.Errorf("runs %q, want %q", got, want)
		}
	})
}

// The next injection point of a run in flight obeys a change (IN-40).
func TestLiveChangeOfWhenBusy(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", use("work"), use("work"), llmtest.Say("end"))
		r.bench.work = restALittle
		r.start()
		r.say("begin")
		after(100 * time.Millisecond)
		r.say("b")
		after(time.Second) // the first step is over
		r.setPolicy(inject)
		after(time.Minute)
		if !r.sameRun("begin", "b") {
			t.Error("not injected at the second step")
		}
	})
}

// Answers go to the thread of their message, whatever else is going on and
// whatever dies (ID-06).
func TestThreadsNeverMix(t *testing.T) {
	for _, policy := range []inbox.Policy{batched, inject} {
		t.Run(string(policy.WhenBusy), func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.line = platforms[0].line
				r.setPolicy(policy)
				r.mind.hold("", 50*time.Millisecond)
				r.mind.plan("tool", use("look"))
				r.start()
				for round := range 2 {
					for thread := range 20 {
						text := fmt.Sprintf("t%d round %d", thread, round)
						if thread%3 == 0 {
							text += " tool"
						}
						m := msg(text, text)
						m.Context.ThreadID, m.Context.ReplyTo = fmt.Sprint("t", thread), text
						r.post(ann, m)
						time.Sleep(7 * time.Millisecond)
					}
					if round == 0 {
						r.crash()
						r.start()
					}
				}
				after(time.Minute)
				r.chat.mu.Lock()
				defer r.chat.mu.Unlock()
				answered := make(map[string]int)
				for _, p := range r.chat.posts {
					thread := p.out.Route.ThreadID
					answered[thread]++
					if thread == "" || p.text != "nothing" && !strings.Contains(p.text, thread+" round") || !strings.HasPrefix(p.out.Route.ReplyTo, thread+" ") {
						t.Errorf("thread %q got %q, a reply to %q", thread, p.text, p.out.Route.ReplyTo)
					}
				}
				if len(answered) != 20 {
					t.Errorf("%d threads were answered: %v", len(answered), answered)
				}
			})
		})
	}
}

// An inbox that is full says so once an hour and takes nothing (IN-05).
func TestInboxFull(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Inbox = smallInbox{s.Inbox, 3}
			return s
		}
		r.setPolicy(far)
		r.start()
		r.say("a", "b", "c", "d", "e")
		synctest.Wait()
		if got := r.chat.seen(); len(got) != 1 || !strings.Contains(got[0], "Too many") {
			t.Errorf("people see %q", got)
		}
		for id, want := range map[claybot.MessageID]string{"c": "", "d": "inbox_full", "e": "inbox_full"} {
			if got := r.receipt(id).Skipped; got != want {
				t.Errorf("%s: skipped %q, want %q", id, got, want)
			}
		}
		r.setPolicy(together)
		after(0)
		if !r.sameRun("a", "b", "c") || len(r.mind.asked()) != 1 {
			t.Error("what waited did not run as one")
		}
	})
}

// Messages of a person above the limit of a minute are recorded, each with its reason, and
// told once an hour; nobody else is limited, and neither are duplicates, commands, and
// messages that waited while claybot was away.
func TestFloodOfMessages(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.runsPerMinute = 3
		r.setPolicy(far)
		r.start()
		skipped := func(want string, ids ...claybot.MessageID) {
			r.Helper()
			for _, id := range ids {
				if got := r.receipt(id).Skipped; got != want {
					r.Errorf("%s: skipped %q, want %q", id, got, want)
				}
			}
		}
		notices := func(want int) {
			r.Helper()
			n := 0
			for _, text := range r.chat.seen() {
				if strings.Contains(text, "faster than I may take them, which is 3 a minute") {
					n++
				}
			}
			if n != want {
				r.Errorf("%d notices in %q, want %d", n, r.chat.seen(), want)
			}
		}
		r.say("a", "b")
		r.say("a", "b", "b") // delivered again
		r.say("c", "d", "e")
		r.post(bob, msg("of bob", "hi"))
		r.post(ann, command("status", "status"))
		synctest.Wait()
		skipped("", "a", "b", "c", "of bob")
		skipped("flood", "d", "e")
		skipped("command", "status")
		notices(1)
		time.Sleep(time.Minute)
		r.say("f", "g", "h", "i")
		synctest.Wait()
		skipped("", "f", "g", "h")
		skipped("flood", "i")
		skipped("flood", "d") // for good
		notices(1)
		time.Sleep(2 * time.Hour)
		for i := range 6 { // written while claybot was away
			m := msg(fmt.Sprint("late", i), "late")
			m.At = claybot.At(time.Now().Add(-time.Hour + time.Duration(i)*30*time.Second))
			r.post(ann, m)
		}
		r.say("j", "k", "l", "m")
		synctest.Wait()
		skipped("", "late0", "late1", "late2", "late3", "late4", "late5", "j", "k", "l")
		skipped("flood", "m")
		notices(2)
		r.runsPerMinute = 0
		r.say("n", "o")
		synctest.Wait()
		skipped("", "n", "o")
	})
}
