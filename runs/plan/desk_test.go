package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/runs/runstest"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

const runID = claybot.RunID("run1")

// A desk is what outlives the passes of a run: its records, its events, the
// starts of its tools, and what was asked and answered. It plays the system.
type desk struct {
	agent    claybot.Agent
	messages []claybot.AgentMessage
	records  []claybot.Record
	events   []claybot.Event
	pending  []claybot.Event
	started  map[string]string
	answers  map[string]claybot.Answer // by question
	asked    map[string]int            // how often a question was put, by id
	nobody   bool
	voice    texts.Voice
	usage    claybot.Usage

	mu    sync.Mutex
	ops   int // records, events and starts so far
	cut   int // the op at which the power goes; 0: never
	keep  bool
	dead  bool
	after func(op string) // is told of each op that lasts; under mu
}

var errCut = errors.New("the power is gone")

func newDesk(text string) *desk {
	d := &desk{
		agent:   claybot.Agent{ID: "agent1", Descriptor: claybot.User("web", "c1", "ann")},
		started: map[string]string{}, answers: map[string]claybot.Answer{}, asked: map[string]int{},
	}
	d.messages = []claybot.AgentMessage{{ID: "m1", Type: claybot.MessageUser, Text: text}}
	d.records = []claybot.Record{{
		Type: claybot.RecordUser, At: 1, Run: runID, MessageID: "m1", Text: text, From: &claybot.Sender{UserID: "ann"},
	}}
	return d
}

// op counts something durable, and reports whether it lasts; false: the power
// went just before it, or after it.
func (d *desk) op(what string, save func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return false
	}
	d.ops++
	if d.ops == d.cut {
		d.dead = true
	}
	if !d.dead || d.keep {
		save()
		if d.after != nil {
			d.after(what)
		}
	}
	return !d.dead
}

// commit stores the pending events. The caller holds the lock.
func (d *desk) commit() {
	d.events = append(d.events, d.pending...)
	d.pending = nil
}

func (d *desk) turn() *runs.Turn {
	before := map[string]bool{}
	for id := range d.started {
		before[id] = true
	}
	fake := &runstest.Fake{
		StartedFunc: func(_ context.Context, call claybot.ToolCall, effect string) error {
			if _, twice := d.started[call.ID]; twice {
				return fmt.Errorf("call %s is started twice", call.ID)
			}
			ok := d.op("start "+call.ID, func() {
				d.commit()
				d.started[call.ID] = effect
			})
			if !ok {
				return errCut
			}
			return nil
		},
		EmitFunc: func(_ context.Context, now bool, ev ...claybot.Event) error {
			for _, e := range ev {
				if err := runstest.CheckEvent(e); err != nil {
					return err
				}
			}
			if !now {
				d.mu.Lock()
				defer d.mu.Unlock()
				d.pending = append(d.pending, ev...)
				return nil
			}
			ok := d.op("events", func() {
				d.pending = append(d.pending, ev...)
				d.commit()
			})
			if !ok {
				return errCut
			}
			return nil
		},
		InDoubt: func(id string) bool { return before[id] },
		UsedFunc: func(u claybot.Usage) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.usage = d.usage.Add(u)
		},
		AskFunc: d.ask,
	}
	return fake.Turn(runs.Turn{
		Run: claybot.Run{ID: runID, Agent: d.agent.ID}, Agent: d.agent,
		History: slices.Clone(d.records), Messages: d.messages,
	})
}

// ask is Turn.Ask as the system does it: ids are made of the round, what was
// asked before stays as it was, and all answers come together.
func (d *desk) ask(_ context.Context, round string, qs []claybot.Question) ([]claybot.Answer, *claybot.Awaiting, error) {
	if d.nobody {
		return nil, nil, runs.ErrNobody
	}
	wait := claybot.Awaiting{Reason: claybot.AwaitApproval}
	var answers []claybot.Answer
	for i, q := range qs {
		q.ID = fmt.Sprintf("%s.%d", round, i)
		if known := d.question(q.ID); known != nil {
			q = *known
		}
		if q.Expires == 0 {
			q.Expires = claybot.At(time.Now().Add(24 * time.Hour))
		}
		if q.Type != claybot.QuestionConfirm {
			wait.Reason = claybot.AwaitInfo
		}
		wait.Answers = append(wait.Answers, q.AnswerID())
		if a, ok := d.answers[q.ID]; ok {
			answers = append(answers, a)
			continue
		}
		wait.Questions = append(wait.Questions, q)
		if wait.Until == 0 || q.Expires < wait.Until {
			wait.Until = q.Expires
		}
	}
	if len(wait.Questions) > 0 {
		return nil, &wait, nil
	}
	return answers, nil, nil
}

func (d *desk) question(id string) *claybot.Question {
	for _, r := range d.records {
		if r.Type == claybot.RecordQuestion && r.Question.ID == id {
			return r.Question
		}
	}
	return nil
}

