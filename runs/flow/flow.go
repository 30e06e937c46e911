// Package flow is the engine of workflows: it walks the graph of a flow that an operator wrote.
//
// What a node has done is in the records of the run: the calls of tools, questions with their
// answers, and a record for each node that ended, with what it put out. So a run that was cut off
// goes on in the node where it was, repeats no call that may act only once, and starts no agent a
// second time. A run keeps the version of the flow with which it began, see NameOf.
//
// Texts of strangers are followed by value: what a template makes of them, and what an agent says
// that has read them, is tainted; a number, a date or a word of a list is not. A call is judged by
// the taint of its own arguments.
//
// Only cmd imports it.
package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// Name is the name of the engine, which names the flow and its version behind it.
const Name = "flow"

// NameOf returns the engine of the runs of one version of a flow.
func NameOf(flow, hash string) string { return Name + ":" + flow + "@" + hash }

// SplitName returns the flow and the version that an engine is of; ok is false for other engines.
func SplitName(engine string) (flow, hash string, ok bool) {
	rest, ok := strings.CutPrefix(engine, Name+":")
	flow, hash, at := strings.Cut(rest, "@")
	return flow, hash, ok && at
}

// Codes of the errors of nodes.
const (
	CodeFlow     = "flow"            // the definition or a value of it cannot be used
	CodeTool     = "tool_failed"     //
	CodeDenied   = "not_approved"    // a person or a rule did not let a call through
	CodeUnknown  = "unknown_outcome" // what may act only once was cut off
	CodeAgent    = "agent_failed"    //
	CodeChild    = "flow_failed"     // a flow that the node started
	CodeOutput   = "bad_output"      // an agent did not put out what was asked for
	CodeExpired  = "expired"         // no answer in time
	CodeTooLarge = "too_large"       //
	CodeChanged  = "tool_changed"    // the arguments of a tool are others than when the run began to wait
	CodeVisits   = "too_many_visits" //
)

// Config is what the engine works with. All functions are required and safe for concurrent use.
type Config struct {
	// Flow returns a version of a flow that was accepted once.
	Flow func(ctx context.Context, name, hash string) (*flows.Flow, error)
	// Fill fills a template. Of a text that is one expression, the result is its value.
	Fill func(t *runs.Turn, text string, names Names) (any, error)
	// Uses returns the names that a template reads.
	Uses func(text string) ([]flows.Use, error)
	// Settle makes calls, see react.Loop.
	Settle Settle
	// Rules are those of the agent.
	Rules func(claybot.Agent) tools.Rules
	// Effect is that of a tool of the agent.
	Effect func(a claybot.Agent, tool string) tools.Effect
	// Schema names what the arguments of a tool of the agent are; empty: it has no such tool now. nil: no
	// tool changes.
	Schema func(a claybot.Agent, tool string) string
	// Outside reports whether a tool is a program outside, such as one of an MCP server: what it returns to
	// a call that the file makes is kept from no chat that the file names. nil: none is.
	Outside func(a claybot.Agent, tool string) bool
	// Spawn starts agents and flows and waits for them, see tools.Agents and tools.Spawning. The JSON of its
	// result has null for each task that has not ended.
	Spawn func(ctx context.Context, env tools.Env, tasks []tools.Subagent, how tools.Spawning) (tools.Result, error)
	// Start starts an agent and does not wait, see tools.Agents.
	Start func(ctx context.Context, env tools.Env, task tools.Subagent) (claybot.AgentID, error)
	// Send sends a text to a chat, once for each key in a run.
	Send func(ctx context.Context, t *runs.Turn, to claybot.Route, key, text string) error
	// Sent returns where an earlier run sent a text, by the key; nil if it did not, if that could not be
	// delivered, or if it is not kept any more. nil: none was sent.
	Sent func(ctx context.Context, run claybot.RunID, key string) (*claybot.Route, error)
	// Kept is for how long Sent knows what was sent; nil, and 0: for ever.
	Kept func() time.Duration
	// Discloses says what a text which the run keeps from others makes readable in a chat, by more people;
	// nil, and a nil result: nothing.
	Discloses func(ctx context.Context, t *runs.Turn, to claybot.Route) *tools.Disclosure
	// Route reads a chat as connector/channel.
	Route func(v string) (claybot.Route, error)
	// Recorded returns the records of an earlier run; none where they are not kept any more.
	Recorded func(ctx context.Context, run claybot.RunID) ([]claybot.Record, error)
	// Callback returns what a program sent to the address of a wait; nil while it has sent nothing. With
	// closed, nothing that comes later counts, and a result without OK says that nothing had come.
	Callback func(ctx context.Context, t *runs.Turn, wait string, closed bool) (*claybot.Result, error)
	// Address is where a program sends what a wait of a run is for.
	Address func(ctx context.Context, run claybot.RunID, wait string) (string, error)
	// Notify tells the owner of an agent something, once for each key.
	Notify func(ctx context.Context, a claybot.Agent, key string, say func(texts.Voice) string)
	// People are the ids of the person who has one; nil: each has only one.
	People func(id string) []string
	// Now is the clock, and Sleep waits; nil: those of the machine.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)
}

