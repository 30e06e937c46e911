package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/llm/provider"
)

const fakeKey = "sk-fake-0123456789-not-a-key"

// serve starts an emulator and a client for it.
func serve(t testing.TB, ec openaitest.Config, cc Config) (*openaitest.Server, *Client) {
	t.Helper()
	s := openaitest.New(ec)
	url, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	if cc.BaseURL == "" {
		cc.BaseURL = url
	}
	if cc.Model == "" {
		cc.Model = "test-model"
	}
	c := New(cc)
	t.Cleanup(func() {
		c.CloseIdleConnections()
		stop()
	})
	return s, c
}

func ask(text string) llm.Request {
	return llm.Request{Agent: "agent1", Run: "run1", System: "be kind", Messages: llm.Messages([]claybot.Record{
		{Type: claybot.RecordUser, At: 1, MessageID: "m1", Text: text},
	})}
}

var twoCalls = []claybot.ToolCall{
	{ID: "call_a", Name: "clock", Args: `{"zone":"Europe/Paris"}`},
	{ID: "call_b", Name: "shell", Args: `{"cmd":"echo \"a b\"","n":[1,2,3]}`},
}

func TestChat(t *testing.T) {
	s, c := serve(t, openaitest.Config{Key: fakeKey, Models: []string{"test-model"}}, Config{Key: fakeKey, MaxTokens: 77})
	resp, err := c.Chat(t.Context(), ask("hello <b>world</b> & all"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "echo: hello <b>world</b> & all"; resp.Text != want || resp.Stop != llm.StopEnd || resp.Model != "test-model" {
		t.Errorf("got %+v, want text %q", resp, want)
	}
	if resp.Usage.Input == 0 || resp.Usage.Output == 0 || resp.Usage.Estimated || resp.Usage.LLMCalls != 1 {
		t.Errorf("usage %+v", resp.Usage)
	}
	got := s.Requests()[0]
	if got.System != "be kind" || got.Fallback != 1 || got.Agent != "agent1" || !got.Stream || !got.Usage || got.MaxTokens != 77 || len(got.Messages) != 1 {
		t.Errorf("request %+v", got)
	}
}

func TestBaseURLs(t *testing.T) {
	for base, want := range map[string]string{
		"":                                   "https://api.openai.com/v1/chat/completions",
		"http://localhost:11434":             "http://localhost:11434/chat/completions",
		"http://localhost:11434/v1/":         "http://localhost:11434/v1/chat/completions",
		"https://x.example/v1?version=2":     "https://x.example/v1/chat/completions?version=2",
		"https://x.example/chat/completions": "https://x.example/chat/completions",
	} {
		if got := New(Config{BaseURL: base, Model: "m"}).URL; got != want {
			t.Errorf("%q: got %q, want %q", base, got, want)
		}
	}
	for _, bad := range []string{"localhost:11434", "ftp://x", "://", "/v1"} {
		cfg := Config{BaseURL: bad, Model: "m", Key: fakeKey}
		if cfg.Validate() == nil {
			t.Errorf("%q: is accepted", bad)
		}
		var e *llm.Error
		if _, err := New(cfg).Chat(t.Context(), ask("x")); !errors.As(err, &e) || e.Class != llm.Permanent {
			t.Errorf("%q: got error %v, want a permanent one", bad, err)
		}
	}
}

// The base path without /v1 works against the emulator as well.
func TestWithoutV1(t *testing.T) {
	srv := httptest.NewServer(openaitest.New(openaitest.Config{}))
	defer srv.Close()
	c := New(Config{BaseURL: srv.URL + "/", Model: "m"})
	defer c.CloseIdleConnections()
	if _, err := c.Chat(t.Context(), ask("x")); err != nil {
		t.Fatal(err)
	}
}

func TestToolCalls(t *testing.T) {
	for _, fault := range []openaitest.Fault{"", openaitest.FaultNoIDs, openaitest.FaultSameIDs, openaitest.FaultNoIndex, openaitest.FaultNoDone} {
		t.Run("fault="+string(fault), func(t *testing.T) {
			s, c := serve(t, openaitest.Config{}, Config{})
			s.Script(openaitest.Reply{Text: "wait", Calls: twoCalls, Piece: 3, Border: 7, Fault: fault})
			r := ask("go")
			r.Tools = []llm.Tool{{Name: "clock"}, {Name: "shell", Parameters: []byte(`{"type":"object"}`)}}
			resp, err := c.Chat(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if len(resp.Calls) != 2 || resp.Stop != llm.StopTools || resp.Text != "wait" {
				t.Fatalf("got %+v", resp)
			}
			for i, call := range resp.Calls {
				if call.Name != twoCalls[i].Name || call.Args != twoCalls[i].Args || call.ID == "" {
					t.Errorf("call %d: got %+v, want %+v", i, call, twoCalls[i])
				}
			}
			if resp.Calls[0].ID == resp.Calls[1].ID {
				t.Errorf("both calls have id %q", resp.Calls[0].ID)
			}
			if n := len(s.Requests()[0].Tools); n != 2 {
				t.Errorf("%d tools arrived, want 2", n)
			}
		})
	}
}

// An id that an earlier call of the chat has is not used again.
func TestCallIDsAreNewInTheChat(t *testing.T) {
	s, c := serve(t, openaitest.Config{}, Config{})
	s.Script(openaitest.Reply{Calls: twoCalls})
	r := ask("go")
	r.Messages = append(r.Messages,
		llm.Message{Role: llm.RoleAssistant, Calls: twoCalls[:1]},
		llm.Message{Role: llm.RoleTool, CallID: twoCalls[0].ID, Content: "noon"})
	resp, err := c.Chat(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Calls[0].ID == twoCalls[0].ID || resp.Calls[1].ID != twoCalls[1].ID {
		t.Errorf("got ids %q and %q", resp.Calls[0].ID, resp.Calls[1].ID)
	}
}

func TestDelta(t *testing.T) {
	s, c := serve(t, openaitest.Config{}, Config{})
	text := "Grüße, 世界! This comes in pieces."
	s.Script(openaitest.Reply{Text: text, Piece: 5, Border: 3})
	var got strings.Builder
	r := ask("go")
	r.Delta = func(offset int, s string) {
		if offset != got.Len() {
			t.Errorf("offset %d after %d bytes", offset, got.Len())
		}
		got.WriteString(s)
	}
	if _, err := c.Chat(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if got.String() != text {
		t.Errorf("got %q, want %q", got.String(), text)
	}
}

func TestSystemFallback(t *testing.T) {
	imported := llm.Message{ID: SystemPromptFallback, Role: llm.RoleUser, Content: fallbackPrefix + "old prompt"}
	question := llm.Message{ID: "m1", Role: llm.RoleUser, Content: "hi"}
	for _, tt := range []struct {
		base string
		mode Fallback
		want int
	}{
		{"https://api.openai.com/v1", "", 0},
		{"https://api.openai.com/v1", FallbackAlways, 1},
		{"https://eu.api.openai.com/v1", FallbackAuto, 0},
		{"http://127.0.0.1:1/v1", "", 1},
		{"http://127.0.0.1:1/v1", FallbackNever, 0},
	} {
		c := New(Config{BaseURL: tt.base, Model: "m", SystemFallback: tt.mode})
		body, err := c.api.Encode(llm.Request{System: "be kind", Messages: []llm.Message{imported, question}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(body), "[System instructions]"); n != tt.want || len(got.Messages) != tt.want+2 {
			t.Errorf("%s %s: %d fallbacks in %s, want %d", tt.base, tt.mode, n, body, tt.want)
			continue
		}
		if got.Messages[0].Role != "system" || got.Messages[0].Content != "be kind" {
			t.Errorf("first message is %+v", got.Messages[0])
		}
		if tt.want == 1 && (got.Messages[1].Role != "user" || got.Messages[1].Content != "[System instructions]\nbe kind") {
			t.Errorf("second message is %+v", got.Messages[1])
		}
	}
}

func TestFinishReasons(t *testing.T) {
	half := []claybot.ToolCall{{ID: "c1", Name: "clock", Args: `{"zone":"Eu`}}
	for _, tt := range []struct {
		name  string
		reply openaitest.Reply
		text  string
		stop  llm.Stop
		calls int
	}{
		{"stop", openaitest.Reply{Text: "a"}, "a", llm.StopEnd, 0},
		{"length", openaitest.Reply{Text: "a", Stop: "length"}, "a", llm.StopLength, 0},
		{"length in a call", openaitest.Reply{Calls: half, Stop: "length"}, "", llm.StopLength, 0},
		{"filter", openaitest.Reply{Stop: "content_filter"}, "", llm.StopFilter, 0},
		{"refusal", openaitest.Reply{Refusal: "I will not"}, "I will not", llm.StopFilter, 0},
		{"empty", openaitest.Reply{}, "", llm.StopEnd, 0},
		{"stop with calls", openaitest.Reply{Calls: twoCalls, Stop: "stop"}, "", llm.StopTools, 2},
		{"broken arguments", openaitest.Reply{Calls: half}, "", llm.StopTools, 1},
		{"unknown reason", openaitest.Reply{Text: "a", Stop: "eos"}, "a", llm.StopEnd, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, c := serve(t, openaitest.Config{}, Config{})
			s.Script(tt.reply)
			resp, err := c.Chat(t.Context(), ask("x"))
			if err != nil {
				t.Fatal(err)
			}
			if resp.Text != tt.text || resp.Stop != tt.stop || len(resp.Calls) != tt.calls {
				t.Errorf("got %+v", resp)
			}
		})
	}
}

// Servers that refuse an optional field are asked without it, once and for all,
// also by calls that were under way together.
func TestOptionalFields(t *testing.T) {
	for _, fault := range []openaitest.Fault{openaitest.FaultUsageRefused, openaitest.FaultUserRefused} {
		t.Run(string(fault), func(t *testing.T) {
			s, c := serve(t, openaitest.Config{Reply: func(openaitest.Request) openaitest.Reply {
				return openaitest.Reply{Text: "ok", Fault: fault, Delay: 5 * time.Millisecond}
			}}, Config{})
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					resp, err := c.Chat(t.Context(), ask("x"))
					if err != nil {
						t.Error(err)
					}
					if missing := fault == openaitest.FaultUsageRefused; resp.Usage.Estimated != missing || resp.Usage.Input == 0 {
						t.Errorf("usage %+v", resp.Usage)
					}
				})
			}
			wg.Wait()
			before := s.Calls()
			if _, err := c.Chat(t.Context(), ask("x")); err != nil {
				t.Error(err)
			}
			if n := s.Calls() - before; n != 1 {
				t.Errorf("a later call took %d requests, want 1", n)
			}
		})
	}
}

// The format of an answer is what the service knows; a schema that it refuses is left out of that
// request.
func TestFormat(t *testing.T) {
	s, c := serve(t, openaitest.Config{}, Config{})
	schema := json.RawMessage(`{"type":"object"}`)
	for _, tt := range []struct {
		format *claybot.AnswerFormat
		fault  openaitest.Fault
		want   []string
	}{
		{nil, "", []string{""}},
		{&claybot.AnswerFormat{}, "", []string{`{"type":"json_object","json_schema":null}`}},
		{&claybot.AnswerFormat{Schema: schema}, "", []string{`{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"},"strict":false}}`}},
		{&claybot.AnswerFormat{Name: "n", Schema: schema, Strict: true}, openaitest.FaultSchemaRefused, []string{`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"},"strict":true}}`, ""}},
		{&claybot.AnswerFormat{Schema: schema}, "", []string{`{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"},"strict":false}}`}},
	} {
		s.Script(slices.Repeat([]openaitest.Reply{{Text: "{}", Fault: tt.fault}}, len(tt.want))...)
		before := len(s.Requests())
		r := ask("x")
		r.Format = tt.format
		if _, err := c.Chat(t.Context(), r); err != nil {
			t.Errorf("%+v: %v", tt.format, err)
		}
		var got []string
		for _, r := range s.Requests()[before:] {
			got = append(got, r.Format)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v is sent as %q, want %q", tt.format, got, tt.want)
		}
	}
}

// The key goes to no other host, and nothing secret into errors and logs.
func TestSecrets(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("request to another host with headers %v", r.Header)
	}))
	defer other.Close()
	var log bytes.Buffer
	s, c := serve(t, openaitest.Config{Key: "another"}, Config{
		Key: fakeKey, Headers: map[string]string{"X-Extra-Key": "Bearer canary-header-secret"},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	s.Script(openaitest.Reply{Fault: openaitest.FaultRedirect, Location: other.URL + "/?key=" + fakeKey})
	_, err := c.Chat(t.Context(), ask("x"))
	checkClean(t, err, log.String())
	if !strings.Contains(err.Error(), "key") {
		t.Errorf("got %v, want a sentence about the key", err)
	}
	c.api.cfg.Key = "another"
	_, err = c.Chat(t.Context(), ask("x"))
	checkClean(t, err, log.String())
	var e *llm.Error
	if !errors.As(err, &e) || e.Class != llm.Permanent || !strings.Contains(e.Text, "another host") {
		t.Errorf("redirect: got %v", err)
	}
	c = New(Config{BaseURL: "http://user:canary-header-secret@127.0.0.1:1/v1?key=" + fakeKey, Model: "m", Key: fakeKey})
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = c.Chat(short, ask("x"))
	checkClean(t, err, "")
}

func checkClean(t *testing.T, err error, log string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, secret := range []string{fakeKey, "canary-header-secret", "127.0.0.1", "://", "platform.openai"} {
		if strings.Contains(err.Error()+log, secret) {
			t.Errorf("%q is in error %q or log %s", secret, err, log)
		}
	}
}

// A finished answer leaves its connection for the next one. The end of an answer has
// only a moment to come, which a busy machine may not give; hence the simulated time.
func TestConnectionsAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openaitest.New(openaitest.Config{})
		dial, stop := s.Pipe()
		defer stop()
		dials := 0
		tr := provider.NewTransport()
		tr.Proxy = nil
		tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			return dial(ctx, network, addr)
		}
		c := New(Config{BaseURL: "http://model.invalid/v1", Model: "m", HTTP: tr})
		defer c.CloseIdleConnections()
		s.Script(openaitest.Reply{Fault: openaitest.FaultBadRequest}, openaitest.Reply{Text: "long", Piece: 1, Border: 50})
		for i := range 20 {
			if _, err := c.Chat(t.Context(), ask("x")); (err != nil) != (i == 0) {
				t.Fatal(err)
			}
		}
		if dials != 1 {
			t.Errorf("%d connections for 20 requests, want 1", dials)
		}
	})
}

