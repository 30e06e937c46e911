package web

import (
	"context"
	"net/http"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
)

// FlowEditor reads and changes the files of workflows. Only people who administrate claybot change
// them, agents never do.
type FlowEditor interface {
	// FlowFile returns the file of a flow as it is, or a version that was in force once.
	FlowFile(ctx context.Context, name, version string) (FlowFile, error)
	// ProposeFlow returns what a change would make of the file of a flow. It changes nothing. It returns
	// ErrFlowStale for a change that is based on another text of the file.
	ProposeFlow(ctx context.Context, name string, c FlowChange) (FlowProposal, error)
	// SaveFlow makes a change of the file of a flow that has no fault, and puts it in force.
	SaveFlow(ctx context.Context, name string, c FlowChange, by string) (FlowProposal, error)
	// FlowHistory lists the changes that SaveFlow has made of a file, the oldest first.
	FlowHistory(ctx context.Context, name string) ([]FlowSaved, error)
}

// ErrFlowStale is of a change that is based on another text of the file.
var ErrFlowStale error = &Problem{
	Status: http.StatusConflict, Code: "stale", Message: "The file of the workflow has been changed meanwhile; nothing was changed.",
	Fix: "Read it again, and repeat the change on what it says now.",
}

// A FlowFile is the text of a workflow.
type FlowFile struct {
	Flow    string `json:"flow"`
	File    string `json:"file" doc:"Path of the file."`
	Version string `json:"version" doc:"Version of the text, for a change that is based on it."`
	Text    string `json:"text"`

	Layout FlowLayout `json:"layout" doc:"Where its nodes are on the canvas."`
}

// A FlowLayout is the file with the positions of the nodes of a workflow, beside that of the workflow.
type FlowLayout struct {
	File    string       `json:"file" doc:"Path of the file, which may be missing."`
	Version string       `json:"version" doc:"Version of its text; empty where there is no file."`
	Nodes   flows.Layout `json:"nodes" doc:"Positions of nodes, and of END, by their names. Nodes without one are placed by their edges."`
	Hints   []FlowFault  `json:"hints,omitempty" doc:"What of the file is not used, and why. It changes nothing else."`
}

// A FlowLayoutChange is the new layout of a workflow.
type FlowLayoutChange struct {
	Version string       `json:"version" doc:"Version of the layout that the change is based on, as GET /flows/{flow}/file shows it; empty where there is no file."`
	Nodes   flows.Layout `json:"nodes" doc:"All positions, by the names of nodes before or after the edits; none removes the file. Those of nodes that the workflow does not have are left out."`
}

// A FlowChange is a change of the file of a workflow: its new text, or edits of the text that it has.
type FlowChange struct {
	Version string       `json:"version" doc:"Version of the text that the change is based on, as GET /flows/{flow}/file shows it; empty for a new file."`
	Text    string       `json:"text,omitempty" doc:"The new text of the file, on which edits are made. Default: the text that it has."`
	Edits   []flows.Edit `json:"edits,omitempty" doc:"Changes of single values, made one after the other. All else in the file stays as it is, comments and the order of keys included."`

	Layout *FlowLayoutChange `json:"layout,omitempty" doc:"New positions of nodes on the canvas. Default: the positions stay; one of a node that an edit renames or removes goes with it."`
}

// A FlowProposal is what a change makes of the file of a workflow.
type FlowProposal struct {
	Flow    string         `json:"flow"`
	File    string         `json:"file" doc:"Path of the file."`
	Version string         `json:"version" doc:"Version of the new text."`
	Text    string         `json:"text" doc:"The new text."`
	Diff    []FlowDiffLine `json:"diff" doc:"The lines that differ, with three equal lines around them."`
	Faults  []FlowFault    `json:"faults" doc:"What is wrong with the new text, and with other workflows because of it. With a fault it is not saved."`
	Layout  FlowLayout     `json:"layout" doc:"Where the nodes are on the canvas then; its version is that of the new layout."`
	Start   string         `json:"-"` // the node that the new text begins with
	Forms   []flows.Form   `json:"-"` // its nodes, for a form
	InForce bool           `json:"inForce" doc:"The new text is in force. After a save it is not only while another file has a fault."`
}

// A FlowDiffLine is a line of a difference.
type FlowDiffLine struct {
	Mark string `json:"mark" doc:"+ for a new line, - for one that goes, a blank for one that stays; empty between groups of lines."`
	Text string `json:"text"`
}

// A FlowSaved is one change of the file of a workflow.
type FlowSaved struct {
	At     claybot.Time `json:"at"`
	By     string       `json:"by"`
	Before string       `json:"before,omitempty" doc:"Version of the text before; missing for a new file."`
	After  string       `json:"after" doc:"Version of the text after. GET /flows/{flow}/file?version= shows one that was in force."`
}

// FlowSaves are the changes of the file of a workflow.
type FlowSaves struct {
	Changes []FlowSaved `json:"changes" doc:"The newest first."`
}