// Settle makes the calls of the last record of a turn, see react.Loop.
type Settle = func(ctx context.Context, t *runs.Turn, rules *tools.Rules, yield func(claybot.Record) error) error

// Names are what templates see besides the trigger.
type Names struct {
	Nodes map[string]any // what the nodes put out that have ended
	More  map[string]any // error, item, index
}

// An Engine runs flows. It is safe for concurrent use.
type Engine struct{ cfg *Config }

var (
	_ runs.Engine    = (*Engine)(nil)
	_ runs.Failer    = (*Engine)(nil)
	_ runs.Outputter = (*Engine)(nil)
	_ runs.Speaker   = (*Engine)(nil)
)

// New returns the engine.
func New(cfg Config) *Engine {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Schema == nil {
		cfg.Schema = func(claybot.Agent, string) string { return "" }
	}
	if cfg.Sleep == nil {
		cfg.Sleep = func(ctx context.Context, d time.Duration) { claybot.Sleep(ctx, d) }
	}
	return &Engine{&cfg}
}

// The state of a run: Output has what the nodes put out, by their names, and Scratch what only the
// walk knows.
type (
	state = runs.State[Scratch, map[string]Result]
	// Scratch is the working memory of a run.
	Scratch struct {
		// Visits counts how often each node has ended, and Waits is until when one waits.
		Visits map[string]int          `json:"visits,omitempty"`
		Waits  map[string]claybot.Time `json:"waits,omitempty"`
		Error  *Failure                `json:"error,omitempty"` // of the last node that failed
		// Schemas are those of the tools that the flow calls, when the run first waited with its version.
		Schemas *Schemas `json:"schemas,omitempty"`
	}
	// Schemas name what the arguments of tools are, for one version of a flow.
	Schemas struct {
		Version string            `json:"version"`
		Tools   map[string]string `json:"tools"`
	}
	// A Failure is why a node failed, as templates see it.
	Failure struct {
		Node  string `json:"node"`
		Code  string `json:"code"`
		Text  string `json:"text"`
		Visit int    `json:"visit,omitempty"` // of the node, from 1
		// Tainted: the text holds words of strangers.
		Tainted bool `json:"tainted,omitempty"`
	}
	// A Result is what a node put out.
	Result struct {
		Output json.RawMessage `json:"output"`
		Usage  *claybot.Usage  `json:"token_usage,omitempty"`
		// Messages are those of the run of an agent, if the flow reads them: a list of Message.
		Messages []Message `json:"messages,omitempty"`
		// More are further fields, such as by of a question.
		More map[string]any `json:"more,omitempty"`
		// Tainted: it holds words of strangers, other than in the fields Clean.
		Tainted bool     `json:"tainted,omitempty"`
		Clean   []string `json:"clean,omitempty"`
		// Private: it holds what not everybody may read.
		Private bool `json:"private,omitempty"`
	}
)

// Run implements runs.Engine.
func (e *Engine) Run(ctx context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	f, err := e.flow(ctx, t)
	if err != nil {
		return func(yield func(claybot.Record, error) bool) { yield(claybot.Record{}, err) }
	}
	past, err := e.past(ctx, t)
	if err != nil {
		return func(yield func(claybot.Record, error) bool) { yield(claybot.Record{}, err) }
	}
	if past != nil {
		return e.replayed(ctx, t, f, past)
	}
	return e.graph(f, nil).Run(ctx, t)
}

// Failed implements runs.Failer: it tells those who are to hear of it, and gives the error the words
// for the place of the trigger.
func (e *Engine) Failed(ctx context.Context, t *runs.Turn, why runs.Error) *runs.Error {
	name, _, _ := SplitName(t.Run.Engine)
	at, to := "", []string(nil)
	if f, err := e.flow(ctx, t); err == nil {
		at, to = f.Start, f.Failed
	}
	for _, r := range t.History {
		if r.Run == t.Run.ID && r.Type == claybot.RecordNode {
			at = r.Next
		}
	}
	text := func(v texts.Voice) string {
		if at == "" {
			return v.Say(texts.FlowGone, name)
		}
		return v.Say(texts.FlowFailed, name, at)
	}
	if why.Say == "" {
		why.Say = text(texts.Of(ctx))
	}
	switch {
	case start(t).Dry:
		return &why
	case awaited(t):
		return &why // the run that waits for this one tells it
	}
	if len(to) == 0 && t.Route().Connector == "" {
		to = []string{"owner"} // no other person would hear of it
	}
	for i, place := range to {
		if place == "owner" {
			e.cfg.Notify(ctx, t.Agent, fmt.Sprintf("flow/%s/failed", t.Run.ID), text)
			continue
		}
		route, err := e.cfg.Route(place)
		if err == nil {
			err = e.cfg.Send(ctx, t, route, fmt.Sprintf("failed/%d", i), text(texts.Of(ctx)))
		}
		if err != nil {
			why.Text += fmt.Sprintf("; %s was not told: %v", place, err)
		}
	}
	return &why
}

