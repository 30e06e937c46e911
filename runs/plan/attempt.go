package plan

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// maxPause is the longest pause before a step is tried again.
const maxPause = 5 * time.Second

// A tried is what came of a step: a result, a wait, or an error of the turn.
type tried struct {
	record claybot.Record
	wait   *claybot.Awaiting
	err    error
	final  bool // the record stands, whatever happened to ctx
	calls  int  // of the tool
}

// A caller makes the calls of steps.
type caller struct {
	cfg    *Config
	s      *state
	set    *tools.Set
	policy Policy
	may    refuser
	undoes bool
	turn   sync.Mutex // over the functions of the Turn, which steps side by side call
}

// attempt makes the call of a step, again while that may help. The tool is
// started at most once in all passes if it may act only once. The calls before have
// spent of the limits of the run.
func (c *caller) attempt(ctx context.Context, st Step, call claybot.ToolCall, spent tools.Spent) tried {
	doubt := c.s.Turn.InDoubt(call.ID)
	why := c.verdict(st, call, spent, doubt)
	if why == interrupted && call.ID == st.call(c.s).ID {
		switch found, result := c.set.Probe(ctx, c.env(call), call); found {
		case tools.Done:
			return tried{record: result, final: true}
		case tools.NotDone:
			why = c.forbids(st, call, spent)
		case tools.Unknown:
		}
	}
	if why != "" {
		r := c.result(call, why)
		r.Interrupted = why == interrupted
		return tried{record: r, final: true}
	}
	var t tried
	started := doubt
	for n := 1; ; n++ {
		if t.err = c.tell(ctx, runs.StepBegan(c.s.Turn.Run.ID, st.shown(), st.Tool, n)); t.err != nil {
			return t
		}
		fault := c.once(ctx, call, &started, &t)
		if t.err != nil {
			return t
		}
		again := fault != nil && fault.Retriable && n <= c.policy.Retries
		status := "ok"
		switch {
		case t.wait != nil:
			status = "waits"
		case ctx.Err() != nil && fault != nil:
			return t // the step is not at its end
		case again:
			status = "retry: " + fault.Text
		case fault != nil:
			status = "failed: " + fault.Text
		}
		if t.err = c.tell(ctx, runs.StepEnded(c.s.Turn.Run.ID, st.shown(), st.Tool, n, status)); t.err != nil || !again {
			return t
		}
		c.cfg.log(c.s).Info("retrying step", "step", st.ID, "tool", st.Tool, "attempt", n, "code", fault.Code)
		if !claybot.Sleep(ctx, pause(c.policy.RetryBase, n, fault.After)) {
			return t
		}
	}
}

// verdict says why a call is not made at all, in the words of its result; empty
// when it is.
func (c *caller) verdict(st Step, call claybot.ToolCall, spent tools.Spent, doubt bool) string {
	if doubt && c.set.Effect(st.Tool) == tools.Once {
		return interrupted
	}
	why := c.forbids(st, call, spent)
	if why != "" && doubt {
		return interrupted
	}
	return why
}

// forbids is verdict for a call that no earlier pass started.
func (c *caller) forbids(st Step, call claybot.ToolCall, spent tools.Spent) string {
	why := c.refuses(st)
	if why == "" && !c.undoes { // an undo is brought to its end
		why = spent.Over(c.cfg.limits(c.s))
	}
	if call.ID != st.call(c.s).ID {
		why = texts.PlanVoid
	}
	if why == "" {
		return ""
	}
	return notRun + why
}

