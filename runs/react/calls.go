package react

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// maxParallel bounds the read-only calls that run at the same time.
const maxParallel = 8

// interrupted is what the model reads about a call that may or may not have
// acted, and how the result of one begins that the budget of the run forbids.
const (
	notRunOver = "error: not run: "

	interrupted = "interrupted, outcome unknown: it may have taken effect and was not run again"
)

// settle gives every call of the last answer its result, in order. Neighbours
// without effect run side by side, all others one after another. A call that
// waits, for its tool or for its approval, ends the pass; the next one comes back
// to it.
func (p *pass) settle(ctx context.Context) error {
	for len(p.progress.pending) > 0 {
		if ctx.Err() != nil {
			return runs.Ended(ctx)
		}
		group, refused, wait, err := p.approved(ctx, p.group())
		if err != nil {
			return err
		}
		var results []claybot.Record
		switch {
		case wait != nil:
		case refused != "":
			results = []claybot.Record{p.result(group[0], refused)}
		default:
			if results, wait, err = p.do(ctx, group); err != nil {
				return err
			}
		}
		for _, r := range results {
			// What the end of ctx cut short has no result yet: the next pass, if
			// there is one, judges it by its effect.
			if ctx.Err() != nil && !r.OK {
				return runs.Ended(ctx)
			}
			if err := p.emit(r); err != nil {
				return err
			}
		}
		switch {
		case wait == nil:
		case ctx.Err() != nil:
			return runs.Ended(ctx)
		default:
			waits := runs.ToolWaits(p.turn.Run.ID, group[len(results)].ToolCall, wait.Reason)
			if err := p.turn.Emit(ctx, false, waits); err != nil {
				return err
			}
			return &runs.WaitError{Awaiting: *wait}
		}
	}
	return nil
}

// group is the first pending call, and those behind it that may run with it.
func (p *pass) group() []pending {
	all := p.progress.pending
	n := 0
	for n < len(all) && p.tools.Effect(all[n].Name) == tools.ReadOnly {
		n++
	}
	return append([]pending(nil), all[:max(n, 1)]...)
}

// do comes to the results of a group, up to the first call that waits. Those
// behind it are made again when it has its result; they have no effect. Each
// start of a tool is durable before the tool is called.
func (p *pass) do(ctx context.Context, group []pending) ([]claybot.Record, *claybot.Awaiting, error) {
	results := make([]claybot.Record, len(group))
	waits := make([]*claybot.Awaiting, len(group))
	ran := make([]bool, len(group))
	for i, call := range group {
		why := p.verdict(call)
		if why != "" {
			results[i] = p.result(call, why)
			results[i].Interrupted = why == interrupted
			continue
		}
		if err := p.start(ctx, call.ToolCall); err != nil {
			return nil, nil, err
		}
		ran[i] = true
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i, call := range group {
		if !ran[i] {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i], waits[i] = p.tools.Call(ctx, p.env(call.ToolCall), call.ToolCall)
			results[i].Step = p.progress.steps
			results[i].WaitedMS = p.waited(call.ID, results[i].MS)
			if call.edited {
				results[i].Text = tools.Edited(call.Args, results[i].Text)
			}
		})
	}
	wg.Wait()
	n := slices.IndexFunc(waits, func(w *claybot.Awaiting) bool { return w != nil })
	var wait *claybot.Awaiting
	if n >= 0 {
		results, ran, wait = results[:n], ran[:n], waits[n]
	}
	calls := 0
	for _, r := range ran {
		if r {
			calls++
		}
	}
	p.turn.Used(claybot.Usage{ToolCalls: int64(calls)})
	return results, wait, nil
}

// waited is how long a call waited since an earlier pass started its tool, besides
// the ms that it just worked.
func (p *pass) waited(call string, ms int64) int64 {
	began := p.turn.Began(call)
	if began == 0 {
		return 0
	}
	return max(int64(claybot.Now()-began)-ms, 0)
}

// verdict says why a call is not run, empty when it is.
func (p *pass) verdict(call pending) string {
	limits := p.progress.limits
	switch over := p.progress.spent.Over(limits); {
	case call.inStep > limits.StepCalls:
		return fmt.Sprintf("error: not run: at most %d calls in one answer", limits.StepCalls)
	case call.inRun > limits.RunCalls:
		return fmt.Sprintf("error: not run: at most %d calls in one run", limits.RunCalls)
	case over != "":
		return notRunOver + over
	case p.progress.only != nil && !p.progress.only[call.Name]:
		return "error: not run: the skill that this run uses does not name this tool"
	case p.tools.Effect(call.Name) == tools.Once && p.turn.InDoubt(call.ID):
		return interrupted
	}
	return ""
}

// start records that a tool is about to run. A call that its tool will refuse
// starts nothing, and one that an earlier pass had started is not told twice.
func (p *pass) start(ctx context.Context, call claybot.ToolCall) error {
	if p.tools.Check(call) != nil || p.turn.InDoubt(call.ID) || p.dry && p.tools.Effect(call.Name) != tools.ReadOnly {
		return nil
	}
	if err := p.turn.Started(ctx, call, p.tools.Effect(call.Name).String()); err != nil {
		return fmt.Errorf("record the start of %s: %w", call.Name, err)
	}
	return nil
}

// env is what a call may use, and what the run knows by now.
func (p *pass) env(call claybot.ToolCall) tools.Env {
	env := tools.Env{Agent: p.turn.Agent, Run: p.turn.Run.ID, CallID: call.ID, Thread: p.turn.Thread(), Save: p.turn.SaveResult(), Dry: p.dry}
	return env.Aware(p.history)
}

func (p *pass) result(call pending, text string) claybot.Record {
	return claybot.Record{
		Type: claybot.RecordTool, At: claybot.Now(), Run: p.turn.Run.ID, Step: p.progress.steps,
		ToolCallID: call.ID, Name: call.Name, Text: text,
	}
}
