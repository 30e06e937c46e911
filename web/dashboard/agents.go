package dashboard

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// agentRows is how many agents a list shows at once.
const agentRows = 50

// agentPages are the pages of agents and what surrounds them.
type agentPages struct {
	*pages
	rows      lookup
	asked     *questionPages
	bench     *toolPages
	agents    web.Agents
	control   web.AgentControl
	settings  web.Settings
	inboxes   web.Inboxes
	reminders web.Reminders
	runs      web.Runs
	files     web.Files
}

func (b *agentPages) routes() []web.Route {
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

// An agentRow is one agent in a list.
type agentRow struct {
	web.AgentView
	Name  string
	Model string // that it used last, where that matters for its cost
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

func (b *agentPages) agentList(r *http.Request) (any, error) {
	q := r.URL.Query()
	v := agentsView{
		Type: q.Get("type"), Owner: q.Get("owner"), Busy: q.Get("busy") != "",
		Types: []claybot.AgentType{claybot.AgentUser, claybot.AgentSubagent, claybot.AgentCron, claybot.AgentHeartbeat},
	}
	if v.Type != "" && !slices.Contains(v.Types, claybot.AgentType(v.Type)) {
		return nil, refused(http.StatusBadRequest, "There is no such type of agent.", "Choose one from the list.")
	}
	entries, err := b.agents.AgentPage(r.Context(), storage.AgentQuery{
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
		row, err := b.rows.agentRow(r, e)
		if err != nil {
			return nil, err
		}
		v.Rows = append(v.Rows, row)
	}
	return v, nil
}

func agentOf(r *http.Request) claybot.AgentID { return claybot.AgentID(r.PathValue("id")) }

func (b *agentPages) stopAgent(r *http.Request) (string, error) {
	n, err := b.control.StopAgent(r.Context(), agentOf(r))
	if err != nil {
		return "", err
	}
	if n == 0 {
		return "Nothing was running.", nil
	}
	return "Stopping " + plural(n, "run", "runs") + ".", nil
}

func (b *agentPages) resetAgent(r *http.Request) (string, error) {
	return "The agent begins a new conversation.", b.control.ResetAgent(r.Context(), agentOf(r))
}

func (b *agentPages) deleteAgent(r *http.Request) (string, error) {
	return "The agent is deleted. Its files are in the quarantine.", b.control.DeleteAgent(r.Context(), agentOf(r))
}

// dropMessages takes the waiting messages that are named out of the inbox, or
// all of them when the form says so.
func (b *agentPages) dropMessages(r *http.Request) (string, error) {
	var ids []claybot.MessageID
	for _, id := range r.PostForm["message"] {
		ids = append(ids, claybot.MessageID(id))
	}
	if len(ids) == 0 && r.PostForm.Get("all") == "" {
		return "", refused(http.StatusBadRequest, "No message is named.", "Choose one, or drop all.")
	}
	dropped, err := b.inboxes.Drop(r.Context(), agentOf(r), ids...)
	if err != nil {
		return "", err
	}
	if len(dropped) == 0 {
		return "", refused(http.StatusConflict, "Nothing was dropped: a run has taken it already.", "")
	}
	return "Dropped " + plural(len(dropped), "message", "messages") + ".", nil
}
