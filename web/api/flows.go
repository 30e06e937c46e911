package api

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

// flowDesk serves the workflows; where there can be none, its operations fail.
type flowDesk struct {
	web.Flows
	web.FlowRuns
}

// payloadLimit is the most bytes of the payload of a flow.
const payloadLimit = 1 << 20

func (f flowDesk) operations() []operation {
	all := operation{tag: "flows", fails: []int{http.StatusNotFound, http.StatusConflict}, missing: hint{"No such flow.", "GET /flows lists all flows."}}.like(
		returns(http.StatusOK, op("listFlows", web.Read, "GET /flows", "List the workflows.").failing(http.StatusNotFound), func(r *http.Request) (web.FlowList, error) {
			return f.Flows.Flows(r.Context())
		}),
		takes(http.StatusOK, op("checkFlows", web.Read, "POST /flows/check", "Check files of workflows, without using them.").failing(http.StatusNotFound).upTo(4<<20), func(r *http.Request, in web.FlowFiles) (web.FlowFaults, error) {
			faults, err := f.CheckFlows(r.Context(), in.Files)
			return web.FlowFaults{Faults: orEmpty(faults)}, err
		}),
		takes(http.StatusAccepted, op("startFlow", web.Operate, "POST /flows/{flow}/runs", "Start a workflow.").tagged("flows").
			explained("claybot reserves the run id for the run. It acts for the owner of the flow.").query(keyHeaderParam).failing(http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity).upTo(2*payloadLimit), f.start).replying("claybot has stored the message and will process it."),
		returns(http.StatusOK, op("listWaitingRuns", web.Read, "GET /flows/{flow}/upgrade", "List the runs of a workflow that wait with an older version.").tagged("flows"), func(r *http.Request) (web.FlowUpgrade, error) {
			return f.WaitingRuns(r.Context(), r.PathValue("flow"))
		}),
		takes(http.StatusOK, op("upgradeRuns", web.Admin, "POST /flows/{flow}/upgrade", "Move waiting runs of a workflow to the version in force.").tagged("flows").
			explained("A run moves if the node in which it waits is in that version, and of the same kind."), func(r *http.Request, in web.FlowUpgradeRequest) (web.FlowUpgraded, error) {
			if in.Version == "" {
				return web.FlowUpgraded{}, bad("The field version is empty.", "GET /flows/{flow}/upgrade shows the version in force, and what is different.")
			}
			return f.UpgradeRuns(r.Context(), r.PathValue("flow"), in.Version, web.User(r))
		}),
		returns(http.StatusOK, op("recordRun", web.Read, "GET /agents/runs/{run}/case", "Make a test case of a run of a workflow.").tagged("flows").unknown(noRun), func(r *http.Request) (web.FlowCase, error) {
			return f.RecordFlow(r.Context(), runOf(r))
		}),
		takes(http.StatusAccepted, op("replayRun", web.Operate, "POST /agents/runs/{run}/replay", "Replay a run of a workflow.").tagged("flows").
			explained("A new run uses the results of one that has ended again. It acts for the person of that run.").unknown(noRun).query(keyHeaderParam), f.replay).replying("claybot has stored the message and will process it."),
	)
	return whereOn(f.Flows != nil, noFlows, all)
}

var noFlows = &web.Problem{Status: http.StatusNotFound, Code: "off", Message: "This daemon has no workflows."}

func (f flowDesk) start(r *http.Request, in web.FlowStart) (web.Accepted, error) {
	return f.begin(r, r.PathValue("flow"), in)
}

// begin starts a flow for the caller.
func (f flowDesk) begin(r *http.Request, name string, in web.FlowStart) (none web.Accepted, err error) {
	id, from, err := flowMessage(r, in.Key)
	switch n := utf8.RuneCountInString(in.Text); {
	case err != nil:
		return none, err
	case n > textLimit:
		return none, bad(fmt.Sprintf("The field text has %d characters; the limit is %d.", n, textLimit), "")
	case len(in.Payload) > payloadLimit:
		return none, bad(fmt.Sprintf("The field payload has %d bytes; the limit is %d.", len(in.Payload), payloadLimit), "")
	}
	got, err := f.StartFlow(r.Context(), id, name, from, in)
	return web.Accepted{Accepted: got, Stream: streamPath(got.Run)}, err
}

// flowMessage returns the id and the sender of the message with which the caller starts a flow.
func flowMessage(r *http.Request, key string) (claybot.MessageID, claybot.Sender, error) {
	key = cmp.Or(keyOf(r, key), rand.Text())
	if len(key) > 128 || !keyForm.MatchString(key) {
		return "", claybot.Sender{}, bad("The idempotency key must be 1 to 128 letters, digits and . _ : -", "")
	}
	caller := web.CallerOf(r)
	id := claybot.MessageID(claybot.ConnectorAPI + "/" + caller.Name + "/flow/" + key)
	return id, claybot.Sender{UserID: caller.Name, Name: caller.Name, Program: true, NoRules: true}, nil
}

func (f flowDesk) replay(r *http.Request, in web.FlowReplay) (none web.Accepted, err error) {
	id, from, err := flowMessage(r, in.Key)
	switch {
	case err != nil:
		return none, err
	case in.Live && !web.CallerOf(r).Scope.Allows(web.Admin):
		return none, forbidden("A live replay acts for the person of the run, and needs the scope admin.", "Leave out live for a dry run, or use a token with the scope admin.")
	case !in.Live && len(in.Again) > 0:
		return none, bad("again goes with live.", "In a dry run, nothing acts.")
	}
	got, err := f.ReplayFlow(r.Context(), id, runOf(r), from, in)
	return web.Accepted{Accepted: got, Stream: streamPath(got.Run)}, err
}
