package react

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// The limits of a run, besides those that a profile sets.
const (
	maxRepeats   = 6 // times that the same call, or pair of calls, comes to the same
	maxBadRounds = 3 // answers in a row all of whose calls are malformed
)

// A progress is what the records of a run say about it. Adding
// the same records gives the same progress.
type progress struct {
	refused func(claybot.ToolCall) error // why no tool takes a call
	limits  tools.Limits                 // all set

	steps   int       // answers of the model
	calls   int       // calls in them
	pending []pending // calls of the last answer without a result, in order
	done    bool      // the last answer has no calls, and nothing was said since
	pushed  int       // answers without calls that were pushed back
	note    string    // with which a call of tools.Finish ends the run; empty: it goes on
	noted   bool      // the last answer is the note of such a call
	ids     map[string]bool
	recent  []outcome // the newest results

	spent tools.Spent     // by the calls of the run
	over  int             // the step whose calls the budget forbade first; 0: none yet
	only  map[string]bool // the tools that may still be called; nil: all

	round  int // calls of the last answer
	bad    int // malformed ones among them
	badRow int // answers in a row with nothing but malformed calls
}

// A pending call knows its place, which the limits are about.
type pending struct {
	claybot.ToolCall
	inStep, inRun int  // from 1
	edited        bool // a person put other arguments in the place of the model's
}

// An outcome is what the repeat guard compares.
type outcome struct{ name, args, result string }

// readProgress reads the progress of a run from what its agent remembers. The
// records of a run are the tail of the history that begins with its first one.
func readProgress(history []claybot.Record, run claybot.RunID, limits tools.Limits, refused func(claybot.ToolCall) error) *progress {
	p := &progress{refused: refused, limits: limits.WithDefaults(), ids: make(map[string]bool)}
	first := 0
	for first < len(history) && history[first].Run != run {
		first++
	}
	for _, r := range history[first:] {
		p.add(r)
	}
	return p
}

func (p *progress) add(r claybot.Record) {
	switch r.Type {
	case claybot.RecordUser, claybot.RecordSystem:
		p.done, p.note = false, ""
		if r.Kind == claybot.KindPushBack {
			p.pushed++
		}
	case claybot.RecordAssistant:
		p.steps++
		p.note, p.noted = "", r.Stop == tools.Finish && r.Tokens == nil
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
	if call.Name == tools.Finish && r.OK {
		p.note = r.Text
	}
	if p.over == 0 && !r.OK && r.MS == 0 && strings.HasPrefix(r.Text, notRunOver) && p.spent.Over(p.limits) != "" {
		p.over = p.steps
	}
	p.spent.Add(r)
	if r.Only != nil && p.only == nil {
		p.only = make(map[string]bool)
	}
	for _, name := range r.Only {
		p.only[name] = true
	}
	p.recent = append(p.recent, outcome{call.Name, compact(call.Args), r.Text})
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
	case p.over > 0 && p.steps > p.over: // it was told, and had its chance to answer
		return &runs.Error{Code: runs.CodeToolBudget, Text: p.spent.Over(p.limits)}
	case p.steps >= maxSteps:
		return &runs.Error{Code: runs.CodeTooMany, Text: fmt.Sprintf("no answer after %d model calls", p.steps)}
	}
	return nil
}

// compact are arguments without the blanks that say nothing.
func compact(args string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(args)) != nil {
		return args
	}
	return b.String()
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