func TestCallerEndsTheCall(t *testing.T) {
	s, c := serve(t, openaitest.Config{}, Config{})
	s.Script(openaitest.Reply{Fault: openaitest.FaultHang})
	why := errors.New("the user stopped it")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	_, err := c.Chat(ctx, ask("x"))
	var e *llm.Error
	if !errors.Is(err, why) || !errors.As(err, &e) {
		t.Errorf("got %v, want both the cause and an *llm.Error", err)
	}
}

func TestUsage(t *testing.T) {
	s, c := serve(t, openaitest.Config{}, Config{})
	s.Script(openaitest.Reply{Text: "x", Usage: &openaitest.Usage{Prompt: 100, Completion: 7, Cached: 40, Reasoning: 5}})
	resp, err := c.Chat(t.Context(), ask("x"))
	if want := (claybot.Usage{Input: 100, Output: 7, CachedInput: 40, Reasoning: 5, LLMCalls: 1}); err != nil || resp.Usage != want {
		t.Errorf("got %+v, %v, want %+v", resp.Usage, err, want)
	}
	s.Script(openaitest.Reply{Text: "xxxxxxxx", Fault: openaitest.FaultNoUsage})
	resp, err = c.Chat(t.Context(), ask("x"))
	if err != nil || !resp.Usage.Estimated || resp.Usage.Output != 2 || resp.Usage.Input == 0 {
		t.Errorf("got %+v, %v, want an estimate", resp.Usage, err)
	}
}

