package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
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
	// Cancel ends a run. One that has ended is no error.
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
		RequestID    string `json:"requestId,omitempty" jsonschema:"A name of your choice for this request. A repeat under the same one is not done twice and gets the same answer."`
	}
	listArgs    struct{}
	historyArgs struct {
		Agent string `json:"agent" jsonschema:"The id of the agent."`
		Last  int    `json:"last,omitempty" jsonschema:"How many texts, 20 when left out, at most 200."`
	}
	statusArgs struct {
		Run string `json:"run" jsonschema:"The id of the run, as ask_agent gives it."`
	}
)

const (
	maxAsk      = 100_000 // bytes
	lastDefault = 20
	lastMost    = 200
	// stillEvery is the time between signs of life of a call.
	stillEvery = 10 * time.Second
)

const instructions = "The agents of claybot. ask_agent gives one something to do and waits for its answer; " +
	"use the same conversation to go on with it. When an answer says that the agent needs input, run_status shows how it goes on."

// NewServer offers agents by the protocol: ask_agent, list_agents, agent_history
// and run_status. who names the caller in keys, so that requests of different
// callers never meet. Log may be nil.
//
// A call of ask_agent reports progress if the client asks for it, and its
// cancellation cancels the run.
func NewServer(agents Agents, who, version string, log *slog.Logger) *sdk.Server {
	d := desk{agents: agents, who: who, log: log}
	if log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "claybot", Title: "claybot", Version: version}, &sdk.ServerOptions{
		Instructions: instructions, Capabilities: &sdk.ServerCapabilities{},
	})
	open, closed := true, false
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed}
	sdk.AddTool(s, &sdk.Tool{
		Name: "ask_agent", Description: "Ask an agent, or have it do something, and wait for its answer.",
		Annotations: &sdk.ToolAnnotations{OpenWorldHint: &open},
	}, d.ask)
	sdk.AddTool(s, &sdk.Tool{Name: "list_agents", Description: "List the agents.", Annotations: reads}, d.list)
	sdk.AddTool(s, &sdk.Tool{Name: "agent_history", Description: "Read the newest texts of an agent's conversation.", Annotations: reads}, d.history)
	sdk.AddTool(s, &sdk.Tool{Name: "run_status", Description: "See how a run is doing, and its answer when it has one.", Annotations: reads}, d.status)
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
// DELETE. caller says who asks, and as what; it has been let in already. A
// session of a caller belongs to that caller, and ends after an hour without
// requests.
func Handler(caller func(r *http.Request) (who string, agents Agents), version string, log *slog.Logger) http.Handler {
	inner := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		who, agents := caller(r)
		return NewServer(agents, who, version, log)
	}, &sdk.StreamableHTTPOptions{
		SessionTimeout: time.Hour, MaxRequestBodyBytes: MaxMessage, PropagateRequestCancellation: true,
		// Who may come in by which name is the business of the door in front.
		DisableLocalhostProtection: true,
	})
	return &owned{inner: inner, caller: func(r *http.Request) string { who, _ := caller(r); return who }}
}

type desk struct {
	agents Agents
	who    string
	log    *slog.Logger
}

func (d desk) ask(ctx context.Context, r *sdk.CallToolRequest, in askArgs) (*sdk.CallToolResult, any, error) {
	switch {
	case strings.TrimSpace(in.Text) == "":
		return nil, nil, errors.New("text is empty")
	case len(in.Text) > maxAsk:
		return nil, nil, fmt.Errorf("text has %d bytes; the limit is %d", len(in.Text), maxAsk)
	case in.Agent != "" && in.Conversation != "":
		return nil, nil, errors.New("give agent or conversation, not both")
	case len(in.Conversation) > 100 || len(in.RequestID) > 200:
		return nil, nil, errors.New("conversation has at most 100 bytes, requestId 200")
	}
	if in.Agent != "" {
		if err := claybot.AgentID(in.Agent).Validate(); err != nil {
			return nil, nil, fmt.Errorf("agent: %w; list_agents lists them", err)
		}
	}
	got, err := d.agents.Ask(ctx, Ask{Agent: claybot.AgentID(in.Agent), Conversation: in.Conversation, Text: in.Text, Key: d.key(in)})
	if err != nil {
		return nil, nil, err
	}
	end, err := d.follow(ctx, got.Run, progress(ctx, r))
	if ctx.Err() != nil {
		d.cancel(ctx, got.Run)
		return nil, nil, errors.New("the call was cancelled, and the run with it")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("run %s goes on, but its answer could not be waited for: %w; run_status tells of it", got.Run, err)
	}
	if end.Agent == "" {
		end.Agent = got.Agent
	}
	return answer(end), nil, nil
}

// follow waits for a run. It tells every stillEvery that it goes on: many clients
// give up a call of which they hear nothing for a minute, and start it again.
func (d desk) follow(ctx context.Context, run claybot.RunID, tell func(string)) (RunInfo, error) {
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(stillEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				tell("still working")
			case <-ended:
				return
			}
		}
	})
	defer wg.Wait()
	defer close(ended)
	return d.agents.Follow(ctx, run, tell)
}

