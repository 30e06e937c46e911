package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// A Case is one test of a flow: what starts it, what its nodes come to, and what is to happen.
// Nothing acts: an agent or a tool without a value fails the case.
type Case struct {
	Name    string  `json:"name"`
	Trigger Started `json:"trigger"`
	// Nodes are what agents and tools put out, by node; of one that is visited several times, a list
	// under "visits". An object with the only member "fails" has the node fail with that text.
	Nodes map[string]any `json:"nodes"`
	// Answers are what people say to questions and approvals, by node: a value, or approve, deny,
	// expire; of a node that asks several times, a list under "visits".
	Answers map[string]any `json:"answers"`
	Expect  Expected       `json:"expect"`

	// Dry plays it as a dry run, and Replay as one that uses the results of a run again, whose records are
	// Past.
	Dry    bool                `json:"-"`
	Replay *claybot.FlowReplay `json:"-"`
	Past   []claybot.Record    `json:"-"`
}

// Started is what starts a Case.
type Started struct {
	Name    string `json:"name"`
	Text    string `json:"text"`
	User    string `json:"user"` // connector/user
	Payload any    `json:"payload"`
	// Tainted: a stranger wrote it.
	Tainted bool `json:"tainted"`
}

// Expected is what is to happen. What is not set is not checked.
type Expected struct {
	Path    []string          `json:"path"`    // the nodes that ended, in order
	Never   []string          `json:"never"`   // tools that are not called, and flows, as flow:name, that are not started
	Replies []string          `json:"replies"` // texts, in order
	Outputs map[string]any    `json:"outputs"` // of nodes
	Calls   map[string]any    `json:"calls"`   // the arguments of the last call of a node, or the flow, text and payload of one that starts a flow
	Fails   string            `json:"fails"`   // the code of the error with which the run fails
	Asks    map[string]string `json:"asks"`    // the questions of nodes
}

// A Player plays the cases of a flow.
type Player struct {
	Flow *flows.Flow
	Fill func(t *runs.Turn, text string, names Names) (any, error)
	Uses func(text string) ([]flows.Use, error)
	// Settle makes calls with the tools of a set, see Config.Settle.
	Settle func(set *tools.Set) Settle
	// Effect is that of a tool; nil: each may act only once.
	Effect func(tool string) tools.Effect
	// Schema is Config.Schema; nil: no tool changes.
	Schema func(tool string) string
}

// A Played is what came of a case.
type Played struct {
	Path    []string
	Replies []string
	Called  map[string]int // by tool: how often it acted
	Calls   map[string]any // by node: the last arguments
	Asks    map[string]string
	Outputs map[string]any
	Err     *runs.Error
	Records int
	// Log are the records of the run, which has the id "case".
	Log []claybot.Record
}

// maxPasses bounds how often a run of a case goes on.
const maxPasses = 10_000

// Play plays a case. cut is the record behind which the run is cut off, from 1, before it goes on; 0:
// it is not cut. lost: the record is lost, too.
func (p Player) Play(ctx context.Context, c Case, cut int, lost bool) (Played, error) {
	d := &desk{player: p, c: c, cut: cut, lost: lost, now: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC), started: make(map[string]bool), sent: make(map[string]string), visits: make(map[string]int), passes: make(map[string]int), said: make(map[string]int)}
	d.out = Played{Called: make(map[string]int), Calls: make(map[string]any), Asks: make(map[string]string), Outputs: make(map[string]any)}
	if err := p.Flow.Refuses(d.message().Payload); err != nil {
		return d.out, err
	}
	set, err := d.tools()
	if err != nil {
		return d.out, err
	}
	engine := New(Config{
		Flow: func(context.Context, string, string) (*flows.Flow, error) { return p.Flow, nil },
		Fill: p.Fill, Uses: p.Uses, Settle: p.Settle(set), Spawn: d.spawn, Send: d.send,
		Schema: func(_ claybot.Agent, tool string) string {
			if p.Schema == nil {
				return ""
			}
			return p.Schema(tool)
		},
		Recorded: d.recorded, Callback: d.callback,
		Address: func(_ context.Context, run claybot.RunID, wait string) (string, error) {
			return "https://claybot.example/callbacks/" + string(run) + "/" + wait, nil
		},
		Start:  d.start,
		Notify: func(context.Context, claybot.Agent, string, func(texts.Voice) string) {},
		Rules:  func(claybot.Agent) tools.Rules { return tools.Rules{} },
		Effect: func(_ claybot.Agent, tool string) tools.Effect { return set.Effect(tool) },
		Route: func(v string) (claybot.Route, error) {
			connector, channel, _ := strings.Cut(v, "/")
			return claybot.Route{Connector: connector, ChannelID: channel}, nil
		},
		Now: func() time.Time { return d.now }, Sleep: func(_ context.Context, t time.Duration) { d.now = d.now.Add(t) },
	})
	for range maxPasses {
		err := d.pass(ctx, engine)
		var wait *runs.WaitError
		switch {
		case errors.Is(err, errCut):
		case errors.As(err, &wait):
			if err := d.resume(*wait); err != nil {
				return d.out, err
			}
		case err == nil, errors.As(err, &d.out.Err):
			return d.ended(), d.fault
		default:
			return d.out, err
		}
	}
	return d.out, errors.New("the run does not end")
}

