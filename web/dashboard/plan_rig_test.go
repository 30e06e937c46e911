package dashboard_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// A works is a rig with engines that are graphs and follow a script: one that
// plans three steps, of which the second is to be approved, one that takes back,
// and one that explores.
type works struct {
	*rig
	// action is what the second step sends, place where messages come from; once:
	// it is approved for that one action alone.
	action string
	once   bool
	place  claybot.Descriptor
	// allow says whether an undo goes on to take back anything; nil: it does.
	allow func(context.Context) bool

	mu   sync.Mutex
	gate chan struct{} // the executor waits for it before each step; nil: does not wait
	done []string      // the steps that were carried out, in their order
}

type (
	worksScratch struct {
		Approved bool   `json:"approved,omitempty"`
		Reason   string `json:"reason,omitempty"`
	}
	worksCommit struct {
		Step string `json:"step"`
		Tool string `json:"tool"`
		Text string `json:"text"`
	}
	worksSkip struct {
		Step string `json:"step"`
		Why  string `json:"why"`
	}
	worksOutput struct {
		Summary string        `json:"summary,omitempty"`
		Commits []worksCommit `json:"commits,omitempty"`
		Skipped []worksSkip   `json:"skipped,omitempty"`
	}
	worksState = runs.State[worksScratch, worksOutput]
)

// newWorks makes the rig, not started.
func newWorks(t *testing.T) *works {
	w := &works{rig: newRig(t), action: "plain text", place: main}
	w.engines = map[string]runs.Engine{
		claybot.EnginePlan: &runs.Graph[worksScratch, worksOutput]{
			Name: "plan", Start: "classify",
			Nodes: map[string]runs.Node[worksScratch, worksOutput]{
				"classify": goOn("planner"), "planner": w.planner, "confirm": w.confirm, "executor": w.executor,
				"summarize": summarize("All of it is *done*."), "fallback": goOn(runs.End),
			},
			Edges: map[string][]string{
				"classify": {"planner", "fallback"}, "planner": {"confirm", "fallback"}, "confirm": {"executor", "summarize", "fallback"},
				"executor": {"summarize", "fallback"}, "summarize": {runs.End}, "fallback": {runs.End},
			},
		},
		claybot.EngineUndo: &runs.Graph[worksScratch, worksOutput]{
			Name: "undo", Start: "undo",
			Nodes: map[string]runs.Node[worksScratch, worksOutput]{"undo": w.undo, "summarize": summarize("It is undone.")},
			Edges: map[string][]string{"undo": {"summarize"}, "summarize": {runs.End}},
		},
		claybot.EngineExplore: &runs.Graph[worksScratch, explorerOutput]{
			Name: "explore", Start: "Perceive",
			Nodes: map[string]runs.Node[worksScratch, explorerOutput]{"Perceive": explore, "Stop": stopExploring},
			Edges: map[string][]string{"Perceive": {"Perceive", "Stop"}, "Stop": {runs.End}},
		},
	}
	return w
}

func goOn(next string) runs.Node[worksScratch, worksOutput] {
	return func(context.Context, *worksState) (string, error) { return next, nil }
}

func summarize(text string) runs.Node[worksScratch, worksOutput] {
	return func(_ context.Context, s *worksState) (string, error) {
		s.Output.Summary = text
		return runs.End, s.Record(claybot.Record{Type: claybot.RecordAssistant, Text: text, Step: 9, Model: "script"})
	}
}

// ask posts a message for an engine.
func (w *works) ask(engine, text string) claybot.MessageID {
	w.Helper()
	id := claybot.MessageID("web/main/" + string(claybot.NewID()))
	w.post(w.place, claybot.AgentMessage{ID: id, Type: claybot.MessageUser, Text: text, FirstHand: true, From: claybot.Sender{UserID: "operator"}, Engine: engine})
	return id
}

