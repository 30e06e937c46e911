package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot/tools/mcp"
)

// A pins keeps marks over the end of a server.
type pins struct{ sync.Map }

func (p *pins) Checkpoint(_ context.Context, key string) (string, error) {
	v, _ := p.Load(key)
	text, _ := v.(string)
	return text, nil
}

func (p *pins) SetCheckpoint(_ context.Context, key, value string) error {
	p.Store(key, value)
	return nil
}

// pipe is pipeOf for ann.
func pipe(t *testing.T, o *office, cfg mcp.ServerConfig, told chan<- string) (*sdk.ClientSession, func()) {
	t.Helper()
	return pipeOf(t, "ann", o, cfg, told)
}

// pipeOf serves o to a client of a caller in memory until the returned function is called.
func pipeOf(t *testing.T, caller string, o *office, cfg mcp.ServerConfig, told chan<- string) (*sdk.ClientSession, func()) {
	t.Helper()
	a, b := sdk.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = mcp.NewServer(mcp.Offer{Caller: caller, Agents: o}, cfg).Run(ctx, a)
	}()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "editor", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { told <- r.Params.Message },
	}).Connect(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session, func() { _ = session.Close(); cancel(); <-done }
}

func call(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s(%v): %v", tool, args, err)
	}
	return text(r)
}

// X3: a call that takes long tells every 10 seconds that it continues, and returns before
// clients give up, which is after 60. The run continues, and run_status waits for it.
func TestLongCall(t *testing.T) {
	for _, progress := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o, told := newOffice(), make(chan string, 100)
			session, end := pipe(t, o, mcp.ServerConfig{}, told)
			defer end()
			params := &sdk.CallToolParams{Name: "ask_agent", Arguments: map[string]any{"text": "forever"}}
			if progress {
				params.SetProgressToken("p")
			}
			began := time.Now()
			r, err := session.CallTool(t.Context(), params)
			if err != nil || r.IsError || !strings.Contains(text(r), "Call run_status with run forever-1 and wait 50") {
				t.Fatalf("%+v, %v", r, err)
			}
			if d := time.Since(began); d != 50*time.Second {
				t.Errorf("after %v", d)
			}
			out := r.StructuredContent.(map[string]any)
			if out["run"] != "forever-1" || out["state"] != "RUNNING" || out["agent"] != string(helper) {
				t.Errorf("%v", out)
			}
			synctest.Wait()
			close(told)
			var all []string
			for words := range told {
				all = append(all, words)
			}
			want := ""
			if progress {
				want = "started,uses search" + strings.Repeat(",still working", 4)
			}
			if got := strings.Join(all[:min(len(all), 6)], ","); got != want { // a seventh may come just before the end
				t.Errorf("told %s, want %s", got, want)
			}
			go func() {
				time.Sleep(9 * time.Minute)
				o.end("forever-1")
			}()
			for range 11 { // ten minutes
				if r, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "run_status", Arguments: map[string]any{"run": "forever-1", "wait": 50}}); err != nil {
					t.Fatal(err)
				}
			}
			if text(r) != "done: forever-1" || time.Since(began) != 9*time.Minute+50*time.Second || len(o.canceled) != 0 {
				t.Errorf("%s after %v", text(r), time.Since(began))
			}
			if got := call(t, session, "ask_agent", map[string]any{"text": "forever", "wait": 0}); !strings.Contains(got, "forever-2") {
				t.Errorf("the answer was read, and the same request got %s", got)
			}
		})
	}
}

// X1: a repeated request is the same message until its answer is delivered, and for ten
// minutes at most.
func TestRepeatedCall(t *testing.T) {
	forever := map[string]any{"text": "forever", "wait": 1}
	for name, tt := range map[string]struct {
		between func(t *testing.T, o *office, s *sdk.ClientSession)
		args    map[string]any
		want    int
	}{
		"while it works": {func(*testing.T, *office, *sdk.ClientSession) {}, forever, 1},
		"canceled by the client": {func(t *testing.T, _ *office, s *sdk.ClientSession) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "ask_agent", Arguments: map[string]any{"text": "forever"}}); err == nil {
				t.Error("the call was not canceled")
			}
		}, forever, 1},
		"ended minutes ago": {func(_ *testing.T, o *office, _ *sdk.ClientSession) {
			o.end("forever-1")
			time.Sleep(9 * time.Minute)
		}, forever, 1},
		"ended long ago": {func(_ *testing.T, o *office, _ *sdk.ClientSession) {
			o.end("forever-1")
			time.Sleep(11 * time.Minute)
		}, forever, 2},
		"answered": {func(t *testing.T, o *office, s *sdk.ClientSession) {
			o.end("forever-1")
			call(t, s, "ask_agent", forever)
		}, forever, 2},
		"answered by run_status": {func(t *testing.T, o *office, s *sdk.ClientSession) {
			o.end("forever-1")
			call(t, s, "run_status", map[string]any{"run": "forever-1"})
		}, forever, 2},
		"stopped": {func(t *testing.T, _ *office, s *sdk.ClientSession) {
			call(t, s, "stop_run", map[string]any{"run": "forever-1"})
		}, forever, 2},
		"another wait":         {func(*testing.T, *office, *sdk.ClientSession) {}, map[string]any{"text": "forever", "wait": 2}, 1},
		"another conversation": {func(*testing.T, *office, *sdk.ClientSession) {}, map[string]any{"text": "forever", "wait": 1, "conversation": "c"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice()
				session, end := pipe(t, o, mcp.ServerConfig{}, nil)
				defer end()
				call(t, session, "ask_agent", forever)
				tt.between(t, o, session)
				call(t, session, "ask_agent", tt.args)
				if got := o.asked(); got != tt.want {
					t.Errorf("%d messages, want %d", got, tt.want)
				}
			})
		})
	}
}

