package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// agentRows is how many agents a list shows at once.
const agentRows = 50

func (b *board) agentRoutes() []web.Route {
	return []web.Route{
		b.screen("/ui/agents", "agents", b.agentList),
		b.part("/ui/agents/rows", "agents", "rows", b.agentList),
		b.part("/ui/agents/more", "agents", "later", b.agentList),
		b.screen("/ui/agents/{id}", "agent", b.agent),
		b.part("/ui/agents/{id}/top", "agent", "top", b.agent),
		b.part("/ui/agents/{id}/side", "agent", "side", b.agentSide),
		b.part("/ui/agents/{id}/questions", "agent", "questions", b.agentQuestions),
		b.part("/ui/agents/{id}/history", "agent", "lines", b.history),
		b.part("/ui/agents/{id}/earlier", "agent", "earlier", b.history),
		b.part("/ui/agents/{id}/settings", "agent", "settings", b.agentSettings),
		{Pattern: "GET /ui/agents/{id}/pictures/{file}", Scope: web.Read, Handler: http.HandlerFunc(b.picture)},
		b.act("POST /ui/agents/{id}/settings", web.Admin, b.configure),
		b.act("POST /ui/agents/{id}/stop", web.Operate, b.stopAgent),
		b.act("POST /ui/agents/{id}/reset", web.Operate, b.resetAgent),
		b.act("POST /ui/agents/{id}/drop", web.Operate, b.dropMessages),
		b.act("DELETE /ui/agents/{id}", web.Admin, b.deleteAgent),
	}
}

// An agentRow is one agent in a list. State is that of its run, or waiting, or
// idle.
type agentRow struct {
	storage.IndexEntry
	Name, State string
	Model       string // that it used last, where that matters for its cost
}

// Cost is what the agent took.
func (r agentRow) Cost() string { return cost(r.Usage, r.Model) }

// An agentsView is one screenful of the list.
type agentsView struct {
	Rows  []agentRow
	Type  string
	Owner string
	Busy  bool
	Types []claybot.AgentType
	Fresh string // the address of these rows
	Next  string // the address of those after them, empty at the end
}

// Filtered reports whether some agents are left out.
func (v agentsView) Filtered() bool { return v.Type != "" || v.Owner != "" || v.Busy }

func (b *board) agentList(r *http.Request) (any, error) {
	q := r.URL.Query()
	v := agentsView{
		Type: q.Get("type"), Owner: q.Get("owner"), Busy: q.Get("busy") != "",
		Types: []claybot.AgentType{claybot.AgentUser, claybot.AgentSubagent, claybot.AgentCron, claybot.AgentHeartbeat},
	}
	if v.Type != "" && !slices.Contains(v.Types, claybot.AgentType(v.Type)) {
		return nil, refused(http.StatusBadRequest, "There is no such type of agent.", "Choose one from the list.")
	}
	entries, err := b.Desk.AgentPage(r.Context(), storage.AgentQuery{
		Type: claybot.AgentType(v.Type), Owner: v.Owner, Busy: v.Busy,
		After: claybot.AgentID(q.Get("after")), Limit: agentRows + 1,
	})
	if err != nil {
		return nil, err
	}
	filter := url.Values{}
	for _, key := range []string{"type", "owner", "busy"} {
		if q.Get(key) != "" {
			filter.Set(key, q.Get(key))
		}
	}
	v.Fresh = "/ui/agents/rows?" + filter.Encode()
	if len(entries) > agentRows {
		entries = entries[:agentRows]
		filter.Set("after", string(entries[agentRows-1].ID))
		v.Next = "/ui/agents/more?" + filter.Encode()
	}
	for _, e := range entries {
		row, err := b.agentRow(r, e)
		if err != nil {
			return nil, err
		}
		v.Rows = append(v.Rows, row)
	}
	return v, nil
}

// agentRow asks for the run of an agent only where there is one: few work at a
// time. A run that has ended meanwhile is none.
func (b *board) agentRow(r *http.Request, e storage.IndexEntry) (agentRow, error) {
	row := agentRow{IndexEntry: e, Name: called(e.Descriptor), State: "idle"}
	if e.Waiting > 0 {
		row.State = "waiting"
	}
	var err error
	if row.Model, err = b.lastModel(r.Context(), e); err != nil {
		return row, err
	}
	if e.Run == "" {
		return row, nil
	}
	run, err := b.Desk.Run(r.Context(), e.Run)
	switch {
	case errors.Is(err, storage.ErrNotFound):
	case err != nil:
		return row, err
	case !run.State.Ended():
		row.State = string(run.State)
	}
	return row, nil
}

// lastModel is the model of the newest run of an agent that has tokens and no
// cost, see modelOf.
func (b *board) lastModel(ctx context.Context, e storage.IndexEntry) (string, error) {
	if e.Usage.CostMicroUSD != 0 || e.Usage.Input+e.Usage.Output == 0 {
		return "", nil
	}
	newest, err := b.Desk.RunPage(ctx, storage.RunQuery{Agent: e.ID, Limit: 2}) // the one at work has no sums yet
	for _, run := range newest {
		if model, err := b.modelOf(ctx, run); err != nil || model != "" {
			return model, err
		}
	}
	return "", err
}

func agentOf(r *http.Request) claybot.AgentID { return claybot.AgentID(r.PathValue("id")) }

func (b *board) stopAgent(w http.ResponseWriter, r *http.Request) error {
	n, err := b.Desk.StopAgent(r.Context(), agentOf(r))
	if err != nil {
		return err
	}
	if n == 0 {
		b.done(w, "Nothing was running.")
		return nil
	}
	b.done(w, "Stopping "+plural(n, "run", "runs")+".")
	return nil
}

func (b *board) resetAgent(w http.ResponseWriter, r *http.Request) error {
	if err := b.Desk.ResetAgent(r.Context(), agentOf(r)); err != nil {
		return err
	}
	b.done(w, "The agent begins a new conversation.")
	return nil
}

func (b *board) deleteAgent(w http.ResponseWriter, r *http.Request) error {
	if err := b.Desk.DeleteAgent(r.Context(), agentOf(r)); err != nil {
		return err
	}
	b.done(w, "The agent is deleted. Its files are in the quarantine.")
	return nil
}

// dropMessages takes the waiting messages that are named out of the inbox, or
// all of them when the form says so.
func (b *board) dropMessages(w http.ResponseWriter, r *http.Request) error {
	var ids []claybot.MessageID
	for _, id := range r.PostForm["message"] {
		ids = append(ids, claybot.MessageID(id))
	}
	if len(ids) == 0 && r.PostForm.Get("all") == "" {
		return refused(http.StatusBadRequest, "No message is named.", "Choose one, or drop all.")
	}
	dropped, err := b.Desk.Drop(r.Context(), agentOf(r), ids...)
	if err != nil {
		return err
	}
	if len(dropped) == 0 {
		return refused(http.StatusConflict, "Nothing was dropped: a run has taken it already.", "")
	}
	b.done(w, "Dropped "+plural(len(dropped), "message", "messages")+".")
	return nil
}
