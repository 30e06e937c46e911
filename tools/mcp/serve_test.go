package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools/mcp"
)

const helper = claybot.AgentID("a23456789012345678901234")

// An office has one agent, which does what it is told by a word. A run of the word
// forever works until it ends by a call of end.
type office struct {
	mu       sync.Mutex
	asks     []mcp.Ask
	runs     map[string]claybot.RunID // by key
	ends     map[claybot.RunID]claybot.Time
	changed  chan struct{} // closed when a run ends
	canceled []claybot.RunID
}

// end ends a run that works forever.
func (o *office) end(run claybot.RunID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ends[run] = claybot.Now()
	close(o.changed)
	o.changed = make(chan struct{})
}

// asked returns how many messages the agent has.
func (o *office) asked() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.asks)
}

func (o *office) List(context.Context) ([]mcp.AgentInfo, error) {
	return []mcp.AgentInfo{{ID: helper, Type: "user", Name: "helper", State: "idle"}}, nil
}

func (o *office) Ask(_ context.Context, a mcp.Ask) (mcp.Asked, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a.Text == "refuse" {
		return mcp.Asked{}, errors.New("there is no agent with that id")
	}
	run, known := o.runs[a.Key]
	if !known {
		o.asks = append(o.asks, a)
		run = claybot.RunID(fmt.Sprintf("%s-%d", a.Text, len(o.asks)))
		o.runs[a.Key] = run
	}
	return mcp.Asked{Run: run, Agent: helper}, nil
}

func (o *office) Follow(ctx context.Context, run claybot.RunID, progress func(string)) (mcp.RunInfo, error) {
	progress("started")
	progress("uses\x1b[31m search")
	for {
		o.mu.Lock()
		changed := o.changed
		o.mu.Unlock()
		if r, err := o.Run(ctx, run); err != nil || r.State != claybot.RunRunning {
			return r, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return mcp.RunInfo{}, ctx.Err()
		}
	}
}

func (o *office) Run(_ context.Context, run claybot.RunID) (mcp.RunInfo, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := mcp.RunInfo{ID: run, Agent: helper, State: claybot.RunSucceeded, Text: "done: " + string(run), Ended: claybot.Now()}
	if strings.HasPrefix(string(run), "forever") {
		if out.Ended = o.ends[run]; out.Ended == 0 {
			out.State, out.Text = claybot.RunRunning, ""
		}
		if slices.Contains(o.canceled, run) {
			out.State, out.Text = claybot.RunCanceled, ""
		}
	}
	switch word, _, _ := strings.Cut(string(run), "-"); word {
	case "fail":
		out.State, out.Text, out.Error = claybot.RunFailed, "", "the model is down"
	case "wait":
		out.State, out.Text, out.Asks = claybot.RunAwaiting, "", []string{"Which colour?"}
	case "none":
		return mcp.RunInfo{}, errors.New("there is no run with that id")
	}
	return out, nil
}

func (o *office) Cancel(_ context.Context, run claybot.RunID) error {
	o.mu.Lock()
	o.canceled = append(o.canceled, run)
	o.mu.Unlock()
	o.end(run)
	return nil
}

func (o *office) History(_ context.Context, _ claybot.AgentID, last int) ([]mcp.Said, error) {
	return []mcp.Said{{Who: "user", Text: fmt.Sprint(last)}}, nil
}

func newOffice() *office {
	return &office{runs: make(map[string]claybot.RunID), ends: make(map[claybot.RunID]claybot.Time), changed: make(chan struct{})}
}

func text(r *sdk.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, "|")
}

// The server speaks with a client of the library by both transports.
func TestServer(t *testing.T) {
	for _, by := range []string{"memory", "http"} {
		t.Run(by, func(t *testing.T) {
			o := newOffice()
			var transport sdk.Transport
			if by == "http" {
				web := httptest.NewServer(mcp.Handler(func(*http.Request) mcp.Offer { return mcp.Offer{Caller: "ann", Agents: o} }, mcp.ServerConfig{}))
				defer web.Close()
				defer web.CloseClientConnections()
				transport = &sdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: open("")}
			} else {
				a, b := sdk.NewInMemoryTransports()
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = mcp.NewServer(mcp.Offer{Caller: "ann", Agents: o}, mcp.ServerConfig{}).Run(ctx, a)
				}()
				defer func() { cancel(); <-done }()
				transport = b
			}
			told := make(chan string, 100)
			client := sdk.NewClient(&sdk.Implementation{Name: "editor", Version: "1"}, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { told <- r.Params.Message },
			})
			session, err := client.Connect(t.Context(), transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			checkServer(t, o, session, told)
		})
	}
}