// A request is the same after a restart, and by the name in its _meta.
func TestRepeatedCallAfterRestart(t *testing.T) {
	o, cfg := newOffice(), mcp.ServerConfig{Marks: new(pins)}
	for range 2 {
		session, end := pipe(t, o, cfg, nil)
		call(t, session, "ask_agent", map[string]any{"text": "forever", "wait": 0})
		end()
	}
	if got := o.asked(); got != 1 {
		t.Errorf("%d messages", got)
	}
	for range 2 {
		session, end := pipe(t, o, cfg, nil)
		params := &sdk.CallToolParams{Name: "ask_agent", Arguments: map[string]any{"text": "hello"}, Meta: sdk.Meta{"idempotencyKey": "k"}}
		if r, err := session.CallTool(t.Context(), params); err != nil || text(r) != "done: hello-2" {
			t.Errorf("%+v, %v", r, err)
		}
		end()
	}
}

// The look of another caller at a run, or its stop, is no delivery to the one who asked.
func TestRequestIsOfItsCaller(t *testing.T) {
	for _, tool := range []string{"stop_run", "run_status"} {
		o, cfg := newOffice(), mcp.ServerConfig{Marks: new(pins)}
		ann, end := pipeOf(t, "ann", o, cfg, nil)
		bob, bobEnds := pipeOf(t, "bob", o, cfg, nil)
		forever := map[string]any{"text": "forever", "wait": 0}
		call(t, ann, "ask_agent", forever)
		if tool == "run_status" {
			o.end("forever-1")
		}
		call(t, bob, tool, map[string]any{"run": "forever-1"})
		call(t, ann, "ask_agent", forever)
		if got := o.asked(); got != 1 {
			t.Errorf("%s: %d messages", tool, got)
		}
		end()
		bobEnds()
	}
}

// visit is a session over HTTP.
func visit(t *testing.T, url string) (*sdk.ClientSession, *http.Transport) {
	t.Helper()
	by := new(http.Transport)
	t.Cleanup(by.CloseIdleConnections)
	session, err := sdk.NewClient(&sdk.Implementation{Name: "x", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: by}, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session, by
}

// Two people with the same token who begin conversations with the same words have a
// message each while both are connected. A request of a session that is gone is repeated
// by another.
func TestRepeatedCallOfAnotherSession(t *testing.T) {
	o := newOffice()
	web := httptest.NewServer(mcp.Handler(func(*http.Request) mcp.Offer { return mcp.Offer{Caller: "ann", Agents: o} }, mcp.ServerConfig{}))
	defer web.Close()
	defer web.CloseClientConnections()
	alone, named := map[string]any{"text": "forever", "wait": 0}, map[string]any{"text": "forever", "wait": 0, "conversation": "c"}
	var sessions []*sdk.ClientSession
	for i, tt := range []struct {
		args map[string]any
		want int
	}{{alone, 1}, {alone, 2}, {named, 3}, {named, 3}} {
		session, _ := visit(t, web.URL)
		sessions = append(sessions, session)
		call(t, session, "ask_agent", tt.args)
		call(t, session, "ask_agent", tt.args)
		if got := o.asked(); got != tt.want {
			t.Errorf("session %d: %d messages, want %d", i, got, tt.want)
		}
	}
	for _, s := range sessions {
		_ = s.Close()
	}
	session, _ := visit(t, web.URL)
	defer session.Close()
	call(t, session, "ask_agent", alone)
	if got := o.asked(); got != 3 {
		t.Errorf("%d messages after the sessions ended", got)
	}
}

// An answer that a connection cuts is not delivered: the same request gets it again.
func TestRepeatedCallAfterCut(t *testing.T) {
	o := newOffice()
	cut := make(chan struct{})
	inner := mcp.Handler(func(*http.Request) mcp.Offer { return mcp.Offer{Caller: "ann", Agents: o} }, mcp.ServerConfig{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Cut") == "" {
			inner.ServeHTTP(w, r)
			return
		}
		inner.ServeHTTP(&cutWriter{ResponseWriter: w}, r)
		close(cut)
	}))
	defer web.Close()
	defer web.CloseClientConnections()
	session, by := visit(t, web.URL)
	defer session.Close()
	args := map[string]any{"text": "hello"}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(
		`{"jsonrpc":"2.0","id":"cut","method":"tools/call","params":{"name":"ask_agent","arguments":{"text":"hello"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"X-Cut": "1", "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session.ID()} {
		req.Header.Set(k, v)
	}
	if resp, err := by.RoundTrip(req); err == nil {
		resp.Body.Close()
	}
	<-cut
	for _, want := range []string{"done: hello-1", "done: hello-2"} { // then it is delivered
		if got := call(t, session, "ask_agent", args); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A cutWriter writes nothing.
type cutWriter struct{ http.ResponseWriter }

func (cutWriter) Write([]byte) (int, error) { return 0, http.ErrAbortHandler }
func (cutWriter) FlushError() error         { return http.ErrAbortHandler }
