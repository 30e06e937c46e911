package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

// walkText starts the one run of the walk.
const walkText = "walk"

// walkNodes are the nodes of the walk in their order. Those with a gate make a call that waits until
// the rig lets it pass, so that the run is where the rig expects it however fast the machine is.
var walkNodes = []string{"make", "look", "pick", "act", "think", "both", "pay", "order", "rest", "items", "check", "last", "sum", "say"}

// walkGates are the nodes with a gate, and what their calls say.
var walkGates = []string{"look", "act", "think", "both", "pay", "order", "items", "last"}

// walkOnce are the nodes whose calls may act only once, and where a run goes that does not know whether they did.
var walkOnce = map[string]string{"act": "unsure", "order": "lost"}

// walkFiles are the workflow of the walk, with every kind of node that needs no person, and the one that it starts.
func walkFiles(sink string) map[string]string {
	return map[string]string{
		"side": `start: tell
nodes:
  tell: {kind: agent, prompt: "gate both flow", next: END}
`,
		"walk": strings.ReplaceAll(`triggers: {in: {on: events, match: "^walk$"}}
start: make
nodes:
  make: {kind: template, value: {name: "{{ trigger.text }}", list: ["1", "2"]}, next: look}
  look: {kind: http, url: SINK/gate/look, next: pick}
  pick: {kind: switch, value: "{{ make.name }}", cases: {walk: act}, else: wrong}
  act: {kind: tool, tool: rig_act, args: {gate: act}, next: think, error: unsure}
  unsure: {kind: template, value: "{{ error.code }}", next: think}
  think: {kind: agent, prompt: "gate think", next: both}
  both:
    kind: parallel
    branches:
      a: {kind: agent, prompt: "gate both a"}
      b: {kind: flow, flow: side}
    next: pay
  pay: {kind: http, method: POST, url: SINK/gate/pay, key_header: X-Key, body: "{{ make.name }}", next: order}
  order: {kind: http, method: POST, url: SINK/gate/order, body: "{{ make.name }}", next: rest, error: lost}
  lost: {kind: template, value: "{{ error.code }}", next: rest}
  rest: {kind: wait, for: 1s, next: items}
  items: {kind: each, over: "{{ make.list }}", prompt: "gate items {{ item }}", next: check}
  check: {kind: switch, value: "{{ both.b }}", cases: {went through both: last}, else: wrong}
  last: {kind: http, url: SINK/gate/last, next: sum}
  sum: {kind: template, value: "{{ make.name }}: {{ think.output }}, {{ both.a }}, {{ items.output | length }}", next: say}
  say: {kind: reply, text: "{{ sum.output }}", next: END}
  wrong: {kind: reply, text: wrong, next: END}
`, "SINK", sink),
	}
}

// walkReply is what the run says in the end.
const walkReply = "walk: went through think, went through both, 2"

// gates hold calls until they are opened, and count them.
type gates struct {
	mu      sync.Mutex
	open    map[string]chan struct{} // closed: calls pass
	arrived map[string]int
	keys    map[string]bool // of calls that may be made again
	wrong   []string
}

func newGates() *gates {
	g := &gates{open: make(map[string]chan struct{}), arrived: make(map[string]int), keys: make(map[string]bool)}
	for _, name := range walkGates {
		g.open[name] = make(chan struct{})
	}
	return g
}

// pass counts a call, and waits until its gate is open or the caller is gone.
func (g *gates) pass(ctx context.Context, name string) {
	g.mu.Lock()
	g.arrived[name]++
	open, ok := g.open[name]
	if !ok {
		g.wrong = append(g.wrong, fmt.Sprintf("a call names the gate %.40q", name))
	}
	g.mu.Unlock()
	if ok {
		select {
		case <-open:
		case <-ctx.Done():
		}
	}
}

// unlock opens gates.
func (g *gates) unlock(names ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range names {
		select {
		case <-g.open[name]:
		default:
			close(g.open[name])
		}
	}
}

func (g *gates) count(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.arrived[name]
}

// ServeHTTP answers http nodes below /gate/, and is an MCP server with the tool act elsewhere.
func (g *gates) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/gate/"); ok {
		if key := r.Header.Get("X-Key"); key != "" {
			g.mu.Lock()
			g.keys[key] = true
			g.mu.Unlock()
		}
		g.pass(r.Context(), name)
		return
	}
	var call struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Arguments struct {
				Gate string `json:"gate"`
			} `json:"arguments"`
		} `json:"params"`
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&call) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if call.ID == nil { // a notification
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{}`
	switch call.Method {
	case "initialize":
		result = `{"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "rig", "version": "1"}}`
	case "tools/list":
		result = `{"tools": [{"name": "act", "description": "Acts.", "inputSchema": {"type": "object", "properties": {"gate": {"type": "string"}}}}]}`
	case "tools/call":
		g.pass(r.Context(), call.Params.Arguments.Gate)
		result = `{"content": [{"type": "text", "text": "acted"}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc": "2.0", "id": %s, "result": %s}`, call.ID, result) // a client that is gone hears nothing
}

