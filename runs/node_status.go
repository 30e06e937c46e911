package runs

import (
	"slices"

	"github.com/claybot/claybot"
)

// The statuses of a NodeStatus.
const (
	StatusRunning = "running"
	StatusSuccess = "success"
	StatusFailed  = "failed"
	StatusWaiting = "waiting"
)

// A NodeStatus says what became of a node of a run or, with Call, of a call of a tool in it.
type NodeStatus struct {
	Node   string `json:"node_id"` // the name of the node, or of the tool
	Call   string `json:"call_id,omitempty"`
	Status string `json:"status"` // StatusRunning and the like
}

// NodeStatuses reads the statuses of nodes from the events of a run. The zero value is ready.
type NodeStatuses struct {
	view GraphView
	open []NodeStatus // calls that have not ended
}

// Add takes the next event of the run, in the order of their seq, and returns the statuses that it changes. A
// node that was cut off waits until it goes on; with the end of a run that did not succeed, nodes and calls that
// had not ended have failed.
func (s *NodeStatuses) Add(ev claybot.Event) (all []NodeStatus) {
	if call, ok := callOf(ev); ok {
		s.open = slices.DeleteFunc(s.open, func(o NodeStatus) bool { return o.Call == call.Call })
		if call.Status == StatusRunning || call.Status == StatusWaiting {
			s.open = append(s.open, call)
		}
		return []NodeStatus{call}
	}
	before := make(map[string]string, len(s.view.Nodes))
	for _, n := range s.view.Nodes {
		before[n.Node] = statusOf(n.State)
	}
	s.view.Add(ev)
	for _, n := range s.view.Nodes {
		status := statusOf(n.State)
		if ev.Type.Ends() && status == StatusWaiting {
			if status = StatusFailed; ev.Type == claybot.EventRunFinished {
				status = StatusSuccess
			}
		}
		if before[n.Node] != status {
			all = append(all, NodeStatus{Node: n.Node, Status: status})
		}
	}
	if ev.Type.Ends() && ev.Type != claybot.EventRunFinished {
		for _, call := range s.open {
			call.Status = StatusFailed
			all = append(all, call)
		}
	}
	return all
}

// callOf is the status of the call of a tool that an event is about; ok is false for other events.
func callOf(ev claybot.Event) (call NodeStatus, ok bool) {
	switch ev.Type {
	case claybot.EventToolCalled:
		d, _ := factOf[ToolStarted](ev)
		return NodeStatus{d.Tool, d.CallID, StatusRunning}, true
	case claybot.EventToolSucceeded, claybot.EventToolFailed:
		d, _ := factOf[ToolEnded](ev)
		status := StatusSuccess
		if ev.Type == claybot.EventToolFailed {
			status = StatusFailed
		}
		return NodeStatus{d.Tool, d.CallID, status}, true
	case claybot.EventToolWaiting:
		d, _ := factOf[ToolWaiting](ev)
		return NodeStatus{d.Tool, d.CallID, StatusWaiting}, true
	}
	return call, false
}

// statusOf is the status of a node by its state in a GraphView.
func statusOf(state string) string {
	switch state {
	case NodeRunning, NodeRetrying:
		return StatusRunning
	case NodeDone:
		return StatusSuccess
	case NodeFailed:
		return StatusFailed
	}
	return StatusWaiting
}
