package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/web"
)

// clientsDir is where scripts/clients.sh installs the clients.
const clientsDir = "../../bin/clients"

// A clientFault is what goes wrong with the calls of every client, and how each
// call ends.
type clientFault struct {
	name     string
	libs     []string // that make a call
	kept     bool     // the daemon sends blanks at once
	first    int      // what the proxy answers to the first request; 0: what the daemon does; cut: nothing
	ends     string   // how the run ends: answer, fail or cancel
	requests int      // of each call
	want     string   // a part of the answer or error
	fails    bool     // the call ends with an error
}

const cut = -1

var (
	wholeLibs  = []string{"openai", "langchain", "ai", "openai responses", "langchain responses", "ai responses"}
	streamLibs = []string{"openai stream", "langchain stream", "ai stream", "openai responses stream", "ai responses stream"}
)

// clientFaults is the table of finding X1, and what is near it.
var clientFaults = []clientFault{
	{name: "nothing", libs: slices.Concat(wholeLibs, streamLibs), ends: "answer", requests: 1, want: "the answer"},
	{name: "failed-run", libs: wholeLibs, ends: "fail", requests: 1, want: "The run failed: model: the account is closed", fails: true},
	{name: "canceled-run", libs: wholeLibs, ends: "cancel", requests: 1, want: "The run was canceled", fails: true},
	{name: "failed-run-streamed", libs: streamLibs, ends: "fail", requests: 1, want: "the account is closed", fails: true},
	{name: "504-of-the-proxy", libs: wholeLibs, first: http.StatusGatewayTimeout, ends: "answer", requests: 2, want: "the answer"},
	{name: "504-and-failed-run", libs: wholeLibs, first: http.StatusGatewayTimeout, ends: "fail", requests: 2, want: "the account is closed", fails: true},
	{name: "connection-cut", libs: wholeLibs, first: cut, ends: "answer", requests: 2, want: "the answer"},
	{name: "429-of-the-proxy", libs: wholeLibs, first: http.StatusTooManyRequests, ends: "answer", requests: 2, want: "the answer"},
	{name: "busy-store", libs: wholeLibs, ends: "answer", requests: 2, want: "the answer"},
	{name: "kept-alive", libs: wholeLibs, kept: true, ends: "answer", requests: 1, want: "the answer"},
	{name: "kept-alive-and-failed-run", libs: wholeLibs, kept: true, ends: "fail", requests: 1, fails: true},
}

// A clientCall is one call of a client.
type clientCall struct {
	ID   string `json:"id"` // and its thread
	Lib  string `json:"lib"`
	URL  string `json:"url"`
	Key  string `json:"key"`
	Text string `json:"text"`

	fault    clientFault
	mu       sync.Mutex
	requests int           // that came to the proxy
	presses  int           // calls of the tool
	watched  int           // requests that wait for the run
	busy     bool          // the store has refused a request
	pressed  chan struct{} // closed when the tool is called
	letGo    chan struct{} // closed to let the tool go on
}

func (c *clientCall) count(n *int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
	return *n
}

// release lets the tool go on; again it does nothing.
func (c *clientCall) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.letGo:
	default:
		close(c.letGo)
	}
}

// A clientRig is a daemon behind a proxy, for calls of clients.
type clientRig struct {
	*rig
	calls map[string]*clientCall
	mu    sync.Mutex
	runs  map[claybot.RunID]*clientCall
}

// A clientDesk refuses what the store is too busy for, and sees who waits for a run.
type clientDesk struct {
	web.Starter
	web.Runs
	r *clientRig
}

func (d clientDesk) Known(ctx context.Context, to agentsystem.Address, m claybot.AgentMessage) (agentsystem.Accepted, bool, error) {
	c := d.r.calls[m.Text]
	c.mu.Lock()
	refuse := c.fault.name == "busy-store" && !c.busy
	c.busy = true
	c.mu.Unlock()
	if refuse {
		return agentsystem.Accepted{}, false, storage.ErrBusy
	}
	return d.Starter.Known(ctx, to, m)
}

// StartRun notes whose run it is.
func (d clientDesk) StartRun(ctx context.Context, to agentsystem.Address, m claybot.AgentMessage) (agentsystem.Accepted, error) {
	got, err := d.Starter.StartRun(ctx, to, m)
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	d.r.runs[got.Run] = d.r.calls[m.Text]
	return got, err
}

