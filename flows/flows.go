// Package flows is the contract of workflows that an operator writes as files: which messages
// start one, and its nodes with their edges. It knows how a flow is checked and nothing about how
// one runs; see runs/flow.
//
// A flow is a graph. Each message that a trigger takes starts one run of it, in an agent of its own,
// so that a run that waits for a person blocks no chat. Values in braces are templates over the
// trigger and what the nodes before put out.
package flows

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
)

// End is where the edges of a flow lead to end the run.
const End = "END"

// The limits of a flow.
const (
	MaxFile   = 256 << 10 // bytes of a file
	MaxNodes  = 200
	MaxVisits = 1000      // of all nodes, in one run
	MaxOutput = 256 << 10 // bytes of what a node puts out, as JSON
	MaxState  = 4 << 20   // bytes of what all nodes of a run have put out, as JSON
	MaxWait   = 30 * 24 * time.Hour
	MaxDepth  = 5 // of flows that nodes start, one below the other
)

// The limits of a node that sets none.
const (
	DefaultTimeout = 10 * time.Minute
	MaxTimeout     = 24 * time.Hour
	DefaultTries   = 3
	DefaultFirst   = 2 * time.Second
	DefaultExpires = 24 * time.Hour
	DefaultAtOnce  = 8
	DefaultOpen    = 1000
	DefaultWaiting = 100_000
)

// A Flow is one file. The tags say how it is read, see package configs.
type Flow struct {
	Name string // of the file, without .yaml
	File string // as messages call it
	Text string // of the file
	Hash string // of the text, see HashOf

	Description string `key:"description"`
	// Owner is on whose behalf the flow acts, as "connector/userId".
	Owner string `key:"owner"`
	// Profile gives model, tools and permissions; empty: the default one.
	Profile string `key:"profile"`
	// Agents are the profiles whose agents may start the flow.
	Agents []string `key:"agents" kind:"texts"`
	// Input are the fields that the payload of what starts the flow has to have; none: any payload fits.
	Input []Field `key:"input" kind:"flow fields"`
	// Concurrency says which runs work at the same time.
	Concurrency Concurrency `key:"concurrency" kind:"flow concurrency"`
	// Limits bound the unfinished runs.
	Limits Limits `key:"limits" kind:"flow limits"`
	// Time ends a run; 0: no limit.
	Time     time.Duration `key:"time" kind:"flow time"`
	Triggers []Trigger     `key:"triggers" kind:"flow triggers"`
	Start    string        `key:"start"`
	Nodes    []Node        `key:"nodes" kind:"flow nodes"`
	// Failed are the routes that hear of a run that failed, besides its own place: "owner" or
	// connector/channel.
	Failed []string `key:"on_failure" kind:"texts"`
	Lines  Lines
}

// HashOf names a version of a flow by its text.
func HashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Lines are where the keys of a group stand in its file, from 1.
type Lines map[string]int

// A Trigger starts the flow: by messages of a connector, or at times.
type Trigger struct {
	Name string
	// On is the connector whose messages start it, a webhook included. Channel and User narrow
	// that to one channel or one person, Mention to messages that speak to the bot, and Match to
	// texts that a regular expression finds something in.
	On      string `key:"on"`
	Channel string `key:"channel"`
	User    string `key:"user"`
	Mention bool   `key:"mention"`
	Match   string `key:"match"`
	// Cron is five fields, in Zone.
	Cron string `key:"cron"`
	Zone string `key:"timezone"`
	// Text is what the run reads as trigger.text: by default what was written.
	Text  string `key:"text"`
	Lines Lines
}

// The kinds of nodes.
const (
	KindAgent    = "agent"
	KindDeep     = "deep"
	KindPlan     = "plan" // an agent whose engine is plan
	KindTool     = "tool"
	KindTemplate = "template"
	KindSwitch   = "switch"
	KindReply    = "reply"
	KindAsk      = "ask"
	KindWait     = "wait"
	KindEach     = "each"
	KindParallel = "parallel"
	KindHTTP     = "http"
	KindFlow     = "flow"
)

