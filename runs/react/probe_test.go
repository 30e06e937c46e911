package react_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/runs/runstest"
	"github.com/claybot/claybot/tools"
)

// A ledger is what a tool did that may act only once. It outlives the passes.
type ledger struct {
	paid  map[string]int
	probe func(paid int) (tools.Probed, tools.Result, error)
	dies  string // before or after it acts; empty: it lives
}

// book finds an entry in the ledger.
func book(paid int) (tools.Probed, tools.Result, error) {
	if paid > 0 {
		return tools.Done, tools.Result{Text: "paid before"}, nil
	}
	return tools.NotDone, tools.Result{}, nil
}

func (l *ledger) set(t *testing.T, die context.CancelCauseFunc) *tools.Set {
	t.Helper()
	spec := tools.Spec{Tool: llm.Tool{Name: "pay"}}
	spec.Probe = func(_ context.Context, env tools.Env, _ json.RawMessage) (tools.Probed, tools.Result, error) {
		return l.probe(l.paid[env.CallID])
	}
	set, err := tools.NewSet(tools.New(spec, func(_ context.Context, env tools.Env, _ word) (tools.Result, error) {
		if l.dies == "before" {
			die(errCrash)
			return tools.Result{}, errCrash
		}
		l.paid[env.CallID]++
		if l.dies == "after" {
			die(errCrash)
			return tools.Result{}, errCrash
		}
		return tools.Result{Text: "paid"}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A call that was cut off is settled by what its tool finds out: it has its result, is made again, or
// is in doubt as that of a tool that cannot tell.
func TestProbe(t *testing.T) {
	const doubt = "interrupted, outcome unknown: it may have taken effect and was not run again"
	unknown := func(int) (tools.Probed, tools.Result, error) { return tools.Unknown, tools.Result{}, nil }
	for name, tt := range map[string]struct {
		dies  string
		probe func(int) (tools.Probed, tools.Result, error)
		paid  int
		want  string
	}{
		"it acted":               {"after", book, 1, "paid before"},
		"it did not":             {"before", book, 1, "paid"},
		"it acted, unknown":      {"after", unknown, 1, doubt},
		"it did not, unknown":    {"before", unknown, 0, doubt},
		"the probe fails":        {"after", func(int) (tools.Probed, tools.Result, error) { return tools.NotDone, tools.Result{}, errors.New("no") }, 1, doubt},
		"the probe panics":       {"after", func(int) (tools.Probed, tools.Result, error) { panic("no") }, 1, doubt},
		"the probe says nothing": {"before", func(int) (tools.Probed, tools.Result, error) { return tools.Unknown, tools.Result{}, errors.New("no") }, 0, doubt},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{paid: map[string]int{}, probe: tt.probe, dies: tt.dies}
			j := newJournal("go")
			ctx, die := context.WithCancelCause(t.Context())
			if err := j.pass(ctx, loop(llmtest.NewScript(llmtest.Use(call("a", "pay", "1"))), l.set(t, die)), j.turn(), 0, true); err == nil {
				t.Fatal("the pass was not cut off")
			}
			l.dies = ""
			if err := j.run(t, loop(llmtest.NewScript(llmtest.Say("ok")), l.set(t, die))); err != nil {
				t.Fatal(err)
			}
			r := j.records[2]
			if l.paid["a"] != tt.paid || r.Text != tt.want || r.OK != !strings.HasPrefix(r.Text, "interrupted") || r.Interrupted == r.OK || r.Step != 1 || r.ToolCallID != "a" {
				t.Errorf("paid %d times, result %+v", l.paid["a"], r)
			}
		})
	}
}

// Wherever the run is cut off, each call acts once and has a result that says so.
func TestProbeCrashAtEveryStep(t *testing.T) {
	replies := []llmtest.Reply{llmtest.Use(call("a", "pay", "1"), call("b", "pay", "2")), llmtest.Use(call("c", "pay", "3")), llmtest.Say("done")}
	for k := 1; k <= 6; k++ {
		for _, kept := range []bool{true, false} {
			for _, started := range []bool{true, false} { // it breaks after a start in place of a record
				l := &ledger{paid: map[string]int{}, probe: book}
				rest := func(j *journal) *llmtest.Script {
					n := 0
					for _, r := range j.records {
						if r.Type == claybot.RecordAssistant {
							n++
						}
					}
					return llmtest.NewScript(replies[n:]...)
				}
				j := newJournal("go")
				turn, at := j.turn(), k
				if record := runstest.Of(turn).StartedFunc; started {
					at = 0
					runstest.Of(turn).StartedFunc = func(ctx context.Context, call claybot.ToolCall, effect string) error {
						if err := record(ctx, call, effect); err != nil || len(j.started) == k {
							return errors.Join(err, errCrash)
						}
						return nil
					}
				}
				if err := j.pass(t.Context(), loop(rest(j), l.set(t, nil)), turn, at, kept); err != nil && !errors.Is(err, errCrash) {
					t.Fatal(err)
				}
				if err := j.run(t, loop(rest(j), l.set(t, nil))); err != nil {
					t.Fatal(err)
				}
				for _, id := range []string{"a", "b", "c"} {
					if l.paid[id] != 1 {
						t.Errorf("k=%d, kept %v, started %v: %s paid %d times", k, kept, started, id, l.paid[id])
					}
				}
				for _, r := range j.records {
					if r.Type == claybot.RecordTool && (!r.OK || r.Interrupted) {
						t.Errorf("k=%d, kept %v, started %v: %+v", k, kept, started, r)
					}
				}
			}
		}
	}
}

// A call about which a person was asked is not probed: an edit of its arguments would be lost. One that
// took no effect goes by the rules of the moment.
func TestProbeOfApproved(t *testing.T) {
	const doubt = "interrupted, outcome unknown: it may have taken effect and was not run again"
	ask, none := react.Rules{Ask: []string{"pay"}}, react.Rules{}
	for name, tt := range map[string]struct {
		before, after react.Rules
		answer        claybot.Answer
		paid          int
		want          string
	}{
		"approved with other arguments": {ask, ask, edited("telegram/1", `{"word":"3"}`), 0, doubt},
		"approved":                      {ask, none, yes(), 0, doubt},
		"needs an approval now":         {none, ask, claybot.Answer{}, 0, "not approved: it was interrupted before it took effect, and needs an approval now; make the call again to have a person asked"},
		"needs none":                    {none, none, claybot.Answer{}, 1, "paid"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{paid: map[string]int{}, probe: book, dies: "before"}
			j := newJournal("go")
			ctx, die := context.WithCancelCause(t.Context())
			set := l.set(t, die)
			first := loop(llmtest.NewScript(llmtest.Use(call("a", "pay", "1"))), set)
			first.Approve = func(claybot.Agent) react.Rules { return tt.before }
			if len(tt.answer.Value) > 0 {
				until(t, j.run(t, first))
				j.say("approve/a", tt.answer)
			}
			if err := j.pass(ctx, first, j.turn(), 0, true); err == nil || j.started["a"] == "" {
				t.Fatalf("the call was not cut off: %v", err)
			}
			l.dies = ""
			then := loop(llmtest.NewScript(llmtest.Say("ok")), set)
			then.Approve = func(claybot.Agent) react.Rules { return tt.after }
			if err := j.run(t, then); err != nil {
				t.Fatal(err)
			}
			r := j.records[len(j.records)-2]
			if l.paid["a"] != tt.paid || r.Text != tt.want || r.ToolCallID != "a" || r.Interrupted != (tt.want == doubt) {
				t.Errorf("paid %d times, result %+v", l.paid["a"], r)
			}
		})
	}
}
