package plan

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// Scratch is the working memory of a run. It is never shown.
type Scratch struct {
	Intent string `json:"intent,omitempty"`
	Meta   Meta   `json:"intentMeta,omitzero"`
	// Answers are what the person said to questions about inputs, by key; those
	// of dotted keys a second time, nested.
	Answers map[string]json.RawMessage `json:"answers,omitempty"`
	Steps   []Step                     `json:"steps,omitempty"`
	// Filled: the arguments of the steps name no inputs any more.
	Filled bool `json:"filled,omitempty"`
	// Mode is that of the policy by which the run goes.
	Mode Mode `json:"mode,omitempty"`
	// Rounds counts the rounds of questions, by what they were about; Asking is
	// the open one.
	Rounds map[string]int `json:"rounds,omitempty"`
	Asking *Asking        `json:"awaiting,omitempty"`
	// Votes are about the steps that need approval, by the id of the step.
	Votes map[string]*Vote `json:"votes,omitempty"`
	// Loud is until when quiet hours do not count: a person said so.
	Loud claybot.Time `json:"loud,omitempty"`
	// Held is why nothing runs and the plan is shown alone; empty: it runs.
	Held string `json:"held,omitempty"`
	// Fault is what the fallback tells the person, Cause the same for operators:
	// without the words of people, models and tools.
	Fault string `json:"fault,omitempty"`
	Cause string `json:"cause,omitempty"`
	// Lasting are the effects that nothing takes back, in a run that undoes;
	// Queued: the others were told of.
	Lasting []claybot.Undo `json:"lasting,omitempty"`
	Queued  bool           `json:"queued,omitempty"`
}

// A Meta is what classify found in what the person said.
type Meta struct {
	Targets       []string                   `json:"targets,omitempty"`
	Inputs        []string                   `json:"inputs,omitempty"`      // keys of the intent
	InputValues   map[string]json.RawMessage `json:"inputValues,omitempty"` // that were said, checked
	MissingInputs []string                   `json:"missingInputs,omitempty"`
	// Text answers what is no intent.
	Text string `json:"text,omitempty"`
}

// A Step is one call of a plan.
type Step struct {
	runs.PlannedStep
	// Effects are what the step takes back, in a run that undoes, the last one
	// first.
	Effects []claybot.Undo `json:"effects,omitempty"`
}

// An Asking is a round of questions that is open. The same questions are asked
// again in each pass, so that their ids stay theirs.
type Asking struct {
	Kind      string             `json:"kind"` // inputs, quiet or approve
	Round     string             `json:"round"`
	Questions []claybot.Question `json:"questions"`
}

// A Vote is what people said to one step.
type Vote struct {
	Digest string   `json:"digest"` // of the call that was shown
	By     []string `json:"by,omitempty"`
	Denied string   `json:"denied,omitempty"` // why, in words that follow "not run: "
	// Edits is how often people put other arguments into the step; those that it
	// has are of the first in By then.
	Edits int `json:"edits,omitempty"`
}

// Output is what people and programs see of a run.
type Output struct {
	Summary  string         `json:"summary,omitempty"`
	Diff     string         `json:"diff,omitempty"` // what the plan changes, in words
	Commits  []Commit       `json:"commits,omitempty"`
	Undo     []claybot.Undo `json:"undo,omitempty"` // in the order of the effects
	Skipped  []Skip         `json:"skipped,omitempty"`
	Awaiting *Awaiting      `json:"awaiting,omitempty"`
	Error    string         `json:"error,omitempty"`
}

// A Commit is a step that was done.
type Commit struct {
	Step string `json:"step"`
	Tool string `json:"tool"`
	Text string `json:"text"` // its result, shortened
}

// A Skip is a step that was not run.
type Skip struct {
	Step string `json:"step"`
	Why  string `json:"why"`
}

// Awaiting is what a paused run waits for.
type Awaiting struct {
	Reason    claybot.AwaitReason `json:"reason"`
	Questions []claybot.Question  `json:"questions"`
	At        claybot.Time        `json:"ts"`
}

// call is what the step does. Its id is that of the step with the beginning of
// the digest, so it names the same action only.
func (st Step) call(s *state) claybot.ToolCall {
	c := claybot.ToolCall{Name: st.Tool, Args: string(st.Args)}
	c.ID = st.ID + callMark + digest(s, c)[:16]
	return c
}

// callMark stands between the two parts of the id of a call.
const callMark = "-"

// stepOf is the id of the step that a call belongs to.
func stepOf(callID string) string {
	i := strings.LastIndex(callID, callMark)
	if i < 0 {
		return ""
	}
	return callID[:i]
}

// name is what people call the step.
func (st Step) name(v texts.Voice) string {
	if len(st.Effects) > 0 {
		return effectNames(v, st.Effects)
	}
	return st.ID + " (" + st.does(v) + ")"
}

// does says what the step does: in the words of approvals, and those of the model.
func (st Step) does(v texts.Voice) string {
	does := v.DoingBy(st.Tool)
	if st.What != "" {
		does += ": " + st.What
	}
	return does
}

// shown is the id of the step in events.
func (st Step) shown() string {
	if len(st.Effects) > 0 {
		return st.Effects[0].Step
	}
	return st.ID
}

// values are the inputs that are known, by key. What was answered counts before
// what was found in the text.
func (sc Scratch) values() map[string]json.RawMessage {
	all := make(map[string]json.RawMessage)
	for key, v := range sc.Meta.InputValues {
		setNested(all, key, v)
	}
	maps.Copy(all, sc.Answers)
	return all
}

// planned are the steps as events show them.
func planned(steps []Step) []runs.PlannedStep {
	all := make([]runs.PlannedStep, len(steps))
	for i, st := range steps {
		all[i] = st.PlannedStep
	}
	return all
}

// inOrder are steps so that each comes behind those that it depends on.
func inOrder(steps []Step) []Step {
	placed := make(map[string]bool)
	ordered := make([]Step, 0, len(steps))
	for len(ordered) < len(steps) {
		before := len(ordered)
		for _, st := range steps {
			ready := !slices.ContainsFunc(st.DependsOn, func(on string) bool { return !placed[on] })
			if ready && !placed[st.ID] {
				placed[st.ID] = true
				ordered = append(ordered, st)
			}
		}
		if len(ordered) == before {
			break // a circle, which no checked plan has
		}
	}
	return ordered
}

// show tells those who watch the run what the plan is now.
func show(ctx context.Context, s *state) error {
	return tell(ctx, s, runs.Planned(s.Turn.Run.ID, planned(s.Scratch.Steps), s.Output.Diff, string(s.Scratch.Mode)))
}