// A Node is one step. Spec is a pointer to one of the types below, as Kind says.
type Node struct {
	Name string
	Kind string
	Common
	Spec  any
	Lines Lines
}

// Common are the keys of all nodes.
type Common struct {
	Kind string `key:"kind"`
	// Note is for those who read the file.
	Note string `key:"note"`
	Next string `key:"next"`
	// Error is the node that goes on where this one fails; empty: the run fails.
	Error string `key:"error"`
	// Timeout ends one try; 0: DefaultTimeout, and for what waits for people see Expires.
	Timeout time.Duration `key:"timeout" kind:"flow time"`
	// Tries is how often the node works where what stopped it may be gone; 0: DefaultTries.
	Tries int `key:"tries" limits:"1..10"`
	// Visits is how often a run may come here; 0: once.
	Visits int `key:"max_visits" limits:"1..1000"`
}

// The Specs of nodes. Fields that are templates say so.
type (
	// An Agent is a subagent that does a task and ends.
	Agent struct {
		Prompt string   `key:"prompt"` // template: the task
		System string   `key:"system"` // template: its system prompt
		Model  string   `key:"model"`
		Tools  []string `key:"tools" kind:"texts"` // none: no tools
		Output []Field  `key:"output" kind:"flow fields"`
		// Memory has the agent remember what the nodes of the flow with a memory did before, for the
		// same person in the same chat. Thread gives the node a memory of its own.
		Memory string `key:"memory" words:"on,off"`
		Thread string `key:"thread" words:"flow,node"`
		// Engine is what advances its run; empty: as the profile says.
		Engine string `key:"engine" words:"react,plan"`
	}
	// A Deep is an agent that plans by a list of todos, has files, and may have subagents that it
	// starts by their names.
	Deep struct {
		Agent
		Todos     bool             `key:"todos"`
		Files     string           `key:"files" words:"state,filesystem,store,none"`
		Subagents []claybot.Helper `key:"subagents" kind:"flow subagents"`
	}
	// A Tool is one call.
	Tool struct {
		Tool    string         `key:"tool"`
		Args    map[string]any `key:"args" kind:"flow values"` // templates
		Approve *Approve       `key:"approve" kind:"flow approve"`
	}
	// Approve has people approve a call before it is made.
	Approve struct {
		By []string `key:"by" kind:"texts"` // as "connector/userId"; none: the person of the run
	}
	// An HTTP is one request. Its host is written out.
	HTTP struct {
		URL     string         `key:"url"` // template behind the host
		Method  string         `key:"method" words:"GET,HEAD,POST,PUT,PATCH,DELETE"`
		Headers map[string]any `key:"headers" kind:"flow values"` // templates, or env:NAME and file:path
		Body    any            `key:"body" kind:"flow value"`     // template
		// KeyHeader is the header for a key that is the same when the request is repeated, so that its
		// effect happens once.
		KeyHeader string `key:"key_header"`
	}
	// A Template makes a value.
	Template struct {
		Value any `key:"value" kind:"flow value"` // template
	}
	// A Switch goes where the first case leads whose text is that of the value.
	Switch struct {
		Value string `key:"value"` // template
		Cases []Case `key:"cases" kind:"flow cases"`
		Else  string `key:"else"`
	}
	// A Case is one edge of a switch.
	Case struct {
		Is, Next string
		Line     int
	}
	// A Reply sends a text to chats.
	Reply struct {
		// To are "trigger", the place of the message that started the run, or
		// connector/channel; empty: trigger.
		To   []string `key:"to" kind:"texts"`
		Text string   `key:"text"` // template
	}
	// An Ask puts a question to a person.
	Ask struct {
		Text    string        `key:"text"` // template
		Type    string        `key:"type"` // of a question, see claybot.QuestionType; empty: confirm
		Options []string      `key:"options" kind:"texts"`
		By      []string      `key:"by" kind:"texts"`
		Expires time.Duration `key:"expires" kind:"flow time"`
		Denied  string        `key:"denied"`  // where a no leads; empty: next
		Expired string        `key:"expired"` // where no answer in time leads; empty: the error edge
	}
	// A Wait goes on later, or when a program calls the address of the node.
	Wait struct {
		For   time.Duration `key:"for" kind:"flow time"` // with Event, at most; 0: DefaultExpires
		Until string        `key:"until"`                // template: a time as RFC 3339
		// Event is EventCallback where a program ends the wait; empty: the time does.
		Event   string `key:"event" words:"callback"`
		Expired string `key:"expired"` // where no call in time leads; empty: the error edge
	}
	// A Child is a run of another flow, below the run that starts it.
	Child struct {
		Flow    string `key:"flow"`
		Text    string `key:"text"`                      // template: its trigger.text
		Payload any    `key:"payload" kind:"flow value"` // template: its trigger.payload
		// Wait: the node ends with the child, and puts out what its last node did; false: it ends when the
		// child is started. nil: true.
		Wait *bool `key:"wait"`
	}
	// An Each gives one agent to each item of a list, at the same time.
	Each struct {
		Over string `key:"over"` // template: a list; the templates of the agent see item and index
		// AtOnce is how many agents work at the same time; 0: DefaultAtOnce. OnError is what one that
		// fails does; empty: OnErrorStop.
		AtOnce  int    `key:"at_once" limits:"1..32"`
		OnError string `key:"on_error" words:"stop,continue,collect"`
		Agent
	}
)

