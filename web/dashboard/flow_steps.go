package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// entryMark begins the names of triggers in a drawing; no node has such a name.
const entryMark = "▸ "

// A flowStep is a node or a trigger of a flow, with what a run did there.
type flowStep struct {
	web.FlowNode
	Trigger  bool
	What     string // starts it, of a trigger
	URL      string // that shows it
	Chosen   bool
	Mark     mark
	MS       int64
	Visits   []*stepVisit // as far as records tell, oldest first
	Entered  int          // how often; once more after each wait
	Failed   *claybot.RunError
	Children []childView
	agents   []claybot.AgentID
}

// ID is the id of the node in the page.
func (s flowStep) ID() string { return domID(s.Name) }

// A stepVisit is what a run did in a node from its coming to its going.
type stepVisit struct {
	At      claybot.Time // of the end; 0: it is there
	MS      int64
	Next    string
	Reason  string
	Out     string // as JSON
	Tainted bool
	Usage   *claybot.Usage
	Model   string
	Failed  *stepFailure
	Calls   []stepCall
	Asked   []stepAsked
	Given   []stepGiven
}

// A stepFailure is why a node failed whose error another node took.
type stepFailure struct {
	Node label `json:"node"`
	Code label `json:"code"`
	Text label `json:"text"`
}

// A stepCall is one try of a call.
type stepCall struct {
	claybot.ToolCall
	Ended, OK, Tainted bool
	Out                string
	MS                 int64
}

// A stepAsked is a question, and the answer.
type stepAsked struct {
	ID, Text, Answer, By string
}

// A stepGiven is an input.
type stepGiven struct{ Label, Text string }

// A childView is an agent that a node started, with its newest run.
type childView struct {
	Agent claybot.AgentID
	Name  string
	Flow  bool // it is the agent of a workflow
	Run   *claybot.Run
}

// RunURL is the address that shows the run, of a workflow in its graph.
func (c childView) RunURL() string {
	if c.Flow {
		return flowView{FlowDetail: web.FlowDetail{FlowView: web.FlowView{Name: c.Name}}}.address("", string(c.Run.ID), "")
	}
	return "/ui/runs/" + url.PathEscape(string(c.Run.ID))
}

// A seenFlow is what a run did, by node.
type seenFlow struct {
	graph    runs.GraphView
	visits   map[string][]*stepVisit
	children map[string][]claybot.AgentID
	failed   string // the node that failed the run
	entry    string // the trigger that the run stands for
	given    []stepGiven
}

// readFlow reads the events and the records of the run of a view.
func (b *flowPages) readFlow(r *http.Request, v *flowView) (seen seenFlow, err error) {
	ctx, run := r.Context(), v.Run.Run
	seen = seenFlow{graph: runs.GraphOf(nil), children: make(map[string][]claybot.AgentID)}
	for e, err := range b.runs.Events(ctx, run.ID, 0) {
		if err != nil {
			return seen, err
		}
		seen.graph.Add(e)
		if d := facts[runs.SubagentStarted](e); e.Type == claybot.EventSubagentStarted && !slices.Contains(seen.children[seen.graph.Current], d.Agent) {
			seen.children[seen.graph.Current] = append(seen.children[seen.graph.Current], d.Agent)
		}
		if e.Seq >= workEvents {
			break
		}
	}
	records, err := b.agents.Remembered(ctx, run.Agent)
	if ignoreGone(err) != nil {
		return seen, err
	}
	seen.visits = visitsOf(records, run.ID, v.Start)
	seen.graph.Nodes = slices.Clone(seen.graph.Nodes)
	for i := range seen.graph.Nodes {
		n := &seen.graph.Nodes[i]
		visits := seen.visits[n.Node]
		if n.State == runs.NodeFailed && n.Visits > leftOf(records, run.ID, n.Node) {
			seen.failed = n.Node
		}
		if n.State == runs.NodeDone && len(visits) > 0 && visits[len(visits)-1].Failed != nil {
			n.State = runs.NodeFailed // and another node has taken the error
		}
	}
	if err := b.readStart(ctx, run, &seen); err != nil {
		return seen, err
	}
	if run.State == claybot.RunAwaiting {
		v.Questions, err = b.asked.openQuestions(r, run.Agent, run.ID)
	}
	return seen, err
}