// Watch lets the tool go on when the last request of its call has found the run.
func (d clientDesk) Watch(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[runs.Update, error] {
	d.r.mu.Lock()
	c := d.r.runs[id]
	d.r.mu.Unlock()
	if c.count(&c.watched) >= c.fault.waits() && !c.fault.kept && c.fault.ends != "cancel" {
		c.release()
	}
	return d.Runs.Watch(ctx, id, after)
}

// waits is how many requests of a call reach the daemon and wait there.
func (f clientFault) waits() int {
	if f.first == http.StatusGatewayTimeout || f.first == cut {
		return 2
	}
	return 1
}

// press is the tool of all calls: it has an effect, and takes as long as it is held.
func (r *clientRig) press() tools.Tool {
	type input struct {
		Call string `json:"call"`
	}
	spec := tools.Spec{Tool: llm.Tool{Name: "press", Description: "Presses the button."}, Effect: tools.ReadOnly, Timeout: patience}
	return tools.New(spec, func(ctx context.Context, _ tools.Env, in input) (tools.Result, error) {
		c := r.calls[in.Call]
		if c.count(&c.presses) == 1 {
			close(c.pressed)
		}
		select {
		case <-c.letGo:
			return tools.Result{Text: "pressed"}, nil
		case <-ctx.Done():
			return tools.Result{}, context.Cause(ctx)
		}
	})
}

// serve is the proxy of a call.
func (c *clientCall) serve(w http.ResponseWriter, r *http.Request, on http.Handler) {
	first := c.count(&c.requests) == 1
	switch {
	case first && c.fault.first == http.StatusTooManyRequests: // as limit_req of nginx
		w.Header().Set("Retry-After", "1")
		http.Error(w, "<html>429 Too Many Requests</html>", c.fault.first)
	case first && c.fault.first != 0: // as proxy_read_timeout of nginx
		ctx, cancel := context.WithCancel(r.Context())
		var wg sync.WaitGroup
		early := make(chan struct{}) // the daemon answers at once: that is for the client
		answer := httptest.NewRecorder()
		wg.Go(func() { on.ServeHTTP(answer, r.WithContext(ctx)); close(early) })
		select {
		case <-c.pressed:
		case <-early:
			http.Error(w, answer.Body.String(), answer.Code)
			cancel()
			return
		}
		cancel()
		wg.Wait()
		if c.fault.first == cut {
			panic(http.ErrAbortHandler)
		}
		http.Error(w, "<html>504 Gateway Time-out</html>", c.fault.first)
	default:
		on.ServeHTTP(w, r)
	}
}

// A firstByte is a body that tells when something of it comes.
type firstByte struct {
	io.ReadCloser
	came func()
}

func (f firstByte) Read(b []byte) (int, error) {
	n, err := f.ReadCloser.Read(b)
	if n > 0 {
		f.came()
	}
	return n, err
}

// proxied starts a daemon for the calls of some faults, behind a proxy.
func proxied(t *testing.T, kept bool, from int) *clientRig {
	cr := &clientRig{calls: make(map[string]*clientCall), runs: make(map[claybot.RunID]*clientCall)}
	cr.rig = start(t, func(r *rig) {
		r.tools = []tools.Tool{cr.press()}
		r.wrap = func(d *web.Backend) { all := clientDesk{d.Starter, d.Runs, cr}; d.Starter, d.Runs = all, all }
		if r.alive = time.Hour; kept {
			r.alive = time.Millisecond
		}
	})
	t.Cleanup(func() { // before the daemon stops
		for _, c := range cr.calls {
			c.release()
		}
	})
	on := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: cr.addr}) },
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Transport: cr.http.Transport,
	}
	on.ModifyResponse = func(resp *http.Response) error {
		if c := cr.calls[resp.Request.Header.Get("X-Call")]; c.fault.kept {
			resp.Body = firstByte{resp.Body, c.release}
		}
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/{call}/", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("call")
		r.Header.Set("X-Call", id)
		cr.calls[id].serve(w, r, http.StripPrefix("/"+id, on))
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	key := cr.scoped("client", "operate")
	for _, f := range clientFaults {
		for _, lib := range f.libs {
			if f.kept != kept {
				continue
			}
			id := fmt.Sprintf("c%d.", from+len(cr.calls))
			c := &clientCall{ID: id, Lib: lib, URL: srv.URL + "/" + id + "/v1", Key: key, Text: id, fault: f, pressed: make(chan struct{}), letGo: make(chan struct{})}
			end := llmtest.Say("the answer")
			if f.ends == "fail" {
				end = llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Text: "the account is closed"}}
			}
			cr.mind.plan(id, llmtest.Use(claybot.ToolCall{ID: "p", Name: "press", Args: `{"call":"` + id + `"}`}), end)
			cr.calls[id] = c
		}
	}
	return cr
}

