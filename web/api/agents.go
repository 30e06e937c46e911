package api

import (
	"context"
	"errors"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var noAgent = hint{"There is no agent with that id.", "GET /agents lists them."}

// The bounds of a tree.
const (
	treeDepth  = 16
	treeAgents = 1000
)

// idle and waiting are the states of an agent without an unfinished run.
const (
	idle    = "idle"
	waiting = "waiting"
)

// An agentView is one agent in a list.
type agentView struct {
	ID         claybot.AgentID    `json:"id"`
	Type       claybot.AgentType  `json:"type"`
	Name       string             `json:"name,omitempty"`
	Parent     claybot.AgentID    `json:"parent,omitempty"`
	Owner      string             `json:"owner,omitempty" doc:"On whose behalf it works: connector/user."`
	Descriptor claybot.Descriptor `json:"descriptor"`
	CreatedAt  claybot.Time       `json:"createdAt"`
	LastUserAt claybot.Time       `json:"lastUserAt" doc:"When a person wrote last; 0 for never."`
	Usage      claybot.Usage      `json:"usage"`
	Waiting    int                `json:"waiting" doc:"Messages that no run has taken."`
	Run        claybot.RunID      `json:"run,omitempty" doc:"The unfinished one."`
	State      string             `json:"state" doc:"idle, waiting, or the state of the unfinished run."`
}

// An agentList is one page of agents.
type agentList struct {
	Agents []agentView `json:"agents"`
	Next   string      `json:"next,omitempty" doc:"Give it as after to get the next page."`
}

// An agentTree is an agent with its subagents.
type agentTree struct {
	agentView
	Children []agentTree `json:"children"`
	More     bool        `json:"more,omitempty" doc:"There are more below; this tree is cut."`
}

// A conversationList is what a person talked about in the web chat.
type conversationList struct {
	Conversations []conversation `json:"conversations"`
}

type conversation struct {
	ID string       `json:"id"`
	At claybot.Time `json:"at"`
}

// A historyPage is a part of what an agent remembers.
type historyPage struct {
	Records []claybot.Record `json:"records"`
	Next    string           `json:"next,omitempty" doc:"Give it as after to get the next page."`
}

func (a *api) agentOperations() []operation {
	return []operation{
		{
			id: "listAgents", method: http.MethodGet, path: "/agents", tag: "agents", scope: web.Read,
			summary: "List agents, those that a person wrote to last first.",
			params: []param{
				{name: "type", about: "Of this type only.", values: []string{"user", "cron", "heartbeat", "subagent"}},
				{name: "owner", about: "Of this owner only: connector/user."},
				{name: "parent", about: "Made by this agent."},
				{name: "state", about: "busy: only those with something to do.", values: []string{"busy"}},
				{name: "after", about: "The cursor of the page before."},
				limitParam,
			},
			answers: []answer{{status: http.StatusOK, value: agentList{}}},
			serve:   a.listAgents,
		},
		{
			id: "getAgent", method: http.MethodGet, path: "/agents/{agent}", tag: "agents", scope: web.Read,
			summary: "One agent.", answers: []answer{{status: http.StatusOK, value: agentView{}}},
			fails: []int{http.StatusNotFound}, missing: noAgent, serve: a.getAgent,
		},
		{
			id: "getAgentTree", method: http.MethodGet, path: "/agents/{agent}/tree", tag: "agents", scope: web.Read,
			summary: "An agent with all subagents below it.", answers: []answer{{status: http.StatusOK, value: agentTree{}}},
			fails: []int{http.StatusNotFound}, missing: noAgent, serve: a.getTree,
		},
		{
			id: "getHistory", method: http.MethodGet, path: "/agents/{agent}/history", tag: "agents", scope: web.Read,
			summary: "What an agent remembers, oldest first: its records since the last reset.",
			params:  []param{{name: "after", about: "The cursor of the page before."}, limitParam},
			answers: []answer{{status: http.StatusOK, value: historyPage{}}},
			fails:   []int{http.StatusNotFound, http.StatusConflict}, missing: noAgent, serve: a.getHistory,
		},
		{
			id: "listConversations", method: http.MethodGet, path: "/conversations", tag: "agents", scope: web.Read,
			summary: "The conversations of the caller in the web chat, the newest first.",
			answers: []answer{{status: http.StatusOK, value: conversationList{}}},
			serve:   a.conversations,
		},
	}
}

func (a *api) listAgents(w http.ResponseWriter, r *http.Request) error {
	limit, err := limitOf(r, pageDefault)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	rows, err := a.Desk.AgentPage(r.Context(), storage.AgentQuery{
		Type: claybot.AgentType(q.Get("type")), Owner: q.Get("owner"), Parent: claybot.AgentID(q.Get("parent")),
		Busy: q.Get("state") != "", After: claybot.AgentID(q.Get("after")), Limit: limit + 1,
	})
	if err != nil {
		return err
	}
	rows, next := cut(rows, limit, func(e storage.IndexEntry) string { return string(e.ID) })
	out := agentList{Agents: make([]agentView, len(rows)), Next: next}
	for i, e := range rows {
		if out.Agents[i], err = a.viewAgent(r.Context(), e); err != nil {
			return err
		}
	}
	return reply(w, http.StatusOK, out)
}

func (a *api) viewAgent(ctx context.Context, e storage.IndexEntry) (agentView, error) {
	d := e.Descriptor
	v := agentView{
		ID: e.ID, Type: d.Type, Name: d.Name, Parent: d.Parent, Owner: d.OwnerID(), Descriptor: d,
		CreatedAt: e.CreatedAt, LastUserAt: e.LastUserAt, Usage: e.Usage, Waiting: e.Waiting, Run: e.Run, State: idle,
	}
	if e.Waiting > 0 {
		v.State = waiting
	}
	if e.Run == "" {
		return v, nil
	}
	// Few agents work at a time. A run that has ended meanwhile is none.
	run, err := a.Desk.Run(ctx, e.Run)
	switch {
	case errors.Is(err, storage.ErrNotFound):
	case err != nil:
		return v, err
	case !run.State.Ended():
		v.State = string(run.State)
	}
	return v, nil
}

func (a *api) getAgent(w http.ResponseWriter, r *http.Request) error {
	e, err := a.Desk.Agent(r.Context(), agentOf(r))
	if err != nil {
		return err
	}
	v, err := a.viewAgent(r.Context(), e)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, v)
}