// hold makes steps wait until next is called for each, or all is.
func (w *works) hold() (next, all func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	gate := make(chan struct{})
	w.gate = gate
	return func() { gate <- struct{}{} }, sync.OnceFunc(func() { close(gate) })
}

// carried are the steps that were carried out.
func (w *works) carried() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.done)
}

func (w *works) steps() []runs.PlannedStep {
	send, _ := json.Marshal(map[string]string{"to": "ann", "text": w.action}) // strings always marshal
	return []runs.PlannedStep{
		{ID: "step-01", Tool: "read_notes", What: "Read the notes", Args: json.RawMessage(`{"name":"notes"}`), Risk: "low", CostMicroUSD: 1500},
		{ID: "step-02", Tool: "send_mail", What: "Write to Ann " + w.action, Args: send, Risk: "high", DependsOn: []string{"step-01"}, CostMicroUSD: 500},
		{ID: "step-03", Tool: "tidy", Args: json.RawMessage(`{}`), Risk: "low"},
	}
}

func (w *works) planner(ctx context.Context, s *worksState) (string, error) {
	return "confirm", s.Emit(ctx, true, runs.Planned(s.Turn.Run.ID, w.steps(), "Ann gets a mail.", "approve"))
}

func (w *works) confirm(ctx context.Context, s *worksState) (string, error) {
	step := w.steps()[1]
	call := claybot.ToolCall{ID: step.ID + "-ab12", Name: step.Tool, Args: string(step.Args)}
	q, err := tools.Approval(s.Turn.Agent, "", tools.Spec{Tool: llm.Tool{Name: step.Tool}}, call, tools.Grounds{Why: "it is part of the plan"})
	if err != nil {
		return "", err
	}
	q.Once = w.once
	said, wait, err := s.Turn.Ask(ctx, "approve/"+step.ID, []claybot.Question{q})
	switch {
	case err != nil:
		return "", err
	case wait != nil:
		return "", &runs.WaitError{Awaiting: *wait}
	}
	s.Scratch.Approved, s.Scratch.Reason = tools.Approved(said[0]), said[0].Reason
	return "executor", nil
}

func (w *works) executor(ctx context.Context, s *worksState) (string, error) {
	for i, step := range w.steps() {
		if i == 1 && !s.Scratch.Approved {
			why := strings.TrimSuffix("not approved: "+s.Scratch.Reason, ": ")
			s.Output.Skipped = append(s.Output.Skipped, worksSkip{step.ID, why})
			if err := s.Emit(ctx, true, runs.StepEnded(s.Turn.Run.ID, step.ID, step.Tool, 0, why)); err != nil {
				return "", err
			}
			continue
		}
		if err := w.carryOut(ctx, s, i, step); err != nil {
			return "", err
		}
	}
	return "summarize", nil
}

func (w *works) carryOut(ctx context.Context, s *worksState, i int, step runs.PlannedStep) error {
	if err := s.Emit(ctx, true, runs.StepBegan(s.Turn.Run.ID, step.ID, step.Tool, 1)); err != nil {
		return err
	}
	w.mu.Lock()
	gate := w.gate
	w.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	call := claybot.ToolCall{ID: step.ID + "-ab12", Name: step.Tool, Args: string(step.Args)}
	result := claybot.Record{Type: claybot.RecordTool, ToolCallID: call.ID, Name: call.Name, OK: true, Text: "result of " + step.ID}
	switch i {
	case 1:
		result.Undo = &claybot.Undo{Step: step.ID, Tool: step.Tool, What: "wrote to ann " + w.action}
	case 2:
		result.Undo = &claybot.Undo{Step: step.ID, Tool: step.Tool, What: "tidied up", Call: &claybot.ToolCall{ID: "u1", Name: "mess_up", Args: "{}"}}
	}
	for _, r := range []claybot.Record{{Type: claybot.RecordAssistant, Step: i + 1, ToolCalls: []claybot.ToolCall{call}}, result} {
		if err := s.Record(r); err != nil {
			return err
		}
	}
	w.mu.Lock()
	w.done = append(w.done, step.ID)
	w.mu.Unlock()
	s.Output.Commits = append(s.Output.Commits, worksCommit{step.ID, step.Tool, result.Text})
	return s.Emit(ctx, true, runs.StepEnded(s.Turn.Run.ID, step.ID, step.Tool, 1, "ok"))
}