// cancel ends the runs that are to be canceled, when their tools work.
func (r *clientRig) cancel() {
	for _, c := range r.calls {
		if c.fault.ends != "cancel" {
			continue
		}
		select {
		case <-c.pressed:
		case <-time.After(patience):
			r.Errorf("%s, %s: the tool was not called", c.fault.name, c.Lib)
			continue
		}
		r.mu.Lock()
		var id claybot.RunID
		for run, of := range r.runs {
			if of == c {
				id = run
			}
		}
		r.mu.Unlock()
		if _, err := r.system.Control.CancelRun(r.Context(), id, "operator"); err != nil {
			r.Errorf("cancel: %v", err)
		}
	}
}

// called runs the clients and returns what became of each call.
func called(t *testing.T, calls []*clientCall) map[string]clientEnd {
	t.Helper()
	dir, err := filepath.Abs(clientsDir)
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "testdata/clients/call.cjs", dir)
	var out, words bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &words
	cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "LANGCHAIN_TRACING_V2=false", "LANGSMITH_TRACING=false", "AI_SDK_LOG_WARNINGS=false")
	if err := cmd.Run(); err != nil {
		t.Fatalf("node: %v\n%s", err, words.String())
	}
	var all []clientEnd
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	ends := make(map[string]clientEnd)
	for _, e := range all {
		ends[e.ID] = e
	}
	return ends
}

// A clientEnd is what a client tells of its call.
type clientEnd struct{ ID, Text, Error string }

// needClients skips a test where there are no clients, which must not be with CI=true.
func needClients(t *testing.T) {
	t.Helper()
	_, node := exec.LookPath("node")
	if _, err := os.Stat(filepath.Join(clientsDir, ".done")); err == nil && node == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no official client is tested, which must not be with CI=true: there is no node, or no bin/clients; run scripts/clients.sh")
	}
	t.Skip("SKIPPED, no official client is tested: there is no node, or no bin/clients (scripts/clients.sh installs it)")
}

// X1: whatever goes wrong between an official client at its default settings and the
// daemon, one call is one run, one effect of its tool, and one answer or error.
func TestOfficialClients(t *testing.T) {
	needClients(t)
	t.Parallel() // most of the time clients wait before they retry
	rigs := []*clientRig{proxied(t, false, 100), proxied(t, true, 200)}
	var calls []*clientCall
	for _, r := range rigs {
		calls = slices.AppendSeq(calls, maps.Values(r.calls))
	}
	var wg sync.WaitGroup
	wg.Go(rigs[0].cancel)
	ends := called(t, calls)
	wg.Wait()
	for _, c := range calls {
		end := ends[c.ID]
		if c.requests != c.fault.requests || c.presses != 1 {
			t.Errorf("%s, %s: %d requests and %d effects, want %d and 1", c.fault.name, c.Lib, c.requests, c.presses, c.fault.requests)
		}
		if said := end.Text + end.Error; (end.Error != "") != c.fault.fails || !strings.Contains(said, c.fault.want) {
			t.Errorf("%s, %s: %+v, want %q", c.fault.name, c.Lib, end, c.fault.want)
		}
	}
	for _, r := range rigs {
		var list struct{ Runs []runRow }
		if r.ask("GET", "/agents/runs?limit=500", "", http.StatusOK, &list); len(list.Runs) != len(r.calls) {
			t.Errorf("%d calls made %d runs", len(r.calls), len(list.Runs))
		}
	}
}
