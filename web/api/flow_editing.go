package api

import (
	"net/http"
	"slices"

	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/web"
)

// flowEditing serves the files of workflows; where there can be none, its operations fail.
type flowEditing struct{ web.FlowEditor }

func (f flowEditing) operations() []operation {
	version := param{name: "version", about: "A version that was in force once. Default: the file as it is."}
	all := operation{tag: "flows", fails: []int{http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable}, missing: hint{"No such flow.", "GET /flows lists all flows."}}.like(
		returns(http.StatusOK, op("getFlowFile", web.Read, "GET /flows/{flow}/file", "Get the file of a workflow.").failing(http.StatusNotFound).query(version), func(r *http.Request) (web.FlowFile, error) {
			out, err := f.FlowFile(r.Context(), r.PathValue("flow"), r.URL.Query().Get("version"))
			out.Layout.Nodes = orNowhere(out.Layout.Nodes)
			return out, err
		}),
		takes(http.StatusOK, op("proposeFlow", web.Admin, "POST /flows/{flow}/file/diff", "Show what a change would make of the file of a workflow, and its faults.").
			explained("Nothing is changed.").upTo(4*flows.MaxFile), func(r *http.Request, in web.FlowChange) (web.FlowProposal, error) {
			return f.changed(r, in, false)
		}),
		takes(http.StatusOK, op("saveFlow", web.Admin, "PUT /flows/{flow}/file", "Change the file of a workflow, and put it in force.").
			explained("A text with a fault is refused, and nothing changes. New positions alone leave the file as it is, and are saved also while it has faults. A change that is based on another text than the file has is answered with 409. In a cluster, only the file of the member that answers changes.").
			upTo(4*flows.MaxFile), func(r *http.Request, in web.FlowChange) (web.FlowProposal, error) {
			return f.changed(r, in, true)
		}),
		returns(http.StatusOK, op("flowHistory", web.Admin, "GET /flows/{flow}/file/history", "List the changes of the file of a workflow that were made with claybot.").failing(http.StatusNotFound), func(r *http.Request) (web.FlowSaves, error) {
			all, err := f.FlowHistory(r.Context(), r.PathValue("flow"))
			slices.Reverse(all)
			return web.FlowSaves{Changes: orEmpty(all)}, err
		}),
	)
	return whereOn(f.FlowEditor != nil, noFlows, all)
}

// changed makes a change, or shows what it would make.
func (f flowEditing) changed(r *http.Request, in web.FlowChange, save bool) (out web.FlowProposal, err error) {
	switch {
	case in.Text == "" && len(in.Edits) == 0 && in.Layout == nil:
		return out, bad("The fields text, edits and layout are empty.", "Send the new text of the file, or edits of the text that it has.")
	case save:
		out, err = f.SaveFlow(r.Context(), r.PathValue("flow"), in, web.User(r))
	default:
		out, err = f.ProposeFlow(r.Context(), r.PathValue("flow"), in)
	}
	out.Diff, out.Faults, out.Layout.Nodes = orEmpty(out.Diff), orEmpty(out.Faults), orNowhere(out.Layout.Nodes)
	return out, err
}

// orNowhere is a layout that is an object in JSON.
func orNowhere(l flows.Layout) flows.Layout {
	if l == nil {
		return flows.Layout{}
	}
	return l
}
