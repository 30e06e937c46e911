package plan

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
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

// attempt makes the call of a step, again while that may help. The tool is
// started at most once in all passes if it may act only once.
func (w *work) attempt(ctx context.Context, st Step) tried {
	call := w.calls[st.ID]
	doubt := w.s.Turn.InDoubt(call.ID)
	if why := w.verdict(st, call, doubt); why != "" {
		r := w.result(call, why)
		r.Interrupted = why == interrupted
		return tried{record: r, final: true}
	}
	var t tried
	started := doubt
	for n := 1; ; n++ {
		if t.err = w.tell(ctx, runs.StepBegan(w.s.Turn.Run.ID, st.shown(), st.Tool, n)); t.err != nil {
			return t
		}
		fault := w.once(ctx, call, &started, &t)
		if t.err != nil {
			return t
		}
		again := fault != nil && fault.Retriable && n <= w.policy.Retries
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
		if t.err = w.tell(ctx, runs.StepEnded(w.s.Turn.Run.ID, st.shown(), st.Tool, n, status)); t.err != nil || !again {
			return t
		}
		w.log(w.s).Info("a step is tried again", "step", st.ID, "tool", st.Tool, "attempt", n, "code", fault.Code)
		if !sleep(ctx, pause(w.policy.RetryBase, n, fault.After)) {
			return t
		}
	}
}

// verdict says why a call is not made at all, in the words of its result; empty
// when it is.
func (w *work) verdict(st Step, call claybot.ToolCall, doubt bool) string {
	if doubt && w.set.Effect(st.Tool) == tools.Once {
		return interrupted
	}
	why := w.refuses(w.s, w.set, w.policy, st)
	if why == "" {
		why = w.over()
	}
	if call.ID != st.call(w.s).ID {
		why = whyVoid
	}
	switch {
	case why == "":
		return ""
	case doubt:
		return interrupted
	}
	return notRun + why
}

// once makes the call one time, unless the guard keeps it from being made. The
// start of the tool is durable before it is called.
func (w *work) once(ctx context.Context, call claybot.ToolCall, started *bool, t *tried) *tools.Fault {
	user := cmp.Or(w.s.Turn.Agent.Descriptor.OwnerID(), string(w.s.Turn.Agent.ID))
	if w.Guard != nil {
		fault, err := w.admit(ctx, user, call)
		if err != nil || fault != nil {
			t.err = err
			if fault != nil {
				t.record = w.result(call, "error: "+fault.Text)
			}
			return fault
		}
	}
	if !*started && w.runnable(call) && (!w.dry(w.s) || w.set.Effect(call.Name) == tools.ReadOnly) {
		if t.err = w.start(ctx, call); t.err != nil {
			return nil
		}
		*started = true
	}
	out := w.set.Do(ctx, w.env(call), call)
	t.calls++
	if v := w.s.Scratch.Votes[stepOf(call.ID)]; v != nil && v.Edits > 0 && out.Wait == nil {
		out.Record.Text = tools.Edited(call.Args, out.Record.Text)
	}
	if w.Guard != nil {
		w.Guard.Done(user, call.Name, out.Fault)
	}
	t.record, t.wait = out.Record, out.Wait
	return out.Fault
}

// env is what a call may use, and what the run knows by now.
func (w *work) env(call claybot.ToolCall) tools.Env {
	turn := w.s.Turn
	env := tools.Env{Agent: turn.Agent, Run: turn.Run.ID, CallID: call.ID, Thread: turn.Thread(), Save: turn.SaveResult(), Undo: w.undo, Dry: w.dry(w.s) && !w.undo}
	return env.Aware(slices.Concat(turn.History, w.s.Records()))
}

// over says why no further step may run, by what the tools have taken; empty
// while one may. An undo is brought to its end.
func (w *work) over() string {
	if w.undo {
		return ""
	}
	var limits tools.Limits
	if w.Limits != nil {
		limits = w.Limits(w.s.Turn.Agent)
	}
	var spent tools.Spent
	for _, r := range w.results {
		spent.Add(r)
	}
	return spent.Over(limits)
}

// maxQueue is how long a call waits for its turn by the rate of its tool.
const maxQueue = 15 * time.Minute

// admit waits until the rate of a tool lets the call through: a rate paces a plan
// and fails none. Any other fault of the guard is one of the call.
func (w *work) admit(ctx context.Context, user string, call claybot.ToolCall) (*tools.Fault, error) {
	for waited := time.Duration(0); ; {
		fault := w.Guard.Enter(user, call.Name)
		if fault == nil || fault.Code != tools.FaultRate || waited >= maxQueue {
			return fault, nil
		}
		if waited == 0 {
			if err := w.tell(ctx, runs.ToolWaits(w.s.Turn.Run.ID, call, awaitRate)); err != nil {
				return nil, err
			}
		}
		rest := max(fault.After, time.Second)
		if !sleep(ctx, rest) {
			return fault, nil
		}
		waited += rest
	}
}

// awaitRate is why a call waits whose tool was called too often.
const awaitRate claybot.AwaitReason = "rate"

// runnable reports whether the tool takes the call; one that it refuses starts
// nothing.
func (w *work) runnable(call claybot.ToolCall) bool {
	if w.undo {
		_, ok := w.set.Spec(call.Name)
		return ok
	}
	return w.set.Check(call) == nil
}

func (w *work) start(ctx context.Context, call claybot.ToolCall) error {
	w.turn.Lock()
	defer w.turn.Unlock()
	if err := w.s.Turn.Started(ctx, call, w.set.Effect(call.Name).String()); err != nil {
		return fmt.Errorf("record the start of %s: %w", call.Name, err)
	}
	return nil
}

func (w *work) tell(ctx context.Context, ev claybot.Event) error {
	w.turn.Lock()
	defer w.turn.Unlock()
	return w.s.Emit(ctx, false, ev)
}

func (w *work) result(call claybot.ToolCall, text string) claybot.Record {
	return claybot.Record{
		Type: claybot.RecordTool, At: claybot.Now(), Run: w.s.Turn.Run.ID,
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

// sleep waits for d; false: ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