// reply answers as the model does: it says which gate the prompt went through.
func (g *gates) reply(r openaitest.Request) openaitest.Reply {
	for _, m := range slices.Backward(r.Messages) {
		if _, name, ok := strings.Cut(m.Content, "gate "); ok && m.Role == llm.RoleUser {
			name = strings.Fields(name + " .")[0]
			g.pass(context.Background(), name)
			return openaitest.Reply{Text: "went through " + name}
		}
	}
	return openaitest.Reply{Text: "nothing"}
}

// A walk is one run that is killed at nodes.
type walk struct {
	*flowRig
	gates *gates
	run   claybot.RunID

	mu    sync.Mutex
	began []string // nodes, in the order in which they began, by the events of the run
	ended []string
	edges []string
	last  []claybot.EventType // events that end the run
	err   error               // why no more events come
}

// walks lets one run go through nodes of every kind, and kills the daemon each time when another of them has
// begun, or ended.
func walks(ctx context.Context, o options, dir string) (err error) {
	if o.kills > len(walkNodes) {
		o.kills = len(walkNodes)
	}
	g := newGates()
	defer g.unlock(walkGates...)
	sink, stopSink, err := listen(g)
	if err != nil {
		return err
	}
	defer stopSink()
	model, stopModel, err := listen(openaitest.New(openaitest.Config{Reply: g.reply}))
	if err != nil {
		return err
	}
	defer func() { g.unlock(walkGates...); stopModel() }()
	w := &walk{flowRig: newFlowRig(o, dir), gates: g}
	w.env = []string{"OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL=" + model + "/v1"}
	if err := w.configure(sink, walkFiles(sink), fmt.Sprintf("mcp: {rig: {url: %q, trusted: true}}\n", sink+"/mcp")); err != nil {
		return err
	}
	return w.with(ctx, w.through)
}

// through is the way of the run.
func (w *walk) through(ctx context.Context) error {
	targets := w.targets()
	fmt.Printf("flows: one run of %d nodes, seed %d, killed when %s\n", len(walkNodes), w.seed, strings.Join(targets, ", "))
	for _, step := range []func(context.Context) error{w.ready, func(ctx context.Context) error { return w.deliver(ctx, []string{walkText}) }, w.find} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { w.follow(ctx) })
	defer func() { stop(); following.Wait() }()
	for _, target := range targets {
		node, what, _ := strings.Cut(target, " has ")
		w.gates.unlock(before(node)...)
		if what == "ended" && slices.Contains(walkGates, node) {
			w.gates.unlock(node)
		}
		if err := w.await(ctx, target, func() bool { return w.reached(node, what) }); err != nil {
			return err
		}
		if err := ignoreKilled(w.process.kill()); err != nil {
			return err
		}
		if err := w.start(ctx); err != nil {
			return err
		}
	}
	w.gates.unlock(walkGates...)
	if err := w.await(ctx, "it ends", func() bool { return len(w.last) > 0 }); err != nil {
		return err
	}
	if err := w.answered(ctx, []string{walkText}); err != nil {
		return err
	}
	err := w.poll(ctx, func(c *console) (bool, error) { // a second reply would come before that
		quiet, _, err := c.quiet(ctx)
		return quiet, err
	})
	if err != nil {
		return err
	}
	return w.judgeWalk(len(targets))
}

// targets are as many nodes as there are kills, in the order of the way, with what each has done when it strikes.
func (w *walk) targets() (list []string) {
	chosen := w.rng.Perm(len(walkNodes))[:w.options.kills]
	slices.Sort(chosen)
	for _, i := range chosen {
		list = append(list, walkNodes[i]+" has "+[]string{"begun", "ended"}[w.rng.IntN(2)])
	}
	return list
}

// before are the gates on the way to a node.
func before(node string) (names []string) {
	for _, n := range walkNodes[:slices.Index(walkNodes, node)] {
		if slices.Contains(walkGates, n) {
			names = append(names, n)
		}
	}
	return names
}

// reached reports whether a node has begun, with the call that it makes, or ended.
func (w *walk) reached(node, what string) bool {
	if what == "ended" {
		return slices.Contains(w.ended, node)
	}
	return slices.Contains(w.began, node) && (!slices.Contains(walkGates, node) || w.gates.count(node) > 0)
}

// find waits for the run, which is the only one while its first gate is closed.
func (w *walk) find(ctx context.Context) error {
	return w.poll(ctx, func(c *console) (bool, error) {
		var page web.RunList
		err := c.call(ctx, http.MethodGet, "/agents/runs", &page)
		if err == nil && len(page.Runs) > 0 {
			w.run = page.Runs[0].ID
		}
		return w.run != "", err
	})
}