// readStart reads what the run was started with. It expires before the run does.
func (b *flowPages) readStart(ctx context.Context, run claybot.Run, seen *seenFlow) error {
	for _, id := range run.Messages {
		stories, err := b.system.Why(ctx, string(id))
		if ignoreGone(err) != nil {
			return err
		}
		for _, s := range stories {
			m := s.Message
			if m.ID != id || m.Flow == nil {
				continue
			}
			seen.entry = m.Flow.Trigger
			if m.Text != "" {
				seen.given = append(seen.given, stepGiven{"Text", m.Text})
			}
			if len(m.Payload) > 0 {
				seen.given = append(seen.given, stepGiven{"Payload", string(m.Payload)})
			}
		}
	}
	return nil
}

// visitsOf reads the records of a run, by node. What a node did stands before the record of its end.
func visitsOf(records []claybot.Record, run claybot.RunID, start string) map[string][]*stepVisit {
	all, last := make(map[string][]*stepVisit), make(map[string]json.RawMessage)
	at, now := start, &stepVisit{}
	for _, r := range records {
		if r.Run != run {
			continue
		}
		if r.Type != claybot.RecordNode {
			now.add(r)
			continue
		}
		at = r.Name
		now.MS += r.MS
		if !leaves(r) {
			continue
		}
		now.end(r, last)
		all[at] = append(all[at], now)
		at, now = r.Next, &stepVisit{}
	}
	if len(now.Calls)+len(now.Asked) > 0 {
		all[at] = append(all[at], now)
	}
	return all
}

// leftOf counts how often a run has left a node, or waited in it. Where it came there more often, it ended there.
func leftOf(records []claybot.Record, run claybot.RunID, node string) (n int) {
	for _, r := range records {
		if r.Run == run && r.Type == claybot.RecordNode && r.Name == node {
			n++
		}
	}
	return n
}

// leaves reports whether a node has ended, and does not wait.
func leaves(r claybot.Record) bool {
	return r.Next != r.Name || r.Change != nil && r.Change.Scratch["visits"] != nil
}

// add is what a record tells of a visit.
func (v *stepVisit) add(r claybot.Record) {
	switch {
	case r.Type == claybot.RecordAssistant:
		for _, c := range r.ToolCalls {
			v.Calls = append(v.Calls, stepCall{ToolCall: c})
		}
	case r.Type == claybot.RecordTool:
		for i := range v.Calls {
			if c := &v.Calls[i]; c.ID == r.ToolCallID {
				c.Ended, c.OK, c.Out, c.MS, c.Tainted = true, r.OK, r.Text, r.MS, r.Tainted
			}
		}
	case r.Type == claybot.RecordQuestion && r.Question != nil:
		v.Asked = append(v.Asked, stepAsked{ID: r.Question.ID, Text: r.Question.Text})
	case r.Type == claybot.RecordAnswer && r.Answer != nil:
		for i := range v.Asked {
			if a := &v.Asked[i]; a.ID == r.Answer.Question {
				a.By, a.Answer = r.Answer.By, wordsOf(claybot.AgentMessage{Answer: &claybot.Result{To: r.Answer}})
			}
		}
	}
}

// end is what the record of its end tells of a visit. last has what nodes put out before, since only
// what changed is in a record.
func (v *stepVisit) end(r claybot.Record, last map[string]json.RawMessage) {
	v.At, v.Next, v.Reason, v.Usage, v.Model = r.At, r.Next, r.Text, r.Tokens, r.Model
	if r.Change != nil {
		if raw := r.Change.Scratch["error"]; raw != nil {
			var f stepFailure
			if json.Unmarshal(raw, &f) == nil && string(f.Node) == r.Name {
				v.Failed = &f
				return
			}
		}
		if raw := r.Change.Output[r.Name]; raw != nil {
			last[r.Name] = raw
		}
	}
	var out struct {
		Output  json.RawMessage `json:"output"`
		Tainted bool            `json:"tainted"`
		Usage   *claybot.Usage  `json:"token_usage"`
	}
	_ = json.Unmarshal(last[r.Name], &out) // what cannot be read is left out
	v.Out, v.Tainted = textOf(out.Output), out.Tainted
	if v.Usage == nil {
		v.Usage = out.Usage
	}
}

