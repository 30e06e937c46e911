package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

// workEvents is how many events of a run are read for its plan and its graph.
const workEvents = 50_000

// A workView is what a run has planned, where it is, and what can be taken back.
type workView struct {
	viewer
	ID       claybot.RunID
	Agent    claybot.AgentID
	Plan     *planView
	Graph    *graphView
	Explored *exploredView
	Undo     *undoView
	Undoes   claybot.RunID // the run that this one takes back
}

// Wide reports whether there is something beside the graph.
func (v workView) Wide() bool { return v.Plan != nil || v.Explored != nil }

// runWork reads the work of a run for its part of the page.
func (b *runPages) runWork(r *http.Request) (any, error) {
	run, err := b.runs.Run(r.Context(), claybot.RunID(r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	return b.readWork(r, run)
}

func (b *runPages) readWork(r *http.Request, run claybot.Run) (workView, error) {
	v := workView{viewer: viewerOf(r), ID: run.ID, Agent: run.Agent}
	var err error
	if v.Undoes, err = b.undoes(r.Context(), run); err != nil {
		return v, err
	}
	if v.Undo, err = b.readUndo(r.Context(), run); err != nil || run.Engine == claybot.EngineReact {
		return v, err
	}
	told, err := web.FoldPlan(r.Context(), b.runs, run.ID, workEvents)
	if err != nil {
		return v, err
	}
	result, err := b.resultOf(r.Context(), run)
	if err != nil {
		return v, err
	}
	v.Plan = viewPlan(told, result)
	if v.Plan != nil && v.Undoes != "" {
		v.Plan.Title = "What it takes back"
	}
	v.Explored = viewExplored(run, result)
	if shape, ok := b.system.Shapes()[run.Engine]; ok {
		v.Graph = viewGraph(shape, told.Graph)
	}
	return v, nil
}

// resultOf is what the graph of a run has put out. A run is stored with it,
// unless it is very long: the agent remembers it then.
func (b *runPages) resultOf(ctx context.Context, run claybot.Run) (json.RawMessage, error) {
	if len(run.Result) > 0 || !run.State.Ended() || run.Engine == "" {
		return run.Result, nil
	}
	records, err := b.agents.Remembered(ctx, run.Agent)
	if err != nil {
		return nil, ignoreGone(err)
	}
	return json.Marshal(runs.OutputOf(records, run.ID))
}

// A planView is the plan of a run as a list that is ticked off.
type planView struct {
	Title string
	Mode  string // of the policy, in words
	Diff  string
	Error string
	// Summary is what the run says of it in the end, in Markdown.
	Summary string
	Steps   []planStep
	Done    int
	Cost    int64 // a guess, in millionths of a US dollar
}

// A planStep is one step of a plan.
type planStep struct {
	runs.StepProgress
	Out string // what it came to
}

// A planResult is what the plan engine puts out, as far as it is shown.
type planResult struct {
	Summary label `json:"summary"`
	Diff    label `json:"diff"`
	Error   label `json:"error"`
	Commits []struct {
		Step label `json:"step"`
		Tool label `json:"tool"`
		Text label `json:"text"`
	} `json:"commits"`
	Skipped []struct {
		Step label `json:"step"`
		Why  label `json:"why"`
	} `json:"skipped"`
}

// planModes are what the modes of a policy mean.
var planModes = map[string]string{
	"preview": "only planned, nothing runs", "approve": "risky steps are approved first", "auto": "runs within its limits",
}

// viewPlan joins what events tell of a plan with what it has put out; nil where
// there is none. When the events are gone, the result tells of the steps; else it
// adds none: those of a run that takes back have other ids there.
func viewPlan(told runs.PlanView, result json.RawMessage) *planView {
	var out planResult
	_ = json.Unmarshal(result, &out) // what cannot be read is left out
	if len(told.Steps) == 0 && len(out.Commits)+len(out.Skipped) == 0 {
		return nil
	}
	v := &planView{
		Title: "Plan", Mode: cmp.Or(planModes[told.Mode], told.Mode), Diff: cmp.Or(told.Diff, string(out.Diff)),
		Error: cmp.Or(told.Error, string(out.Error)), Summary: string(out.Summary),
	}
	gone := len(told.Steps) == 0
	for _, s := range told.Steps {
		v.Steps = append(v.Steps, planStep{StepProgress: s})
	}
	for _, c := range out.Commits {
		if s := v.step(string(c.Step), string(c.Tool), runs.StepOK, gone); s != nil {
			s.Out = string(c.Text)
		}
	}
	for _, k := range out.Skipped {
		if s := v.step(string(k.Step), "", runs.StepSkipped, gone); s != nil && s.Status == runs.StepSkipped && k.Why != "" {
			s.Error = string(k.Why)
		}
	}
	for _, s := range v.Steps {
		v.Cost += s.CostMicroUSD
		if s.Status == runs.StepOK {
			v.Done++
		}
	}
	return v
}

// step finds a step, or adds it if it may; nil for one that is not there, and for
// one without an id.
func (v *planView) step(id, tool, status string, add bool) *planStep {
	i := slices.IndexFunc(v.Steps, func(s planStep) bool { return s.ID == id })
	if i < 0 {
		if !add || id == "" {
			return nil
		}
		i = len(v.Steps)
		s := planStep{StepProgress: runs.StepProgress{PlannedStep: runs.PlannedStep{ID: id, Tool: tool}, Status: status}}
		v.Steps = append(v.Steps, s)
	}
	return &v.Steps[i]
}

// Name is what the step does, in words where the plan has some.
func (s planStep) Name() string { return cmp.Or(s.What, s.Tool, s.ID) }

// Input is what the tool is given, as JSON on one line; empty for nothing.
func (s planStep) Input() string {
	dec := json.NewDecoder(bytes.NewReader(s.Args))
	dec.UseNumber()
	var in any
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // the template does that
	if dec.Decode(&in) != nil || enc.Encode(in) != nil {
		return string(s.Args)
	}
	if text := strings.TrimSpace(out.String()); text != "{}" && text != "null" {
		return text
	}
	return ""
}

// Icon marks a step by how far it is.
func (s planStep) Icon() string {
	switch s.Status {
	case runs.StepOK:
		return "check"
	case runs.StepFailed:
		return "warn"
	case runs.StepSkipped:
		return "skip"
	case runs.StepWaiting:
		return "ask"
	case runs.StepRunning:
		return "spark"
	}
	return "todo"
}

// Tone is the colour of a step, Words how far it is.
func (s planStep) Tone() string {
	switch s.Status {
	case runs.StepOK:
		return "good"
	case runs.StepFailed:
		return "bad"
	case runs.StepRunning:
		return "busy"
	case runs.StepWaiting:
		return "warn"
	}
	return "calm"
}

// Words says how far a step is.
func (s planStep) Words() string {
	switch s.Status {
	case runs.StepOK:
		return "done"
	case runs.StepPending:
		return "to do"
	case runs.StepWaiting:
		if s.Question != "" {
			return "needs your approval"
		}
		return "waits"
	case runs.StepRunning:
		if s.Attempts > 1 {
			return "tried again"
		}
	}
	return words(s.Status)
}
