package dashboard

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

const (
	// flowAgents is how many agents of flows are looked at for the runs of a flow: the newest.
	flowAgents = 200
	// flowNewest is how many runs of a flow the list of flows shows, flowRuns how many its page.
	flowNewest, flowRuns = 3, 20
	// flowTextMost and flowPayloadMost bound what a run is started with, as in the API.
	flowTextMost, flowPayloadMost = 100_000, 1 << 20
)

// flowPages are the pages of workflows.
type flowPages struct {
	*pages
	rows   lookup
	asked  *questionPages
	flows  web.Flows // nil: there can be none, as starts
	starts web.FlowRuns
	edits  bool // files can be changed
	agents web.Agents
	runs   web.Runs
	system web.System
}

func (b *flowPages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/flows", "flows", b.all),
		b.part("/ui/flowlist", "flows", "flows-now", b.all), // beside /ui/flows/, where each name is that of a flow
		b.screen("/ui/flows/{flow}", "flow", b.flow),
		b.part("/ui/flows/{flow}/now", "flow", "flow-now", b.flow),
		b.form("POST /ui/flows/{flow}/runs", web.Operate, b.start),
		b.form("POST /ui/flows/{flow}/replay", web.Operate, b.replay),
	}
}

// A flowsView is the list of flows.
type flowsView struct {
	viewer
	Flows  []flowRow
	Faults []web.FlowFault
}

// A flowRow is a flow with its newest runs.
type flowRow struct {
	web.FlowView
	Runs []runRow
}

func (b *flowPages) all(r *http.Request) (any, error) {
	if b.flows == nil {
		return nil, errPage
	}
	list, err := b.flows.Flows(r.Context())
	if err != nil {
		return nil, err
	}
	agents, err := b.newest(r.Context())
	if err != nil {
		return nil, err
	}
	v := flowsView{viewer: viewerOf(r), Faults: list.Faults}
	for _, f := range list.Flows {
		row := flowRow{FlowView: f}
		row.Runs, err = b.runsOf(r.Context(), agents, f.Name, flowNewest)
		if err != nil {
			return nil, err
		}
		v.Flows = append(v.Flows, row)
	}
	return v, nil
}

// newest are the newest agents of flows: each has one run, or all runs with one key.
func (b *flowPages) newest(ctx context.Context) ([]storage.IndexEntry, error) {
	return b.agents.AgentPage(ctx, storage.AgentQuery{Type: claybot.AgentFlow, Limit: flowAgents})
}

// runsOf are the newest runs of a flow by some agents, the newest first, at most n.
func (b *flowPages) runsOf(ctx context.Context, agents []storage.IndexEntry, flow string, n int) (all []runRow, err error) {
	looked := 0
	for _, a := range agents {
		if a.Descriptor.FlowName() != flow {
			continue
		}
		if looked++; looked > n {
			break
		}
		some, err := b.runs.RunPage(ctx, storage.RunQuery{Agent: a.ID, Limit: n})
		if err != nil {
			return nil, err
		}
		for _, run := range some {
			all = append(all, runRow{Run: run, Name: a.Descriptor.Name, Of: a.Descriptor})
		}
	}
	slices.SortFunc(all, func(a, b runRow) int { return cmp.Compare(b.ID, a.ID) })
	return all[:min(n, len(all))], nil
}

// A flowView is a flow with its graph, and one of its runs.
type flowView struct {
	viewer
	web.FlowDetail
	Gone, Older bool // the flow is not in force; the run began with another version
	Graph       *graphView
	Steps       []flowStep
	Chosen      *flowStep // that is shown in full
	Run         *runRow   // nil: it never ran
	Picked      bool      // the run was chosen, otherwise it is the newest one
	Runs        []runRow
	Questions   []asked
	Key         string // makes two presses of the button one run
	Edits       bool   // the user may change the file
}

// Title is the name of the flow.
func (v flowView) Title() string { return v.Name }

// Live is the address of what changes.
func (v flowView) Live() string { return v.address("/now", v.picked(), v.chosen()) }

// ChooseRun is the address that shows a run.
func (v flowView) ChooseRun(id claybot.RunID) string { return v.address("", string(id), v.chosen()) }

