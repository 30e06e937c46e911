package main

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/web"
)

// mcpAgents are the agents of a daemon, over its API.
type mcpAgents struct {
	client *client
	// who separates the conversations of this caller from those of others.
	who string
}

var (
	_ mcp.Agents  = mcpAgents{}
	_ mcp.Library = mcpAgents{}
)

func (a mcpAgents) offer() mcp.Offer { return mcp.Offer{Agents: a, Library: a, Caller: a.who} }

// mcpPath is the path of the MCP endpoint.
const mcpPath = "/mcp"

// mcpRoutes serve the agents to every client with scope operate. Callers never share a
// conversation.
func mcpRoutes(dir string, marks mcp.Pins, log *slog.Logger) []web.Route {
	self := sync.OnceValues(func() (*client, error) { return dial(dir) })
	h := mcp.Handler(func(r *http.Request) mcp.Offer {
		who := web.CallerOf(r).Name
		cl, err := self()
		if err != nil { // the socket exists before the first request
			return mcp.Offer{Caller: who}
		}
		return mcpAgents{client: cl, who: who}.offer()
	}, mcp.ServerConfig{Version: version, Marks: marks, Log: log})
	return []web.Route{
		{Pattern: "POST " + mcpPath, Scope: web.Operate, Handler: h, Body: mcp.MaxMessage},
		{Pattern: "GET " + mcpPath, Scope: web.Operate, Handler: h},
		{Pattern: "DELETE " + mcpPath, Scope: web.Operate, Handler: h},
	}
}

func (a mcpAgents) get(ctx context.Context) func(path string, out any) error {
	return func(path string, out any) error { return a.client.call(ctx, "GET", path, nil, out) }
}

// List implements mcp.Agents.
func (a mcpAgents) List(ctx context.Context) ([]mcp.AgentInfo, error) {
	return pages(a.get(ctx), "/agents", func(p web.AgentList) (all []mcp.AgentInfo, next string) {
		for _, row := range p.Agents {
			all = append(all, mcp.AgentInfo{ID: row.ID, Type: string(row.Type), Name: cmp.Or(row.Name, whose(row)), State: row.State})
		}
		return all, p.Next
	})
}

// Ask implements mcp.Agents.
func (a mcpAgents) Ask(ctx context.Context, q mcp.Ask) (mcp.Asked, error) {
	in := api.Message{Text: q.Text, Key: q.Key, Agent: q.Agent}
	if q.Agent == "" && q.Conversation != "" {
		in.Thread = "mcp/" + a.who + "/" + q.Conversation
	}
	out, err := a.client.Start(ctx, in)
	return mcp.Asked{Run: out.Run, Agent: out.Agent}, refused(err)
}

// Cancel implements mcp.Agents.
func (a mcpAgents) Cancel(ctx context.Context, run claybot.RunID) error {
	path, err := runPath(string(run))
	if err != nil {
		return err
	}
	return a.client.call(ctx, "DELETE", path, nil, nil)
}

// Follow implements mcp.Agents. It continues after a restart of the daemon.
func (a mcpAgents) Follow(ctx context.Context, run claybot.RunID, progress func(string)) (mcp.RunInfo, error) {
	for e, err := range a.client.Follow(ctx, run, 0) {
		if err != nil {
			return mcp.RunInfo{}, refused(err)
		}
		if words := doing(e); words != "" {
			progress(words)
		}
		if e.Type == claybot.EventAwaitingInput && a.awaits(ctx, run) {
			break
		}
	}
	return a.Run(ctx, run)
}

// awaits reports whether a run still waits for a user: the stream repeats events of old
// waits.
func (a mcpAgents) awaits(ctx context.Context, run claybot.RunID) bool {
	r, err := a.Run(ctx, run)
	return err == nil && r.State == claybot.RunAwaiting && len(r.Asks) > 0
}

// doing describes an event in a few words; empty for most.
func doing(e claybot.Event) string {
	switch e.Type {
	case claybot.EventRunStarted:
		return "started"
	case claybot.EventToolCalled:
		if d, ok := decode[runs.ToolStarted](e.Data); ok {
			return "uses " + d.Tool
		}
	case claybot.EventAwaitingInput:
		return "waits"
	case claybot.EventSubagentStarted:
		return "started a subagent"
	}
	return ""
}

// Run implements mcp.Agents.
func (a mcpAgents) Run(ctx context.Context, run claybot.RunID) (mcp.RunInfo, error) {
	path, err := runPath(string(run))
	if err != nil {
		return mcp.RunInfo{}, err
	}
	var v web.RunView
	if err := a.client.call(ctx, "GET", path, nil, &v); err != nil {
		return mcp.RunInfo{}, err
	}
	out := mcp.RunInfo{ID: v.ID, Agent: v.Agent, State: v.State, Ended: v.Ended}
	if v.Error != nil {
		out.Error = v.Error.Text
	}
	if v.Awaiting != nil {
		for _, q := range v.Awaiting.Questions {
			out.Asks = append(out.Asks, q.Text)
		}
	}
	if v.State == claybot.RunSucceeded {
		out.Text = a.reply(ctx, v.Agent, v.ID, v.Output)
	}
	return out, nil
}

// reply returns the full reply of a run from the history. The run itself has it shortened,
// which is what remains after a reset.
func (a mcpAgents) reply(ctx context.Context, agent claybot.AgentID, run claybot.RunID, short string) string {
	all, err := a.records(ctx, agent)
	if err != nil {
		return short
	}
	for _, r := range slices.Backward(all) {
		if r.Type == claybot.RecordAssistant && r.Run == run && len(r.ToolCalls) == 0 && strings.TrimSpace(r.Text) != "" {
			return r.Text
		}
	}
	return short
}

// records returns the history of an agent since its last reset.
func (a mcpAgents) records(ctx context.Context, agent claybot.AgentID) ([]claybot.Record, error) {
	path, err := agentPath(agent, "history")
	if err != nil {
		return nil, err
	}
	return pages(a.get(ctx), path, func(p web.HistoryPage) ([]claybot.Record, string) { return p.Records, p.Next })
}

// History implements mcp.Agents.
func (a mcpAgents) History(ctx context.Context, agent claybot.AgentID, last int) ([]mcp.Said, error) {
	all, err := a.records(ctx, agent)
	if err != nil {
		return nil, err
	}
	who := map[claybot.RecordType]string{claybot.RecordUser: "user", claybot.RecordSystem: "system", claybot.RecordAssistant: "agent"}
	var said []mcp.Said
	for _, r := range all {
		if who[r.Type] != "" && strings.TrimSpace(r.Text) != "" {
			said = append(said, mcp.Said{Who: who[r.Type], At: r.At.Time(), Text: r.Text})
		}
	}
	return said[max(0, len(said)-last):], nil
}
