package agentsystem_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

// dieOf lets the process die a second after the model was asked about a text, each
// time, until nobody asks any more. It returns how often.
func (r *rig) dieOf(text string) (deaths int) {
	r.Helper()
	for known := 0; deaths < 30; deaths++ {
		for wait := 0; r.askedAbout(text) == known; wait++ {
			if wait == 2000 {
				return deaths
			}
			after(100 * time.Millisecond)
		}
		after(time.Second)
		known = r.askedAbout(text)
		r.crash()
		r.start()
	}
	r.Fatalf("the process died %d times of %q", deaths, text)
	return deaths
}

func (r *rig) askedAbout(text string) (n int) {
	for _, q := range r.mind.asked() {
		if slices.ContainsFunc(q.Messages, func(m llm.Message) bool { return strings.Contains(m.Content, text) }) {
			n++
		}
	}
	return n
}

// crowd posts a message of each of n people, "poison" among them.
func (r *rig) crowd(n int) (innocent []claybot.MessageID) {
	r.Helper()
	for i := range n {
		id, text := claybot.MessageID(fmt.Sprint("m", i)), fmt.Sprintf("word %d.", i)
		if i == n/2 {
			id, text = "poison", "poison"
		} else {
			innocent = append(innocent, id)
		}
		r.post(claybot.User("chat", fmt.Sprint("dm-", i), fmt.Sprint("u", i)), msg(string(id), text))
	}
	return innocent
}

// unanswered are those of the messages whose runs did not succeed.
func (r *rig) unanswered(ids []claybot.MessageID) (bad []claybot.MessageID) {
	r.Helper()
	for _, id := range ids {
		if run := r.receipt(id).Run; run == nil || run.State != claybot.RunSucceeded {
			bad = append(bad, id)
		}
	}
	return bad
}

// Finding R3: a run that kills the process ends with one notice, and nobody else's
// does.
func TestPoisonAmongInnocents(t *testing.T) {
	for _, n := range []int{2, 5, 40, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.line = platforms[0].line
				r.mind.before = func(ctx context.Context, _ llm.Request) error { return rest(ctx, 2*time.Second) }
				r.start()
				innocent := r.crowd(n)
				if deaths := r.dieOf("poison"); deaths > 9 {
					t.Errorf("the process died %d times", deaths)
				}
				after(10 * time.Minute)
				if bad := r.unanswered(innocent); len(bad) > 0 {
					t.Errorf("%d of %d innocent messages have no answer, among them %s", len(bad), len(innocent), bad[0])
				}
				run := r.receipt("poison").Run
				if run.State != claybot.RunFailed || run.Error.Code != "interrupted" {
					t.Errorf("the run that kills: %+v", run)
				}
				told := slices.DeleteFunc(r.chat.seen(), func(s string) bool { return !strings.Contains(s, "interrupted several times") })
				if len(told) != 1 {
					t.Errorf("notices %q, want one", told)
				}
			})
		})
	}
}

// A message that is given up takes no other with it: not those of its batch, not those
// that it was injected behind, and not what the person writes later.
func TestPoisonInABatch(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy inbox.Policy
		plan   []llm.Reply
		seen   []string // besides the notice
	}{
		{"batch", inbox.Policy{Debounce: time.Second}, nil, []string{"re: a", "re: b", "re: later"}},
		{"injected", inbox.Policy{WhenBusy: inbox.InjectAfterTools}, []llm.Reply{use("work")}, []string{"re: b", "re: later"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.line = platforms[0].line
				r.setPolicy(tt.policy)
				r.mind.plan("later", llm.Say("re: later"))
				r.mind.before = func(ctx context.Context, q llm.Request) error {
					if strings.Contains(fmt.Sprint(q.Messages), "poison") {
						return rest(ctx, time.Hour)
					}
					return nil
				}
				if tt.plan != nil {
					r.mind.plan("a", tt.plan...)
					r.bench.work = restALittle
				}
				r.start()
				r.say("a")
				after(100 * time.Millisecond)
				r.say("poison", "b")
				if deaths := r.dieOf("poison"); deaths > 12 { // of the batch, then of the poison alone
					t.Errorf("the process died %d times", deaths)
				}
				after(10 * time.Minute)
				r.say("later")
				after(time.Minute)
				seen := r.chat.seen()
				for _, want := range tt.seen {
					if n := len(slices.DeleteFunc(slices.Clone(seen), func(s string) bool { return s != want })); n != 1 {
						t.Errorf("people see %q %d times, in %q", want, n, seen)
					}
				}
				run := r.receipt("poison/alone").Run
				if run == nil || run.State != claybot.RunFailed || len(run.Messages) != 1 {
					t.Errorf("the poison ended as %+v", run)
				}
				if last := seen[len(seen)-1]; last != "re: later" {
					t.Errorf("the last that people see is %q", last)
				}
			})
		})
	}
}