// choose is the address that shows a node.
func (v flowView) choose(step string) string { return v.address("", v.picked(), step) + "#step" }

func (v flowView) picked() string {
	if v.Picked && v.Run != nil {
		return string(v.Run.ID)
	}
	return ""
}

func (v flowView) chosen() string {
	if v.Chosen != nil {
		return v.Chosen.Name
	}
	return ""
}

func (v flowView) address(part, run, step string) string {
	q := url.Values{}
	for key, value := range map[string]string{"run": run, "node": step} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return strings.TrimSuffix("/ui/flows/"+url.PathEscape(v.Name)+part+"?"+q.Encode(), "?")
}

func (b *flowPages) flow(r *http.Request) (any, error) {
	if b.flows == nil {
		return nil, errPage
	}
	ctx, q, name := r.Context(), r.URL.Query(), r.PathValue("flow")
	v := flowView{viewer: viewerOf(r), Picked: q.Get("run") != "", Key: rand.Text()}
	v.Edits = b.edits && v.Administers()
	var err error
	v.FlowDetail, err = b.flows.Flow(ctx, name, "")
	if v.Gone = errors.Is(err, storage.ErrNotFound); v.Gone {
		v.Name = name
	} else if err != nil {
		return nil, err
	}
	agents, err := b.newest(ctx)
	if err != nil {
		return nil, err
	}
	newest, err := b.runsOf(ctx, agents, name, flowRuns)
	if err != nil {
		return nil, err
	}
	if v.Gone && len(newest) == 0 && !v.Picked {
		return nil, errNoFlow
	}
	v.Runs = newest
	if err := b.pick(ctx, &v, q.Get("run")); err != nil {
		return nil, err
	}
	return v, b.show(r, &v, q.Get("node"))
}

// pick chooses the run that is shown, with the version of the flow with which it began.
func (b *flowPages) pick(ctx context.Context, v *flowView, id string) error {
	if id == "" && len(v.Runs) == 0 {
		return nil
	}
	if id == "" {
		id = string(v.Runs[0].ID)
	}
	run, err := b.runs.Run(ctx, claybot.RunID(id))
	if err != nil {
		return err
	}
	agent, err := b.agents.Agent(ctx, run.Agent)
	if err != nil {
		return err
	}
	if d := agent.Descriptor; d.Type != claybot.AgentFlow || d.FlowName() != v.Name {
		return errFlowRun
	}
	v.Run = &runRow{Run: run, Name: agent.Descriptor.Name, Of: agent.Descriptor}
	_, version, begun := strings.Cut(strings.TrimPrefix(run.Engine, claybot.EngineFlow+":"), "@")
	if begun && version == v.Version || !begun && !v.Gone {
		return nil
	}
	v.Older = true
	old, err := b.flows.Flow(ctx, v.Name, version)
	switch {
	case errors.Is(err, storage.ErrNotFound) && v.Gone:
		return errFlowVersion
	case errors.Is(err, storage.ErrNotFound):
		return nil // its records are shown in the graph in force, as far as they fit
	case err == nil:
		v.FlowDetail = old
	}
	return err
}

// show reads what the run did, and draws it.
func (b *flowPages) show(r *http.Request, v *flowView, chosen string) error {
	var seen seenFlow
	if v.Run != nil {
		var err error
		if seen, err = b.readFlow(r, v); err != nil {
			return err
		}
	}
	v.Steps = viewFlowSteps(v, seen)
	for i := range v.Steps {
		if s := &v.Steps[i]; s.Name == chosen {
			s.Chosen, v.Chosen = true, s
		}
	}
	if v.Chosen != nil && v.Run != nil {
		if err := b.readChildren(r.Context(), v.Chosen); err != nil {
			return err
		}
	}
	for i := range v.Steps {
		v.Steps[i].URL = v.choose(v.Steps[i].Name)
	}
	v.Graph = drawFlow(v, seen)
	return nil
}

