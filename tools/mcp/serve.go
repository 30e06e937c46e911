package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot"
)

// Agents are the agents that NewServer offers. Errors are words for who asks.
type Agents interface {
	// List lists them.
	List(ctx context.Context) ([]AgentInfo, error)
	// Ask gives an agent something to do. Asking again with the same Key, which
	// is never empty, does nothing new and returns the same run.
	Ask(ctx context.Context, a Ask) (Asked, error)
	// Follow waits until a run has ended or needs input, and calls progress
	// with a few words for each thing that happens meanwhile.
	Follow(ctx context.Context, run claybot.RunID, progress func(words string)) (RunInfo, error)
	// Run tells how a run is doing.
	Run(ctx context.Context, run claybot.RunID) (RunInfo, error)
	// Cancel ends a run. A run that has ended is no error.
	Cancel(ctx context.Context, run claybot.RunID) error
	// History returns the newest texts of an agent's conversation, at most last,
	// the oldest first.
	History(ctx context.Context, agent claybot.AgentID, last int) ([]Said, error)
}

// An AgentInfo is one agent in a list.
type AgentInfo struct {
	ID    claybot.AgentID `json:"id"`
	Type  string          `json:"type"`
	Name  string          `json:"name,omitempty"`  // or its place
	State string          `json:"state,omitempty"` // idle, waiting, or that of its run
}

// An Ask is something to do for an agent: for Agent, else for the one of the
// thread Conversation, which is made when it is new, else for a new one.
type Ask struct {
	Agent        claybot.AgentID
	Conversation string
	Text         string
	Key          string
}

// Asked is what became of an Ask.
type Asked struct {
	Run   claybot.RunID
	Agent claybot.AgentID
}

// A RunInfo is how a run is doing.
type RunInfo struct {
	ID    claybot.RunID    `json:"run"`
	Agent claybot.AgentID  `json:"agent,omitempty"`
	State claybot.RunState `json:"state"`
	Text  string           `json:"text,omitempty"`  // its reply, whole
	Error string           `json:"error,omitempty"` // why it failed, in a sentence
	Asks  []string         `json:"asks,omitempty"`  // the questions that it waits for
	Ended claybot.Time     `json:"-"`
}

// A Said is one text of a conversation.
type Said struct {
	Who  string    `json:"who"` // user, agent, system
	At   time.Time `json:"at,omitzero"`
	Text string    `json:"text"`
}

// The arguments of the tools.
type (
	askArgs struct {
		Text         string `json:"text" jsonschema:"What to ask or to have done."`
		Agent        string `json:"agent,omitempty" jsonschema:"The id of an agent of list_agents. Without it, conversation counts."`
		Conversation string `json:"conversation,omitempty" jsonschema:"A name of your choice. The agent of a conversation remembers what was said in it. Without it and agent, a new agent answers."`
		RequestID    string `json:"requestId,omitempty" jsonschema:"A name of your choice for this request. A request with the name of an earlier one is not done twice and gets the same answer."`
		Wait         *int   `json:"wait,omitempty" jsonschema:"How many seconds to wait for the answer, 0 to 3600, 50 when left out. Then the call returns the id of the run, which continues."`
	}
	listArgs    struct{}
	historyArgs struct {
		Agent string `json:"agent" jsonschema:"The id of the agent."`
		Last  int    `json:"last,omitempty" jsonschema:"How many texts, 20 when left out, at most 200."`
	}
	statusArgs struct {
		Run  string `json:"run" jsonschema:"The id of the run, as ask_agent returns it."`
		Wait *int   `json:"wait,omitempty" jsonschema:"How many seconds to wait for the answer, 0 to 3600, 0 when left out."`
	}
	stopArgs struct {
		Run string `json:"run" jsonschema:"The id of the run, as ask_agent returns it."`
	}
)

const (
	maxAsk      = 100_000 // bytes
	lastDefault = 20
	lastMost    = 200
)

const instructions = "The agents of claybot. ask_agent gives an agent something to do and waits for its answer; " +
	"use the same conversation to continue with it. If an agent works for longer, ask_agent returns the id of its run: " +
	"run_status waits for the answer, and stop_run stops the run."

// An Offer is what a caller gets.
type Offer struct {
	Agents Agents
	// Library has what the caller may read; nil: there are no resources and no prompts.
	Library Library
	// Caller names the caller in keys, so that requests of different callers never meet.
	Caller string
}

// ServerConfig is what NewServer and Handler need. Zero fields have a meaning of their own.
type ServerConfig struct {
	Version string
	// Marks remembers which requests have no delivered answer; nil: for this server alone.
	Marks Pins
	Log   *slog.Logger // nil discards
}

