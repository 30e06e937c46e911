package dashboard

import "net/http"

// The texts of the page that changes workflows.
const (
	doneFlowSaved   = "Saved, and in force."
	doneFlowWaits   = "Saved. It is not in force while another file has a fault."
	badFlowEmpty    = "The file is empty."
	badFlowNode     = "That is no name of a node: use letters, digits and _, a letter first."
	badFlowKnown    = "There is a node of that name already."
	badFlowKind     = "There is no such kind."
	badFlowAfter    = "Choose the node before it."
	badFlowEdge     = "There is no such edge."
	flowEditMend    = "Nothing was changed."
	flowEditHeading = "Edit %s"
)

var errFlowLive = problem(http.StatusForbidden, "scope", "A live replay acts for the person of the run, and needs the scope admin.", "Replay it dry.")
