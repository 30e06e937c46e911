package plan_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/tools"
)

// Steps run by what they depend on, then in the order of the list; neighbours
// without effect together.
func TestOrder(t *testing.T) {
	look := func(id string, on ...string) string { return step(id, "look", id, on...) }
	put := func(id string, on ...string) string { return step(id, "put", id, on...) }
	for name, x := range map[string]struct {
		steps []string
		want  string
	}{
		"one after another":      {[]string{put("a"), put("b"), put("c")}, "a b c"},
		"side by side":           {[]string{look("a"), look("b"), look("c")}, "a+b+c"},
		"an effect in between":   {[]string{look("a"), put("b"), look("c")}, "a b c"},
		"dependent looks":        {[]string{look("a"), look("b", "a"), look("c")}, "a+c b"},
		"backwards":              {[]string{put("a", "b"), put("b", "c"), put("c")}, "c b a"},
		"an effect that waits":   {[]string{put("a", "d"), look("b"), look("c"), put("d")}, "b+c d a"},
		"none passes an effect":  {[]string{look("a"), put("b", "a"), look("c"), look("d", "b")}, "a b c+d"},
		"looks around an effect": {[]string{look("a"), look("b"), put("c", "a"), look("d", "c"), look("e", "b")}, "a+b c d+e"},
		"one needs two":          {[]string{put("a"), put("b", "a"), look("c", "a", "b")}, "a b c"},
	} {
		h, d := newHand(), newDesk("go")
		if err := d.run(t, plan.New(config(thinks(steps(x.steps...)), h.set(t), plan.Policy{})), nil); err != nil {
			t.Fatal(err)
		}
		if d.waves() != x.want || len(h.words) != len(x.steps) {
			t.Errorf("%s: went %s, want %s", name, d.waves(), x.want)
		}
	}
}

func TestEightSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, d := newHand(), newDesk("go")
		h.gate = make(chan struct{})
		var all []string
		for _, id := range strings.Split("abcdefghijklmnopqrst", "") {
			all = append(all, step(id, "look", id))
		}
		done := make(chan error)
		go func() { done <- d.run(t, plan.New(config(thinks(steps(all...)), h.set(t), plan.Policy{})), nil) }()
		synctest.Wait()
		if h.most != 8 {
			t.Errorf("%d side by side", h.most)
		}
		close(h.gate)
		if err := <-done; err != nil || h.most != 8 || len(h.words) != 20 {
			t.Errorf("%v, %d side by side, did %d", err, h.most, len(h.words))
		}
	})
}

func network(after time.Duration) error {
	return &tools.Fault{Code: "network", Text: "no connection", Retriable: true, After: after}
}

