package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/web"
)

// mcpAgents are the agents of a daemon, reached by its API.
type mcpAgents struct {
	client *client
	// who keeps the conversations of this caller apart from those of others.
	who string
}

var _ mcp.Agents = mcpAgents{}

// mcpPath is where agents are offered over HTTP.
const mcpPath = "/mcp"

// mcpRoutes serve the agents to every client with scope operate. Conversations of
// different callers never meet.
func mcpRoutes(dir string, log *slog.Logger) []web.Route {
	self := sync.OnceValues(func() (*client, error) { return dial(dir) })
	h := mcp.Handler(func(r *http.Request) (string, mcp.Agents) {
		who := web.CallerOf(r).Name
		cl, err := self()
		if err != nil { // the socket is there before anybody can ask
			return who, nil
		}
		return who, mcpAgents{client: cl, who: who}
	}, version, log)
	return []web.Route{
		{Pattern: "POST " + mcpPath, Scope: web.Operate, Handler: h, Body: mcp.MaxMessage},
		{Pattern: "GET " + mcpPath, Scope: web.Operate, Handler: h},
		{Pattern: "DELETE " + mcpPath, Scope: web.Operate, Handler: h},
	}
}

// List implements mcp.Agents.
func (a mcpAgents) List(ctx context.Context) ([]mcp.AgentInfo, error) {
	var all []mcp.AgentInfo
	for after := ""; ; {
		var page web.AgentList
		if err := a.client.call(ctx, "GET", "/agents?"+url.Values{"limit": {"500"}, "after": {after}}.Encode(), nil, &page); err != nil {
			return nil, err
		}
		for _, row := range page.Agents {
			all = append(all, mcp.AgentInfo{ID: row.ID, Type: string(row.Type), Name: cmp.Or(row.Name, whose(row)), State: row.State})
		}
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// Ask implements mcp.Agents.
func (a mcpAgents) Ask(ctx context.Context, q mcp.Ask) (mcp.Asked, error) {
	in := web.StartRequest{Text: q.Text, Key: q.Key, AgentID: q.Agent}
	if q.Agent == "" && q.Conversation != "" {
		in.Descriptor = &web.Target{ChannelID: "mcp/" + a.who + "/" + q.Conversation}
	}
	var out web.Accepted
	err := a.client.call(ctx, "POST", "/agents/runs", in, &out)
	return mcp.Asked{Run: out.Run, Agent: out.Agent}, err
}

// Cancel implements mcp.Agents.
func (a mcpAgents) Cancel(ctx context.Context, run claybot.RunID) error {
	path, err := runPath(string(run))
	if err != nil {
		return err
	}
	return a.client.call(ctx, "DELETE", path, nil, nil)
}

// again is how long to wait before the daemon is asked again that went away.
const again = time.Second

// Follow implements mcp.Agents. It goes on after a restart of the daemon.
func (a mcpAgents) Follow(ctx context.Context, run claybot.RunID, progress func(string)) (mcp.RunInfo, error) {
	var seq int64
	for lost := 0; ; {
		end, seen, err := a.watch(ctx, run, seq, progress)
		if seen > seq {
			seq, lost = seen, 0
		}
		if end {
			return a.Run(ctx, run)
		}
		if lost++; err != nil && lost > 60 {
			return mcp.RunInfo{}, err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return mcp.RunInfo{}, context.Cause(ctx)
		}
	}
}

// watch reads the events of a run behind seq, and returns the last one that it
// has seen, and whether there is nothing to wait for now.
func (a mcpAgents) watch(ctx context.Context, run claybot.RunID, seq int64, progress func(string)) (end bool, seen int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	path, err := runPath(string(run), "stream")
	if err != nil {
		return false, seq, err
	}
	events, err := a.client.stream(ctx, fmt.Sprintf("%s?fromSeq=%d", path, seq))
	if err != nil {
		return false, seq, err
	}
	for ev := range events {
		var e claybot.Event
		if json.Unmarshal(ev.data, &e) != nil {
			continue
		}
		seq = max(seq, e.Seq)
		if words := doing(e); words != "" {
			progress(words)
		}
		if e.Type.Ends() || e.Type == claybot.EventAwaitingInput && a.awaits(ctx, run) {
			return true, seq, nil
		}
	}
	return false, seq, errors.New("the daemon stopped; it resumes the run after its next start")
}

// awaits reports whether a run still waits for a person: events of old waits are
// read again after a while.
func (a mcpAgents) awaits(ctx context.Context, run claybot.RunID) bool {
	r, err := a.Run(ctx, run)
	return err == nil && r.State == claybot.RunAwaiting && len(r.Asks) > 0
}

// doing are a few words for an event; empty for what is not worth any.
func doing(e claybot.Event) string {
	switch e.Type {
	case claybot.EventRunStarted:
		return "started"
	case claybot.EventToolCalled:
		var d runs.ToolStarted
		if json.Unmarshal(e.Data, &d) == nil {
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
	out := mcp.RunInfo{ID: v.ID, Agent: v.Agent, State: v.State}
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

// reply is the whole reply of a run. What the run keeps of it is shortened; all
// of it is in the history, unless that was reset meanwhile.
func (a mcpAgents) reply(ctx context.Context, agent claybot.AgentID, run claybot.RunID, short string) string {
	all, err := a.records(ctx, agent)
	if err != nil {
		return short
	}
	for i := len(all) - 1; i >= 0; i-- {
		r := all[i]
		if r.Type == claybot.RecordAssistant && r.Run == run && len(r.ToolCalls) == 0 && strings.TrimSpace(r.Text) != "" {
			return r.Text
		}
	}
	return short
}

// records is the history of an agent since its last reset.
func (a mcpAgents) records(ctx context.Context, agent claybot.AgentID) ([]claybot.Record, error) {
	path, err := agentPath(agent, "history")
	if err != nil {
		return nil, err
	}
	var all []claybot.Record
	for after := ""; ; {
		var page web.HistoryPage
		if err := a.client.call(ctx, "GET", path+"?"+url.Values{"limit": {"500"}, "after": {after}}.Encode(), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Records...)
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// History implements mcp.Agents.
func (a mcpAgents) History(ctx context.Context, agent claybot.AgentID, last int) ([]mcp.Said, error) {
	all, err := a.records(ctx, agent)
	if err != nil {
		return nil, err
	}
	var said []mcp.Said
	for _, r := range all {
		who := ""
		switch r.Type {
		case claybot.RecordUser:
			who = "user"
		case claybot.RecordSystem:
			who = "system"
		case claybot.RecordAssistant:
			who = "agent"
		}
		if who != "" && strings.TrimSpace(r.Text) != "" {
			said = append(said, mcp.Said{Who: who, At: r.At.Time(), Text: r.Text})
		}
	}
	return said[max(0, len(said)-last):], nil
}
