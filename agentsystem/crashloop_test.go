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
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/storage"
)

// dieOf lets the process die a second after the model was asked about a text, each
// time, until no run asks any more. It returns how often.
func (r *rig) dieOf(text string) (deaths int) {
	r.Helper()
	return r.dieAt(time.Second, text)
}

// dieAt is dieOf for a run that kills the process when it has reached an age.
func (r *rig) dieAt(age time.Duration, text string) (deaths int) {
	r.Helper()
	for known := 0; deaths < 40; deaths++ {
		for wait := time.Duration(0); r.askedAbout(text) == known; wait += age / 10 {
			if wait > 200*time.Second+60*age {
				return deaths
			}
			after(age / 10)
		}
		after(age)
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

// Finding R3: a run that kills the process ends with one notice, and no other run
// ends.
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

// A run that kills the process late ends as well, with one notice and after a bounded
// number of deaths. Innocent runs that take long are answered.
func TestLatePoison(t *testing.T) {
	for _, tt := range []struct {
		age    time.Duration
		deaths int
	}{
		{50 * time.Second, 6},
		{70 * time.Second, 8},
		{90 * time.Second, 8},
		{4 * time.Minute, 10},
		{7 * time.Minute, 11},
		{20 * time.Minute, 31},
	} {
		t.Run(tt.age.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.line = platforms[0].line
				r.mind.before = func(ctx context.Context, q llm.Request) error {
					switch text := fmt.Sprint(q.Messages); {
					case strings.Contains(text, "poison"):
						return rest(ctx, time.Hour)
					case strings.Contains(text, "word 1."), strings.Contains(text, "word 2."):
						return rest(ctx, 15*time.Minute) // longer than any probation
					}
					return rest(ctx, 2*time.Second)
				}
				r.start()
				innocent := r.crowd(8)
				if deaths := r.dieAt(tt.age, "poison"); deaths > tt.deaths {
					t.Errorf("the process died %d times, want at most %d", deaths, tt.deaths)
				}
				after(time.Hour)
				if bad := r.unanswered(innocent); len(bad) > 0 {
					t.Errorf("%d of %d innocent messages have no answer, among them %s", len(bad), len(innocent), bad[0])
				}
				if run := r.receipt("poison").Run; run.State != claybot.RunFailed || run.Error.Code != "interrupted" {
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

// While the ramp looks for a run that kills late, new messages wait for about a minute
// at most.
func TestLatePoisonDelaysLittle(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		r.mind.before = func(ctx context.Context, q llm.Request) error {
			if strings.Contains(fmt.Sprint(q.Messages), "poison") {
				return rest(ctx, time.Hour)
			}
			return rest(ctx, 2*time.Second)
		}
		r.start()
		r.crowd(3)
		var all []claybot.MessageID
		for range 9 {
			for range 7 * 60 / 15 {
				id := claybot.MessageID(fmt.Sprint("new", len(all)))
				r.post(claybot.User("chat", fmt.Sprint("dm-", id), string(id)), msg(string(id), "word."))
				all = append(all, id)
				after(15 * time.Second)
			}
			r.crash()
			r.start()
		}
		after(10 * time.Minute)
		if bad := r.unanswered(all); len(bad) > 0 {
			t.Fatalf("%d of %d messages have no answer, among them %s", len(bad), len(all), bad[0])
		}
		for _, id := range all {
			if x := r.receipt(id); x.Run.Ended.Time().Sub(x.Stored.Time()) > 70*time.Second {
				t.Errorf("message %s waited for %v", id, x.Run.Ended.Time().Sub(x.Stored.Time()))
			}
		}
	})
}

// After one kill, runs resume side by side: a short run does not wait for the long run of
// another person.
func TestOneKillDelaysLittle(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		r.mind.before = func(ctx context.Context, q llm.Request) error {
			if strings.Contains(fmt.Sprint(q.Messages), "poison") { // which is none here
				return rest(ctx, 21*time.Second)
			}
			return rest(ctx, 4*time.Second)
		}
		r.start()
		innocent := r.crowd(6)
		after(time.Second)
		r.crash()
		r.start()
		after(6 * time.Second)
		if bad := r.unanswered(innocent); len(bad) > 0 {
			t.Errorf("%d of %d messages have no answer after six seconds", len(bad), len(innocent))
		}
	})
}

// A message that is given up takes no other with it: not those of its batch, not those
// that it was injected behind, and not what the person writes later.
func TestPoisonInABatch(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy inbox.Policy
		plan   []llmtest.Reply
		seen   []string // besides the notice
	}{
		{"batch", inbox.Policy{Debounce: time.Second}, nil, []string{"re: a", "re: b", "re: later"}},
		{"injected", inbox.Policy{WhenBusy: inbox.InjectAfterTools}, []llmtest.Reply{use("work")}, []string{"re: b", "re: later"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.line = platforms[0].line
				r.setPolicy(tt.policy)
				r.mind.plan("later", llmtest.Say("re: later"))
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
		{"each 100 seconds", 1, 10 * time.Minute, func(*rand.Rand) time.Duration { return 100 * time.Second }},
		{"each four minutes", 4, 30 * time.Minute, func(*rand.Rand) time.Duration { return 4 * time.Minute }},
		{"each quarter of an hour", 3, time.Hour, func(*rand.Rand) time.Duration { return 15 * time.Minute }},
		{"at random, minutes", 3, 20 * time.Minute, func(rng *rand.Rand) time.Duration { return time.Duration(rng.ExpFloat64() * float64(3*time.Minute)) }},
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
					after(30*time.Minute + 10*tt.thought) // for the longest control
					if bad := r.unanswered(all); len(bad) > 0 {
						t.Errorf("%d of %d messages have no answer, among them %s", len(bad), len(all), bad[0])
					}
				})
			})
		}
	}
}

// After five minutes of life unclean starts are no longer in a row. The next crash counts
// as the first one, and has a ramp as any first one has: what was at work at its end
// may have caused it, however long the process had lived. Only an orderly end counts as
// clean. The mark of the database stays in the record.
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
			{func() { after(6 * time.Minute); r.crash(); r.start() }, 1},
			{func() { r.crash(); r.start() }, 2},
			{func() { after(6 * time.Minute); r.restart() }, 0},
			{func() { after(6 * time.Minute); r.crash(); r.start() }, 1},
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
				mark, err := r.db.Checkpoint(r.Context(), "tries/"+string(id))
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