// key is the key of a request. One without a name of its own is never a repeat.
func (d desk) key(in askArgs) string {
	if in.RequestID == "" {
		return "mcp:" + rand.Text()
	}
	b, _ := json.Marshal([]string{d.who, in.Agent, in.Conversation, in.RequestID}) // strings always marshal
	sum := sha256.Sum256(b)
	return "mcp:" + hex.EncodeToString(sum[:16])
}

func (d desk) cancel(ctx context.Context, run claybot.RunID) {
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer end()
	if err := d.agents.Cancel(ctx, run); err != nil {
		d.log.Warn("run of a cancelled MCP call continues", "run", run, "err", err)
	}
}

// progress tells the client what happens, if it asked for that. It may be used by
// several goroutines.
func progress(ctx context.Context, r *sdk.CallToolRequest) func(string) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func(string) {}
	}
	var mu sync.Mutex // the numbers of notifications grow
	step := 0.0
	return func(words string) {
		mu.Lock()
		defer mu.Unlock()
		step++
		// A client that is not told still gets the answer.
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: step, Message: plain(words, 300)})
	}
}

func answer(r RunInfo) *sdk.CallToolResult {
	out := &sdk.CallToolResult{StructuredContent: r}
	text := r.Text
	switch r.State {
	case claybot.RunSucceeded:
		if text == "" {
			text = "The agent ended without a text."
		}
	case claybot.RunFailed:
		out.IsError = true
		text = "The run failed: " + r.Error
	case claybot.RunCanceled:
		out.IsError = true
		text = "The run was cancelled."
	case claybot.RunAwaiting:
		asks := "It does not say for what."
		if len(r.Asks) > 0 {
			asks = "It asks: " + strings.Join(r.Asks, "\n")
		}
		text = fmt.Sprintf("The agent %s needs input. %s\nAnyone allowed to answer does so in claybot (claybot questions); run_status with run %s shows how it goes on.", r.Agent, asks, r.ID)
	default:
		text = fmt.Sprintf("The run %s is %s.", r.ID, strings.ToLower(string(r.State)))
	}
	out.Content = []sdk.Content{&sdk.TextContent{Text: text}}
	return out
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

func (d desk) status(ctx context.Context, _ *sdk.CallToolRequest, in statusArgs) (*sdk.CallToolResult, any, error) {
	if in.Run == "" || len(in.Run) > 100 {
		return nil, nil, errors.New("run is not the id of a run")
	}
	r, err := d.agents.Run(ctx, claybot.RunID(in.Run))
	if err != nil {
		return nil, nil, err
	}
	out := answer(r)
	out.IsError = false // it was asked how the run is doing, and that is known
	return out, nil, nil
}

// maxSessions is how many sessions are open at most; the door in front limits
// how fast they come.
const maxSessions = 1000

const sessionHeader = "Mcp-Session-Id"

// owned keeps each session for the caller that began it: knowing its id is not enough.
type owned struct {
	inner  http.Handler
	caller func(*http.Request) string

	mu    sync.Mutex
	owner map[string]string // of sessions
	order []string          // of sessions, the oldest first
}

func (o *owned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who := o.caller(r)
	id := r.Header.Get(sessionHeader)
	if id != "" {
		o.mu.Lock()
		owner, known := o.owner[id]
		o.mu.Unlock()
		if !known || owner != who {
			http.Error(w, "there is no such session; begin a new one", http.StatusNotFound)
			return
		}
		if r.Method == http.MethodDelete {
			defer o.forget(id)
		}
	}
	o.inner.ServeHTTP(&sessionWriter{ResponseWriter: w, begun: func(id string) { o.keep(id, who) }}, r)
}

func (o *owned) keep(id, who string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.owner == nil {
		o.owner = make(map[string]string)
	}
	if _, known := o.owner[id]; known {
		return
	}
	o.owner[id] = who
	o.order = append(o.order, id)
	for len(o.order) > maxSessions {
		delete(o.owner, o.order[0])
		o.order = o.order[1:]
	}
}

func (o *owned) forget(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.owner, id) // its place in the order goes with time
}

// A sessionWriter sees which session an answer begins.
type sessionWriter struct {
	http.ResponseWriter
	begun func(id string)
	told  bool
}

func (w *sessionWriter) tell() {
	if w.told {
		return
	}
	w.told = true
	if id := w.Header().Get(sessionHeader); id != "" {
		w.begun(id)
	}
}

func (w *sessionWriter) WriteHeader(status int) {
	w.tell()
	w.ResponseWriter.WriteHeader(status)
}

func (w *sessionWriter) Write(b []byte) (int, error) {
	w.tell()
	return w.ResponseWriter.Write(b)
}

func (w *sessionWriter) Flush() {
	w.tell()
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a writer that cannot sends at the end
}

func (w *sessionWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