// pass runs the engine until it ends, waits, or the power goes.
func (d *desk) pass(ctx context.Context, g runs.Engine) (*claybot.Awaiting, error) {
	ctx = texts.With(ctx, func() texts.Voice { return d.voice })
	d.dead = false
	d.pending = nil
	for r, err := range g.Run(ctx, d.turn()) {
		if wait, ok := errors.AsType[*runs.WaitError](err); ok {
			d.pause(wait.Awaiting)
			return &wait.Awaiting, nil
		}
		if err != nil {
			if !errors.Is(err, errCut) {
				d.commit()
			}
			return nil, err
		}
		what := "record"
		if r.Type == claybot.RecordNode && r.Next == r.Name {
			what = "record that it waits"
		}
		if !d.op(what, func() { d.records = append(d.records, r) }) {
			return nil, errCut
		}
	}
	if d.dead {
		return nil, errCut
	}
	d.commit()
	return nil, nil
}

// pause records what is asked, once.
func (d *desk) pause(a claybot.Awaiting) {
	d.commit()
	for _, q := range a.Questions {
		d.asked[q.ID]++
		if d.question(q.ID) == nil {
			d.records = append(d.records, claybot.Record{Type: claybot.RecordQuestion, Run: runID, Question: &q})
		}
	}
}

// answer says something to an open question, by its key.
func (d *desk) answer(t testing.TB, wait *claybot.Awaiting, key string, a claybot.Answer) {
	t.Helper()
	for _, q := range wait.Questions {
		if q.Key != key {
			continue
		}
		a.Question = q.ID
		if a.Via == "" {
			a.Via = claybot.ViaButton
		}
		d.answers[q.ID] = a
		d.records = append(d.records, claybot.Record{Type: claybot.RecordAnswer, Run: runID, Answer: &a})
		return
	}
	t.Fatalf("no question %q: %+v", key, wait.Questions)
}

func value(v string) claybot.Answer {
	return claybot.Answer{Value: json.RawMessage(v), By: "web/ann"}
}

// run takes the run to its end, with say answering what is asked.
func (d *desk) run(t testing.TB, g runs.Engine, say func(q claybot.Question) claybot.Answer) error {
	t.Helper()
	for range 100 {
		wait, err := d.pass(t.Context(), g)
		if err != nil || wait == nil {
			return err
		}
		if say == nil {
			t.Fatalf("a person is asked: %+v", wait.Questions)
		}
		for _, q := range wait.Questions {
			d.answer(t, wait, q.Key, say(q))
		}
	}
	t.Fatal("it does not end")
	return nil
}

func (d *desk) output(t testing.TB) (out plan.Output) {
	t.Helper()
	raw, err := json.Marshal(runs.OutputOf(d.records, runID))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// path is how the run went through the graph.
func (d *desk) path() string {
	var all []string
	for _, r := range d.records {
		if r.Type == claybot.RecordNode && r.Next != r.Name {
			all = append(all, r.Name)
		}
	}
	return strings.Join(all, " ")
}

// said is the final text.
func (d *desk) said() string {
	for _, r := range slices.Backward(d.records) {
		if r.Type == claybot.RecordAssistant && len(r.ToolCalls) == 0 {
			return r.Text
		}
	}
	return ""
}

// waves are the calls of each assistant record, by step.
func (d *desk) waves() string {
	var all []string
	for _, r := range d.records {
		if r.Type != claybot.RecordAssistant || len(r.ToolCalls) == 0 {
			continue
		}
		var ids []string
		for _, c := range r.ToolCalls {
			ids = append(ids, c.ID[:strings.LastIndex(c.ID, "-")])
		}
		all = append(all, strings.Join(ids, "+"))
	}
	return strings.Join(all, " ")
}

func (d *desk) count(t claybot.EventType) (n int) {
	for _, e := range d.events {
		if e.Type == t {
			n++
		}
	}
	return n
}

// valid checks that providers take the history, for either engine.
func (d *desk) valid(t testing.TB) {
	t.Helper()
	next := append(slices.Clone(d.records), claybot.Record{Type: claybot.RecordUser, MessageID: "m2", Text: "and now?"})
	if err := llm.Check(llm.Messages(next)); err != nil {
		t.Errorf("the history is not valid: %v", err)
	}
}

// A brain is a model that answers by what it is asked for: the name of the
// request, and how often it was asked within it. It refuses what providers do.
type brain struct {
	mu       sync.Mutex
	replies  map[string][]string
	requests []llm.Request
	fail     map[string]error
}

func (b *brain) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, r.Keep())
	id := r.Messages[0].ID
	if err := llm.Check(r.Messages); err != nil {
		return llm.Response{}, &llm.Error{Class: llm.Permanent, Status: 400, Text: err.Error()}
	}
	if err := b.fail[id]; err != nil {
		return llm.Response{}, err
	}
	if err := ctx.Err(); err != nil {
		return llm.Response{}, &llm.Error{Class: llm.Transient, Text: err.Error()}
	}
	all := b.replies[id]
	n := (len(r.Messages) - 1) / 2 // repairs so far
	if n >= len(all) {
		return llm.Response{}, &llm.Error{Class: llm.Permanent, Text: "no reply to " + id}
	}
	return llm.Response{Text: all[n], Stop: llm.StopEnd, Model: "m", Usage: claybot.Usage{Input: 10, Output: 5, CostMicroUSD: 3}}, nil
}

