package explore_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/scripted"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/explore"
	"github.com/claybot/claybot/runs/runstest"
)

const runID = claybot.RunID("run1")

// A journal is what outlives the passes of a run. It plays the worker.
type journal struct {
	text    string
	records []claybot.Record
	events  []claybot.Event
	started map[string]bool
	files   map[string][]byte // by id, which is of name and content
	names   map[string]string
}

func newJournal(text string) *journal {
	return &journal{text: text, started: map[string]bool{}, files: map[string][]byte{}, names: map[string]string{}}
}

func (j *journal) turn() *runs.Turn {
	before := make(map[string]bool)
	for id := range j.started {
		before[id] = true
	}
	fake := &runstest.Fake{
		StartedFunc: func(_ context.Context, call claybot.ToolCall, effect string) error {
			if j.started[call.ID] || effect != "once" {
				return fmt.Errorf("call %s is started twice, or as %q", call.ID, effect)
			}
			j.started[call.ID] = true
			return nil
		},
		InDoubt: func(id string) bool { return before[id] },
		EmitFunc: func(_ context.Context, _ bool, ev ...claybot.Event) error {
			j.events = append(j.events, ev...)
			return nil
		},
		SaveFileFunc: func(_ context.Context, name, mimeType string, content []byte) (claybot.FileReference, error) {
			sum := sha256.Sum256(append([]byte(name+"\x00"), content...))
			id := hex.EncodeToString(sum[:6])
			j.files[id], j.names[id] = slices.Clone(content), name
			return claybot.FileReference{ID: id, Name: name, MIMEType: mimeType, Size: int64(len(content))}, nil
		},
	}
	return fake.Turn(runs.Turn{
		Run: claybot.Run{ID: runID, Agent: "agent1"}, Agent: claybot.Agent{ID: "agent1"},
		History:  slices.Clone(j.records),
		Messages: []claybot.AgentMessage{{ID: "m1", Type: claybot.MessageUser, Text: j.text}},
	})
}

var errCrash = errors.New("crash")

// pass runs the engine until it ends. The consumer stops at the n-th record,
// having kept it or not; n 0 means never.
func (j *journal) pass(ctx context.Context, e runs.Engine, t *runs.Turn, n int, keep bool) error {
	count := 0
	for r, err := range e.Run(ctx, t) {
		if err != nil {
			return err
		}
		count++
		if count != n || keep {
			raw, err := json.Marshal(r) // as a store has it
			if err != nil {
				return err
			}
			var stored claybot.Record
			if err := json.Unmarshal(raw, &stored); err != nil {
				return err
			}
			j.records = append(j.records, stored)
		}
		if count == n {
			return errCrash
		}
	}
	return nil
}

func (j *journal) run(t *testing.T, e runs.Engine) {
	t.Helper()
	if err := j.pass(t.Context(), e, j.turn(), 0, true); err != nil {
		t.Fatal(err)
	}
}

func (j *journal) output(t *testing.T) explore.Output {
	t.Helper()
	raw, err := json.Marshal(runs.OutputOf(j.records, runID))
	if err != nil {
		t.Fatal(err)
	}
	var out explore.Output
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// path are the nodes in their order.
func (j *journal) path() []string {
	var path []string
	for _, r := range j.records {
		if r.Type == claybot.RecordNode {
			path = append(path, r.Name)
		}
	}
	return path
}

func (j *journal) answer() string {
	for _, r := range slices.Backward(j.records) {
		if r.Type == claybot.RecordAssistant {
			return r.Text
		}
	}
	return ""
}

// edges are how often each edge was taken.
func (j *journal) edges() map[string]int {
	all := make(map[string]int)
	for _, r := range j.records {
		if r.Type == claybot.RecordNode {
			all[r.Name+" → "+r.Next]++
		}
	}
	return all
}

func engine(app *scripted.App, set explore.Settings, model llm.Model) *explore.Engine {
	return explore.New(explore.Config{
		Open:     app.Open,
		Model:    func(claybot.Agent) llm.Model { return model },
		Settings: func(*runs.Turn) explore.Settings { return set },
	})
}

// shop are the settings for the demo.
func shop() explore.Settings {
	return explore.Settings{URL: scripted.DemoURL, Screens: true, NoProgress: 30}
}

func click(label, to string) scripted.Step {
	return scripted.Step{Action: devices.Action{Kind: devices.Click, Label: label}, To: to}
}

func titles(o explore.Output) []string {
	var all []string
	for _, s := range o.Screens {
		all = append(all, s.Title)
	}
	slices.Sort(all)
	return all
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q lacks %q", text, p)
		}
	}
}

func size(t *testing.T, v any) int {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return len(raw)
}