func TestRetries(t *testing.T) {
	for name, x := range map[string]struct {
		tool     string
		faults   []error
		policy   plan.Policy
		ran      int // well
		attempts int
		min, max time.Duration
		said     string // when it failed
	}{
		"at once":          {"put", nil, plan.Policy{}, 1, 1, 0, 0, ""},
		"three times":      {"put", []error{network(0), network(0), network(0)}, plan.Policy{}, 1, 4, 2625 * time.Millisecond, 3500 * time.Millisecond, ""},
		"four times":       {"put", []error{network(0), network(0), network(0), network(0)}, plan.Policy{}, 0, 4, 2625 * time.Millisecond, 3500 * time.Millisecond, "no connection"},
		"never":            {"put", []error{network(0)}, plan.Policy{Retries: -1}, 0, 1, 0, 0, "no connection"},
		"slower":           {"put", []error{network(0), network(0)}, plan.Policy{RetryBase: 4 * time.Second}, 1, 3, 6750 * time.Millisecond, 9 * time.Second, ""},
		"asked to wait":    {"put", []error{network(2 * time.Second)}, plan.Policy{}, 1, 2, 2 * time.Second, 2 * time.Second, ""},
		"asked for longer": {"put", []error{network(time.Hour)}, plan.Policy{}, 1, 2, 5 * time.Second, 5 * time.Second, ""},
		"without effect":   {"pay", []error{network(0)}, plan.Policy{}, 1, 2, 375 * time.Millisecond, 500 * time.Millisecond, ""},
		"unknown outcome":  {"pay", []error{&tools.Fault{Code: "timeout", Text: "no answer"}}, plan.Policy{}, 0, 1, 0, 0, "no answer"},
		"other faults":     {"put", []error{errors.New("no such thing")}, plan.Policy{}, 0, 1, 0, 0, "no such thing"},
		"a hundred":        {"put", slices.Repeat([]error{network(0)}, 100), plan.Policy{Retries: 100}, 1, 101, 365 * time.Second, 490 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, d := newHand(), newDesk("go")
				h.faults[x.tool] = x.faults
				x.policy.Mode = plan.ModeAuto
				began := time.Now()
				err := d.run(t, plan.New(config(thinks(steps(step("s", x.tool, "x"))), h.set(t), x.policy)), nil)
				if took := time.Since(began); took < x.min || took > x.max {
					t.Errorf("took %s", took)
				}
				if (err == nil) != (x.said == "") || len(h.words) != x.ran {
					t.Errorf("%v, did %q", err, h.words)
				}
				if err != nil && !strings.Contains(failure(t, err).Say, x.said) {
					t.Errorf("said %s", failure(t, err).Say)
				}
				if n := d.count(claybot.EventStepStarted); n != x.attempts || d.count(claybot.EventStepFinished) != n {
					t.Errorf("%d attempts, want %d", n, x.attempts)
				}
				if len(d.started) != 1 {
					t.Errorf("started %v", d.started)
				}
				view := runs.PlanOf(d.events)
				if view.Steps[0].Attempts != x.attempts {
					t.Errorf("the page shows %+v", view.Steps[0])
				}
			})
		})
	}
}

