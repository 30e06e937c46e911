package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
)

// from yields stories, by run; runs named none have no events, and broken ones
// fail.
func from(_ context.Context, run claybot.RunID, _ int64) iter.Seq2[claybot.Event, error] {
	return func(yield func(claybot.Event, error) bool) {
		switch {
		case strings.HasPrefix(string(run), "none"):
			return
		case strings.HasPrefix(string(run), "broken"):
			yield(claybot.Event{}, errors.New("disk is gone"))
			return
		}
		for _, e := range story(run) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// export runs a meter that sends to an address, until the test ends or stop is
// called.
func export(t *testing.T, url string, change func(*Config)) (m *Metrics, stop func()) {
	t.Helper()
	cfg := Config{Events: from, Version: "test", OTLP: OTLP{Endpoint: url, Interval: time.Millisecond}}
	if change != nil {
		change(&cfg)
	}
	m = New(cfg)
	m.exporter.pause = time.Millisecond
	patient(m)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return m, stop
}

// patient lets a loaded machine take its time over a request, also over the last one.
func patient(m *Metrics) {
	m.exporter.last, m.exporter.client.Timeout = time.Minute, time.Minute
}

// endRun tells a meter that a run has ended.
func endRun(m *Metrics, run claybot.RunID) {
	m.Event("a1", event(run, 14, claybot.EventRunFinished, runs.RunFinished{}))
}

// find is the span with that name.
func find(t *testing.T, spans []got, name string) got {
	t.Helper()
	i := slices.IndexFunc(spans, func(s got) bool { return s.name == name })
	if i < 0 {
		t.Fatalf("no span %q among %+v", name, spans)
	}
	return spans[i]
}

// A real run of a real system becomes a trace with the names of the semantic
// conventions, and without any text.
func TestTrace(t *testing.T) {
	srv := newReceiver(t)
	r := newRig(t, Config{OTLP: OTLP{Endpoint: srv.URL + "/", Headers: map[string]string{"Api-Key": "not-a-secret"}, Interval: time.Hour}}, nil,
		reply(llmtest.Use(claybot.ToolCall{ID: "1", Name: "look", Args: "{}"}, claybot.ToolCall{ID: "2", Name: "pay", Args: "{}"}), "gpt-5"),
		reply(llmtest.Say("secret"), "gpt-5"),
	)
	r.line.fails = 1
	r.say("m1", "secret")
	r.line.arrived(t, 1)
	r.stop() // sends what is left
	spans := srv.taken(1)
	root := find(t, spans, "invoke_agent")
	names := []string{}
	for _, s := range spans {
		if s.name != "queue" { // the machine may have been fast
			names = append(names, s.name)
		}
		if s.trace != root.trace || s.id != root.id && s.parent != root.id {
			t.Errorf("%s stands outside: %+v", s.name, s)
		}
		if text := fmt.Sprint(s); strings.Contains(text, "secret") {
			t.Errorf("a text leaves: %s", text)
		}
	}
	slices.Sort(names)
	if want := []string{"chat gpt-5", "chat gpt-5", "execute_tool look", "execute_tool pay", "invoke_agent", "send chat", "send chat"}; !slices.Equal(names, want) {
		t.Errorf("spans %q, want %q", names, want)
	}
	check := func(s got, kind int, failed bool, want map[string]any) {
		t.Helper()
		if s.kind != kind || s.failed != failed {
			t.Errorf("%s: kind %d, failed %v", s.name, s.kind, s.failed)
		}
		for key, v := range want {
			if s.attrs[key] != v {
				t.Errorf("%s: %s = %v, want %v", s.name, key, s.attrs[key], v)
			}
		}
	}
	check(root, 1, false, map[string]any{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "openai", "gen_ai.usage.input_tokens": int64(200),
		"gen_ai.usage.output_tokens": int64(14), "gen_ai.usage.cache_read.input_tokens": int64(80), "gen_ai.request.model": "gpt-5",
	})
	if root.parent != "" || root.attrs["claybot.run.id"] == "" || root.attrs["gen_ai.agent.id"] == "" {
		t.Errorf("root %+v", root)
	}
	run, ok := root.attrs["claybot.run.id"].(string)
	if !ok || runs.TraceOf(claybot.RunID(run), nil).ID != root.trace {
		t.Errorf("the id of the trace %s is not made of the run %v", root.trace, run)
	}
	check(find(t, spans, "chat gpt-5"), 3, false, map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5", "gen_ai.response.model": "gpt-5",
		"gen_ai.usage.input_tokens": int64(100), "gen_ai.usage.output_tokens": int64(7),
	})
	check(find(t, spans, "execute_tool look"), 1, false, map[string]any{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.type": "function", "error.type": nil,
	})
	if find(t, spans, "execute_tool look").attrs["gen_ai.tool.call.id"] == "" {
		t.Error("a call without its id")
	}
	check(find(t, spans, "execute_tool pay"), 1, true, map[string]any{"error.type": "tool_error"})
	check(find(t, spans, "send chat"), 4, true, map[string]any{"error.type": "ambiguous", "messaging.system": "chat", "claybot.outgoing.kind": "answer"})
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.heads[0].Get("Api-Key") != "not-a-secret" || srv.heads[0].Get("User-Agent") != "claybot/test" {
		t.Errorf("headers %v", srv.heads[0])
	}
}

// All that a trace can have.
func TestTracer(t *testing.T) {
	m, _ := export(t, newReceiver(t).URL, nil)
	spans, err := m.exporter.spans(t.Context(), item{run: "r1", agent: "a1"})
	if err != nil {
		t.Fatal(err)
	}
	all, err := readTraces(otlpBody("1", spans))
	if err != nil {
		t.Fatal(err)
	}
	at := func(s got) string {
		const base = 1_700_000_000_000_000_000
		return fmt.Sprintf("%s %.1f-%.1f", s.name, float64(s.start-base)/1e9, float64(s.end-base)/1e9)
	}
	var lines []string
	for _, s := range all {
		lines = append(lines, at(s))
	}
	want := []string{
		"invoke_agent 1.0-14.0", "chat gpt-5 1.5-2.0", "execute_tool look 3.0-5.0", "execute_tool made up 6.0-6.0",
		"wait missing_info 8.0-9.0", "execute_tool look 12.0-12.0", "chat gpt-5 12.8-13.0",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got  %q\nwant %q", lines, want)
	}
	if want := []string{"MessagesInjected", "AwaitingInput", "RunResumed", "ContextCompacted", "SubagentStarted"}; !slices.Equal(all[0].events, want) {
		t.Errorf("events %q, want %q", all[0].events, want)
	}
	if all[5].attrs["error.type"] != "interrupted" {
		t.Errorf("an interrupted call: %+v", all[5])
	}
	for _, tt := range []struct {
		end  claybot.Event
		want any
	}{
		{event("r", 2, claybot.EventRunFailed, runs.RunFailed{Code: runs.CodeModel, Error: "secret"}), "model_error"},
		{event("r", 2, claybot.EventRunFailed, nil), "_OTHER"},
		{event("r", 2, claybot.EventRunCanceled, runs.RunCanceled{By: "user"}), "canceled"},
	} {
		tr := newTracer("r", "a", "openai")
		tr.add(tt.end)
		if got := tr.all()[0].err; got != tt.want {
			t.Errorf("%s: error.type %q, want %q", tt.end.Type, got, tt.want)
		}
	}
}

// A run of any length, and names of any form, make a trace that can be sent.
func TestHostileTrace(t *testing.T) {
	tr := newTracer("r", "a", "openai")
	for i := range int64(3 * maxSpans) {
		tr.add(event("r", i, claybot.EventToolFailed, runs.ToolEnded{CallID: strings.Repeat("é", 200), Tool: "\x1b[31m" + strings.Repeat("x", 500), MS: -1}))
		tr.add(claybot.Event{Run: "r", Seq: i, Type: claybot.EventAssistantMessage, Data: json.RawMessage(`{"model":"\ud800","ms":99999999999,"tokens":{"input":9223372036854775807}}`)})
		tr.add(event("r", i, claybot.EventMessagesInjected, nil))
		tr.add(claybot.Event{Run: "r", Seq: i, Type: claybot.EventToolCalled, Data: json.RawMessage(`[`)})
	}
	spans := tr.all()
	traced := make([]tracedSpan, len(spans))
	for i, s := range spans {
		traced[i] = tracedSpan{tr.trace, s}
	}
	body := otlpBody("", traced)
	all, err := readTraces(body)
	if err != nil {
		for _, line := range strings.SplitN(err.Error(), "\n", 3) {
			if !strings.Contains(line, "strconv") { // a sum that ran over
				t.Error(line)
			}
		}
	}
	if len(all) != maxSpans || len(all[0].events) != maxSpanEvents || len(body) > 2<<20 {
		t.Errorf("%d spans, %d events, %d bytes", len(all), len(all[0].events), len(body))
	}
}

// What a receiver refuses is not sent again; what it has no time for is.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(http.ResponseWriter)
		again  bool
	}{
		{"unavailable", func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, true},
		{"too many", func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}, true},
		{"bad gateway", func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, true},
		{"cut", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, true},
		{"bad request", func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadRequest) }, false},
		{"unauthorized", func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, false},
		{"moved", func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, false},
		{"partly", func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"2","errorMessage":"canary"}}`)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := newReceiver(t)
			first := make(chan struct{}, 1)
			srv.answer = func(n int, w http.ResponseWriter) bool {
				if n > 1 {
					return true
				}
				first <- struct{}{}
				tt.answer(w)
				return false
			}
			var log lockedBuffer
			m, stop := export(t, srv.URL, func(c *Config) {
				c.Log = slog.New(slog.NewJSONHandler(&log, nil))
				c.OTLP.Headers = map[string]string{"Key": "canary"}
			})
			endRun(m, "r1")
			<-first
			if !tt.again {
				endRun(m, "r2")
			}
			spans := srv.taken(1)
			stop()
			run := "r2"
			if tt.again {
				run = "r1"
			}
			if got := find(t, spans, "invoke_agent").attrs["claybot.run.id"]; got != run {
				t.Errorf("the run that arrived is %v, want %s", got, run)
			}
			f := m.exporter.figures()
			want := exported{sent: 1, spans: 7, requests: 2, failed: 1}
			if !tt.again {
				want.refused, want.failed = 1, 0
			}
			if f != want {
				t.Errorf("figures %+v, want %+v", f, want)
			}
			if n := strings.Count(log.String(), "traces cannot be sent"); n != 1 || strings.Contains(log.String(), "canary") {
				t.Errorf("log:\n%s", log.String())
			}
		})
	}
}

// A receiver that is not there delays no caller, and costs a bounded amount of memory.
func TestDeadEndpoint(t *testing.T) {
	m, stop := export(t, "http://127.0.0.1:1", nil) // a port that the system never assigns
	for i := range 3 * maxQueue {
		endRun(m, claybot.RunID(fmt.Sprint("r", i)))
	}
	m.Sent(claybot.Outgoing{Run: "r", Route: claybot.Route{Connector: "chat"}}, delivery.AttemptSent, time.Second)
	stop() // within the time that the last try has
	f := m.exporter.figures()
	if f.queue > maxQueue || f.dropped < maxQueue || f.dropped+f.queue != 3*maxQueue+1 || f.sent != 0 {
		t.Errorf("figures %+v", f)
	}
	page := parse(t, pageOf(t, m))
	if got := value(t, page, "claybot_otlp_exports_total", "outcome", "dropped"); got != float64(f.dropped) {
		t.Errorf("%v were dropped, the page says %v", f.dropped, got)
	}
}

// A receiver that comes back gets what waited, the newest included.
func TestReceiverComesBack(t *testing.T) {
	srv := newReceiver(t)
	refusals := 0
	srv.answer = func(n int, w http.ResponseWriter) bool {
		if n <= 5 {
			refusals++
			w.WriteHeader(http.StatusServiceUnavailable)
			return false
		}
		return true
	}
	var log lockedBuffer
	m, stop := export(t, srv.URL, func(c *Config) { c.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
	for i := range 300 {
		endRun(m, claybot.RunID(fmt.Sprint("r", i)))
	}
	seen := make(map[any]bool)
	for len(seen) < 300 {
		for _, s := range srv.taken(1) {
			if s.name == "invoke_agent" {
				seen[s.attrs["claybot.run.id"]] = true
			}
		}
	}
	stop()
	if f := m.exporter.figures(); f.sent != 300 || f.failed != 5 || f.dropped != 0 || f.queue != 0 {
		t.Errorf("figures %+v", f)
	}
	if !strings.Contains(log.String(), "traces are sent again") || strings.Count(log.String(), "cannot be sent") != 1 {
		t.Errorf("log:\n%s", log.String())
	}
}

// Runs whose events are gone do not stop the others.
func TestLostEvents(t *testing.T) {
	srv := newReceiver(t)
	m, stop := export(t, srv.URL, nil)
	for _, run := range []claybot.RunID{"none1", "broken1", "r1", "none2"} {
		endRun(m, run)
	}
	srv.taken(1)
	endRun(m, "broken2")
	endRun(m, "r2")
	srv.taken(1)
	stop()
	if f := m.exporter.figures(); f.lost != 4 || f.sent != 2 || f.queue != 0 {
		t.Errorf("figures %+v", f)
	}
}

// Without an endpoint nothing is kept.
func TestNoEndpoint(t *testing.T) {
	m := New(Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if err := m.Run(ctx); !errors.Is(err, why) {
		t.Errorf("Run: %v", err)
	}
	endRun(m, "r1")
	m.Sent(claybot.Outgoing{Run: "r"}, delivery.AttemptSent, time.Second)
}

// Where traces go to changes while they are sent: what waits goes to the new receiver with its headers, also what the
// former one did not take, and nothing does while there is none.
func TestSendTo(t *testing.T) {
	was, now := newReceiver(t), newReceiver(t)
	tried := make(chan struct{}, 1)
	was.answer = func(_ int, w http.ResponseWriter) bool {
		w.Header().Set("Retry-After", "300")
		w.WriteHeader(http.StatusServiceUnavailable)
		select {
		case tried <- struct{}{}:
		default:
		}
		return false
	}
	m, stop := export(t, "", nil)
	endRun(m, "none1")
	m.SendTo(OTLP{Endpoint: was.URL, Interval: time.Millisecond})
	endRun(m, "r1")
	<-tried
	m.SendTo(OTLP{Endpoint: now.URL, Headers: map[string]string{"Key": "canary"}, Interval: time.Millisecond})
	arrived := func(want ...any) {
		t.Helper()
		var all []any
		for _, s := range now.taken(1) {
			if s.name == "invoke_agent" {
				all = append(all, s.attrs["claybot.run.id"])
			}
		}
		if !slices.Equal(all, want) {
			t.Errorf("%v have arrived, want %v", all, want)
		}
	}
	arrived("r1")
	m.SendTo(OTLP{})
	endRun(m, "none2")
	m.SendTo(OTLP{Endpoint: now.URL, Interval: time.Hour})
	endRun(m, "r2")
	m.SendTo(OTLP{Endpoint: now.URL, Interval: time.Millisecond})
	arrived("r1", "r2")
	stop()
	if f := m.exporter.figures(); f.sent != 2 || f.dropped != 0 || f.lost != 0 || f.queue != 0 {
		t.Errorf("figures %+v", f)
	}
}

func TestBack(t *testing.T) {
	m := New(Config{OTLP: OTLP{Endpoint: "http://127.0.0.1:1"}})
	x := m.exporter
	for i := range maxQueue - 1 {
		x.add(item{run: claybot.RunID(fmt.Sprint(i))})
	}
	x.back([]item{{run: "old"}, {run: "newer"}, {run: "newest"}})
	if x.count.dropped != 2 || len(x.queue) != maxQueue || x.queue[0].run != "newest" || x.queue[1].run != "0" {
		t.Errorf("%d dropped, %d in the queue, first %+v", x.count.dropped, len(x.queue), x.queue[:2])
	}
}

// A lockedBuffer lets several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
