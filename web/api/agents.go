package api

import (
	"context"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var (
	noAgent = hint{"No agent with that id.", "GET /agents lists all agents."}
	// ofAgents has the common parts of operations on agents.
	ofAgents = operation{tag: "agents", missing: noAgent, fails: []int{http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable}}
)

// Limits of a tree.
const (
	treeDepth  = 16
	treeAgents = 1000
)

// agents serves agents and their histories.
type agents struct {
	agents    web.Agents
	control   web.AgentControl
	privacy   web.Privacy
	reminders web.Reminders
	runs      web.Runs
}

func (a agents) operations() []operation {
	unknown := []int{http.StatusNotFound}
	return ofAgents.like(
		returns(http.StatusOK, op("listAgents", web.Read, "GET /agents", "List agents, most recently messaged by a person first.").failing().query(
			param{name: "type", about: "Only agents of this type.", values: []string{"user", "cron", "heartbeat", "subagent"}},
			param{name: "owner", about: "Only agents of this owner: connector/user."},
			param{name: "parent", about: "Only subagents of this agent."},
			param{name: "state", about: "busy: only agents that are working or have messages waiting.", values: []string{"busy"}},
			param{name: "after", about: "The cursor of the previous page."},
			limitParam,
		), a.list),
		returns(http.StatusOK, op("getAgent", web.Read, "GET /agents/{agent}", "Get an agent.").failing(unknown...), a.get),
		returns(http.StatusOK, op("getAgentTree", web.Read, "GET /agents/{agent}/tree", "Get an agent with all its subagents.").failing(unknown...), a.tree),
		returns(http.StatusOK, op("getPrivacy", web.Read, "GET /agents/{agent}/privacy", "Show who reads the conversation of an agent, and what the agent can read of its person.").failing(unknown...), func(r *http.Request) (overview.Privacy, error) {
			return a.privacy.Privacy(r.Context(), agentOf(r))
		}),
		returns(http.StatusOK, op("getHistory", web.Read, "GET /agents/{agent}/history", "List what an agent remembers since its last reset, oldest first.").
			query(param{name: "after", about: "The cursor of the previous page."}, limitParam).
			failing(http.StatusNotFound, http.StatusConflict), a.history),
		returns(http.StatusOK, op("listConversations", web.Read, "GET /conversations", "List the caller's conversations in the web chat, newest first.").
			forChat().failing(), a.conversations),
		returns(http.StatusOK, op("listReminders", web.Read, "GET /agents/{agent}/reminders", "List the reminders of an agent, next one first."), func(r *http.Request) (web.ReminderList, error) {
			all, err := a.reminders.AgentReminders(r.Context(), agentOf(r))
			return web.ReminderList{Reminders: orEmpty(all)}, err
		}),
		returns(http.StatusAccepted, op("stopAgent", web.Operate, "POST /agents/{agent}/stop", "Stop the runs of an agent and its subagents."), func(r *http.Request) (web.Stopped, error) {
			n, err := a.control.StopAgent(r.Context(), agentOf(r))
			return web.Stopped{Stopped: n}, err
		}),
		returns(http.StatusAccepted, op("resetAgent", web.Operate, "POST /agents/{agent}/reset", "Reset the conversation of an agent, without notifying the chat."), func(r *http.Request) (web.ResetDone, error) {
			return web.ResetDone{Reset: agentOf(r)}, a.control.ResetAgent(r.Context(), agentOf(r))
		}),
		does(op("deleteAgent", web.Admin, "DELETE /agents/{agent}", "Delete an agent and move its files to the quarantine."), func(r *http.Request) error { return a.control.DeleteAgent(r.Context(), agentOf(r)) }),
	)
}

func (a agents) list(r *http.Request) (web.AgentList, error) {
	limit, q := limitOf(r, pageDefault), r.URL.Query()
	rows, err := a.agents.AgentPage(r.Context(), storage.AgentQuery{
		Type: claybot.AgentType(q.Get("type")), Owner: q.Get("owner"), Parent: claybot.AgentID(q.Get("parent")),
		Busy: q.Get("state") != "", After: claybot.AgentID(q.Get("after")), Limit: limit + 1,
	})
	rows, next := cut(rows, limit, func(e storage.IndexEntry) string { return string(e.ID) })
	out := web.AgentList{Agents: make([]web.AgentView, len(rows)), Next: next}
	for i, e := range rows {
		if err == nil {
			out.Agents[i], err = web.ViewAgent(r.Context(), a.runs, e)
		}
	}
	return out, err
}

func (a agents) get(r *http.Request) (web.AgentView, error) {
	e, err := a.agents.Agent(r.Context(), agentOf(r))
	if err != nil {
		return web.AgentView{}, err
	}
	return web.ViewAgent(r.Context(), a.runs, e)
}

func (a agents) tree(r *http.Request) (web.AgentTree, error) {
	e, err := a.agents.Agent(r.Context(), agentOf(r))
	if err != nil {
		return web.AgentTree{}, err
	}
	left := treeAgents
	return a.below(r.Context(), e, treeDepth, &left)
}

// below returns an agent with its descendants, depth levels deep and at most *left
// agents.
func (a agents) below(ctx context.Context, e storage.IndexEntry, depth int, left *int) (web.AgentTree, error) {
	v, err := web.ViewAgent(ctx, a.runs, e)
	t := web.AgentTree{AgentView: v, Children: []web.AgentTree{}}
	if err != nil {
		return t, err
	}
	children, err := a.agents.Children(ctx, e.ID)
	if err != nil {
		return t, err
	}
	for _, c := range children {
		if depth == 0 || *left == 0 {
			t.More = true
			return t, nil
		}
		*left--
		child, err := a.below(ctx, c, depth-1, left)
		if err != nil {
			return t, err
		}
		t.Children = append(t.Children, child)
	}
	return t, nil
}

func (a agents) history(r *http.Request) (out web.HistoryPage, err error) {
	limit := limitOf(r, pageDefault)
	all, err := a.agents.Remembered(r.Context(), agentOf(r))
	if err != nil {
		return out, err
	}
	first, err := after(all, r.URL.Query().Get("after"))
	if err != nil {
		return out, err
	}
	out.Records = orEmpty(all[first:min(first+limit, len(all))])
	if end := first + len(out.Records); end < len(all) {
		out.Next = cursor(all, end)
	}
	return out, nil
}

// cursor encodes the position after the first n records. It contains a hash of the last
// of them, so that it is invalid after a reset.
func cursor(all []claybot.Record, n int) string {
	last, h := all[n-1], fnv.New32a()
	_, _ = h.Write([]byte(string(last.Type) + last.ToolCallID + string(last.MessageID) + strconv.FormatInt(int64(last.At), 36))) // a hash never fails
	return strconv.Itoa(n) + "-" + strconv.FormatUint(uint64(h.Sum32()), 36)
}

// after decodes a cursor to a position.
func after(all []claybot.Record, s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	number, _, ok := strings.Cut(s, "-")
	n, err := strconv.Atoi(number)
	switch {
	case !ok || err != nil || n < 1:
		return 0, bad("Invalid cursor in after.", "Use next of the previous page, or omit it.")
	case n > len(all) || cursor(all, n) != s:
		return 0, conflict("The agent was reset or its history was shortened since the page before.", "Read from the beginning: leave out after.")
	}
	return n, nil
}

func (a agents) conversations(r *http.Request) (web.ConversationList, error) {
	const chat = "web" // the connector of the page
	rows, err := a.agents.Conversations(r.Context(), chat, web.User(r))
	out := web.ConversationList{Conversations: []web.Conversation{}}
	for _, e := range rows {
		out.Conversations = append(out.Conversations, web.Conversation{ID: e.Descriptor.ChannelID, At: e.LastUserAt})
	}
	return out, err
}
