package react

import (
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// The limits of a run.
const (
	maxStepCalls = 64  // calls of one answer; the rest are refused
	maxRunCalls  = 200 // calls of one run; the rest are refused
	maxRepeats   = 6   // times that the same call, or pair of calls, comes to the same
	maxBadRounds = 3   // answers in a row all of whose calls are malformed
)

// A progress is what the records of a run say about it. It is a fold: whoever
// adds the same records comes to the same progress.
type progress struct {
	refused func(claybot.ToolCall) error // why no tool takes a call

	steps   int       // answers of the model
	calls   int       // calls in them
	pending []pending // calls of the last answer without a result, in order
	done    bool      // the last answer has no calls, and nothing was said since
	ids     map[string]bool
	recent  []outcome // the newest results

	round  int // calls of the last answer
	bad    int // malformed ones among them
	badRow int // answers in a row with nothing but malformed calls
}

// A pending call knows its place, which the limits are about.
type pending struct {
	claybot.ToolCall
	inStep, inRun int // from 1
}

// An outcome is what the repeat guard compares.
type outcome struct{ name, args, result string }

// readProgress reads the progress of a run from what its agent remembers. The
// records of a run are the tail of the history that begins with its first one.
func readProgress(history []claybot.Record, run claybot.RunID, refused func(claybot.ToolCall) error) *progress {
	p := &progress{refused: refused, ids: make(map[string]bool)}
	first := slices.IndexFunc(history, func(r claybot.Record) bool { return r.Run == run })
	if first < 0 {
		return p
	}
	for _, r := range history[first:] {
		p.add(r)
	}
	return p
}

func (p *progress) add(r claybot.Record) {
	switch r.Type {
	case claybot.RecordUser, claybot.RecordSystem:
		p.done = false
	case claybot.RecordAssistant:
		p.steps++
		p.round, p.bad, p.pending = len(r.ToolCalls), 0, nil
		p.done = len(r.ToolCalls) == 0
		for i, c := range r.ToolCalls {
			p.calls++
			p.ids[c.ID] = true
			p.pending = append(p.pending, pending{ToolCall: c, inStep: i + 1, inRun: p.calls})
		}
	case claybot.RecordTool:
		p.answered(r)
	}
}

func (p *progress) answered(r claybot.Record) {
	i := slices.IndexFunc(p.pending, func(c pending) bool { return c.ID == r.ToolCallID })
	if i < 0 {
		return
	}
	call := p.pending[i].ToolCall
	p.pending = slices.Delete(p.pending, i, i+1)
	p.recent = append(p.recent, outcome{call.Name, call.Args, r.Text})
	if over := len(p.recent) - 2*maxRepeats; over > 0 {
		p.recent = slices.Delete(p.recent, 0, over)
	}
	if !r.OK && !r.Interrupted && p.refused(call) != nil {
		p.bad++
	}
	if len(p.pending) > 0 {
		return
	}
	if p.bad == p.round {
		p.badRow++
	} else {
		p.badRow = 0
	}
}

// stuck returns the error that ends a run which does not get anywhere.
func (p *progress) stuck(maxSteps int) error {
	switch {
	case p.repeating(1), p.repeating(2):
		return &runs.Error{Code: runs.CodeRepeating, Text: fmt.Sprintf("the model made the same tool calls %d times", maxRepeats)}
	case p.badRow > maxBadRounds:
		return &runs.Error{Code: runs.CodeBadCalls, Text: fmt.Sprintf("the model made malformed tool calls %d times in a row", p.badRow)}
	case p.steps >= maxSteps:
		return &runs.Error{Code: runs.CodeTooMany, Text: fmt.Sprintf("no answer after %d model calls", p.steps)}
	}
	return nil
}

// repeating reports whether the newest results are maxRepeats times the same
// period.
func (p *progress) repeating(period int) bool {
	n := period * maxRepeats
	if len(p.recent) < n {
		return false
	}
	last := p.recent[len(p.recent)-n:]
	for i := period; i < n; i++ {
		if last[i] != last[i-period] {
			return false
		}
	}
	return true
}
