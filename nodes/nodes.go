package nodes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The kinds of nodes, in the order of lists.
const (
	Connector = "connector" // takes messages in and sends replies
	Schedule  = "schedule"  // starts runs at their times
	Flow      = "flow"      // a workflow
	Agent     = "agent"     // one conversation, by its id; listed where it is stopped
	Profile   = "profile"   // what agents are made of
	Model     = "model"
	Tools     = "tools" // a group of claybot's own tools
	MCP       = "mcp"   // a server that agents have tools of
	Workspace = "workspace"
	Memory    = "memory" // the notes of agents
	Skills    = "skills"
	Relay     = "relay" // of events
)

var kinds = []string{Connector, Schedule, Flow, Agent, Profile, Model, Tools, MCP, Workspace, Memory, Skills, Relay}

// A Key names a node.
type Key struct {
	Kind string `json:"kind"`
	Name string `json:"name"` // unique within its kind
}

// String returns kind/name.
func (k Key) String() string { return k.Kind + "/" + k.Name }

// Compare orders nodes by kind and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(slices.Index(kinds, k.Kind), slices.Index(kinds, other.Kind)), cmp.Compare(k.Name, other.Name))
}

// The states of a node.
const (
	Running = "running"
	Waiting = "waiting" // starts, stands by, waits for another node or an operator, or to be asked whether it works
	Failed  = "failed"  // does not work and is tried again
	Off     = "off"     // does not work until its settings change
	Stopped = "stopped" // by an operator, until one starts it
)

// The calls of a node.
const (
	Start   = "start"
	Stop    = "stop"
	Restart = "restart"
	Test    = "test"
)

// A View is one part of the installation, as lists and the API show it.
type View struct {
	Key
	Type  string `json:"type,omitempty" doc:"What it is in detail, such as telegram."`
	State string `json:"state" doc:"running, waiting, failed, off or stopped."`
	// Text is why it does not run, or what it does, in a sentence without secrets.
	Text string `json:"text,omitempty" doc:"Why it does not run, or what it lacks."`
	// Next is the next step, where the text does not say it.
	Next string `json:"next,omitempty" doc:"What to do about it, where a next step is known."`
	// Code is that of the finding about it, see docs/doctor.md.
	Code string   `json:"code,omitempty" doc:"The code of what is wrong, as in the status; see docs/doctor.md."`
	Uses []Key    `json:"uses,omitempty" doc:"The nodes that it works with."`
	Can  []string `json:"can,omitempty" doc:"The calls that it has: start, stop, restart, test."`
	// Stopped is by whom and when, of a stopped node.
	Stopped *Order `json:"stopped,omitempty"`
}

// Has reports whether the node has a call.
func (n View) Has(call string) bool { return slices.Contains(n.Can, call) }

// Settle sorts nodes by kind and name, and says of those that run what they lack: a profile whose
// model does not run waits for it, and so does a workflow whose profile is stopped; what works without
// another node says so.
func Settle(all []View) {
	by := make(map[Key]View, len(all))
	for _, n := range all {
		by[n.Key] = n
	}
	for i, n := range all { // before what uses profiles
		if n.Kind == Profile && n.State == Running {
			all[i].lack(by)
			by[n.Key] = all[i]
		}
	}
	for i, n := range all {
		if n.Kind != Profile && n.State == Running {
			all[i].lack(by)
		}
	}
	slices.SortFunc(all, func(a, b View) int { return a.Compare(b.Key) })
}