func (w *works) undo(ctx context.Context, s *worksState) (string, error) {
	if w.allow != nil && !w.allow(ctx) {
		return "summarize", nil
	}
	for _, m := range s.Turn.Messages {
		if m.Undo == nil {
			continue
		}
		for _, u := range m.Undo.Effects {
			end, fault := claybot.EventUndoFinished, ""
			if u.Call == nil {
				end, fault = claybot.EventUndoFailed, "it cannot be taken back"
			}
			told := []claybot.Event{runs.UndoTold(s.Turn.Run.ID, claybot.EventUndoQueued, u, ""), runs.UndoTold(s.Turn.Run.ID, end, u, fault)}
			if u.Call != nil {
				called := runs.ToolCalled(s.Turn.Run.ID, claybot.ToolCall{ID: "undo-01-ab12", Name: u.Call.Name, Args: u.Call.Args}, "once")
				told = slices.Insert(told, 1, called)
			}
			if err := s.Emit(ctx, true, told...); err != nil {
				return "", err
			}
		}
	}
	return "summarize", nil
}

// What the explorer puts out.
type explorerOutput struct {
	URL         string              `json:"url"`
	Screens     []map[string]any    `json:"screens"`
	Transitions []map[string]string `json:"transitions"`
	DeadEnds    []string            `json:"deadEnds"`
	Errors      []string            `json:"errors"`
	Reason      string              `json:"reason"`
	Iterations  int                 `json:"iterations"`
	Map         string              `json:"map"`
	Report      string              `json:"report"`
}

type explorerState = runs.State[worksScratch, explorerOutput]

// pixel is a PNG of one pixel, drawn a drawing with a script that must not run.
var (
	pixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82")
	drawn = []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="300" height="200" viewBox="0 0 300 200"><style>rect{fill:#a5461f}</style><rect x="20" y="20" width="120" height="40"/><script>parent.hacked=1;window.hacked=1</script></svg>`)
)

func explore(ctx context.Context, s *explorerState) (string, error) {
	if s.Iteration < 3 {
		return "Perceive", nil
	}
	home, err := s.Turn.Files.SaveFile(ctx, "home.png", "image/png", pixel)
	if err != nil {
		return "", err
	}
	s.Output.URL, s.Output.Iterations = "http://127.0.0.1:1/", s.Iteration
	s.Output.Screens = []map[string]any{
		{"id": "s1", "title": "Home " + hostile[1], "url": "http://127.0.0.1:1/", "depth": 0, "file": home.ID, "actions": 3},
		{"id": "s2", "title": "The end", "url": "http://127.0.0.1:1/end", "depth": 1, "dead": true},
	}
	s.Output.Transitions = []map[string]string{{"from": "s1", "action": "click " + hostile[0], "to": "s2"}}
	s.Output.DeadEnds, s.Output.Errors = []string{"s2"}, []string{"500 at /broken"}
	return "Stop", nil
}

func stopExploring(ctx context.Context, s *explorerState) (string, error) {
	picture, err := s.Turn.Files.SaveFile(ctx, "map.svg", "image/svg+xml", drawn)
	if err != nil {
		return "", err
	}
	s.Output.Map, s.Output.Reason, s.Output.Report = picture.ID, "no progress for 5 turns", "Found **2** screens."
	return runs.End, s.Record(claybot.Record{Type: claybot.RecordAssistant, Text: s.Output.Report, Step: 1, Model: "script"})
}