// A bodyTransport answers every request with the same stream.
type bodyTransport struct {
	kind string
	body func() io.Reader
}

func (b bodyTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {b.kind}},
		Body: io.NopCloser(b.body()), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// transcript is what the emulator streams for a reply.
func transcript(t testing.TB, reply openaitest.Reply) []byte {
	t.Helper()
	s := openaitest.New(openaitest.Config{Reply: func(openaitest.Request) openaitest.Reply { return reply }})
	c := New(Config{Model: "m"})
	body, err := c.api.Encode(ask("x"), 0)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	hr := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/chat/completions", bytes.NewReader(body))
	hr.Header.Set("Content-Type", "application/json")
	s.ServeHTTP(w, hr)
	if w.Code != http.StatusOK {
		t.Fatalf("emulator: %d %s", w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// Wherever a stream with two calls is cut, the result is the whole answer or an
// error, and an error until the reason of the end is there.
func TestCutAtEveryByte(t *testing.T) {
	reply := openaitest.Reply{Text: strings.Repeat("thinking ", 25), Calls: twoCalls, Piece: 20}
	for form, step := range map[openaitest.Fault]int{"": 1, openaitest.FaultNoDone: 11, openaitest.FaultCRLF: 13} {
		reply.Fault = form
		whole := transcript(t, reply)
		if len(whole) < 4<<10 {
			t.Fatalf("the transcript has only %d bytes", len(whole))
		}
		finish := bytes.Index(whole, []byte(`"finish_reason":"tool_calls"`))
		successes := 0
		for at := len(whole); at >= 0; at -= step {
			c := New(Config{Model: "m", HTTP: bodyTransport{"text/event-stream", func() io.Reader { return bytes.NewReader(whole[:at]) }}})
			resp, err := c.Chat(t.Context(), ask("x"))
			if err != nil {
				var e *llm.Error
				if !errors.As(err, &e) || e.Class != llm.Transient || at > len(whole)/2 && resp.Usage.Input == 0 {
					t.Fatalf("%s cut at %d: %v, usage %+v", form, at, err, resp.Usage)
				}
				if resp.Usage = (claybot.Usage{}); !reflect.DeepEqual(resp, llm.Response{Model: "m", Asked: "m"}) {
					t.Fatalf("%s cut at %d: an answer beside the error: %+v", form, at, resp)
				}
				continue
			}
			successes++
			if at < finish || resp.Text != reply.Text || !reflect.DeepEqual(resp.Calls, twoCalls) {
				t.Fatalf("%s cut at %d (the end is told at %d): success with %+v", form, at, finish, resp)
			}
		}
		if successes == 0 {
			t.Errorf("%s: not even the whole stream is a success", form)
		}
	}
}

func BenchmarkChat(b *testing.B) {
	body := transcript(b, openaitest.Reply{Text: "a short answer"})
	c := New(Config{Model: "m", HTTP: bodyTransport{"text/event-stream", func() io.Reader { return bytes.NewReader(body) }}})
	r := ask("hello")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Chat(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChatHistory has a hundred messages and five tools.
func BenchmarkChatHistory(b *testing.B) {
	body := transcript(b, openaitest.Reply{Text: "a short answer"})
	c := New(Config{Model: "m", HTTP: bodyTransport{"text/event-stream", func() io.Reader { return bytes.NewReader(body) }}})
	r := ask("hello")
	for len(r.Messages) < 100 {
		r.Messages = append(r.Messages, llm.Message{Role: llm.RoleAssistant, Content: "an answer of some words"}, r.Messages[0])
	}
	for range 5 {
		r.Tools = append(r.Tools, llm.Tool{Name: "tool", Description: "does things", Parameters: noParameters})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Chat(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoopback(b *testing.B) {
	_, c := serve(b, openaitest.Config{}, Config{})
	r := ask("hello")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Chat(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