// Host is the scheme and the host of the URL, which are written out.
func (h *HTTP) Host() string {
	scheme, rest, _ := strings.Cut(h.URL, "://")
	if i := strings.IndexAny(rest, "/?#{"); i >= 0 {
		rest = rest[:i]
	}
	return strings.ToLower(scheme + "://" + rest)
}

// Remembers reports whether the agent has a memory.
func (a *Agent) Remembers() bool { return a.Memory == MemoryOn }

// The values of Agent.Memory and Agent.Thread that are no default.
const (
	MemoryOn   = "on"
	ThreadNode = "node"
)

// FilesStore is the value of Deep.Files for files that outlive the run.
const FilesStore = "store"

// A Field is what an agent has to put out, and what fits.
type Field struct {
	Name string
	Type string   // text, number, integer, boolean, date, list, object; of one of Words: word
	Form string   // of a text: a regular expression that has to match; empty: any
	Of   []string // of a word
	Line int
}

// maxClean is the longest text of a regular expression that counts as data.
const maxClean = 64

// Clean reports whether no text of a stranger fits into the field: what it has is data. A text is, if
// its regular expression fits the whole of it, and only short ones of letters, digits and - _ . : / @ + #.
func (f Field) Clean() bool {
	switch f.Type {
	case FieldList, FieldObject:
		return false
	case FieldText:
		re, err := syntax.Parse(f.Form, syntax.Perl)
		if f.Form == "" || err != nil || re.Op != syntax.OpConcat || len(re.Sub) < 2 {
			return false
		}
		last := len(re.Sub) - 1
		if re.Sub[0].Op != syntax.OpBeginText || re.Sub[last].Op != syntax.OpEndText {
			return false
		}
		n := 0
		for _, part := range re.Sub[1:last] {
			n += longest(part)
		}
		return n <= maxClean
	}
	return true
}

// longest is how many characters fit into an expression; more than maxClean also where characters of
// sentences do.
func longest(re *syntax.Regexp) (n int) {
	word := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/@+#", r)
	}
	sum := func() (n int) {
		for _, part := range re.Sub {
			n += longest(part)
		}
		return n
	}
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpNoMatch:
		return 0
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 || slices.ContainsFunc(re.Rune, func(r rune) bool { return !word(r) }) {
			return maxClean + 1
		}
		return len(re.Rune)
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i+1] > 'z' {
				return maxClean + 1
			}
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if !word(r) {
					return maxClean + 1
				}
			}
		}
		return 1
	case syntax.OpCapture, syntax.OpQuest, syntax.OpConcat:
		return min(sum(), maxClean+1)
	case syntax.OpRepeat:
		if re.Max < 0 {
			return maxClean + 1
		}
		return min(re.Max*sum(), maxClean+1)
	case syntax.OpAlternate:
		for _, part := range re.Sub {
			n = max(n, longest(part))
		}
		return n
	}
	return maxClean + 1
}

