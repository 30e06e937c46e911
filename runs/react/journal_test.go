package react_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/runs/runstest"
	"github.com/claybot/claybot/tools"
)

const runID = claybot.RunID("run1")

// A journal is what outlives the passes of a run: its records and the starts of
// its tools. It plays the worker.
type journal struct {
	of claybot.Descriptor
	// messages are those of the run, for what is not in their records.
	messages []claybot.AgentMessage
	records  []claybot.Record
	started  map[string]string // effects by call id
	inject   [][]claybot.Record
	usage    claybot.Usage
	lost     claybot.Usage // of calls that have no record
	deltas   []string
	told     []string          // keys, each once
	saved    map[string]string // long results by call id
	answers  map[claybot.MessageID]string
	events   []claybot.Event
	// nobody: no person reads along; approvals are what was said, by the round of the
	// question.
	nobody    bool
	approvals map[string]claybot.Answer
}

func newJournal(texts ...string) *journal {
	j := &journal{started: map[string]string{}, saved: map[string]string{}, answers: map[claybot.MessageID]string{}, approvals: map[string]claybot.Answer{}}
	for i, text := range texts {
		j.records = append(j.records, user(fmt.Sprintf("m%d", i+1), text))
	}
	return j
}

func user(id, text string) claybot.Record {
	return claybot.Record{
		Type: claybot.RecordUser, At: 1, Run: runID, MessageID: claybot.MessageID(id), Text: text,
		From: &claybot.Sender{UserID: "u1", Name: "Ann"},
	}
}

func (j *journal) turn() *runs.Turn {
	before := map[string]bool{}
	for id := range j.started {
		before[id] = true
	}
	fake := &runstest.Fake{
		InjectFunc: func(context.Context) ([]claybot.Record, error) {
			if len(j.inject) == 0 {
				return nil, nil
			}
			more := j.inject[0]
			j.inject = j.inject[1:]
			j.records = append(j.records, more...)
			return more, nil
		},
		StartedFunc: func(_ context.Context, call claybot.ToolCall, effect string) error {
			if _, twice := j.started[call.ID]; twice {
				return fmt.Errorf("call %s is started twice", call.ID)
			}
			j.started[call.ID] = effect
			return nil
		},
		InDoubt:  func(id string) bool { return before[id] },
		GrowFunc: func(step int, text string) { j.deltas = append(j.deltas, fmt.Sprintf("%d:%s", step, text)) },
		UsedFunc: func(u claybot.Usage) { j.usage = j.usage.Add(u) },
		LostFunc: func(_ string, u claybot.Usage) { j.lost = j.lost.Add(u) },
		SaveResultFunc: func(_ context.Context, call, text string) (string, error) {
			j.saved[call] = text
			return "results/" + call + ".txt", nil
		},
		TellFunc: func(_ context.Context, key, _ string) error {
			if !slices.Contains(j.told, key) {
				j.told = append(j.told, key)
			}
			return nil
		},
		EmitFunc: func(_ context.Context, _ bool, ev ...claybot.Event) error {
			j.events = append(j.events, ev...)
			return nil
		},
		AskFunc: j.ask,
	}
	return fake.Turn(runs.Turn{
		Run:     claybot.Run{ID: runID, Agent: "agent1"},
		Agent:   claybot.Agent{ID: "agent1", Descriptor: j.of},
		History: slices.Clone(remembered(j.records)), Messages: j.messages,
	})
}

// ask plays what asks a person: a question is known by its round.
func (j *journal) ask(_ context.Context, round string, qs []claybot.Question) ([]claybot.Answer, *claybot.Awaiting, error) {
	if j.nobody {
		return nil, nil, runs.ErrNobody
	}
	q := qs[0]
	q.ID = round
	if a, ok := j.approvals[round]; ok {
		a.Question = q.ID
		return []claybot.Answer{a}, nil, nil
	}
	return nil, &claybot.Awaiting{Reason: claybot.AwaitApproval, Answers: []claybot.MessageID{q.AnswerID()}, Until: 9, Questions: []claybot.Question{q}}, nil
}