func checkServer(t *testing.T, o *office, session *sdk.ClientSession, told <-chan string) {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"agent_history", "ask_agent", "list_agents", "run_status", "stop_run"}) {
		t.Errorf("tools %v", names)
	}
	for _, tt := range []struct {
		tool string
		args map[string]any
		want string
		bad  bool
	}{
		{"ask_agent", map[string]any{"text": "hello"}, "done: hello-1", false},
		{"ask_agent", map[string]any{"text": "again", "conversation": "c", "requestId": "r1"}, "done: again-2", false},
		{"ask_agent", map[string]any{"text": "again", "conversation": "c", "requestId": "r1"}, "done: again-2", false},
		{"ask_agent", map[string]any{"text": "again", "conversation": "d", "requestId": "r1"}, "done: again-3", false},
		{"ask_agent", map[string]any{"text": "fail", "agent": string(helper)}, "The run failed: the model is down", true},
		{"ask_agent", map[string]any{"text": "wait"}, "It asks: Which colour?", false},
		{"ask_agent", map[string]any{"text": "refuse"}, "there is no agent with that id", true},
		{"ask_agent", map[string]any{"text": " "}, "text is empty", true},
		{"ask_agent", map[string]any{"text": "x", "agent": "../x"}, "agent:", true},
		{"ask_agent", map[string]any{"text": "x", "agent": string(helper), "conversation": "c"}, "not both", true},
		{"ask_agent", map[string]any{"text": strings.Repeat("x", 100_001)}, "the limit is 100000", true},
		{"ask_agent", map[string]any{"text": "x", "wait": 3601}, "wait is 0 to 3600 seconds", true},
		{"list_agents", nil, `"name":"helper"`, false},
		{"agent_history", map[string]any{"agent": string(helper)}, `"text":"20"`, false},
		{"agent_history", map[string]any{"agent": string(helper), "last": 201}, "last is 1 to 200", true},
		{"agent_history", map[string]any{"agent": "x"}, "agent:", true},
		{"run_status", map[string]any{"run": "fail-1"}, "The run failed: the model is down", false},
		{"run_status", map[string]any{"run": "none-1"}, "there is no run", true},
		{"run_status", map[string]any{"run": ""}, "not the id of a run", true},
		{"run_status", map[string]any{"run": "hello-1", "wait": -1}, "wait is 0 to", true},
		{"run_status", map[string]any{"run": "hello-1", "wait": 5}, "done: hello-1", false},
		{"stop_run", map[string]any{"run": ""}, "not the id of a run", true},
		{"stop_run", map[string]any{"run": "hello-1"}, "done: hello-1", false}, // it has ended
	} {
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tt.tool, Arguments: tt.args})
		if err != nil || r.IsError != tt.bad || !strings.Contains(text(r), tt.want) {
			t.Errorf("%s(%.80v) = %+v, %v, want %q", tt.tool, tt.args, r, err, tt.want)
		}
	}
	params := &sdk.CallToolParams{Name: "ask_agent", Arguments: map[string]any{"text": "forever"}}
	params.SetProgressToken("p")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, params)
		ended <- err
	}()
	if a, b := <-told, <-told; a != "started" || b != "uses search" {
		t.Errorf("told %q, %q", a, b)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	again, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask_agent", Arguments: map[string]any{"text": "forever", "wait": 0}})
	if err != nil || again.IsError || !strings.Contains(text(again), "Still working: the run forever-") {
		t.Errorf("after the end of the call: %+v, %v", again, err)
	}
	run := again.StructuredContent.(map[string]any)["run"]
	stopped, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "stop_run", Arguments: map[string]any{"run": run}})
	if err != nil || stopped.IsError || text(stopped) != "The run was canceled." || len(o.canceled) != 2 {
		t.Errorf("stopped: %+v, %v", stopped, err)
	}
}

// Keys of different callers do not meet, and a session lets in its own caller
// alone.
func TestServerCallers(t *testing.T) {
	o := newOffice()
	web := httptest.NewServer(mcp.Handler(func(r *http.Request) mcp.Offer { return mcp.Offer{Caller: r.Header.Get("X-Caller"), Agents: o} }, mcp.ServerConfig{}))
	defer web.Close()
	defer web.CloseClientConnections()
	as := func(who string) *http.Client { return &http.Client{Transport: caller{who}} }
	for _, who := range []string{"ann", "bob"} {
		session, err := sdk.NewClient(&sdk.Implementation{Name: "x", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: as(who)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask_agent", Arguments: map[string]any{"text": "x", "requestId": "1"}}); err != nil {
			t.Error(err)
		}
		_ = session.Close()
	}
	if len(o.asks) != 2 || o.asks[0].Key == o.asks[1].Key {
		t.Errorf("asked %+v", o.asks)
	}

	post := func(who, session, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := as(who).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	hello := post("ann", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	id := hello.Header.Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("no session: %s", hello.Status)
	}
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for who, want := range map[string]int{"ann": http.StatusOK, "bob": http.StatusNotFound, "": http.StatusNotFound} {
		if got := post(who, id, ping).StatusCode; got != want {
			t.Errorf("%q in the session of ann: %d, want %d", who, got, want)
		}
	}
	if got := post("ann", "unknown", ping).StatusCode; got != http.StatusNotFound {
		t.Errorf("an unknown session: %d", got)
	}
}

type caller struct{ who string }

func (c caller) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Caller", c.who)
	return http.DefaultTransport.RoundTrip(r)
}