// flow returns the version of the flow that the run of a turn is of.
func (e *Engine) flow(ctx context.Context, t *runs.Turn) (*flows.Flow, error) {
	name, hash, ok := SplitName(t.Run.Engine)
	if !ok {
		return nil, &runs.Error{Code: CodeFlow, Text: "the message names no flow that is there"}
	}
	f, err := e.cfg.Flow(ctx, name, hash)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, runs.Ended(ctx)
	case err != nil:
		return nil, &runs.Error{Code: CodeFlow, Text: fmt.Sprintf("the flow %s, version %s: %v", name, hash, err), Err: err}
	}
	return f, nil
}

// graph builds the graph of the runs of a flow. past is the run that is replayed, nil for none.
func (e *Engine) graph(f *flows.Flow, past *Past) *runs.Graph[Scratch, map[string]Result] {
	g := &runs.Graph[Scratch, map[string]Result]{
		Name: "flow " + f.Name, Start: f.Start, Nodes: make(map[string]runs.Node[Scratch, map[string]Result]),
		Edges: f.Names(), Steps: func(*runs.Turn) int { return flows.MaxVisits }, NodeTime: flows.MaxWait,
	}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		g.Nodes[n.Name] = func(ctx context.Context, s *state) (string, error) {
			return (&visit{cfg: e.cfg, flow: f, node: n, state: s, past: past, number: s.Scratch.Visits[n.Name] + 1}).work(ctx)
		}
	}
	return g
}

// A visit is a node at work.
type visit struct {
	cfg    *Config
	flow   *flows.Flow
	node   *flows.Node
	state  *state
	past   *Past // of the run that is replayed; nil for none
	number int   // from 1; it stays the same when the node waits
}

// id names a part of the visit within the run.
func (v *visit) id(part string) string {
	id := fmt.Sprintf("%s.%d", v.node.Name, v.number)
	if part != "" {
		id += "." + part
	}
	return id
}

// work takes the visit to its end, or as far as it comes.
func (v *visit) work(ctx context.Context) (next string, err error) {
	all := 0
	for _, n := range v.state.Scratch.Visits {
		all += n
	}
	if all >= flows.MaxVisits {
		return "", &runs.Error{Code: CodeVisits, Text: fmt.Sprintf("the run came to more than %d nodes", flows.MaxVisits)}
	}
	out, next, err := v.tries(ctx)
	err = v.explained(err)
	if _, waits := errors.AsType[*runs.WaitError](err); waits || ctx.Err() != nil {
		v.noteSchemas()
		return "", err
	}
	if most := v.most(next); err == nil && len(out.Output) > most {
		err = &runs.Error{Code: CodeTooLarge, Text: fmt.Sprintf("%s put out %d bytes; the limit is %d", v.node.Name, len(out.Output), most)}
	}
	if err == nil {
		err = v.room(out)
	}
	var failed *runs.Error
	switch {
	case errors.As(err, &failed) && v.node.Error != "":
		v.state.Scratch.Error = &Failure{Node: v.node.Name, Code: failed.Code, Text: failed.Text, Visit: v.number, Tainted: slices.Contains([]string{CodeTool, CodeAgent, CodeFlow, CodeChild, CodeOutput}, failed.Code)}
		v.state.Because(failed.Code)
		v.state.Failed()
		v.end()
		return v.node.Error, nil
	case err != nil:
		return "", err
	}
	if v.state.Output == nil {
		v.state.Output = make(map[string]Result)
	}
	v.state.Output[v.node.Name] = out
	v.end()
	return next, nil
}

// end counts the visit.
func (v *visit) end() {
	s := &v.state.Scratch
	if s.Visits == nil {
		s.Visits = make(map[string]int)
	}
	s.Visits[v.node.Name] = v.number
	delete(s.Waits, v.node.Name)
}