// The guard keeps a step back; nothing has begun then, so a tool that may act
// only once is tried again, too.
func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, d := newHand(), newDesk("go")
		c := config(thinks(steps(step("a", "pay", "1"), step("b", "pay", "2"), step("c", "pay", "3"))), h.set(t), plan.Policy{Mode: plan.ModeAuto})
		c.Guard = tools.NewGuard(func(string) tools.Rate { return tools.Rate{N: 1, Per: 2 * time.Second} })
		began := time.Now()
		if err := d.run(t, plan.New(c), nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 4*time.Second || len(h.words) != 3 {
			t.Errorf("took %s, did %q", took, h.words)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a rate paces a plan, however slow it is
		h, d := newHand(), newDesk("go")
		c := config(thinks(steps(step("a", "pay", "1"), step("b", "pay", "2"), step("c", "pay", "3"), step("d", "pay", "4"))), h.set(t), plan.Policy{Mode: plan.ModeAuto})
		c.Guard = tools.NewGuard(func(string) tools.Rate { return tools.Rate{N: 2, Per: time.Minute} })
		began := time.Now()
		if err := d.run(t, plan.New(c), nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute || len(h.words) != 4 || d.count(claybot.EventToolWaiting) == 0 {
			t.Errorf("took %s, did %q", took, h.words)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h, d := newHand(), newDesk("go")
		h.faults["put"] = slices.Repeat([]error{errors.New("broken")}, 9)
		var all []string
		for _, id := range strings.Split("abcdefg", "") {
			all = append(all, step(id, "put", id))
		}
		c := config(thinks(steps(all...)), h.set(t), plan.Policy{ContinueOnError: true})
		c.Guard = tools.NewGuard(nil)
		e := failure(t, d.run(t, plan.New(c), nil))
		if !strings.Contains(e.Say, "failed 5 times in a row") || len(h.faults["put"]) != 4 {
			t.Errorf("said %s; %d faults are left", e.Say, len(h.faults["put"]))
		}
		if len(d.started) != 5 {
			t.Errorf("started %v", d.started)
		}
	})
}

func TestFailure(t *testing.T) {
	all := steps(step("a", "put", "1"), step("b", "mail", "2"), step("c", "put", "3"), step("d", "put", "4", "b"), step("e", "pay", "5"))
	run := func(p plan.Policy) (*hand, *desk, error) {
		h, d := newHand(), newDesk("go")
		h.faults["mail"] = []error{errors.New("no *such* person")}
		p.Mode = plan.ModeApprove
		return h, d, d.run(t, plan.New(config(thinks(all), h.set(t), p)), func(q claybot.Question) claybot.Answer {
			if q.Key == "e" {
				return value("false")
			}
			return value("true")
		})
	}
	h, d, err := run(plan.Policy{})
	e := failure(t, err)
	want := "The plan stopped: b (mail) failed: no \\*such\\* person\n\nDone:\n- a (put): put did 1\n\nNot run:\n- c (put): b failed\n- d (put): b failed\n- e (pay): not approved\n\n" +
		"This can be undone with /undo:\n- put 1"
	if e.Code != runs.CodePlan || e.Say != want || strings.Contains(e.Text, "person") {
		t.Errorf("got %s, said %s", e.Text, e.Say)
	}
	if out := d.output(t); out.Error == "" || len(out.Commits) != 1 || len(out.Undo) != 1 || len(out.Skipped) != 3 || out.Summary != "" {
		t.Errorf("put out %+v", out)
	}
	if !slices.Equal(h.words, []string{"put 1"}) || d.path() != "classify planner confirm executor" || d.count(claybot.EventFallback) != 1 {
		t.Errorf("did %q, went %s", h.words, d.path())
	}
	d.valid(t)

	h, d, err = run(plan.Policy{ContinueOnError: true})
	if err != nil || !slices.Equal(h.words, []string{"put 1", "put 3"}) {
		t.Errorf("%v, did %q", err, h.words)
	}
	want = "All is done.\n\nb (mail) failed: no \\*such\\* person\n\nNot run:\n- d (put): b failed\n- e (pay): not approved"
	if d.said() != want {
		t.Errorf("said %s", d.said())
	}
}

// Siblings of a step that failed come to their end.
func TestSiblingsEnd(t *testing.T) {
	h, d := newHand(), newDesk("go")
	h.faults["look"] = []error{errors.New("dark")}
	failure(t, d.run(t, plan.New(config(thinks(steps(step("a", "look", "1"), step("b", "look", "2"), step("c", "put", "3"))), h.set(t), plan.Policy{})), nil))
	if out := d.output(t); len(h.words) != 1 || len(out.Commits) != 1 {
		t.Errorf("did %q, put out %+v", h.words, out)
	}
}

// A tool that waits pauses the run, and is called again when it goes on.
func TestToolWaits(t *testing.T) {
	h, d := newHand(), newDesk("go")
	calls := 0
	s := spec("ask", tools.ReadOnly)
	ask := tools.New(s, func(context.Context, tools.Env, in) (tools.Result, error) {
		if calls++; calls == 1 {
			return tools.Result{Wait: &claybot.Awaiting{Reason: claybot.AwaitChildren, Answers: []claybot.MessageID{"x"}, Until: 5}}, nil
		}
		return tools.Result{Text: "answered"}, nil
	})
	g := plan.New(config(thinks(steps(step("a", "look", "1"), step("b", "ask", "2"), step("c", "look", "3"), step("d", "put", "4", "b"))), h.set(t, ask), plan.Policy{}))
	wait, err := d.pass(t.Context(), g)
	if err != nil || wait == nil || wait.Reason != claybot.AwaitChildren {
		t.Fatal(wait, err)
	}
	if out := d.output(t); out.Awaiting == nil || out.Awaiting.Reason != claybot.AwaitChildren {
		t.Errorf("put out %+v", out)
	}
	if view := runs.PlanOf(d.events); view.Steps[1].Status != runs.StepWaiting {
		t.Errorf("the page shows %+v", view.Steps[1])
	}
	if wait, err = d.pass(t.Context(), g); err != nil || wait != nil {
		t.Fatal(wait, err)
	}
	if calls != 2 || d.waves() != "a+b+c d" || d.output(t).Awaiting != nil || d.count(claybot.EventToolWaiting) != 1 {
		t.Errorf("%d calls, went %s", calls, d.waves())
	}
	slices.Sort(h.words)
	if !slices.Equal(h.words, []string{"look 1", "look 3", "put 4"}) {
		t.Errorf("did %q", h.words)
	}
}

// Who ends a run ends its steps; what was cut off is judged by the next pass.
func TestCanceled(t *testing.T) {
	why := errors.New("the person said stop")
	synctest.Test(t, func(t *testing.T) {
		h, d := newHand(), newDesk("go")
		h.faults["put"] = []error{network(0)}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) }) // between two tries
		g := plan.New(config(thinks(steps(step("a", "put", "1"))), h.set(t), plan.Policy{}))
		if _, err := d.pass(ctx, g); !errors.Is(err, why) {
			t.Errorf("ended with %v", err)
		}
		if len(h.words) > 0 {
			t.Errorf("did %q", h.words)
		}
		if err := d.run(t, g, nil); err != nil || !slices.Equal(h.words, []string{"put 1"}) {
			t.Errorf("%v, did %q", err, h.words)
		}
	})
}

