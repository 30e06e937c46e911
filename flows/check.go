package flows

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
)

// A Fault is what is wrong with a flow.
type Fault struct {
	Line int    // from 1
	Key  string // such as nodes.pay.tool; empty: the file
	Text string
	Near string // the known word that an unknown one resembles
}

// String is the fault as one line, without the file.
func (f Fault) String() string {
	s := f.Text
	if f.Key != "" {
		s = f.Key + ": " + s
	}
	if f.Near != "" {
		s += "; did you mean " + f.Near + "?"
	}
	return fmt.Sprintf("%d: %s", f.Line, s)
}

// IsName reports whether a text can name a node, a trigger or a field.
func IsName(v string) bool {
	for i, c := range v {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return v != "" && len(v) <= 64
}

// reserved are the names that templates have besides those of nodes.
var reserved = []string{"trigger", "user", "agent", "now", "nodes", "env", "item", "index", "error", "loop", "range", End}

// A Use is a name that a template reads: the parts of its path, and where. Optional: the template
// works where it is not defined.
type Use struct {
	Path     []string
	Line     int // within the template, from 1
	Optional bool
}

// World is what a flow is checked against. Functions that are nil know nothing, so that what they
// would say is not checked.
type World struct {
	// Uses returns the names that a template reads, or why it cannot be parsed.
	Uses func(text string) ([]Use, error)
	// Profiles, Connectors, Flows and Models are the known names; Models are those of a profile.
	Profiles   []string
	Connectors []string
	// Events are the Connectors whose messages have a payload; nil: any of them.
	Events []string
	Flows  []string
	Models func(profile string) []string
	// Unpriced returns the model of a profile, or the one of a name, if it has no price; empty: it has one. nil:
	// prices are not checked.
	Unpriced func(profile, model string) string
	// Tools returns the tools of a profile and the names of their arguments, which of them are
	// required.
	Tools func(profile string) map[string]Params
	// Route, Owner, Cron, Zone and Pattern return why a value is not valid.
	Route, Owner, Cron, Zone, Pattern func(v string) error
	// Secret returns why the secret of a reference cannot be read; nil: it is not looked at.
	Secret func(reference string) error
	// Secrets returns which kinds of secrets a text has; nil: texts are not searched.
	Secrets func(text string) []string
	// Near returns the known word that one resembles; empty for none.
	Near func(word string, known []string) string
}

// Params are the arguments of a tool.
type Params struct {
	All, Required []string
	Open          bool // others are taken as well
}

// Check returns all faults of a flow that was read without one, in the order of their lines.
func Check(f *Flow, w World) []Fault {
	c := &checker{flow: f, world: w}
	c.head()
	c.names()
	c.edges()
	c.cycles()
	for i := range f.Triggers {
		c.trigger(&f.Triggers[i])
	}
	for i := range f.Nodes {
		c.node(&f.Nodes[i])
	}
	c.templates()
	c.secrets()
	slices.SortStableFunc(c.faults, func(a, b Fault) int { return a.Line - b.Line })
	return c.faults
}

type checker struct {
	flow   *Flow
	world  World
	faults []Fault
}

func (c *checker) add(line int, key, format string, args ...any) {
	c.faults = append(c.faults, Fault{Line: max(line, 1), Key: key, Text: fmt.Sprintf(format, args...)})
}

// unknown adds a fault about a word that is none of the known ones.
func (c *checker) unknown(line int, key, word string, known []string, format string, args ...any) {
	c.add(line, key, format, args...)
	if c.world.Near != nil {
		c.faults[len(c.faults)-1].Near = c.world.Near(word, known)
	}
}

// valid adds a fault where check refuses a value.
func (c *checker) valid(line int, key, v string, check func(string) error) {
	if v == "" || check == nil {
		return
	}
	if err := check(v); err != nil {
		c.add(line, key, "%v", err)
	}
}

// isNode adds a fault unless an edge leads to a node or the end.
func (c *checker) isNode(line int, key, to string) {
	if to == End || c.flow.Node(to) != nil {
		return
	}
	known := []string{End}
	for _, n := range c.flow.Nodes {
		known = append(known, n.Name)
	}
	c.unknown(line, key, to, known, "there is no node %.64q", to)
}

func (c *checker) head() {
	f := c.flow
	switch {
	case !IsName(f.Name):
		c.add(1, "", "the name of the file is the name of the flow: letters, digits and _, and .yaml")
	case len(f.Nodes) == 0:
		c.add(1, "nodes", "the flow has no nodes")
	case len(f.Nodes) > MaxNodes:
		c.add(f.Lines["nodes"], "nodes", "%d nodes; the limit is %d", len(f.Nodes), MaxNodes)
	}
	if f.Owner == "" {
		c.add(1, "owner", "is missing: who the flow acts for, as connector/user")
	}
	c.valid(f.Lines["owner"], "owner", f.Owner, c.world.Owner)
	if f.Profile != "" && c.world.Profiles != nil && !slices.Contains(c.world.Profiles, f.Profile) {
		c.unknown(f.Lines["profile"], "profile", f.Profile, c.world.Profiles, "there is no profile %.64q", f.Profile)
	}
	for _, name := range f.Agents {
		if c.world.Profiles != nil && !slices.Contains(c.world.Profiles, name) {
			c.unknown(f.Lines["agents"], "agents", name, c.world.Profiles, "there is no profile %.64q", name)
		}
	}
	if f.Start == "" {
		c.add(1, "start", "is missing: the node that the flow begins with")
	} else if f.Start == End {
		c.add(f.Lines["start"], "start", "the flow begins with its end")
	} else {
		c.isNode(f.Lines["start"], "start", f.Start)
	}
	for _, field := range f.Input {
		c.valid(field.Line, "input."+field.Name, field.Form, c.world.Pattern)
	}
	if busy := f.Concurrency; busy.Key == "" && (busy.Busy == claybot.BusySkip || busy.Busy == claybot.BusyCancel) {
		c.add(busy.Lines["busy"], "concurrency.busy", "needs key: runs of equal keys do not work at the same time")
	}
	for _, to := range f.Failed {
		if to != "owner" {
			c.valid(f.Lines["on_failure"], "on_failure", to, c.world.Route)
		}
	}
}

func (c *checker) names() {
	for _, n := range c.flow.Nodes {
		if slices.Contains(reserved, n.Name) {
			c.add(n.Lines[""], "nodes."+n.Name, "%s is a name that templates have already; call the node something else", n.Name)
		}
	}
}

// edges checks that all edges lead to nodes, and that all nodes are reached.
func (c *checker) edges() {
	reached := map[string]bool{c.flow.Start: true}
	todo := []string{c.flow.Start}
	for len(todo) > 0 {
		n := c.flow.Node(todo[0])
		if todo = todo[1:]; n == nil {
			continue
		}
		for _, e := range n.Edges() {
			if !reached[e.To] {
				reached[e.To] = true
				todo = append(todo, e.To)
			}
		}
	}
	for i := range c.flow.Nodes {
		n := &c.flow.Nodes[i]
		for _, e := range n.Edges() {
			c.isNode(e.Line, "nodes."+n.Name+"."+e.Key, e.To)
		}
		if c.flow.Node(c.flow.Start) != nil && !reached[n.Name] {
			c.add(n.Lines[""], "nodes."+n.Name, "no edge leads here from the start")
		}
		if _, chooses := n.Spec.(*Switch); n.Next == "" && !chooses {
			c.add(n.Lines[""], "nodes."+n.Name+".next", "is missing: the node that follows, or END")
		} else if chooses && n.Next != "" {
			c.add(n.Lines["next"], "nodes."+n.Name+".next", "a switch has cases and else instead")
		}
	}
}

// cycles checks that each cycle has a node that says how often a run may come there.
func (c *checker) cycles() {
	const (
		open = 1
		done = 2
	)
	state := make(map[string]int)
	var visit func(name string)
	visit = func(name string) {
		n := c.flow.Node(name)
		if n == nil || state[name] == done {
			return
		}
		state[name] = open
		for _, e := range n.Edges() {
			to := c.flow.Node(e.To)
			if to == nil {
				continue
			}
			if state[e.To] == open && to.Visits == 0 {
				c.add(e.Line, "nodes."+n.Name+"."+e.Key, "leads back to %s, which needs max_visits: how often a run may come there", e.To)
			}
			if state[e.To] == 0 {
				visit(e.To)
			}
		}
		state[name] = done
	}
	visit(c.flow.Start)
}

func (c *checker) trigger(t *Trigger) {
	key := "triggers." + t.Name
	switch {
	case t.On == "" && t.Cron == "":
		c.add(t.Lines[""], key, "want on, the name of a connector, or cron, such as \"0 9 * * 1-5\"")
	case t.On != "" && t.Cron != "":
		c.add(t.Lines["cron"], key, "want on or cron, not both; write two triggers")
	case t.Cron != "":
		c.valid(t.Lines["cron"], key+".cron", t.Cron, c.world.Cron)
		c.valid(t.Lines["timezone"], key+".timezone", t.Zone, c.world.Zone)
		for _, x := range []struct{ key, v string }{{"channel", t.Channel}, {"user", t.User}, {"match", t.Match}} {
			if x.v != "" {
				c.add(t.Lines[x.key], key+"."+x.key, "belongs to a trigger with on")
			}
		}
	default:
		if c.world.Connectors != nil && !slices.Contains(c.world.Connectors, t.On) {
			c.unknown(t.Lines["on"], key+".on", t.On, c.world.Connectors, "there is no connector %.64q", t.On)
		}
		for _, x := range []struct{ key, v string }{{"timezone", t.Zone}, {"text", t.Text}} {
			if x.v != "" {
				c.add(t.Lines[x.key], key+"."+x.key, "belongs to a trigger with cron")
			}
		}
		c.valid(t.Lines["match"], key+".match", t.Match, c.world.Pattern)
	}
	if len(c.flow.Input) > 0 && (t.Cron != "" || c.world.Events != nil && slices.Contains(c.world.Connectors, t.On) && !slices.Contains(c.world.Events, t.On)) {
		c.add(t.Lines[""], key, "starts the flow without a payload, and the flow has an input")
	}
	for i := range c.flow.Triggers {
		other := &c.flow.Triggers[i]
		if other == t {
			break
		}
		if t.On != "" && t.Overlaps(*other) {
			c.add(t.Lines[""], key, "takes messages that the trigger %s takes as well", other.Name)
		}
	}
}

// Overlaps reports whether a message may be for both triggers, as far as their channels, users and
// patterns tell.
func (t Trigger) Overlaps(o Trigger) bool {
	apart := func(a, b string) bool { return a != "" && b != "" && a != b }
	return t.On != "" && t.On == o.On && !apart(t.Channel, o.Channel) && !apart(t.User, o.User) && !apart(t.Match, o.Match) &&
		t.Mention == o.Mention && (t.Channel == "") == (o.Channel == "") && (t.User == "") == (o.User == "") && (t.Match == "") == (o.Match == "")
}

// weight says how narrow a trigger is: of several that take a message, the narrowest does.
func (t Trigger) weight() (n int) {
	for i, v := range []bool{t.Mention, t.Match != "", t.User != "", t.Channel != ""} {
		if v {
			n += 1 << i
		}
	}
	return n
}

// Narrower reports whether t is for fewer messages than o.
func (t Trigger) Narrower(o Trigger) bool { return t.weight() > o.weight() }

// node checks what is in one node alone.
func (c *checker) node(n *Node) {
	key := "nodes." + n.Name
	need := func(name, v string) {
		if strings.TrimSpace(v) == "" {
			c.add(n.Lines[""], key+"."+name, "is missing")
		}
	}
	c.common(n)
	switch s := n.Spec.(type) {
	case *Agent:
		need("prompt", s.Prompt)
		c.agent(n, s)
	case *Deep:
		need("prompt", s.Prompt)
		c.agent(n, &s.Agent)
		c.deep(n, s)
	case *Each:
		need("prompt", s.Prompt)
		need("over", s.Over)
		c.agent(n, &s.Agent)
		if s.Memory != "" {
			c.add(n.Lines["memory"], key+".memory", "the agents of a list work at the same time and remember nothing")
		}
	case *Tool:
		need("tool", s.Tool)
		c.tool(n, s)
		if s.Approve != nil {
			for _, by := range s.Approve.By {
				c.valid(n.Lines["approve"], key+".approve.by", by, c.world.Owner)
			}
		}
	case *HTTP:
		need("url", s.URL)
		c.http(n, s)
	case *Template:
		if s.Value == nil {
			c.add(n.Lines[""], key+".value", "is missing")
		}
	case *Switch:
		need("value", s.Value)
		if len(s.Cases) == 0 {
			c.add(n.Lines[""], key+".cases", "is missing: a node for each value")
		}
		need("else", s.Else)
	case *Reply:
		need("text", s.Text)
		for _, to := range s.To {
			if to != "trigger" {
				c.valid(n.Lines["to"], key+".to", to, c.world.Route)
			}
		}
	case *Ask:
		need("text", s.Text)
		c.ask(n, s)
	case *Child:
		c.child(n, s)
	case *Parallel:
		c.parallel(n, s)
	case *Wait:
		c.wait(n, s)
	}
}

// common checks the keys that all nodes may have, where they mean something.
func (c *checker) common(n *Node) {
	key := "nodes." + n.Name
	switch {
	case n.Kind == KindFlow: // at most what every time has
	case n.Agent() == nil && n.Timeout > 0:
		c.add(n.Lines["timeout"], key+".timeout", "only an agent and a flow have one")
	case n.Timeout > MaxTimeout:
		c.add(n.Lines["timeout"], key+".timeout", "an agent has at most %s", MaxTimeout)
	}
	if n.Tries > 0 && (n.Agent() == nil || n.Kind == KindEach) && !slices.Contains([]string{KindTool, KindHTTP, KindFlow}, n.Kind) {
		c.add(n.Lines["tries"], key+".tries", "only an agent, a tool, a request and a flow are tried again")
	}
	for _, t := range plainOf(n) {
		if strings.Contains(t.text, "{{") || strings.Contains(t.text, "{%") {
			c.add(t.line, t.key, "is no template: it stays as it is written")
		}
	}
}

func (c *checker) agent(n *Node, a *Agent) {
	key := "nodes." + n.Name
	c.priced(n, a.Model)
	if a.Model != "" && c.world.Models != nil {
		if known := c.world.Models(c.flow.Profile); !slices.Contains(known, a.Model) {
			c.unknown(n.Lines["model"], key+".model", a.Model, known, "there is no model %.64q in the profile", a.Model)
		}
	}
	if c.world.Tools != nil {
		known := c.world.Tools(c.flow.Profile)
		for _, name := range a.Tools {
			if _, ok := known[name]; !ok {
				c.unknown(n.Lines["tools"], key+".tools", name, toolNames(known), "the profile has no tool %.64q", name)
			}
		}
	}
	if n.Lines["engine"] > 0 && n.Kind != KindAgent && n.Kind != KindEach {
		c.add(n.Lines["engine"], key+".engine", "is what the kind says already")
	}
	if a.Engine == claybot.EnginePlan && len(a.Tools) == 0 {
		c.add(n.Lines[""], key+".tools", "is missing: a plan is made of calls of tools")
	}
	if a.Thread != "" && !a.Remembers() {
		c.add(n.Lines["thread"], key+".thread", "belongs to memory: on")
	}
	for _, f := range a.Output {
		if slices.Contains(agentFields, f.Name) {
			c.add(f.Line, key+".output."+f.Name, "is a name that every node has already")
		}
		c.valid(f.Line, key+".output."+f.Name, f.Form, c.world.Pattern)
	}
}

// deep checks the subagents of a deep agent.
func (c *checker) deep(n *Node, d *Deep) {
	key, line := "nodes."+n.Name+".subagents", n.Lines["subagents"]
	for _, h := range d.Subagents {
		if h.Model != "" && c.world.Models != nil {
			if known := c.world.Models(c.flow.Profile); !slices.Contains(known, h.Model) {
				c.unknown(line, key+"."+h.Name+".model", h.Model, known, "there is no model %.64q in the profile", h.Model)
			}
		}
		for _, name := range h.Tools {
			if !slices.Contains(d.Tools, name) {
				c.unknown(line, key+"."+h.Name+".tools", name, d.Tools, "%.64q is none of the tools of the node", name)
			}
		}
	}
}

func toolNames(known map[string]Params) (names []string) {
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *checker) tool(n *Node, t *Tool) {
	if c.world.Tools == nil || t.Tool == "" {
		return
	}
	known := c.world.Tools(c.flow.Profile)
	params, ok := known[t.Tool]
	if !ok {
		c.unknown(n.Lines["tool"], "nodes."+n.Name+".tool", t.Tool, toolNames(known), "the profile has no tool %.64q", t.Tool)
		return
	}
	for name := range t.Args {
		if !params.Open && !slices.Contains(params.All, name) {
			c.unknown(n.Lines["args"], "nodes."+n.Name+".args."+name, name, params.All, "the tool takes no such argument")
		}
	}
	for _, name := range params.Required {
		if _, given := t.Args[name]; !given {
			c.add(n.Lines[""], "nodes."+n.Name+".args."+name, "is missing: the tool needs it")
		}
	}
}

// http checks that the host of a request is written out, and its headers.
func (c *checker) http(n *Node, h *HTTP) {
	key := "nodes." + n.Name
	host, _, _ := strings.Cut(h.URL, "{{")
	scheme, rest, _ := strings.Cut(host, "://")
	if h.URL != "" && (scheme != "http" && scheme != "https" || !strings.Contains(rest, "/") && host != h.URL || rest == "" || strings.HasPrefix(rest, "/")) {
		c.add(n.Lines["url"], key+".url", "begins with http:// or https:// and a host that is written out, such as https://example.org/{{ … }}")
	}
	for name, v := range h.Headers {
		if _, ok := v.(string); !ok || strings.ContainsAny(name, " :\r\n") {
			c.add(n.Lines["headers"], key+".headers."+name, "is no header with a text")
		}
	}
}
