package web

import (
	"context"
	"encoding/json"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/flows"
)

// Flows shows and checks the workflows of the installation, and what their runs did.
type Flows interface {
	// Flows lists the flows in force, and the faults of files that are not.
	Flows(ctx context.Context) (FlowList, error)
	// Flow returns a flow with its nodes: in a version with which runs began, or in force where
	// version is empty. One that is not kept is storage.ErrNotFound.
	Flow(ctx context.Context, name, version string) (FlowDetail, error)
	// CheckFlows returns the faults of files by their names, in order. It changes nothing.
	CheckFlows(ctx context.Context, files map[string]string) ([]FlowFault, error)
	// RecordFlow makes a test case of a run that has ended, without what its way does not depend on.
	RecordFlow(ctx context.Context, run claybot.RunID) (FlowCase, error)
	// Replied returns the whole text of the last reply of a run, by its records; empty for a run that is of no
	// flow, made none, or whose version is not kept.
	Replied(ctx context.Context, run claybot.Run, records []claybot.Record) (string, error)
}

// FlowRuns starts runs of workflows, and moves them to another version.
type FlowRuns interface {
	// StartFlow starts a run of a flow. The same id starts nothing new, see Starter. A
	// Refusal says why it cannot be started.
	StartFlow(ctx context.Context, id claybot.MessageID, name string, from claybot.Sender, in FlowStart) (agentsystem.Accepted, error)
	// WaitingRuns lists the runs of a flow that wait with a version which is not in force.
	WaitingRuns(ctx context.Context, name string) (FlowUpgrade, error)
	// UpgradeRuns moves those that can go on with a version to it. A Refusal says that the version is not
	// in force.
	UpgradeRuns(ctx context.Context, name, version, by string) (FlowUpgraded, error)
	// ReplayFlow starts a run that uses the results of another one again, see StartFlow.
	ReplayFlow(ctx context.Context, id claybot.MessageID, run claybot.RunID, from claybot.Sender, in FlowReplay) (agentsystem.Accepted, error)
}

// A FlowList is the flows of the installation.
type FlowList struct {
	Flows  []FlowView  `json:"flows"`
	Faults []FlowFault `json:"faults,omitempty" doc:"Of files that are not in force; the flows are those before them."`
}

// A FlowView is one flow.
type FlowView struct {
	Name        string        `json:"name"`
	Description string        `json:"description,omitempty"`
	Version     string        `json:"version" doc:"Changes with the text of the file. A run ends on the version with which it began."`
	Owner       string        `json:"owner"`
	Triggers    []FlowTrigger `json:"triggers"`
	Input       []FlowInput   `json:"input,omitempty" doc:"The fields that the payload has to have. Default: any payload fits."`
	Nodes       int           `json:"nodes"`
	Graph       string        `json:"graph" doc:"The name of its graph, see GET /graphs."`
}

// A FlowDetail is a flow with its nodes.
type FlowDetail struct {
	FlowView
	Start string     `json:"start"`
	Steps []FlowNode `json:"steps" doc:"Its nodes, in the order of the file."`

	Layout flows.Layout `json:"layout,omitempty" doc:"Positions of nodes on the canvas, in pixels; nodes without one are placed by their edges."`
}

// A FlowNode is a node of a flow.
type FlowNode struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind"`
	Note  string   `json:"note,omitempty"`
	Next  []string `json:"next" doc:"The nodes that may follow, the usual one first; END ends the run."`
	Parts []string `json:"parts,omitempty" doc:"The branches of a node of the kind parallel; item for the agents of one of the kind each."`
	Line  int      `json:"line" doc:"Where the node begins in the file."`
	Text  string   `json:"text" doc:"The node as the file has it."`
}

// A FlowTrigger is what starts a flow.
type FlowTrigger struct {
	Name string `json:"name"`
	What string `json:"what" doc:"In words."`
}

// A FlowInput is a field of the payload of a flow.
type FlowInput struct {
	Name string `json:"name"`
	Want string `json:"want" doc:"What fits, in words."`
}

// A FlowFault is what is wrong with a file of a flow.
type FlowFault struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Key  string `json:"key,omitempty"`
	Text string `json:"text"`
	Near string `json:"near,omitempty" doc:"The known word that an unknown one resembles."`
}

// A FlowStart is what a run of a flow begins with.
type FlowStart struct {
	Text    string          `json:"text,omitempty" doc:"What templates read as trigger.text."`
	Payload json.RawMessage `json:"payload,omitempty" doc:"What templates read as trigger.payload: any JSON value."`
	Dry     bool            `json:"dry,omitempty" doc:"Nothing that acts is called, no person is asked, nothing is sent: the run says what it would do."`
	Trigger string          `json:"trigger,omitempty" doc:"The trigger that it stands for. Default: the first one."`
	Key     string          `json:"idempotencyKey,omitempty" doc:"A retry with the same key starts nothing new. 1 to 128 letters, digits and . _ : -"`
}

// A FlowReplay says how a run of a flow is replayed.
type FlowReplay struct {
	From    string   `json:"from,omitempty" doc:"The node with which the run begins, with what the nodes before it put out the first time. Default: the first node."`
	Live    bool     `json:"live,omitempty" doc:"Nodes work again, but for those that have acted: what they put out is used again. Needs the scope admin. Default: a dry run, in which nothing acts."`
	Again   []string `json:"again,omitempty" doc:"With live: nodes that act again, once that is approved, although they have acted."`
	AsBegun bool     `json:"asBegun,omitempty" doc:"Use the version of the flow with which the run began. Default: the version in force."`
	Key     string   `json:"idempotencyKey,omitempty" doc:"A retry with the same key starts nothing new. 1 to 128 letters, digits and . _ : -"`
}

// A FlowUpgrade is what waits with older versions of a flow.
type FlowUpgrade struct {
	Flow    string            `json:"flow"`
	Version string            `json:"version" doc:"The version in force."`
	Text    string            `json:"text" doc:"The file in force."`
	Texts   map[string]string `json:"texts" doc:"The files of the older versions, as far as they are kept."`
	Runs    []FlowWaiting     `json:"runs"`
}

// A FlowWaiting is a run that waits with an older version of its flow.
type FlowWaiting struct {
	Run     claybot.RunID `json:"runId"`
	Version string        `json:"version" doc:"With which it goes on."`
	Node    string        `json:"node" doc:"In which it waits."`
	Since   claybot.Time  `json:"started"`
	Why     string        `json:"why,omitempty" doc:"Why it cannot be moved."`
}

// A FlowUpgradeRequest moves waiting runs.
type FlowUpgradeRequest struct {
	Version string `json:"version" doc:"The version in force, as GET /flows/{flow}/upgrade shows it."`
}

// A FlowUpgraded is what became of waiting runs.
type FlowUpgraded struct {
	Moved []claybot.RunID `json:"moved"`
	Kept  []FlowWaiting   `json:"kept" doc:"Runs that stay with their version."`
}

// A FlowCase is a test case of a flow.
type FlowCase struct {
	Flow    string          `json:"flow"`
	Version string          `json:"version" doc:"The version with which the run began."`
	Case    json.RawMessage `json:"case" doc:"As a file with test cases has it, see claybot flow test. Texts on which the way of the run does not depend are replaced."`
}

// FlowFiles are files to check.
type FlowFiles struct {
	Files map[string]string `json:"files" doc:"The texts by the names of the files, such as refund.yaml."`
}

// FlowFaults are the faults of files.
type FlowFaults struct {
	Faults []FlowFault `json:"faults"`
}
