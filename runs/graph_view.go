package runs

import (
	"encoding/json"
	"slices"

	"github.com/claybot/claybot"
)

// The states of a node in a GraphView.
const (
	NodeRunning  = "running"
	NodeRetrying = "retrying" // waits for its next try
	NodeWaiting  = "waiting"  // for answers
	NodeDone     = "done"
	NodeFailed   = "failed"
	NodeStopped  = "stopped" // cut off: by a shutdown, which it survives, or a cancel
)

// A GraphView is where a run is in its graph and which way it came, as far as
// its events tell. Of an engine that is no graph it has the parts of its loop,
// and no edges.
type GraphView struct {
	// Current is the node that works or waits; empty before the first one and
	// after the end of the run.
	Current string     `json:"current,omitempty"`
	Nodes   []NodeSeen `json:"nodes"` // in the order in which they were first entered
	Edges   []EdgeSeen `json:"edges"` // in the order in which they were first taken
}

// A NodeSeen is a node that a run has entered.
type NodeSeen struct {
	Node   string `json:"node"`
	Visits int    `json:"visits"` // how often it was entered; once more after each wait
	State  string `json:"state"`  // NodeRunning and the like
	Result string `json:"result,omitempty"`
	MS     int64  `json:"ms"` // milliseconds, of all visits that have ended
}

// An EdgeSeen is an edge that a run has taken.
type EdgeSeen struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Times  int    `json:"times"`
	Reason string `json:"reason,omitempty"` // of the last time
}

// GraphOf folds the events of a run, in the order of their seq.
func GraphOf(events []claybot.Event) GraphView {
	v := GraphView{Nodes: []NodeSeen{}, Edges: []EdgeSeen{}}
	for _, ev := range events {
		v.Add(ev)
	}
	return v
}

// Add folds the next event of the run. Events that tell nothing of the graph, or
// whose data cannot be read, change nothing.
func (v *GraphView) Add(ev claybot.Event) {
	switch ev.Type {
	case claybot.EventNodeStarted:
		if d, ok := factOf[NodeStarted](ev); ok && d.Node != "" {
			n := v.node(d.Node)
			n.State, n.Result = NodeRunning, ""
			n.Visits = max(n.Visits, d.Iteration, 1) // a node that was cut off is told to begin twice
			v.Current = d.Node
		}
	case claybot.EventNodeFinished:
		if d, ok := factOf[NodeFinished](ev); ok && d.Node != "" {
			n := v.node(d.Node)
			n.State, n.Result = nodeState(d.Result), d.Result
			n.Visits, n.MS = max(n.Visits, d.Iteration, 1), n.MS+max(d.MS, 0)
		}
	case claybot.EventEdgeTaken:
		if d, ok := factOf[EdgeTaken](ev); ok && d.From != "" && d.To != "" {
			for i := range v.Nodes {
				if n := &v.Nodes[i]; n.Node == d.From && n.State == NodeStopped { // a crash took the event of its end, not the record
					n.State, n.Result = NodeDone, d.Reason
				}
			}
			e := v.edge(d.From, d.To)
			e.Times++
			e.Reason = d.Reason
			if v.Current = d.To; d.To == End {
				v.Current = ""
			}
		}
	default:
		if ev.Type.Ends() {
			v.end(ev.Type)
		}
	}
}

// end closes what was open when the run ended.
func (v *GraphView) end(t claybot.EventType) {
	v.Current = ""
	for i := range v.Nodes {
		switch n := &v.Nodes[i]; {
		case n.State != NodeRunning && n.State != NodeRetrying && n.State != NodeWaiting:
		case t == claybot.EventRunFailed:
			n.State = NodeFailed
		case t == claybot.EventRunFinished:
			n.State = NodeDone
		default:
			n.State = NodeStopped
		}
	}
}

// nodeState reads the result with which a graph tells that a node has ended.
func nodeState(result string) string {
	switch result {
	case "waits":
		return NodeWaiting
	case "cut off":
		return NodeStopped
	case "failed":
		return NodeFailed
	case NodeRetrying:
		return NodeRetrying
	}
	return NodeDone
}

func (v *GraphView) node(name string) *NodeSeen {
	i := slices.IndexFunc(v.Nodes, func(n NodeSeen) bool { return n.Node == name })
	if i < 0 {
		i = len(v.Nodes)
		v.Nodes = append(v.Nodes, NodeSeen{Node: name})
	}
	return &v.Nodes[i]
}

func (v *GraphView) edge(from, to string) *EdgeSeen {
	i := slices.IndexFunc(v.Edges, func(e EdgeSeen) bool { return e.From == from && e.To == to })
	if i < 0 {
		i = len(v.Edges)
		v.Edges = append(v.Edges, EdgeSeen{From: from, To: to})
	}
	return &v.Edges[i]
}

// factOf reads the data of an event.
func factOf[T any](ev claybot.Event) (d T, ok bool) {
	return d, json.Unmarshal(ev.Data, &d) == nil
}
