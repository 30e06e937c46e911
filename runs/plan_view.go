package runs

import (
	"slices"
	"strings"

	"github.com/claybot/claybot"
)

// The states of a step in a PlanView.
const (
	StepPending = "pending"
	StepWaiting = "waiting" // for an approval, or for what its tool waits for
	StepRunning = "running" // or failed, and about to be tried again
	StepOK      = "ok"
	StepFailed  = "failed"
	StepSkipped = "skipped"
)

// A PlanView is the plan of a run and how far it is, as its events tell. The
// plan of an undo run is what it takes back.
type PlanView struct {
	Steps []StepProgress `json:"steps"`
	Diff  string         `json:"diff,omitempty"` // what the plan changes, in words
	Mode  string         `json:"mode,omitempty"` // of the policy: preview, approve, auto
	Error string         `json:"error,omitempty"`
	Graph GraphView      `json:"graph"`

	held string // why nothing of the plan runs, and it is shown alone
}

// A StepProgress is one step of a plan and how far it is.
type StepProgress struct {
	PlannedStep
	Status   string `json:"status"`   // StepPending and the like
	Attempts int    `json:"attempts"` // begun
	// Error is what went wrong last, or why the step is skipped.
	Error string `json:"error,omitempty"`
	// Question is the open question on which the step waits, if it is one.
	Question string `json:"questionId,omitempty"`
}

// PlanOf folds the events of a run, in the order of their seq. Of a run without
// a plan, Steps is empty.
func PlanOf(events []claybot.Event) PlanView {
	v := PlanView{Steps: []StepProgress{}, Graph: GraphOf(nil)}
	for _, ev := range events {
		v.Add(ev)
	}
	return v
}

// Add folds the next event of the run. Events that tell nothing of the plan, or
// whose data cannot be read, change nothing.
func (v *PlanView) Add(ev claybot.Event) {
	v.Graph.Add(ev)
	switch ev.Type {
	case claybot.EventPlanGenerated:
		if d, ok := factOf[PlanGenerated](ev); ok {
			v.planned(d)
		}
	case claybot.EventPolicySwitched:
		if d, ok := factOf[PolicySwitched](ev); ok && len(v.Steps) > 0 {
			v.Mode = d.To
		}
	case claybot.EventEdgeTaken:
		if d, ok := factOf[EdgeTaken](ev); ok && d.From == "confirm" && d.To == "summarize" {
			v.held = d.Reason
		}
	case claybot.EventStepStarted, claybot.EventStepFinished:
		if d, ok := factOf[PlanStep](ev); ok {
			v.stepped(d, ev.Type == claybot.EventStepFinished)
		}
	case claybot.EventToolCalled, claybot.EventToolWaiting, claybot.EventToolSucceeded, claybot.EventToolFailed:
		v.tool(ev)
	case claybot.EventAwaitingInput:
		if d, ok := factOf[AwaitingInput](ev); ok {
			v.asked(d.Questions)
		}
	case claybot.EventAnswered:
		if d, ok := factOf[Answered](ev); ok {
			v.answered(d.QuestionID)
		}
	case claybot.EventUndoQueued, claybot.EventUndoFinished, claybot.EventUndoFailed:
		if d, ok := factOf[Undo](ev); ok {
			v.undo(ev.Type, d)
		}
	case claybot.EventFallback:
		if d, ok := factOf[Fallback](ev); ok {
			v.Error = d.Error
		}
	default:
		if ev.Type.Ends() {
			v.end()
		}
	}
}

// planned takes a plan, or one that was changed: what is known of a step that is
// still the same stays.
func (v *PlanView) planned(d PlanGenerated) {
	steps := make([]StepProgress, len(d.Steps))
	for i, p := range d.Steps {
		steps[i] = StepProgress{PlannedStep: p, Status: StepPending}
		if old := v.step(p.ID); old != nil && old.Tool == p.Tool {
			steps[i] = *old
			steps[i].PlannedStep = p
		}
	}
	v.Steps, v.Diff, v.Mode = steps, d.Diff, d.Mode
}