func (a *api) getTree(w http.ResponseWriter, r *http.Request) error {
	e, err := a.Desk.Agent(r.Context(), agentOf(r))
	if err != nil {
		return err
	}
	left := treeAgents
	t, err := a.treeOf(r.Context(), e, treeDepth, &left)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, t)
}

// treeOf is an agent with those below it, depth levels deep and as many as are
// left.
func (a *api) treeOf(ctx context.Context, e storage.IndexEntry, depth int, left *int) (agentTree, error) {
	v, err := a.viewAgent(ctx, e)
	t := agentTree{agentView: v, Children: []agentTree{}}
	if err != nil {
		return t, err
	}
	children, err := a.Desk.Children(ctx, e.ID)
	if err != nil {
		return t, err
	}
	for _, c := range children {
		if depth == 0 || *left == 0 {
			t.More = true
			return t, nil
		}
		*left--
		below, err := a.treeOf(ctx, c, depth-1, left)
		if err != nil {
			return t, err
		}
		t.Children = append(t.Children, below)
	}
	return t, nil
}

func (a *api) getHistory(w http.ResponseWriter, r *http.Request) error {
	limit, err := limitOf(r, pageDefault)
	if err != nil {
		return err
	}
	all, err := a.Desk.Remembered(r.Context(), agentOf(r))
	if err != nil {
		return err
	}
	first, err := after(all, r.URL.Query().Get("after"))
	if err != nil {
		return err
	}
	out := historyPage{Records: orEmpty(all[first:min(first+limit, len(all))])}
	if end := first + len(out.Records); end < len(all) {
		out.Next = cursor(all, end)
	}
	return reply(w, http.StatusOK, out)
}

// cursor names the place behind the first n records. It has a mark of the last
// of them, so that it cannot mean another place after a reset.
func cursor(all []claybot.Record, n int) string {
	last, h := all[n-1], fnv.New32a()
	_, _ = h.Write([]byte(string(last.Type) + last.ToolCallID + string(last.MessageID) + strconv.FormatInt(int64(last.At), 36))) // a hash never fails
	return strconv.Itoa(n) + "-" + strconv.FormatUint(uint64(h.Sum32()), 36)
}

// after finds the place that a cursor names.
func after(all []claybot.Record, s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	number, _, ok := strings.Cut(s, "-")
	n, err := strconv.Atoi(number)
	switch {
	case !ok || err != nil || n < 1:
		return 0, bad("after is no cursor of this list.", "Give next of the page before, or leave it out.")
	case n > len(all) || cursor(all, n) != s:
		return 0, conflict("The agent was reset or its history was shortened since the page before.", "Read from the beginning: leave out after.")
	}
	return n, nil
}

func (a *api) conversations(w http.ResponseWriter, r *http.Request) error {
	const chat = "web" // the connector of the page
	rows, err := a.Desk.Conversations(r.Context(), chat, web.User(r))
	if err != nil {
		return err
	}
	out := conversationList{Conversations: []conversation{}}
	for _, e := range rows {
		out.Conversations = append(out.Conversations, conversation{e.Descriptor.ChannelID, e.LastUserAt})
	}
	return reply(w, http.StatusOK, out)
}