// once makes the call one time, unless the guard keeps it from being made. The
// start of the tool is durable before it is called.
func (c *caller) once(ctx context.Context, call claybot.ToolCall, started *bool, t *tried) *tools.Fault {
	user := cmp.Or(c.s.Turn.Agent.Descriptor.OwnerID(), string(c.s.Turn.Agent.ID))
	if c.cfg.Guard != nil {
		fault, err := c.admit(ctx, user, call)
		if err != nil || fault != nil {
			t.err = err
			if fault != nil {
				t.record = c.result(call, "error: "+fault.Text)
			}
			return fault
		}
	}
	if !*started && c.runnable(call) && (!c.cfg.dry(c.s) || c.set.Effect(call.Name) == tools.ReadOnly) {
		if t.err = c.start(ctx, call); t.err != nil {
			return nil
		}
		*started = true
	}
	out := c.set.Do(ctx, c.env(call), call)
	t.calls++
	if v := c.s.Scratch.Votes[stepOf(call.ID)]; v != nil && v.Edits > 0 && out.Wait == nil {
		out.Record.Text = tools.Edited(call.Args, out.Record.Text)
	}
	if c.cfg.Guard != nil {
		c.cfg.Guard.Done(user, call.Name, out.Fault)
	}
	t.record, t.wait = out.Record, out.Wait
	return out.Fault
}

// env is what a call may use, and what the run knows by now.
func (c *caller) env(call claybot.ToolCall) tools.Env {
	turn := c.s.Turn
	env := tools.Env{Agent: turn.Agent, Run: turn.Run.ID, CallID: call.ID, Route: turn.Route(), Place: turn.Place(), Save: turn.SaveResult(), Undo: c.undoes, Dry: c.cfg.dry(c.s) && !c.undoes}
	return env.Aware(slices.Concat(turn.History, c.s.Records()))
}

// refuses says why a step must not run now; empty when it may.
func (c *caller) refuses(st Step) string { return c.may.refuses(c.s, c.set, c.policy, st) }

// maxQueue is how long a call waits for its turn by the rate of its tool.
const maxQueue = 15 * time.Minute

// admit waits until the rate of a tool lets the call through: a rate paces a plan
// and fails none. Any other fault of the guard is one of the call.
func (c *caller) admit(ctx context.Context, user string, call claybot.ToolCall) (*tools.Fault, error) {
	for waited := time.Duration(0); ; {
		fault := c.cfg.Guard.Enter(user, call.Name)
		if fault == nil || fault.Code != tools.FaultRate || waited >= maxQueue {
			return fault, nil
		}
		if waited == 0 {
			if err := c.tell(ctx, runs.ToolWaits(c.s.Turn.Run.ID, call, awaitRate)); err != nil {
				return nil, err
			}
		}
		rest := max(fault.After, time.Second)
		if !claybot.Sleep(ctx, rest) {
			return fault, nil
		}
		waited += rest
	}
}

// awaitRate is why a call waits whose tool was called too often.
const awaitRate claybot.AwaitReason = "rate"

// runnable reports whether the tool takes the call; one that it refuses starts
// nothing.
func (c *caller) runnable(call claybot.ToolCall) bool {
	if c.undoes {
		_, ok := c.set.Spec(call.Name)
		return ok
	}
	return c.set.Check(call) == nil
}

func (c *caller) start(ctx context.Context, call claybot.ToolCall) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	if err := c.s.Turn.Started(ctx, call, c.set.Effect(call.Name).String()); err != nil {
		return fmt.Errorf("record the start of %s: %w", call.Name, err)
	}
	return nil
}

func (c *caller) tell(ctx context.Context, ev claybot.Event) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	return c.s.Emit(ctx, false, ev)
}

func (c *caller) result(call claybot.ToolCall, text string) claybot.Record {
	return claybot.Record{
		Type: claybot.RecordTool, At: claybot.Now(), Run: c.s.Turn.Run.ID,
		ToolCallID: call.ID, Name: call.Name, Text: text,
	}
}

// pause is how long to wait before try n+1: twice as long each time, at least as
// long as the tool asked for, at most maxPause, and up to a quarter less at
// random.
func pause(base time.Duration, n int, asked time.Duration) time.Duration {
	d := maxPause
	if n < 16 && base<<(n-1) < maxPause {
		d = base << (n - 1)
	}
	d -= rand.N(d/4 + 1)
	return max(d, min(asked, maxPause))
}
