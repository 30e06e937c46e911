package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// maxParallel bounds the steps without effect that run at the same time.
const maxParallel = 8

// What the result of a step says that was not run.
const (
	interrupted = "interrupted, outcome unknown: it may have taken effect and was not run again"
	notRun      = "error: not run: "
)

// An executor runs the steps of plans.
type executor struct {
	cfg    *Config
	may    refuser
	undoes bool
}

// A refuser says why a step must not run now; empty when it may.
type refuser interface {
	refuses(s *state, set *tools.Set, p Policy, st Step) string
}

// execute runs the steps. The first one that fails ends it, once those beside it
// have ended, unless the policy goes on.
func (e *executor) execute(ctx context.Context, s *state) (string, error) {
	s.Output.Awaiting = nil
	e.cfg.ready(ctx, s)
	set, policy := e.cfg.tools(s), e.cfg.policy(s)
	if err := follow(ctx, s, policy.Mode); err != nil {
		return "", err
	}
	w := newWork(s, &caller{cfg: e.cfg, s: s, set: set, policy: policy, may: e.may, undoes: e.undoes})
	for {
		wave, begun := w.next()
		if len(wave) == 0 {
			return w.close(ctx)
		}
		if ctx.Err() != nil {
			return "", runs.Ended(ctx)
		}
		if err := w.run(ctx, wave, begun); err != nil {
			return "", err
		}
	}
}

// A work is the executor on its way through the steps. What it knows of them is
// in the records of the run: it comes to the same wherever it was cut off.
type work struct {
	s      *state
	caller *caller

	calls   map[string]claybot.ToolCall // that are recorded, by step
	results map[string]claybot.Record   // by step
	waves   int
	skipped map[string]string // why, by step
}

// newWork finds out from the records how far the steps are.
func newWork(s *state, c *caller) *work {
	w := &work{
		s: s, caller: c, calls: make(map[string]claybot.ToolCall), results: make(map[string]claybot.Record),
		skipped: make(map[string]string),
	}
	for _, r := range s.Records() {
		switch {
		case r.Type == claybot.RecordAssistant && len(r.ToolCalls) > 0:
			w.waves++
			for _, c := range r.ToolCalls {
				w.calls[stepOf(c.ID)] = c
			}
		case r.Type == claybot.RecordTool:
			w.results[stepOf(r.ToolCallID)] = r
		}
	}
	return w
}

func (w *work) steps() []Step { return w.s.Scratch.Steps }

// next are the steps to run now: those that were begun and have no result, or
// the first one that is ready. Neighbours of the latter without effect go with
// it; what has an effect is passed by none that stands behind it.
func (w *work) next() (wave []Step, begun bool) {
	for _, st := range w.steps() {
		_, called := w.calls[st.ID]
		if _, ended := w.results[st.ID]; called && !ended {
			wave = append(wave, st)
		}
	}
	if len(wave) > 0 {
		return wave, true
	}
	if w.failed() != nil && !w.goesOn() {
		return nil, false
	}
	w.skip()
	for _, st := range w.steps() {
		if !w.open(st) {
			continue
		}
		harmless := w.caller.set.Effect(st.Tool) == tools.ReadOnly
		switch ready := w.ready(st); {
		case len(wave) == 0 && ready && !harmless:
			return []Step{st}, false
		case len(wave) > 0 && !harmless:
			return wave, false
		case ready:
			wave = append(wave, st)
		}
	}
	return wave, false
}

// open reports whether nothing is known of a step yet.
func (w *work) open(st Step) bool {
	_, ended := w.results[st.ID]
	_, skipped := w.skipped[st.ID]
	return !ended && !skipped
}

// ready reports whether all that a step depends on is done.
func (w *work) ready(st Step) bool {
	return !slices.ContainsFunc(st.DependsOn, func(on string) bool { return !w.results[on].OK })
}

// goesOn reports whether a failed step leaves the others alone.
func (w *work) goesOn() bool { return w.caller.policy.ContinueOnError || w.caller.undoes }

// failed is the first step that failed; nil for none.
func (w *work) failed() *Step {
	for i, st := range w.steps() {
		if r, ended := w.results[st.ID]; ended && !r.OK {
			return &w.steps()[i]
		}
	}
	return nil
}

// skip settles which steps do not run: those that must not, and those that
// depend on one that did not or failed.
func (w *work) skip() {
	for _, st := range inOrder(w.steps()) {
		if !w.open(st) {
			continue
		}
		why := ""
		for _, on := range st.DependsOn {
			if _, gone := w.skipped[on]; gone {
				why = fmt.Sprintf(texts.PlanDependsNotRun, on)
			} else if r, ended := w.results[on]; ended && !r.OK {
				why = fmt.Sprintf(texts.PlanDependsFailed, on)
			}
		}
		if why == "" {
			why = w.caller.refuses(st)
		}
		if why != "" {
			w.skipped[st.ID] = why
		}
	}
}