// Settings that change between two passes count for what has not run.
func TestPolicyChangesMeanwhile(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*plan.Policy)
		did    []string
		want   string
	}{
		"preview": {func(p *plan.Policy) { p.Mode = plan.ModePreview }, nil, "Nothing was run: plans are only shown here."},
		"auto":    {func(p *plan.Policy) { p.Mode = plan.ModeAuto }, []string{"pay 1", "put 2"}, "All is done."},
		"denied":  {func(p *plan.Policy) { p.Deny = []string{"pay"} }, nil, `"a": the policy denies the tool "pay"`},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			policy := plan.Policy{}
			c := config(thinks(steps(step("a", "pay", "1"), step("b", "put", "2"))), h.set(t), policy)
			c.Policy = func(claybot.Agent) plan.Policy { return policy }
			wait, err := d.pass(t.Context(), plan.New(c))
			if err != nil || wait == nil {
				t.Fatal(wait, err)
			}
			d.answer(t, wait, "a", value("true"))
			x.change(&policy)
			_, _ = d.pass(t.Context(), plan.New(c))
			if !slices.Equal(h.words, x.did) || !strings.Contains(d.said(), x.want) {
				t.Errorf("did %q, said %s", h.words, d.said())
			}
			if n := d.count(claybot.EventPolicySwitched); (n == 1) != (policy.Mode != "") {
				t.Errorf("%d changes told", n)
			}
		})
	}
}

// A crash in the executor, and a policy that forbids the rest.
func TestPolicyChangesInExecutor(t *testing.T) {
	h, d := newHand(), newDesk("go")
	policy := plan.Policy{}
	c := config(thinks(steps(step("a", "put", "1"), step("b", "put", "2"), step("c", "pay", "3"))), h.set(t), policy)
	c.Policy = func(claybot.Agent) plan.Policy { return policy }
	policy.Mode = plan.ModeAuto
	d.keep = true
	d.after = func(op string) { d.dead = d.dead || strings.HasPrefix(op, "start b") }
	if _, err := d.pass(t.Context(), plan.New(c)); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	d.after = nil
	policy = plan.Policy{} // pay is to be approved now, and no person was asked
	if err := d.run(t, plan.New(c), nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(h.words, []string{"put 1", "put 2"}) || !strings.Contains(d.said(), "c (pay): not approved") {
		t.Errorf("did %q, said %s", h.words, d.said())
	}
	if n := d.count(claybot.EventPolicySwitched); n != 1 {
		t.Errorf("%d changes told", n)
	}
}