var errCut = errors.New("cut off")

// A desk is the world of a case: what is durable, and what others do.
type desk struct {
	player  Player
	c       Case
	cut     int
	lost    bool
	now     time.Time
	records []claybot.Record
	fault   error // of the case itself: something has no value
	written int

	started map[string]bool   // calls
	sent    map[string]string // texts by their keys
	keys    []string          // of sent, in order
	visits  map[string]int    // how often a node was given its value
	passes  map[string]int    // how often a node looked after its agents
	said    map[string]int    // how often a question of a node was answered
	given   map[string]any    // values by call
	tasks   map[claybot.RunID]string
	asked   map[string]claybot.Question
	answers map[string]claybot.Answer
	out     Played
}

// message is what starts the run.
func (d *desk) message() claybot.AgentMessage {
	payload, _ := json.Marshal(d.c.Trigger.Payload) // it came from a file
	_, user, _ := strings.Cut(d.c.Trigger.User, "/")
	return claybot.AgentMessage{
		ID: "case", Type: claybot.MessageSystem, Kind: claybot.KindTrigger, Text: d.c.Trigger.Text, Payload: payload, At: claybot.At(d.now),
		From: claybot.Sender{UserID: user, Name: user}, Tainted: d.c.Trigger.Tainted, Route: &claybot.Route{Connector: "trigger", ChannelID: "trigger"},
		Flow: &claybot.FlowStart{Name: d.player.Flow.Name, Trigger: d.c.Trigger.Name, Dry: d.c.Dry, Replay: d.c.Replay},
	}
}

// pass is one pass of the run.
func (d *desk) pass(ctx context.Context, e runs.Engine) error {
	const run = "case"
	turn := &runs.Turn{
		Run:     claybot.Run{ID: run, Engine: NameOf(d.player.Flow.Name, d.player.Flow.Hash), Started: claybot.At(d.now)},
		Agent:   claybot.Agent{ID: "flow", Descriptor: claybot.Descriptor{Type: claybot.AgentFlow, UID: run, Owner: d.c.Trigger.User}},
		History: slices.Clone(d.records), Messages: []claybot.AgentMessage{d.message()}, Journal: d, Reader: d,
	}
	if d.c.Dry {
		turn.Reader = nil
	}
	for r, err := range e.Run(ctx, turn) {
		if err != nil {
			return err
		}
		d.written++
		cut := d.written == d.cut
		if !cut || !d.lost {
			r.Run = run
			d.records = append(d.records, r)
		}
		if cut {
			return errCut
		}
	}
	return nil
}

// resume has happen what a run waits for.
func (d *desk) resume(w runs.WaitError) error {
	if w.Reason == claybot.AwaitTime {
		d.now = w.Until.Time()
		return nil
	}
	if w.Reason == claybot.AwaitCallback {
		if _, wait, _ := strings.Cut(string(w.Answers[0]), "/case/"); d.called(wait) == "expire" {
			d.now = w.Until.Time()
		}
		return d.fault
	}
	for _, q := range w.Questions {
		if err := d.say(q); err != nil {
			return err
		}
	}
	return d.fault
}