// textOf is a text without its quotes, and any other value as JSON.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return pretty(string(bytes.TrimSpace(raw)))
}

// viewFlowSteps joins the triggers and the nodes of a flow with what a run did.
func viewFlowSteps(v *flowView, seen seenFlow) (all []flowStep) {
	for _, t := range v.Triggers {
		s := flowStep{FlowNode: web.FlowNode{Name: entryMark + t.Name, Kind: "trigger", Next: []string{v.Start}}, Trigger: true, What: t.What, Mark: flowMarks[""]}
		if v.Run != nil && seen.entry == t.Name {
			s.Mark, s.Visits = mark{"good", "started the run"}, []*stepVisit{{Given: seen.given}}
		}
		all = append(all, s)
	}
	for _, n := range v.FlowDetail.Steps {
		was := stateOf(seen.graph, n.Name)
		s := flowStep{
			FlowNode: n, Mark: flowMarks[was.State], MS: was.MS, Entered: was.Visits, Visits: seen.visits[n.Name], agents: seen.children[n.Name],
		}
		if v.Run != nil && seen.failed == n.Name {
			s.Failed = v.Run.Error
		}
		all = append(all, s)
	}
	return all
}

// readChildren reads the newest run of each agent that a node started.
func (b *flowPages) readChildren(ctx context.Context, s *flowStep) error {
	for _, id := range s.agents {
		c := childView{Agent: id, Name: string(id)}
		agent, err := b.agents.Agent(ctx, id)
		if ignoreGone(err) != nil {
			return err
		}
		if d := agent.Descriptor; d.Type == claybot.AgentFlow {
			c.Name, c.Flow = d.FlowName(), true
		} else if err == nil {
			c.Name = calledAs(agent)
		}
		newest, err := b.runs.RunPage(ctx, storage.RunQuery{Agent: id, Limit: 1})
		if err != nil {
			return err
		}
		if len(newest) > 0 {
			c.Run = &newest[0]
		}
		s.Children = append(s.Children, c)
	}
	return nil
}

// drawFlow draws the graph of a flow with its triggers, each node as a link.
func drawFlow(v *flowView, seen seenFlow) *graphView {
	if len(v.FlowDetail.Steps) == 0 {
		return nil
	}
	shape := runs.Shape{Name: v.Name, Start: v.Start, Edges: make(map[string][]string)}
	p := pen{seen: seen.graph, label: "", steps: make(map[string]flowStep)}
	parts := make(map[string][]string)
	for _, s := range v.Steps {
		shape.Edges[s.Name], parts[s.Name] = s.Next, s.Parts
		p.steps[s.Name] = s
	}
	if len(v.Triggers) > 0 {
		shape.Start = entryMark + v.Triggers[0].Name
	}
	if first := entryMark + seen.entry; v.Run != nil && p.steps[first].Trigger {
		p.seen.Edges = append(slices.Clone(p.seen.Edges), runs.EdgeSeen{From: first, To: v.Start, Times: 1})
		p.seen.Nodes = append(slices.Clone(p.seen.Nodes), runs.NodeSeen{Node: first, State: runs.NodeDone})
	}
	g := &graphView{Name: v.Name, Where: "No run yet."}
	if v.Run != nil {
		g.Where = whereWords(seen.graph)
	}
	p.label = g.Where
	at := handPlaced{at: v.Layout, with: p.unfold(&shape, parts)}
	for _, s := range v.Steps {
		if s.Trigger {
			at.above, at.with[s.Name] = 1, v.Start
		}
	}
	g.SVG = template.HTML(p.draw(layoutAt(shape, at))) //nolint:gosec // names are escaped one by one
	return g
}

// about is the title of a node in a drawing.
func (s flowStep) about() string {
	words := s.Kind + ": " + s.Mark.Words
	if s.Trigger {
		words = "trigger: " + s.What
	}
	return strings.TrimPrefix(s.Name, entryMark) + ", " + words
}

// drawnID is the id of a node in a drawing.
func (s flowStep) drawnID() string {
	if s.Trigger {
		return "entry-" + strings.TrimPrefix(s.Name, entryMark)
	}
	return "node-" + s.Name
}

// class is how a node is drawn that is a link.
func (s flowStep) class() (class string) {
	if s.Trigger {
		class = " entry"
	}
	if s.Chosen {
		class += " chosen"
	}
	return class
}