func (b *brain) asked(id string) (n int) {
	for _, r := range b.requests {
		if r.Messages[0].ID == id {
			n++
		}
	}
	return n
}

// thinks is a model that makes a plan and tells that all is done.
func thinks(planned string, more ...string) *brain {
	return &brain{replies: map[string][]string{
		llm.PlanRequest:        append([]string{planned}, more...),
		llm.PlanSummaryRequest: {"All is done."},
	}}
}

// steps is a plan of steps.
func steps(all ...string) string {
	return `{"steps": [` + strings.Join(all, ",") + `], "diff": "Things change."}`
}

// step is a step that calls a tool with a word.
func step(id, tool, word string, on ...string) string {
	deps, _ := json.Marshal(append([]string{}, on...))
	return fmt.Sprintf(`{"id": %q, "tool": %q, "args": {"word": %q}, "dependsOn": %s}`, id, tool, word, deps)
}

// A hand counts what its tools did.
type hand struct {
	mu     sync.Mutex
	ran    map[string]int // by call
	words  []string       // in order
	busy   int
	most   int                // side by side
	faults map[string][]error // by tool, one each time
	gate   chan struct{}      // look waits for it
}

type in struct {
	Word string `json:"word,omitempty"`
	N    int    `json:"n,omitempty"`
}

func newHand() *hand { return &hand{ran: map[string]int{}, faults: map[string][]error{}} }

func (h *hand) act(name string, effect tools.Effect, undo *claybot.ToolCall) func(context.Context, tools.Env, in) (tools.Result, error) {
	return func(_ context.Context, env tools.Env, x in) (tools.Result, error) {
		h.mu.Lock()
		h.busy++
		h.most = max(h.most, h.busy)
		gate := h.gate
		h.mu.Unlock()
		if gate != nil {
			<-gate
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.busy--
		if all := h.faults[name]; len(all) > 0 {
			h.faults[name] = all[1:]
			if all[0] != nil {
				return tools.Result{}, all[0]
			}
		}
		h.ran[env.CallID]++
		if effect == tools.Once || h.ran[env.CallID] == 1 { // the others know their key
			h.words = append(h.words, name+" "+x.Word)
		}
		r := tools.Result{Text: name + " did " + x.Word}
		if name != "look" {
			r.What = name + " " + x.Word
		}
		if undo != nil {
			back := *undo
			back.Args = fmt.Sprintf(`{"word":%q}`, x.Word)
			r.Undo = &back
		}
		return r, nil
	}
}

func spec(name string, e tools.Effect) tools.Spec {
	return tools.Spec{Tool: llm.Tool{Name: name, Description: "does " + name}, Effect: e}
}

// set has a tool of each effect: pay once, put idempotent, look read-only; mail,
// which asks always; unput and unpay, which take back and are hidden.
func (h *hand) set(t testing.TB, more ...tools.Tool) *tools.Set {
	t.Helper()
	mail := spec("mail", tools.Idempotent)
	mail.Confirm, mail.Scopes = true, []string{"people"}
	unput, unpay := spec("unput", tools.Idempotent), spec("unpay", tools.Once)
	unput.Hidden, unpay.Hidden = true, true
	all := []tools.Tool{
		tools.New(spec("pay", tools.Once), h.act("pay", tools.Once, &claybot.ToolCall{Name: "unpay"})),
		tools.New(spec("put", tools.Idempotent), h.act("put", tools.Idempotent, &claybot.ToolCall{Name: "unput"})),
		tools.New(spec("look", tools.ReadOnly), h.act("look", tools.ReadOnly, nil)),
		tools.New(mail, h.act("mail", tools.Idempotent, nil)),
		tools.New(unput, h.act("unput", tools.Idempotent, nil)), tools.New(unpay, h.act("unpay", tools.Once, nil)),
	}
	s, err := tools.NewSet(append(all, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func config(m llm.Model, s *tools.Set, p plan.Policy) plan.Config {
	return plan.Config{
		Model:  func(claybot.Agent) llm.Model { return m },
		Tools:  func(claybot.Agent) *tools.Set { return s },
		Policy: func(claybot.Agent) plan.Policy { return p },
	}
}

func yes(claybot.Question) claybot.Answer { return value("true") }

// failure is how a run failed.
func failure(t testing.TB, err error) *runs.Error {
	t.Helper()
	e, ok := errors.AsType[*runs.Error](err)
	if !ok {
		t.Fatalf("got %v, want an error with a code", err)
	}
	return e
}