// nodeOf returns the node that made a call or a question with an id such as pay.1.2.
func nodeOf(id string) string { name, _, _ := strings.Cut(id, "."); return name }

// value returns what a node puts out at a call. The same call has the same value.
func (d *desk) value(id string) (v any, fails string, err error) {
	if d.given == nil {
		d.given = make(map[string]any)
	}
	v, again := d.given[id]
	if !again {
		node := nodeOf(id)
		known := false
		if v, known = d.c.Nodes[node]; !known {
			d.fault = fmt.Errorf("%s: the case says nothing of what it puts out", node)
			return nil, "", d.fault
		}
		if m, ok := v.(map[string]any); ok {
			if list, ok := m["visits"].([]any); ok && len(m) == 1 && len(list) > 0 {
				v = list[min(d.visits[node], len(list)-1)]
			}
		}
		d.visits[node]++
		d.given[id] = v
	}
	if m, ok := v.(map[string]any); ok && len(m) == 1 {
		if text, ok := m["fails"].(string); ok {
			return nil, text, nil
		}
	}
	return v, "", nil
}

// textOf is a value as a tool or an agent says it.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v) // it came from a file
	return string(b)
}

// tools are those that the flow calls, without effects.
func (d *desk) tools() (*tools.Set, error) {
	var all []tools.Tool
	effects := map[string]tools.Effect{toolRead: tools.ReadOnly, toolKeyed: tools.Idempotent, toolOnce: tools.Once}
	for _, n := range d.player.Flow.Nodes {
		if spec, ok := n.Spec.(*flows.Tool); ok {
			effects[spec.Tool] = tools.Once
			if d.player.Effect != nil {
				effects[spec.Tool] = d.player.Effect(spec.Tool)
			}
		}
	}
	for name, effect := range effects {
		spec := tools.Spec{Tool: llm.Tool{Name: name, Description: name, Parameters: json.RawMessage(`{"type":"object"}`)}, Effect: effect, Class: tools.Inside}
		all = append(all, fakeTool{spec, d})
	}
	return tools.NewSet(all...)
}

// A fakeTool puts out what the case says.
type fakeTool struct {
	spec tools.Spec
	desk *desk
}

func (f fakeTool) Spec() tools.Spec { return f.spec }

func (f fakeTool) Call(_ context.Context, env tools.Env, args json.RawMessage) (tools.Result, error) {
	var given any
	if err := json.Unmarshal(args, &given); err != nil {
		return tools.Result{}, err
	}
	f.desk.out.Called[f.spec.Name]++
	f.desk.out.Calls[nodeOf(env.CallID)] = given
	v, fails, err := f.desk.value(env.CallID)
	if err == nil && fails != "" {
		err = errors.New(fails)
	}
	return tools.Result{Text: textOf(v)}, err
}

// recorded is Config.Recorded: of an agent, its task and what the case says that it puts out.
func (d *desk) recorded(_ context.Context, run claybot.RunID) ([]claybot.Record, error) {
	task, known := d.tasks[run]
	if !known {
		return d.c.Past, nil
	}
	return []claybot.Record{
		{Type: claybot.RecordSystem, Kind: claybot.KindTask, Run: run, Text: task},
		{Type: claybot.RecordAssistant, Run: run, Text: textOf(d.given[string(run)])},
	}, nil
}

// send is Config.Send.
func (d *desk) send(_ context.Context, _ *runs.Turn, _ claybot.Route, key, text string) error {
	if _, again := d.sent[key]; !again {
		d.sent[key] = text
		d.keys = append(d.keys, key)
	}
	return nil
}

// ended collects what happened.
func (d *desk) ended() Played {
	for _, r := range d.records {
		if r.Type == claybot.RecordNode && r.Next != r.Name {
			d.out.Path = append(d.out.Path, r.Name)
		}
	}
	for name, raw := range runs.OutputOf(d.records, "case") {
		var r Result
		if json.Unmarshal(raw, &r) == nil {
			var v any
			_ = json.Unmarshal(r.Output, &v) // it was encoded here
			d.out.Outputs[name] = v
		}
	}
	for _, key := range d.keys {
		d.out.Replies = append(d.out.Replies, d.sent[key])
	}
	d.out.Records, d.out.Log = d.written, d.records
	return d.out
}