// run takes a wave of steps to their results. A step that waits ends the pass;
// the next one makes its call again.
func (w *work) run(ctx context.Context, wave []Step, begun bool) error {
	if !begun {
		calls := make([]claybot.ToolCall, len(wave))
		for i, st := range wave {
			calls[i] = st.call(w.s)
			w.calls[st.ID] = calls[i]
		}
		w.waves++
		if err := w.s.Record(claybot.Record{Type: claybot.RecordAssistant, Step: w.waves, ToolCalls: calls}); err != nil {
			return err
		}
	}
	tries := w.try(ctx, wave)
	var wait *claybot.Awaiting
	var waits claybot.ToolCall
	for i, st := range wave {
		t := tries[i]
		switch {
		case t.err != nil:
			return t.err
		case ctx.Err() != nil && !t.record.OK && !t.final:
			// What the end of ctx cut short has no result: the next pass, if there
			// is one, judges it by its effect.
			return runs.Ended(ctx)
		case t.wait != nil && wait == nil:
			wait, waits = t.wait, w.calls[st.ID]
		case t.wait == nil:
			if err := w.keep(ctx, st, t.record); err != nil {
				return err
			}
		}
	}
	if wait == nil {
		return nil
	}
	if err := w.s.Emit(ctx, false, runs.ToolWaits(w.s.Turn.Run.ID, waits, wait.Reason)); err != nil {
		return err
	}
	w.s.Output.Awaiting = &Awaiting{Reason: wait.Reason, Questions: wait.Questions, At: claybot.Now()}
	return &runs.WaitError{Awaiting: *wait}
}

// try makes the calls of a wave, side by side.
func (w *work) try(ctx context.Context, wave []Step) []tried {
	tries := make([]tried, len(wave))
	var spent tools.Spent
	for _, r := range w.results {
		spent.Add(r)
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i, st := range wave {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			tries[i] = w.caller.attempt(ctx, st, w.calls[st.ID], spent)
		})
	}
	wg.Wait()
	ran := 0
	for _, t := range tries {
		ran += t.calls
	}
	if ran > 0 {
		w.s.Turn.Used(claybot.Usage{ToolCalls: int64(ran)})
	}
	return tries
}

// keep records the result of a step.
func (w *work) keep(ctx context.Context, st Step, r claybot.Record) error {
	r.Step = w.waves
	if r.Undo != nil {
		undo := *r.Undo
		undo.Step = st.ID
		r.Undo = &undo
	}
	if err := w.s.Record(r); err != nil {
		return err
	}
	w.results[st.ID] = r
	if len(st.Effects) == 0 {
		return nil
	}
	told, fault := claybot.EventUndoFinished, ""
	if !r.OK {
		told, fault = claybot.EventUndoFailed, r.Text
	}
	return w.s.Emit(ctx, false, undoEvents(w.s, told, st, fault)...)
}

// close collects what came of the steps, and says where to go.
func (w *work) close(ctx context.Context) (string, error) {
	out := &w.s.Output
	out.Commits, out.Undo, out.Skipped, out.Error = nil, nil, nil, ""
	failed := w.failed()
	for _, st := range w.steps() {
		r, ended := w.results[st.ID]
		why, skipped := w.skipped[st.ID]
		switch {
		case ended && r.OK:
			out.Commits = append(out.Commits, Commit{Step: st.ID, Tool: st.Tool, Text: runs.Preview(r.Text)})
			if r.Undo != nil {
				out.Undo = append(out.Undo, *r.Undo)
			}
		case ended:
		case !skipped && failed != nil:
			why = fmt.Sprintf(texts.PlanDependsFailed, failed.ID)
			fallthrough
		default:
			out.Skipped = append(out.Skipped, Skip{Step: st.ID, Why: why})
			ev := runs.StepEnded(w.s.Turn.Run.ID, st.shown(), st.Tool, 0, "skipped: "+why)
			if err := w.s.Emit(ctx, false, ev); err != nil {
				return "", err
			}
		}
	}
	switch {
	case w.caller.undoes, failed == nil:
		return nodeSummarize, nil
	}
	out.Error = w.failures(texts.Of(ctx))
	if w.goesOn() && len(out.Commits) > 0 {
		w.s.Because("some steps failed")
		return nodeSummarize, nil
	}
	return fail(w.s, fmt.Sprintf("%s (%s) failed", failed.ID, failed.Tool), out.Error)
}

// failures are the steps that failed, with the words of their tools.
func (w *work) failures(v texts.Voice) string {
	var all []string
	for _, st := range w.steps() {
		if r, ended := w.results[st.ID]; ended && !r.OK {
			all = append(all, v.Say(texts.PlanFailed, st.name(v), result(v, r.Text)))
		}
	}
	return strings.Join(all, "; ")
}