// The types of a Field.
const (
	FieldText    = "text"
	FieldNumber  = "number"
	FieldInteger = "integer"
	FieldBoolean = "boolean"
	FieldDate    = "date"
	FieldList    = "list"
	FieldObject  = "object"
	FieldWord    = "word"
)

// FieldTypes are those that a file may name.
var FieldTypes = []string{FieldText, FieldNumber, FieldInteger, FieldBoolean, FieldDate, FieldList, FieldObject}

// Kinds are the kinds of nodes, in the order in which they are listed.
var Kinds = []string{KindAgent, KindDeep, KindPlan, KindTool, KindTemplate, KindSwitch, KindReply, KindAsk, KindWait, KindEach, KindParallel, KindHTTP, KindFlow}

// NewSpec returns the Spec of a node of a kind that sets nothing; nil for none.
func NewSpec(kind string) any {
	switch kind {
	case KindAgent:
		return new(Agent)
	case KindDeep:
		return &Deep{Todos: true, Files: "state"}
	case KindPlan:
		return &Agent{Engine: claybot.EnginePlan}
	case KindTool:
		return new(Tool)
	case KindTemplate:
		return new(Template)
	case KindSwitch:
		return new(Switch)
	case KindReply:
		return new(Reply)
	case KindAsk:
		return new(Ask)
	case KindWait:
		return new(Wait)
	case KindEach:
		return new(Each)
	case KindParallel:
		return new(Parallel)
	case KindHTTP:
		return new(HTTP)
	case KindFlow:
		return new(Child)
	}
	return nil
}

// Agent returns what an agent of the node does, of a node that has one; nil for others.
func (n *Node) Agent() *Agent {
	switch s := n.Spec.(type) {
	case *Agent:
		return s
	case *Deep:
		return &s.Agent
	case *Each:
		return &s.Agent
	}
	return nil
}

// Node returns the node with a name; nil for none.
func (f *Flow) Node(name string) *Node {
	i := slices.IndexFunc(f.Nodes, func(n Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Nodes[i]
}

// An Edge is a key of a node that names another one.
type Edge struct {
	Key, To string
	Line    int
}

// Edges are the edges of a node, the usual one first. Each node that it may lead to is there once.
func (n *Node) Edges() (all []Edge) {
	add := func(key, to string, line int) {
		if to != "" && !slices.ContainsFunc(all, func(e Edge) bool { return e.To == to }) {
			all = append(all, Edge{key, to, line})
		}
	}
	add("next", n.Next, n.Lines["next"])
	switch s := n.Spec.(type) {
	case *Switch:
		for _, c := range s.Cases {
			add("cases", c.Next, c.Line)
		}
		add("else", s.Else, n.Lines["else"])
	case *Ask:
		add("denied", s.Denied, n.Lines["denied"])
		add("expired", s.Expired, n.Lines["expired"])
	case *Wait:
		add("expired", s.Expired, n.Lines["expired"])
	}
	add("error", n.Error, n.Lines["error"])
	return all
}

// Names are the nodes that each node may lead to, for a drawing.
func (f *Flow) Names() map[string][]string {
	all := make(map[string][]string, len(f.Nodes))
	for i := range f.Nodes {
		for _, e := range f.Nodes[i].Edges() {
			all[f.Nodes[i].Name] = append(all[f.Nodes[i].Name], e.To)
		}
	}
	return all
}

// String is the trigger in words.
func (t Trigger) String() string {
	if t.Cron != "" {
		if t.Zone != "" {
			return t.Cron + " " + t.Zone
		}
		return t.Cron
	}
	s := t.On
	if t.Channel != "" {
		s += "/" + t.Channel
	}
	if t.User != "" {
		s += " by " + t.User
	}
	if t.Match != "" {
		s += " like /" + t.Match + "/"
	}
	if t.Mention {
		s += ", mentions"
	}
	return s
}