// ready waits until the workflow is in force, which it is once its tool is there.
func (w *walk) ready(ctx context.Context) error {
	return w.poll(ctx, func(c *console) (bool, error) {
		var list web.FlowList
		err := c.call(ctx, http.MethodGet, "/flows", &list)
		return slices.ContainsFunc(list.Flows, func(f web.FlowView) bool { return f.Name == walkText }), err
	})
}

// poll asks the daemon until something holds.
func (w *walk) poll(ctx context.Context, holds func(c *console) (bool, error)) error {
	c, err := openConsole(w.dir)
	if err != nil {
		return err
	}
	defer c.Close()
	for end := time.Now().Add(flowLimit); ; {
		switch ok, err := holds(c); {
		case ok || err != nil:
			return err
		case time.Now().After(end):
			return errors.New("the workflow is not in force, did not start, or leaves something to do")
		case !pause(ctx, flowLook):
			return context.Cause(ctx)
		}
	}
}

// follow reads the events of the run, also those behind a kill, until ctx ends or no more come.
func (w *walk) follow(ctx context.Context) {
	c, err := openConsole(w.dir)
	if err != nil {
		w.note(claybot.Event{}, err)
		return
	}
	defer c.Close()
	for e, err := range c.Follow(ctx, w.run, 0) {
		w.note(e, err)
	}
}

// await waits until something holds of what was read.
func (w *walk) await(ctx context.Context, what string, holds func() bool) error {
	look := func() (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case holds():
			return true, nil
		case w.err != nil || len(w.last) > 0:
			return false, errors.Join(fmt.Errorf("the run did not come to where %s: began %q, ended %q, took %q; its end is %q", what, w.began, w.ended, w.edges, w.last), w.err)
		}
		return false, nil
	}
	for end := time.Now().Add(flowLimit); ; {
		if ok, err := look(); ok || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("the run did not come to where %s", what)
		}
		if !pause(ctx, flowLook) {
			return context.Cause(ctx)
		}
	}
}

func (w *walk) note(e claybot.Event, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Type {
	case claybot.EventNodeStarted:
		w.began = append(w.began, runs.DataOf[runs.NodeStarted](e).Node)
	case claybot.EventNodeFinished:
		w.ended = append(w.ended, runs.DataOf[runs.NodeFinished](e).Node)
	case claybot.EventEdgeTaken:
		d := runs.DataOf[runs.EdgeTaken](e)
		w.edges = append(w.edges, d.From+" "+d.To)
	default:
		if err != nil {
			w.err = err
		} else if e.Type.Ends() {
			w.last = append(w.last, e.Type)
		}
	}
}

// judgeWalk looks for a way other than that of the file, for calls that acted twice, and for replies.
func (w *walk) judgeWalk(kills int) error {
	var broken []string
	if !slices.Equal(w.last, []claybot.EventType{claybot.EventRunFinished}) {
		broken = append(broken, fmt.Sprintf("the run ended with %q", w.last))
	}
	if said := w.said(walkText); !slices.Equal(said, []string{walkReply}) {
		broken = append(broken, fmt.Sprintf("the replies are %q, want %q", said, walkReply))
	}
	var want []string
	unknown := 0
	for i, node := range walkNodes {
		next := "END"
		if i+1 < len(walkNodes) {
			next = walkNodes[i+1]
		}
		if by := walkOnce[node]; by != "" && slices.Contains(w.edges, node+" "+by) {
			unknown++
			want = append(want, node+" "+by)
			node = by
		}
		want = append(want, node+" "+next)
	}
	if !slices.Equal(w.edges, want) {
		broken = append(broken, fmt.Sprintf("the way is %q\nwant %q", w.edges, want))
	}
	for _, node := range slices.Sorted(maps.Keys(walkOnce)) {
		if n := w.gates.count(node); n > 1 || n == 0 && !slices.Contains(w.edges, node+" "+walkOnce[node]) {
			broken = append(broken, fmt.Sprintf("%s acted %d times", node, n))
		}
	}
	w.gates.mu.Lock()
	broken = append(broken, w.gates.wrong...)
	if n := len(w.gates.keys); n != 1 {
		broken = append(broken, fmt.Sprintf("the calls that may be made again have %d keys", n))
	}
	w.gates.mu.Unlock()
	fmt.Printf("flows: one run of %d nodes with %d kills: %d with a wrong way, end or reply; calls that may act only once: %d, %d of them with unknown outcome\n",
		len(walkNodes), kills, min(len(broken), 1), len(walkOnce), unknown)
	if len(broken) > 0 {
		return errors.New(strings.Join(broken, "\n"))
	}
	return nil
}