// tries lets the node work, again where what stopped it may be gone. What an earlier pass has
// tried is in the records, so it is not tried again.
func (v *visit) tries(ctx context.Context) (out Result, next string, err error) {
	if v.number > max(v.node.Visits, 1) {
		return out, "", &runs.Error{Code: CodeVisits, Text: fmt.Sprintf("the run came to %s more than %d times", v.node.Name, max(v.node.Visits, 1))}
	}
	tries := v.node.Tries
	if tries == 0 {
		tries = v.usualTries()
	}
	for try := 1; ; try++ {
		out, next, err = v.try(ctx, try)
		var again *runs.TransientError
		if !errors.As(err, &again) || ctx.Err() != nil {
			return out, next, err
		}
		if try >= tries {
			return out, next, again.Err
		}
		if err := v.state.Pause(ctx, func() { v.cfg.Sleep(ctx, flows.DefaultFirst<<(try-1)) }); err != nil {
			return out, "", err
		}
	}
}

// usualTries is how often a node works that does not say it: an agent whose tools may have acted, and a
// flow, is not started once more.
func (v *visit) usualTries() int {
	if _, ok := v.node.Spec.(*flows.Child); ok {
		return 1
	}
	if a := v.node.Agent(); a != nil && slices.ContainsFunc(a.Tools, func(tool string) bool {
		return v.cfg.Effect(v.state.Turn.Agent, tool) != tools.ReadOnly
	}) {
		return 1
	}
	return flows.DefaultTries
}

// try works once.
func (v *visit) try(ctx context.Context, try int) (out Result, next string, err error) {
	if out, next, done, err := v.rehearse(ctx, try); done {
		return out, next, err
	}
	switch spec := v.node.Spec.(type) {
	case *flows.Template:
		return v.template(spec)
	case *flows.Switch:
		return v.choose(spec)
	case *flows.Tool:
		return v.call(ctx, spec, try)
	case *flows.HTTP:
		return v.request(ctx, spec, try)
	case *flows.Agent:
		return v.agent(ctx, spec, try)
	case *flows.Deep:
		return v.agent(ctx, &spec.Agent, try)
	case *flows.Each:
		return v.each(ctx, spec)
	case *flows.Parallel:
		return v.parallel(ctx, spec)
	case *flows.Child:
		return v.child(ctx, spec, try)
	case *flows.Reply:
		return v.reply(ctx, spec)
	case *flows.Ask:
		return v.ask(ctx, spec)
	case *flows.Wait:
		if spec.Event != "" {
			return v.callback(ctx, spec)
		}
		return v.wait(spec)
	}
	return out, "", &runs.Error{Code: CodeFlow, Text: fmt.Sprintf("the node %s has no kind", v.node.Name)}
}

// template makes a value.
func (v *visit) template(spec *flows.Template) (out Result, next string, err error) {
	value, taint, err := v.fill(spec.Value, nil)
	if err != nil {
		return out, "", err
	}
	return v.put(value, taint), v.node.Next, nil
}

// choose goes where the value leads.
func (v *visit) choose(spec *flows.Switch) (out Result, next string, err error) {
	value, taint, err := v.text(spec.Value, nil)
	if err != nil {
		return out, "", err
	}
	value, next = strings.TrimSpace(value), spec.Else
	if i := slices.IndexFunc(spec.Cases, func(c flows.Case) bool { return c.Is == value }); i >= 0 {
		next = spec.Cases[i].Next
		v.state.Because(value)
		return v.put(value, mark{private: taint.private}), next, nil // one of the words of the operator
	}
	v.state.Because("else")
	return v.put(value, taint), next, nil
}

// wait goes on later.
func (v *visit) wait(spec *flows.Wait) (out Result, next string, err error) {
	until, known := v.state.Scratch.Waits[v.node.Name]
	if !known {
		at := v.cfg.Now().Add(spec.For)
		if spec.Until != "" {
			text, _, err := v.text(spec.Until, nil)
			if err != nil {
				return out, "", err
			}
			if at, err = time.Parse(time.RFC3339, strings.TrimSpace(text)); err != nil {
				return out, "", &runs.Error{Code: CodeFlow, Text: fmt.Sprintf("%s: until is %.80q, want a time such as 2026-01-31T09:00:00+01:00", v.node.Name, text)}
			}
		}
		if at.After(v.cfg.Now().Add(flows.MaxWait)) {
			return out, "", &runs.Error{Code: CodeFlow, Text: v.node.Name + ": waits for more than 30 days"}
		}
		until = claybot.At(at)
	}
	if claybot.At(v.cfg.Now()) < until {
		if v.state.Scratch.Waits == nil {
			v.state.Scratch.Waits = make(map[string]claybot.Time)
		}
		v.state.Scratch.Waits[v.node.Name] = until
		// Nothing has this id, so that the time alone ends the pause.
		never := claybot.MessageID(fmt.Sprintf("wait/%s/%s", v.state.Turn.Run.ID, v.id("")))
		return out, "", &runs.WaitError{Awaiting: claybot.Awaiting{Reason: claybot.AwaitTime, Answers: []claybot.MessageID{never}, Until: until}}
	}
	return v.put(until.Time().UTC().Format(time.RFC3339), mark{}), v.node.Next, nil
}