// stepped follows one try of a step.
func (v *PlanView) stepped(d PlanStep, ended bool) {
	s := v.step(d.StepID)
	if s == nil {
		return
	}
	s.Attempts, s.Question = max(s.Attempts, d.Attempt), ""
	if !ended {
		s.Status = StepRunning
		return
	}
	word, why, _ := strings.Cut(d.Status, ":")
	why = strings.TrimSpace(why)
	switch word = strings.ToLower(strings.TrimSpace(word)); {
	case word == "ok":
		s.Status, s.Error = StepOK, ""
		return
	case word == "failed":
		s.Status = StepFailed
	case word == "retry":
		s.Status = StepRunning
	case word == "waits", word == "waiting":
		s.Status = StepWaiting
		return
	case word == "skipped":
		s.Status = StepSkipped
	default: // the reason alone
		s.Status, why = StepSkipped, d.Status
	}
	if why != "" {
		s.Error = why
	}
}

// tool follows the call of a step: its id begins with that of the step. The
// result of a call is the end of its step, also where a crash kept the step from
// telling so.
func (v *PlanView) tool(ev claybot.Event) {
	d, ok := factOf[struct {
		CallID string `json:"callId"`
		Error  string `json:"error"`
	}](ev)
	if !ok {
		return
	}
	s := v.called(d.CallID)
	if s == nil {
		return
	}
	if ev.Type == claybot.EventToolFailed && (s.open() || s.Status == StepFailed && s.Error == "") {
		s.Status, s.Error, s.Question = StepFailed, d.Error, ""
	}
	if !s.open() {
		return
	}
	switch ev.Type {
	case claybot.EventToolCalled:
		s.Status, s.Question = StepRunning, ""
	case claybot.EventToolWaiting:
		s.Status = StepWaiting
	case claybot.EventToolSucceeded:
		s.Status, s.Error, s.Question = StepOK, "", ""
	}
}

// asked marks the steps that a person is to approve.
func (v *PlanView) asked(qs []claybot.Question) {
	for _, q := range qs {
		s := v.called(q.ToolCallID)
		if s == nil {
			s = v.step(q.Key)
		}
		if s != nil && s.open() {
			s.Status, s.Question = StepWaiting, q.ID
		}
	}
}

// answered: the step goes on, or is told to be skipped.
func (v *PlanView) answered(question string) {
	for i := range v.Steps {
		if s := &v.Steps[i]; question != "" && s.Question == question {
			s.Question = ""
			if s.Status == StepWaiting {
				s.Status = StepPending
			}
		}
	}
}

// undo follows what is taken back. A queued effect is a step of its own.
func (v *PlanView) undo(t claybot.EventType, d Undo) {
	s := v.step(d.StepID)
	if s == nil {
		v.Steps = append(v.Steps, StepProgress{PlannedStep: PlannedStep{ID: d.StepID, Tool: d.Tool}, Status: StepPending})
		s = &v.Steps[len(v.Steps)-1]
	}
	switch t {
	case claybot.EventUndoFinished:
		s.Status, s.Error = StepOK, ""
	case claybot.EventUndoFailed:
		s.Status, s.Error = StepFailed, d.Error
	}
}

// end closes what was open when the run ended.
func (v *PlanView) end() {
	for i := range v.Steps {
		s := &v.Steps[i]
		s.Question = ""
		switch {
		case s.Status == StepRunning:
			s.Status = StepFailed
			if s.Error == "" {
				s.Error = "the run ended while it was at work"
			}
		case !s.open():
		case v.held != "":
			s.Status, s.Error = StepSkipped, v.held
		default:
			s.Status, s.Error = StepSkipped, "the run ended before it"
		}
	}
}

// open reports whether the step may still run.
func (s *StepProgress) open() bool {
	return s.Status == StepPending || s.Status == StepWaiting || s.Status == StepRunning
}

func (v *PlanView) step(id string) *StepProgress {
	i := slices.IndexFunc(v.Steps, func(s StepProgress) bool { return s.ID == id && id != "" })
	if i < 0 {
		return nil
	}
	return &v.Steps[i]
}

// called finds the step of a call: the one with the longest id that the id of
// the call begins with, up to a mark that no id of a step goes on with.
func (v *PlanView) called(call string) *StepProgress {
	var best *StepProgress
	for i := range v.Steps {
		s := &v.Steps[i]
		rest, ok := strings.CutPrefix(call, s.ID)
		if !ok || s.ID == "" || rest != "" && !strings.ContainsAny(rest[:1], "-_./:#") {
			continue
		}
		if best == nil || len(s.ID) > len(best.ID) {
			best = s
		}
	}
	return best
}
