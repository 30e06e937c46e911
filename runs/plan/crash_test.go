package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/plan"
)

// survive takes a run to its end that is cut once, at the durable thing that the
// desk says. cut is how often it was.
func survive(t *testing.T, d *desk, g runs.Engine, say func(claybot.Question) claybot.Answer) (cut int, err error) {
	t.Helper()
	for range 500 {
		wait, err := d.pass(t.Context(), g)
		switch {
		case errors.Is(err, errCut):
			cut++
			d.cut = 0
			continue
		case err != nil || wait == nil:
			return cut, err
		}
		for _, q := range wait.Questions {
			if _, known := d.answers[q.ID]; !known {
				d.answer(t, wait, q.Key, say(q))
			}
		}
	}
	t.Fatal("it does not end")
	return cut, nil
}

// A run as its person and the world see it.
func (d *desk) seen(t testing.TB, h *hand) string {
	out := d.output(t)
	words := slices.Clone(h.words)
	slices.Sort(words)
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s\n%s\n%s\n%s\nasked %d\n%+v", d.path(), d.waves(), raw, d.said(), len(d.asked), words)
}

// effects checks that nothing acted twice, whatever happened.
func effects(t testing.TB, k int, d *desk, h *hand) {
	t.Helper()
	results := map[string]int{}
	for _, r := range d.records {
		if r.Type == claybot.RecordTool {
			results[r.ToolCallID]++
		}
	}
	for id, n := range results {
		if n != 1 {
			t.Errorf("cut %d: %s has %d results", k, id, n)
		}
	}
	for id, n := range h.ran {
		once := d.started[id] == "once"
		if once && n > 1 || n < 1 {
			t.Errorf("cut %d: %s acted %d times", k, id, n)
		}
	}
	for id, n := range d.asked {
		if n != 1 {
			t.Errorf("cut %d: %s was asked %d times", k, id, n)
		}
	}
	finals := 0
	for _, r := range d.records {
		if r.Type == claybot.RecordAssistant && len(r.ToolCalls) == 0 {
			finals++
		}
	}
	if finals != 1 {
		t.Errorf("cut %d: %d final texts", k, finals)
	}
	d.valid(t)
}

// A play is a run with a way to begin it anew.
type play struct {
	begin func(t testing.TB, h *hand) (*desk, runs.Engine)
	say   func(claybot.Question) claybot.Answer
	steps int // durable things, at least
	// doubts is how many of the cuts leave it open what a tool did: for each tool
	// that may act only once, behind its start, and before its result.
	doubts int
}

var plays = map[string]play{
	"plan": {
		begin: func(t testing.TB, h *hand) (*desk, runs.Engine) {
			c, _ := scene(t, h)
			return newDesk("book a trip to Rome"), plan.New(c)
		},
		say: sayScene, steps: 18, doubts: 2,
	},
	"denied": {
		begin: func(t testing.TB, h *hand) (*desk, runs.Engine) {
			return newDesk("go"), plan.New(config(thinks(steps(
				step("a", "pay", "1"), step("b", "put", "2"), step("c", "put", "3", "a"), step("d", "pay", "4"),
			)), h.set(t), plan.Policy{}))
		},
		say: func(q claybot.Question) claybot.Answer {
			if q.Key == "a" {
				return claybot.Answer{Value: []byte("false"), By: "web/ann", Reason: "too dear"}
			}
			return value("true")
		},
		steps: 12, doubts: 2,
	},
	"failed": {
		begin: func(t testing.TB, h *hand) (*desk, runs.Engine) {
			h.faults["mail"] = []error{errors.New("no such person"), errors.New("no such person")}
			return newDesk("go"), plan.New(config(thinks(steps(
				step("a", "put", "1"), step("b", "mail", "2"), step("c", "put", "3"),
			)), h.set(t), plan.Policy{Mode: plan.ModeAuto}))
		},
		say: yes, steps: 11, doubts: 0,
	},
	"undo": {
		begin: func(t testing.TB, h *hand) (*desk, runs.Engine) {
			d := newDesk("")
			d.undo(effect("a", "put", "1", "unput"), effect("b", "pay", "2", "unpay"), effect("c", "mail", "3", ""), effect("d", "put", "1", "unput"))
			return d, plan.NewUndo(config(nil, h.set(t), plan.Policy{}))
		},
		say: yes, steps: 9, doubts: 2,
	},
}

func TestCrashAtEveryStep(t *testing.T) {
	for name, p := range plays {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHand()
				smooth, g := p.begin(t, h)
				_, why := survive(t, smooth, g, p.say)
				want := smooth.seen(t, h)
				if smooth.ops < p.steps {
					t.Fatalf("only %d durable things", smooth.ops)
				}
				doubts := 0
				same := func(k int, d *desk, h *hand, err error) {
					t.Helper()
					if got := d.seen(t, h); got != want || fmt.Sprint(err) != fmt.Sprint(why) {
						t.Errorf("cut %d: %v\n%s\nwant\n%s", k, err, got, want)
					}
				}
				for k := 1; k <= smooth.ops; k++ {
					// The thing lasts, and nothing after it.
					h := newHand()
					d, g := p.begin(t, h)
					d.cut, d.keep = k, true
					cut, err := survive(t, d, g, p.say)
					if cut != 1 {
						t.Fatalf("cut %d: %d times", k, cut)
					}
					effects(t, k, d, h)
					if !inDoubt(d) {
						same(k, d, h, err)
					} else {
						doubts++
					}

					// It is lost.
					h = newHand()
					d, g = p.begin(t, h)
					d.cut = k
					_, err = survive(t, d, g, p.say)
					effects(t, k, d, h)
					if !inDoubt(d) {
						same(k, d, h, err)
					} else {
						doubts++
					}
				}
				if doubts != p.doubts {
					t.Errorf("%d runs were left in doubt, want %d", doubts, p.doubts)
				}
			})
		})
	}
}

// inDoubt reports whether the power went between the start of a tool that may act
// only once and its result, so that its effect is unknown.
func inDoubt(d *desk) bool {
	return slices.ContainsFunc(d.records, func(r claybot.Record) bool { return r.Interrupted })
}

// Every pass ends behind its first record, save the one that it waits, and still
// the run comes to its end.
func TestCrashAlways(t *testing.T) {
	for name, p := range plays {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHand()
				d, g := p.begin(t, h)
				d.keep = true
				d.after = func(op string) {
					if strings.HasPrefix(op, "record") && op != "record that it waits" {
						d.dead = true
					}
				}
				for range 200 {
					wait, err := d.pass(t.Context(), g)
					if errors.Is(err, errCut) {
						continue
					}
					if wait == nil {
						break
					}
					for _, q := range wait.Questions {
						d.answer(t, wait, q.Key, p.say(q))
					}
				}
				effects(t, 0, d, h)
				if d.said() == "" {
					t.Error("nothing is said")
				}
			})
		})
	}
}