// lack says what a running node lacks.
func (n *View) lack(by map[Key]View) {
	var waits []string
	without := make(map[string][]string)
	for _, k := range n.Uses {
		used, there := by[k]
		order, from := used.order(by)
		switch {
		case !there || used.State == Running:
		case k.Kind == Model && used.State == Waiting: // the next run asks it
		case n.Kind == Profile && k.Kind == Model, n.Kind == Flow && order != nil:
			n.State, n.Text = Waiting, fmt.Sprintf("waits for %s, which %s", k, how(used.State, 1))
			if order != nil {
				n.Text += "; " + Fix(from)
			}
		case k.Kind == Profile && order != nil:
			waits = append(waits, fmt.Sprintf("messages wait: %s is stopped; %s", from, Fix(from)))
		case k.Kind == Profile && used.State == Waiting: // its runs fail, and say so
		case k.Kind == Profile:
			waits = append(waits, fmt.Sprintf("agents of %s do not run: it %s", k, how(used.State, 1)))
		default:
			without[used.State] = append(without[used.State], k.String())
		}
	}
	var lists []string
	for _, state := range slices.Sorted(maps.Keys(without)) {
		lists = append(lists, and(without[state])+", which "+how(state, len(without[state])))
	}
	if len(lists) > 0 {
		waits = append(waits, "works without "+strings.Join(lists, ", and without "))
	}
	if n.Text == "" {
		n.Text = strings.Join(slices.Compact(waits), "; ")
	}
}

// how says in a sentence how some nodes are that have a state.
func how(state string, count int) string {
	switch {
	case state == Failed && count == 1:
		return "has failed"
	case state == Failed:
		return "have failed"
	case count == 1:
		return "is " + state
	}
	return "are " + state
}

// and joins the names of a list.
func and(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// order is what stops a node, or the model of a profile, and which of them; nil for none.
func (n View) order(by map[Key]View) (*Order, Key) {
	if n.Stopped != nil {
		return n.Stopped, n.Key
	}
	for _, k := range n.Uses {
		if used := by[k]; n.Kind == Profile && k.Kind == Model && used.Stopped != nil {
			return used.Stopped, k
		}
	}
	return nil, Key{}
}

// Fix is how a stopped node is started.
func Fix(k Key) string { return "start it: claybot nodes start " + ShellWord(k.String()) }

// ShellWord returns a value as a word of a shell.
func ShellWord(value string) string {
	if value != "" && strings.Trim(value, shellSafe) == "" {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// shellSafe are the characters that mean themselves in a shell, of those that names and paths often have.
const shellSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._:@-"

// Find returns the node of a name or of kind/name. Where there is none, or more than one, the
// error says which there are.
func Find(all []View, name string, nearest func(name string, of []string) string) (View, error) {
	var found []View
	var known []string
	for _, n := range all {
		known = append(known, n.Name, n.Key.String())
		if n.Name == name || n.Key.String() == name {
			found = append(found, n)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if near := nearest(name, known); near != "" {
			return View{}, fmt.Errorf("no node is called %q; did you mean %s?", name, near)
		}
		return View{}, fmt.Errorf("no node is called %q; claybot nodes lists them", name)
	}
	keys := make([]string, len(found))
	for i, n := range found {
		keys[i] = n.Key.String()
	}
	return View{}, fmt.Errorf("%d nodes are called %q: say %s", len(found), name, strings.Join(keys, " or "))
}

// Mermaid returns the graph as the text of a Mermaid flowchart.
func Mermaid(all []View) string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	ids := make(map[Key]string, len(all))
	for i, n := range all {
		ids[n.Key] = fmt.Sprintf("n%d", i)
		fmt.Fprintf(&b, "  n%d[\"%s<br/>%s\"]:::%s\n", i, quoted.Replace(n.Key.String()), n.State, n.State)
	}
	for _, n := range all {
		for _, k := range n.Uses {
			arrow := "-->"
			if n.Kind == Profile {
				arrow += "|" + PortOf(k.Kind) + "|"
			}
			if to := ids[k]; to != "" {
				fmt.Fprintf(&b, "  %s %s %s\n", ids[n.Key], arrow, to)
			}
		}
	}
	b.WriteString("  classDef running fill:#d7f2dd,color:#111\n  classDef waiting fill:#fff3cd,color:#111\n" +
		"  classDef failed fill:#f8d7da,color:#111\n  classDef off fill:#f8d7da,color:#111\n  classDef stopped fill:#e2e3e5,color:#111\n")
	return b.String()
}

// quoted keeps a text within the quotes of a label, see
// https://mermaid.js.org/syntax/flowchart.html#entity-codes-to-escape-characters.
var quoted = strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "\n", " ")