// NewServer offers agents by the protocol.
//
// A call waits for at most 50 seconds, unless its client asks for another time, because
// clients give up after 60. It reports progress every 10 seconds if the client asks for
// progress. The end of a call, by its client or its connection, does not end the run:
// only stop_run does. A repeated request follows the run of the first, see repeats.
func NewServer(o Offer, cfg ServerConfig) *sdk.Server {
	return newServer(o, cfg, &repeats{marks: marksOf(cfg)}, nil)
}

func marksOf(cfg ServerConfig) Pins {
	if cfg.Marks == nil {
		return new(memoryPins)
	}
	return cfg.Marks
}

// newServer is NewServer for one of the sessions of the connections, which may be nil.
func newServer(o Offer, cfg ServerConfig, again *repeats, over *sessions) *sdk.Server {
	d := desk{agents: o.Agents, library: o.Library, who: o.Caller, repeats: again, over: over, log: cfg.Log}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	can := &sdk.ServerCapabilities{}
	if o.Library != nil {
		can.Resources, can.Prompts = &sdk.ResourceCapabilities{}, &sdk.PromptCapabilities{}
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "claybot", Title: "claybot", Version: cfg.Version}, &sdk.ServerOptions{
		Instructions: instructions, Capabilities: can,
	})
	if o.Library != nil {
		d.offer(s)
	}
	open, closed := true, false
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed}
	sdk.AddTool(s, &sdk.Tool{
		Name: "ask_agent", Description: "Ask an agent, or have it do something, and wait for its answer.",
		Annotations: &sdk.ToolAnnotations{OpenWorldHint: &open},
	}, d.ask)
	sdk.AddTool(s, &sdk.Tool{Name: "list_agents", Description: "List the agents.", Annotations: reads}, d.list)
	sdk.AddTool(s, &sdk.Tool{Name: "agent_history", Description: "Read the newest texts of an agent's conversation.", Annotations: reads}, d.history)
	sdk.AddTool(s, &sdk.Tool{
		Name: "run_status", Description: "See how a run is doing, or wait for its answer.", Annotations: reads,
	}, d.status)
	sdk.AddTool(s, &sdk.Tool{
		Name: "stop_run", Description: "Stop a run. What its tools have done stays done.",
		Annotations: &sdk.ToolAnnotations{OpenWorldHint: &closed, IdempotentHint: true},
	}, d.stop)
	return s
}

// ServeStdio speaks with a client over stdin and stdout until the client closes
// them or ctx ends.
func ServeStdio(ctx context.Context, s *sdk.Server) error {
	err := s.Run(ctx, &sdk.StdioTransport{MaxLineLength: MaxMessage})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Handler is NewServer over streamable HTTP, at any path, for POST, GET and
// DELETE. offer says who asks, and what it gets; it has been let in already. A
// session of a caller belongs to that caller, and ends after an hour without
// requests.
func Handler(offer func(r *http.Request) Offer, cfg ServerConfig) http.Handler {
	again := &repeats{marks: marksOf(cfg)}
	over := &sessions{caller: func(r *http.Request) string { return offer(r).Caller }}
	over.inner = sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		return newServer(offer(r), cfg, again, over)
	}, &sdk.StreamableHTTPOptions{
		SessionTimeout: time.Hour, MaxRequestBodyBytes: MaxMessage,
		// Which names of hosts are allowed is the business of the server in front.
		DisableLocalhostProtection: true,
	})
	return over
}

type desk struct {
	agents  Agents
	library Library
	who     string
	repeats *repeats
	over    *sessions // nil: the one of stdio
	log     *slog.Logger
}

func (d desk) list(ctx context.Context, _ *sdk.CallToolRequest, _ listArgs) (*sdk.CallToolResult, any, error) {
	all, err := d.agents.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	return nil, map[string]any{"agents": append([]AgentInfo{}, all...)}, nil
}

func (d desk) history(ctx context.Context, _ *sdk.CallToolRequest, in historyArgs) (*sdk.CallToolResult, any, error) {
	if err := claybot.AgentID(in.Agent).Validate(); err != nil {
		return nil, nil, fmt.Errorf("agent: %w; list_agents lists them", err)
	}
	switch {
	case in.Last == 0:
		in.Last = lastDefault
	case in.Last < 1 || in.Last > lastMost:
		return nil, nil, fmt.Errorf("last is 1 to %d", lastMost)
	}
	all, err := d.agents.History(ctx, claybot.AgentID(in.Agent), in.Last)
	if err != nil {
		return nil, nil, err
	}
	return nil, map[string]any{"texts": append([]Said{}, all...)}, nil
}