// asked are the rounds of the questions that were put.
func (j *journal) asked() (all []string) {
	for _, r := range j.records {
		if r.Type == claybot.RecordQuestion {
			all = append(all, r.Question.ID)
		}
	}
	return all
}

// say answers a question.
func (j *journal) say(round string, a claybot.Answer) {
	a.Question = round
	j.approvals[round] = a
	j.records = append(j.records, claybot.Record{Type: claybot.RecordAnswer, Run: runID, Answer: &a})
}

// remembered is what a store gives: nothing from before the newest summary but
// what it keeps.
func remembered(records []claybot.Record) []claybot.Record {
	for i, r := range slices.Backward(records) {
		if r.Type == claybot.RecordSummary {
			return records[max(i-max(r.Keep, 0), 0):]
		}
	}
	return records
}

// pass runs the loop until it ends. The consumer stops at the n-th record,
// having kept it or not; n 0 means never.
func (j *journal) pass(ctx context.Context, l *react.Loop, t *runs.Turn, n int, keep bool) error {
	count := 0
	for r, err := range l.Run(ctx, t) {
		if err != nil {
			return j.paused(err)
		}
		count++
		if count != n || keep {
			j.records = append(j.records, r)
		}
		if count == n {
			return errCrash
		}
	}
	return nil
}

// paused records what a pass asks, once.
func (j *journal) paused(err error) error {
	var w *runs.WaitError
	if !errors.As(err, &w) {
		return err
	}
	for _, q := range w.Questions {
		if !slices.Contains(j.asked(), q.ID) {
			j.records = append(j.records, claybot.Record{Type: claybot.RecordQuestion, Run: runID, Question: &q})
		}
	}
	return err
}

var errCrash = errors.New("crash")

func (j *journal) run(t *testing.T, l *react.Loop) error {
	t.Helper()
	return j.pass(t.Context(), l, j.turn(), 0, true)
}

// lines are the records as text, without times.
func (j *journal) lines() []string {
	var lines []string
	for _, r := range j.records {
		switch r.Type {
		case claybot.RecordAssistant:
			line := fmt.Sprintf("%d assistant %s", r.Step, r.Text)
			for _, c := range r.ToolCalls {
				line += fmt.Sprintf(" [%s %s %s]", c.ID, c.Name, c.Args)
			}
			lines = append(lines, line)
		case claybot.RecordTool:
			lines = append(lines, fmt.Sprintf("%d %s %v %s", r.Step, r.ToolCallID, r.OK, r.Text))
		default:
			lines = append(lines, fmt.Sprintf("%s %s", r.Type, r.Text))
		}
	}
	return lines
}

func (j *journal) last() claybot.Record { return j.records[len(j.records)-1] }

func wantLines(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// A counter counts what its tools did.
type counter struct {
	mu   sync.Mutex
	runs map[string]int
}

type word struct {
	Word string `json:"word,omitempty"`
}

// set has a tool of each effect: pay once, put idempotent, look read-only; and
// broken, which always fails.
func (c *counter) set(t testing.TB) *tools.Set {
	t.Helper()
	c.runs = map[string]int{}
	tool := func(name string, e tools.Effect, err error) tools.Tool {
		spec := tools.Spec{Tool: llm.Tool{Name: name, Description: name}, Effect: e}
		return tools.New(spec, func(_ context.Context, env tools.Env, in word) (tools.Result, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.runs[env.CallID]++
			return tools.Result{Text: name + " " + in.Word}, err
		})
	}
	s, err := tools.NewSet(tool("pay", tools.Once, nil), tool("put", tools.Idempotent, nil),
		tool("look", tools.ReadOnly, nil), tool("broken", tools.Once, errors.New("broken")))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func loop(m llm.Model, s *tools.Set) *react.Loop {
	return &react.Loop{
		Model: func(claybot.Agent) llm.Model { return m },
		Tools: func(claybot.Agent) *tools.Set { return s },
	}
}

func call(id, name, word string) claybot.ToolCall {
	return claybot.ToolCall{ID: id, Name: name, Args: `{"word":"` + word + `"}`}
}
