package dashboard

import "net/http"

// The texts of the page that changes workflows.
const (
	doneFlowSaved   = "Saved, and in force."
	doneFlowWaits   = "Saved. It is not in force while another file has a fault."
	badFlowEmpty    = "The file is empty."
	badFlowNode     = "A name of a node has letters, digits and _, and begins with a letter."
	badFlowKnown    = "There is a node of that name already."
	badFlowKind     = "Choose a kind from the list."
	badFlowAfter    = "Choose the node behind which the new one goes."
	badFlowEdge     = "There is no such edge."
	badFlowPlace    = "There is no such position."
	flowEditMend    = "Nothing was changed."
	flowEditHeading = "Edit %s"
)

var errFlowLive = problem(http.StatusForbidden, "scope", "A live replay acts for the person of the run, and needs the scope admin.", "Replay it dry.")
