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

// A workView is the plan of a run, its place in the graph, and its side effects.
type workView struct {
	viewer
	ID       claybot.RunID
	Agent    claybot.AgentID
	Plan     *planView
	Graph    *graphView
	Explored *exploredView
	Undo     *undoView
	Undoes   claybot.RunID // the run that this one undoes
}

// Wide reports whether there is something beside the graph.
func (v workView) Wide() bool { return v.Plan != nil || v.Explored != nil }

func (b *runPages) runWork(r *http.Request) (any, error) {
	run, err := b.runs.Run(r.Context(), runOf(r))
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
		v.Plan.Title = "Undo"
	}
	v.Explored = viewExplored(run, result)
	if shape, ok := b.system.Shapes()[run.Engine]; ok {
		v.Graph = viewGraph(shape, told.Graph)
	}
	return v, nil
}

// resultOf is the output of the graph of a run. A very long one is in the history alone.
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

// A planView is the plan of a run as a checklist.
type planView struct {
	Title   string
	Mode    string // of the policy
	Diff    string
	Error   string
	Summary string // Markdown
	Steps   []planStep
	Done    int
	Cost    int64 // estimated, in millionths of a US dollar
}

// A planStep is one step of a plan.
type planStep struct {
	runs.StepProgress
	Out string // its result
}

// A planResult is the output of the plan engine, as far as it is shown.
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

// viewPlan joins the plan that events tell of with its result; nil where there is
// none. The result adds steps only when the events have expired: those of an undo
// have other ids there.
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

// step finds a step, or adds it if add is set; nil for none, and for an empty id.
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

func (s planStep) Name() string { return cmp.Or(s.What, s.Tool, s.ID) }

// Input are the arguments of the tool as JSON on one line; empty for none.
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

func (s planStep) Icon() string { return cmp.Or(stepMarks[s.Status].icon, "todo") }
func (s planStep) Tone() string { return cmp.Or(stepMarks[s.Status].tone, "calm") }

// Words says how far a step is.
func (s planStep) Words() string {
	switch {
	case s.Status == runs.StepWaiting && s.Question != "":
		return "needs your approval"
	case s.Status == runs.StepRunning && s.Attempts > 1:
		return "retrying"
	}
	return cmp.Or(stepMarks[s.Status].words, words(s.Status))
}

// undoRows is how many side effects of a run are shown.
const undoRows = 100

// An undoView lists the side effects of a run that has ended.
type undoView struct {
	Effects []claybot.Undo
	More    int
	Can     int // how many can be undone
	// By is the run that undid them or does so now, empty when an undo may be
	// requested: one that began nothing does not count.
	By    claybot.RunID
	State claybot.RunState // of that run
}

// Over reports whether the undo has ended.
func (v undoView) Over() bool { return v.State.Ended() }

// readUndo is nil for a run without side effects.
func (b *runPages) readUndo(ctx context.Context, run claybot.Run) (*undoView, error) {
	if !run.State.Ended() || len(run.Undo) == 0 || run.UndoOf != "" {
		return nil, nil
	}
	v := &undoView{}
	for _, u := range run.Undo {
		if u.Call != nil {
			v.Can++
		}
	}
	v.Effects, v.More = cut(run.Undo, undoRows)
	var err error
	if v.By, err = b.control.UndoneBy(ctx, run.ID); err != nil || v.By == "" {
		return v, err
	}
	by, err := b.runs.Run(ctx, v.By)
	v.State = by.State
	return v, ignoreGone(err)
}

// undoes is the run that a run undoes, empty for others. Until its end only its messages name it.
func (b *runPages) undoes(ctx context.Context, run claybot.Run) (claybot.RunID, error) {
	if run.UndoOf != "" || run.Engine != claybot.EngineUndo {
		return run.UndoOf, nil
	}
	for _, id := range run.Messages {
		stories, err := b.system.Why(ctx, string(id))
		if ignoreGone(err) != nil {
			return "", err
		}
		for _, s := range stories {
			if m := s.Message; m.ID == id && m.Undo != nil {
				return m.Undo.Run, nil
			}
		}
	}
	return "", nil
}

func (b *runPages) undoRun(r *http.Request) (string, error) {
	_, err := b.control.UndoRun(r.Context(), runOf(r), web.User(r))
	return doneUndoing, err
}