// start starts a run, and leads to it.
func (b *flowPages) start(w http.ResponseWriter, r *http.Request) error {
	if b.flows == nil {
		return errPage
	}
	name := r.PathValue("flow")
	in, err := startOf(r.Form)
	if err != nil {
		return err
	}
	// What is different is another run, also from a page that the browser has kept.
	key := pressKey("flow", name, r.Form.Get("key"), in.Text, string(in.Payload), in.Trigger, strconv.FormatBool(in.Dry))
	who := web.User(r)
	got, err := b.starts.StartFlow(r.Context(), claybot.MessageID(chatConnector+"/"+who+"/flow/"+key), name, claybot.Sender{UserID: who, Name: who, Program: true, NoRules: true}, in)
	if errors.Is(err, storage.ErrNotFound) {
		return errNoFlow
	}
	if err != nil {
		return err
	}
	b.to(w, name, got.Run)
	return nil
}

// Replays reports whether the user may replay the run that is shown.
func (v flowView) Replays() bool {
	return v.Operates() && !v.Gone && v.Run != nil && v.Run.State.Ended() && !v.Run.Dry()
}

// ReplaysLive reports whether the user may have nodes of the run act again. A live replay is not the run that
// knows what they did.
func (v flowView) ReplaysLive() bool {
	return v.Administers() && v.Replays() && !v.Run.Of.LiveReplay()
}

// ReplayFrom is the chosen node, if the run that is shown came there; empty: the first one.
func (v flowView) ReplayFrom() string {
	if v.Chosen == nil || v.Chosen.Trigger || v.Chosen.Entered == 0 {
		return ""
	}
	return v.Chosen.Name
}

// replay replays a run, and leads to the new one.
func (b *flowPages) replay(w http.ResponseWriter, r *http.Request) error {
	if b.flows == nil {
		return errPage
	}
	run, in := r.PostForm.Get("run"), web.FlowReplay{From: r.PostForm.Get("from"), Live: r.PostForm.Get("live") == "true"}
	if in.Live && !viewerOf(r).Administers() {
		return errFlowLive
	}
	who := web.User(r)
	key := pressKey("replay", run, r.PostForm.Get("key"), in.From, strconv.FormatBool(in.Live))
	got, err := b.starts.ReplayFlow(r.Context(), claybot.MessageID(chatConnector+"/"+who+"/flow/"+key), claybot.RunID(run), claybot.Sender{UserID: who, Name: who, Program: true, NoRules: true}, in)
	if err != nil {
		return err
	}
	b.to(w, r.PathValue("flow"), got.Run)
	return nil
}

// to leads to a run of a flow that was started.
func (b *flowPages) to(w http.ResponseWriter, flow string, run claybot.RunID) {
	w.Header().Set("HX-Redirect", flowView{FlowDetail: web.FlowDetail{FlowView: web.FlowView{Name: flow}}}.address("", string(run), ""))
	b.done(w, doneFlow)
}

// startOf reads the form of a start.
func startOf(form url.Values) (in web.FlowStart, err error) {
	in = web.FlowStart{Text: strings.ReplaceAll(form.Get("text"), "\r\n", "\n"), Trigger: form.Get("trigger"), Dry: form.Get("dry") != ""}
	payload := strings.TrimSpace(form.Get("payload"))
	switch {
	case utf8.RuneCountInString(in.Text) > flowTextMost:
		return in, errFlowText
	case len(payload) > flowPayloadMost:
		return in, errFlowPayload
	case payload == "":
		return in, nil
	}
	var value json.RawMessage
	if err := json.Unmarshal([]byte(payload), &value); err != nil {
		words := fmt.Sprintf(badPayload, whereIn(payload, err))
		return in, &web.Problem{Status: http.StatusBadRequest, Code: "refused", Message: words, Fix: mendPayload, Fields: map[string]string{"payload": words}}
	}
	in.Payload = value
	return in, nil
}

// whereIn says where JSON is broken, and how.
func whereIn(text string, err error) string {
	broken, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return err.Error()
	}
	before := text[:min(max(int(broken.Offset)-1, 0), len(text))]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return fmt.Sprintf("line %d, column %d: %s", strings.Count(before, "\n")+1, utf8.RuneCountInString(line)+1, broken)
}