// Finding R3: kills from outside, however many and at whatever pace, give up nothing.
func TestKillsFromOutside(t *testing.T) {
	for _, tt := range []struct {
		name    string
		people  int
		thought time.Duration
		pace    func(*rand.Rand) time.Duration
	}{
		{"each second", 20, 3 * time.Second, func(*rand.Rand) time.Duration { return time.Second }},
		{"one alone", 1, 3 * time.Second, func(*rand.Rand) time.Duration { return time.Second }},
		{"at once", 5, time.Minute, func(*rand.Rand) time.Duration { return 0 }},
		{"slowly", 3, time.Minute, func(*rand.Rand) time.Duration { return 20 * time.Second }},
		{"at random", 10, 10 * time.Second, func(rng *rand.Rand) time.Duration { return time.Duration(rng.ExpFloat64() * float64(time.Second)) }},
		{"at random, slowly", 4, 20 * time.Second, func(rng *rand.Rand) time.Duration { return time.Duration(rng.ExpFloat64() * float64(10*time.Second)) }},
	} {
		seeds, _ := strconv.ParseUint(os.Getenv("CRASHLOOP_SEEDS"), 10, 64) // for a sweep
		for seed := range max(1, seeds) {
			t.Run(fmt.Sprint(tt.name, seed), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					r.line = platforms[0].line
					r.mind.before = func(ctx context.Context, _ llm.Request) error { return rest(ctx, tt.thought) }
					r.start()
					all := append(r.crowd(tt.people), "poison") // which is none here
					rng := rand.New(rand.NewPCG(seed, 2))
					for range 20 {
						after(tt.pace(rng))
						r.crash()
						r.start()
					}
					after(30 * time.Minute)
					if bad := r.unanswered(all); len(bad) > 0 {
						t.Errorf("%d of %d messages have no answer, among them %s", len(bad), len(all), bad[0])
					}
				})
			})
		}
	}
}

// A process that has lived for five minutes counts as one that ended in order, and
// so does one that was stopped. The mark of the database stays in the record.
func TestLongLifeIsClean(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		mark := storage.StoreMark{ID: "store", N: 7}
		if err := r.boots.Update(true, func(b *storage.Boot) { b.Store = mark }); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			end  func()
			want int
		}{
			{func() { r.crash(); r.start() }, 1},
			{func() { after(time.Minute); r.crash(); r.start() }, 2},
			{func() { after(6 * time.Minute); r.crash(); r.start() }, 0},
			{func() { r.crash(); r.start() }, 1},
			{r.restart, 0},
		} {
			tt.end()
			if got := r.unclean(); got != tt.want {
				t.Errorf("%d unclean starts, want %d", got, tt.want)
			}
			if got := r.boots.Store(); got != mark {
				t.Errorf("the mark of the database is %+v, want %+v", got, mark)
			}
		}
	})
}

// A run that has paused since the record was written is not charged with the crash.
func TestPausedIsNoSuspect(t *testing.T) {
	for _, tt := range []struct {
		name    string
		paused  bool
		charged bool
	}{{"running", false, true}, {"paused", true, false}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				if tt.paused {
					r.mind.plan("begin", askColour(obj{"expiresIn": "15m"}), sayDone)
				} else {
					r.mind.before = func(ctx context.Context, _ llm.Request) error { return rest(ctx, time.Hour) }
				}
				r.start()
				r.say("begin")
				after(time.Second)
				id := r.agent(ann)
				if err := r.boots.Update(true, func(b *storage.Boot) { b.Testing, b.Alone = []claybot.AgentID{id}, true }); err != nil {
					t.Fatal(err)
				}
				r.crash()
				r.start()
				mark, err := r.db.Mark(r.Context(), "tries/"+string(id))
				if err != nil {
					t.Fatal(err)
				}
				if charged := mark != ""; charged != tt.charged {
					t.Errorf("the run is charged %q, want %v", mark, tt.charged)
				}
			})
		})
	}
}
