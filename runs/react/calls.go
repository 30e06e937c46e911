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

// Calls make the tool calls of the model.
type calls struct {
	turn    *runs.Turn
	talk    *conversation
	tools   *tools.Set
	gate    *gate
	consent approver
}

// An approver has calls approved before they run.
type approver interface {
	// approved is the part of a group that may run now. When its first call needs an
	// approval, refused says why it must not run, and wait what it waits for.
	approved(ctx context.Context, group []pending) (part []pending, refused string, wait *claybot.Awaiting, err error)
	// wasAsked reports whether a person was asked about a call in this run.
	wasAsked(call pending) bool
	// again says why a call must not run that an earlier pass started in vain; empty: it may.
	again(ctx context.Context, call pending) (refused string)
}

// settle gives every call of the last answer its result, in order. Neighbours
// without effect run side by side, all others one after another. A call that
// waits, for its tool or for its approval, ends the pass; the next one comes back
// to it.
func (c *calls) settle(ctx context.Context) error {
	for len(c.talk.progress.pending) > 0 {
		if ctx.Err() != nil {
			return runs.Ended(ctx)
		}
		group, refused, wait, err := c.consent.approved(ctx, c.group())
		if err != nil {
			return err
		}
		var results []claybot.Record
		switch {
		case wait != nil:
		case refused != "":
			results = []claybot.Record{c.result(group[0], refused)}
		default:
			if results, wait, err = c.do(ctx, group); err != nil {
				return err
			}
		}
		for _, r := range results {
			// What the end of ctx cut short has no result yet: the next pass, if
			// there is one, judges it by its effect.
			if ctx.Err() != nil && !r.OK {
				return runs.Ended(ctx)
			}
			if err := c.talk.emit(r); err != nil {
				return err
			}
		}
		switch {
		case wait == nil:
		case ctx.Err() != nil:
			return runs.Ended(ctx)
		default:
			waits := runs.ToolWaits(c.turn.Run.ID, group[len(results)].ToolCall, wait.Reason)
			if err := c.turn.Emit(ctx, false, waits); err != nil {
				return err
			}
			return &runs.WaitError{Awaiting: *wait}
		}
	}
	return nil
}

// group is the first pending call, and those behind it that may run with it.
func (c *calls) group() []pending {
	all := c.talk.progress.pending
	n := 0
	for n < len(all) && c.tools.Effect(all[n].Name) == tools.ReadOnly {
		n++
	}
	return append([]pending(nil), all[:max(n, 1)]...)
}

// do comes to the results of a group, up to the first call that waits. Those
// behind it are made again when it has its result; they have no effect. Each
// start of a tool is durable before the tool is called.
func (c *calls) do(ctx context.Context, group []pending) ([]claybot.Record, *claybot.Awaiting, error) {
	results := make([]claybot.Record, len(group))
	waits := make([]*claybot.Awaiting, len(group))
	ran := make([]bool, len(group))
	for i, call := range group {
		why := c.gate.verdict(call)
		if why == interrupted && !c.consent.wasAsked(call) { // else a person may have given it other arguments
			switch found, result := c.tools.Probe(ctx, c.gate.env(call.ToolCall), call.ToolCall); found {
			case tools.Done:
				results[i] = result
				results[i].Step = c.talk.progress.steps
				continue
			case tools.NotDone:
				why = c.consent.again(ctx, call)
			case tools.Unknown:
			}
		}
		if why != "" {
			results[i] = c.result(call, why)
			results[i].Interrupted = why == interrupted
			continue
		}
		if err := c.start(ctx, call.ToolCall); err != nil {
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
		env := c.gate.env(call.ToolCall)
		wg.Go(func() {
			defer func() { <-slots }()
			span := claybot.TraceOf(ctx).In(runs.ToolSpan(c.turn.Run.ID, call.ID))
			results[i], waits[i] = c.tools.Call(claybot.WithTrace(ctx, span), env, call.ToolCall)
			results[i].Step = c.talk.progress.steps
			results[i].WaitedMS = c.waited(call.ID, results[i].MS)
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
	c.turn.Used(claybot.Usage{ToolCalls: int64(calls)})
	return results, wait, nil
}

// waited is how long a call waited since an earlier pass started its tool, besides
// the ms that it just worked.
func (c *calls) waited(call string, ms int64) int64 {
	began := c.turn.Began(call)
	if began == 0 {
		return 0
	}
	return max(int64(claybot.Now()-began)-ms, 0)
}

// start records that a tool is about to run. A call that its tool will refuse
// starts nothing, and one that an earlier pass had started is not told twice.
func (c *calls) start(ctx context.Context, call claybot.ToolCall) error {
	if c.tools.Check(call) != nil || c.turn.InDoubt(call.ID) || c.gate.dry && c.tools.Effect(call.Name) != tools.ReadOnly {
		return nil
	}
	if err := c.turn.Started(ctx, call, c.tools.Effect(call.Name).String()); err != nil {
		return fmt.Errorf("record the start of %s: %w", call.Name, err)
	}
	return nil
}

func (c *calls) result(call pending, text string) claybot.Record {
	return claybot.Record{
		Type: claybot.RecordTool, At: claybot.Now(), Run: c.turn.Run.ID, Step: c.talk.progress.steps,
		ToolCallID: call.ID, Name: call.Name, Text: text,
	}
}
