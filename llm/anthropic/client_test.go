package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/anthropic/anthropictest"
	"github.com/claybot/claybot/llm/provider"
)

const fakeKey = "sk-ant-fake-0123456789-not-a-key"

// serve starts an emulator and a client for it.
func serve(t testing.TB, ec anthropictest.Config, cc Config) (*anthropictest.Server, *Client) {
	t.Helper()
	s := anthropictest.New(ec)
	url, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	if cc.BaseURL == "" {
		cc.BaseURL = url
	}
	if cc.Model == "" {
		cc.Model = "claude-sonnet-4-5"
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
	{ID: "toolu_a", Name: "clock", Args: `{"zone":"Europe/Paris"}`},
	{ID: "toolu_b", Name: "shell", Args: `{"cmd":"echo \"a b\"","n":[1,2,3]}`},
}

// A picture of one pixel.
var png = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU")

func TestChat(t *testing.T) {
	s, c := serve(t, anthropictest.Config{Key: fakeKey, Models: []string{"claude-sonnet-4-5"}}, Config{Key: fakeKey})
	resp, err := c.Chat(t.Context(), ask("hello <b>world</b> & all"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "echo: hello <b>world</b> & all"; resp.Text != want || resp.Stop != llm.StopEnd || resp.Model != "claude-sonnet-4-5" || resp.Asked != resp.Model {
		t.Errorf("got %+v, want text %q", resp, want)
	}
	spent := s.Spent()
	if u := resp.Usage; u.Input != int64(spent.Input+spent.CacheRead+spent.CacheWrite) || u.CacheWrite == 0 || u.Output != int64(spent.Output) || u.Estimated || u.LLMCalls != 1 {
		t.Errorf("usage %+v, spent %+v", u, spent)
	}
	got := s.Requests()[0]
	if got.System != "be kind" || got.Agent != "agent1" || got.MaxTokens != DefaultMaxTokens || len(got.Messages) != 1 || got.Marks != 2 {
		t.Errorf("request %+v", got)
	}
}

func TestBaseURLs(t *testing.T) {
	for base, want := range map[string]string{
		"":                             "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/":   "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/v1": "https://api.anthropic.com/v1/messages",
		"https://x.example/anthropic/v1/messages?version=2": "https://x.example/anthropic/v1/messages?version=2",
		"https://x.example/anthropic":                       "https://x.example/anthropic/v1/messages",
	} {
		if got := New(Config{BaseURL: base, Model: "m"}).URL; got != want {
			t.Errorf("%q: got %q, want %q", base, got, want)
		}
	}
	for _, bad := range []string{"localhost:11434", "ftp://x", "://", "/v1"} {
		cfg := Config{BaseURL: bad, Model: "m", Key: fakeKey}
		var e *llm.Error
		if _, err := New(cfg).Chat(t.Context(), ask("x")); cfg.Validate() == nil || !errors.As(err, &e) || e.Class != llm.Permanent {
			t.Errorf("%q: got error %v, want a permanent one", bad, err)
		}
	}
}

func TestMaxTokens(t *testing.T) {
	for _, tt := range []struct {
		model              string
		configured, wanted int64
		want               int64
	}{
		{"claude-sonnet-4-5", 0, 0, DefaultMaxTokens},
		{"claude-sonnet-4-5", 500, 0, 500},
		{"claude-sonnet-4-5", 500, 700, 700},
		{"claude-sonnet-4-5", 0, 1_000_000, 64_000},
		{"claude-3-haiku-20240307", 0, 0, 4096},
		{"other", 0, 1_000_000, 1_000_000},
		{"other", -1, -1, DefaultMaxTokens},
	} {
		c := New(Config{Model: tt.model, MaxTokens: tt.configured})
		if got := c.api.bound(llm.Request{MaxTokens: tt.wanted}); got != tt.want {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
}

func TestToolCalls(t *testing.T) {
	for _, fault := range []anthropictest.Fault{"", anthropictest.FaultWholeInput, anthropictest.FaultNoEnd, anthropictest.FaultNoNames} {
		t.Run("fault="+string(fault), func(t *testing.T) {
			s, c := serve(t, anthropictest.Config{}, Config{})
			s.Script(anthropictest.Reply{Thinking: "hm", Text: "wait", Calls: twoCalls, Piece: 3, Border: 7, Fault: fault})
			r := ask("go")
			r.Tools = []llm.Tool{{Name: "clock"}, {Name: "shell", Description: "runs", Parameters: []byte(`{"type":"object"}`)}}
			resp, err := c.Chat(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(resp.Calls, twoCalls) || resp.Stop != llm.StopTools || resp.Text != "wait" {
				t.Errorf("got %+v", resp)
			}
			if n := len(s.Requests()[0].Tools); n != 2 || s.Requests()[0].Marks != 3 {
				t.Errorf("%d tools and %d marks arrived", n, s.Requests()[0].Marks)
			}
		})
	}
}

// A whole conversation, as another provider may have left it behind, is accepted
// by the strict server and says the same.
func TestConversation(t *testing.T) {
	s, c := serve(t, anthropictest.Config{}, Config{})
	user := func(id, text string) claybot.Record {
		return claybot.Record{Type: claybot.RecordUser, At: 1, MessageID: claybot.MessageID(id), Text: text}
	}
	result := func(id, text string) claybot.Record {
		return claybot.Record{Type: claybot.RecordTool, ToolCallID: id, Text: text, OK: true}
	}
	history := []claybot.Record{
		user("1", "hi"), user("2", " "),
		{Type: claybot.RecordAssistant, Text: " \n"},
		{Type: claybot.RecordAssistant, Text: "more"},
		user("3", "go"),
		{Type: claybot.RecordAssistant, Text: " ", ToolCalls: []claybot.ToolCall{
			{ID: "functions.clock:0", Name: "clock", Args: `{}`},
			{ID: "call_1", Name: "shell", Args: `{"cmd": "half`},
			{ID: "call_2", Name: "shell"},
		}},
		result("call_1", "  "), result("functions.clock:0", "noon"),
		user("4", "thanks"),
		{Type: claybot.RecordSystem, Text: "by the way", Kind: claybot.KindNotice},
	}
	r := llm.Request{System: " ", Messages: llm.Messages(history), MaxTokens: 5}
	if _, err := c.Chat(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[0]
	if got.System != "" || got.Choice != "none" || len(got.Tools) != 2 || got.MaxTokens != 5 || got.Agent != "" {
		t.Errorf("request %+v", got)
	}
	var roles []string
	for _, m := range got.Messages {
		roles = append(roles, string(m.Role))
	}
	if want := "user user assistant user assistant tool tool tool user user"; strings.Join(roles, " ") != want {
		t.Errorf("got %v, want %s", roles, want)
	}
	for i, want := range []string{"noon", noOutput, "not started"} {
		if m := got.Messages[5+i]; m.Content != want && i < 2 || m.Content == "" {
			t.Errorf("result %d is %q", i, m.Content)
		}
	}
	if in := got.Messages[4].Calls[1].Args; !strings.Contains(in, "invalid_arguments") {
		t.Errorf("the broken arguments arrived as %s", in)
	}
}

// Of a growing conversation only what is new is not read from the cache.
func TestCache(t *testing.T) {
	s, c := serve(t, anthropictest.Config{}, Config{})
	r := ask(strings.Repeat("a long beginning ", 400))
	r.Tools = []llm.Tool{{Name: "clock"}}
	var last claybot.Usage
	for i := range 6 {
		resp, err := c.Chat(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && (resp.Usage.CachedInput < last.CachedInput+last.CacheWrite-4 || resp.Usage.CacheWrite > 100) {
			t.Errorf("call %d: %+v after %+v", i, resp.Usage, last)
		}
		if n := s.Requests()[i].Marks; n > 4 {
			t.Errorf("%d marks", n)
		}
		last = resp.Usage
		r.Messages = append(r.Messages, llm.Message{Role: llm.RoleAssistant, Content: "good"}, llm.Message{Role: llm.RoleUser, Content: "and then?"})
	}
}

func TestUsage(t *testing.T) {
	s, c := serve(t, anthropictest.Config{}, Config{})
	s.Script(anthropictest.Reply{Text: "x", Usage: &anthropictest.Usage{Input: 10, CacheRead: 200, CacheWrite: 30, Output: 9, Thinking: 4}})
	resp, err := c.Chat(t.Context(), ask("x"))
	if want := (claybot.Usage{Input: 240, CachedInput: 200, CacheWrite: 30, Output: 9, Reasoning: 4, LLMCalls: 1}); err != nil || resp.Usage != want {
		t.Errorf("got %+v, %v, want %+v", resp.Usage, err, want)
	}
	s.Script(anthropictest.Reply{Text: "xxxxxxxx", Fault: anthropictest.FaultNoUsage})
	resp, err = c.Chat(t.Context(), ask("x"))
	if err != nil || !resp.Usage.Estimated || resp.Usage.Output != 2 || resp.Usage.Input == 0 {
		t.Errorf("got %+v, %v, want an estimate", resp.Usage, err)
	}
	// A cut answer has taken what was counted at its beginning.
	s.Script(anthropictest.Reply{Text: strings.Repeat("x", 400), Piece: 10, Fault: anthropictest.FaultNoStop, Usage: &anthropictest.Usage{Input: 33}})
	resp, err = c.Chat(t.Context(), ask("x"))
	if err == nil || resp.Usage.Input != 33 || resp.Usage.Output != 100 || !resp.Usage.Estimated || resp.Text != "" {
		t.Errorf("got %+v, %v", resp, err)
	}
}

func TestFinishReasons(t *testing.T) {
	half := []claybot.ToolCall{{ID: "c1", Name: "clock", Args: `{"zone":"Eu`}}
	for _, tt := range []struct {
		name  string
		reply anthropictest.Reply
		text  string
		stop  llm.Stop
		calls int
	}{
		{"end_turn", anthropictest.Reply{Text: "a"}, "a", llm.StopEnd, 0},
		{"stop_sequence", anthropictest.Reply{Text: "a", Stop: "stop_sequence"}, "a", llm.StopEnd, 0},
		{"max_tokens", anthropictest.Reply{Text: "a", Stop: "max_tokens"}, "a", llm.StopLength, 0},
		{"max_tokens in a call", anthropictest.Reply{Calls: half, Stop: "max_tokens"}, "", llm.StopLength, 0},
		{"window", anthropictest.Reply{Text: "a", Stop: "model_context_window_exceeded"}, "a", llm.StopLength, 0},
		{"pause_turn", anthropictest.Reply{Text: "a", Stop: "pause_turn"}, "a", llm.StopLength, 0},
		{"refusal", anthropictest.Reply{Text: "I will", Stop: "refusal"}, "I will", llm.StopFilter, 0},
		{"empty", anthropictest.Reply{}, "", llm.StopEnd, 0},
		{"thoughts only", anthropictest.Reply{Thinking: "hm"}, "", llm.StopEnd, 0},
		{"end_turn with calls", anthropictest.Reply{Calls: twoCalls, Stop: "end_turn"}, "", llm.StopTools, 2},
		{"broken arguments", anthropictest.Reply{Calls: half}, "", llm.StopTools, 1},
		{"unknown reason", anthropictest.Reply{Text: "a", Stop: "eos"}, "a", llm.StopEnd, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, c := serve(t, anthropictest.Config{}, Config{})
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

func TestImages(t *testing.T) {
	picture := llm.Image{MIMEType: "image/png", Data: png, Name: "cat.png"}
	r := ask("what is this?")
	r.Messages[0].Images = []llm.Image{picture}
	r.Messages = append(r.Messages,
		llm.Message{Role: llm.RoleAssistant, Calls: twoCalls[:1]},
		llm.Message{Role: llm.RoleTool, CallID: twoCalls[0].ID, Content: "a screen", Images: []llm.Image{picture}})
	for _, tt := range []struct {
		fault        anthropictest.Fault
		calls, again int // requests of the first and of a second call
	}{
		{"", 1, 1},
		{anthropictest.FaultNoImages, 2, 1},
		{anthropictest.FaultBadImage, 2, 2},
	} {
		t.Run(string(tt.fault), func(t *testing.T) {
			s, c := serve(t, anthropictest.Config{Reply: func(anthropictest.Request) anthropictest.Reply {
				return anthropictest.Reply{Text: "ok", Fault: tt.fault}
			}}, Config{})
			for i, want := range []int{tt.calls, tt.again} {
				before := s.Calls()
				if _, err := c.Chat(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if n := s.Calls() - before; n != want {
					t.Errorf("call %d took %d requests, want %d", i, n, want)
				}
			}
			requests := s.Requests()
			last := requests[len(requests)-1].Messages
			if seen := len(last[0].Images) + len(last[2].Images); seen != map[bool]int{true: 2}[tt.fault == ""] {
				t.Errorf("%d pictures arrived at last", seen)
			}
			if tt.fault != "" && (!strings.Contains(last[0].Content, `"cat.png"`) || !strings.Contains(last[2].Content, "cannot be shown")) {
				t.Errorf("no line stands in the place of the pictures: %+v", last)
			}
		})
	}
}

// Servers that refuse an optional field are asked without it, once and for all.
func TestOptionalFields(t *testing.T) {
	for _, fault := range []anthropictest.Fault{anthropictest.FaultNoCache, anthropictest.FaultNoMetadata} {
		t.Run(string(fault), func(t *testing.T) {
			s, c := serve(t, anthropictest.Config{Reply: func(anthropictest.Request) anthropictest.Reply {
				return anthropictest.Reply{Text: "ok", Fault: fault}
			}}, Config{})
			for range 3 {
				if _, err := c.Chat(t.Context(), ask("x")); err != nil {
					t.Fatal(err)
				}
			}
			if n := s.Calls(); n != 4 {
				t.Errorf("%d requests for 3 calls, want 4", n)
			}
		})
	}
}

// The key goes to no other host, and nothing secret into errors and logs.
func TestSecrets(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("request to another host with headers %v", r.Header)
	}))
	defer other.Close()
	var log bytes.Buffer
	s, c := serve(t, anthropictest.Config{Key: "another"}, Config{
		Key: fakeKey, Headers: map[string]string{"X-Extra-Key": "Bearer canary-header-secret"},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	s.Script(anthropictest.Reply{Fault: anthropictest.FaultRedirect, Location: other.URL + "/?key=" + fakeKey})
	_, refused := c.Chat(t.Context(), ask("x"))
	c.api.cfg.Key = "another"
	_, redirected := c.Chat(t.Context(), ask("x"))
	c = New(Config{BaseURL: "http://user:canary-header-secret@127.0.0.1:1/v1?key=" + fakeKey, Model: "m", Key: fakeKey})
	_, unreachable := c.Chat(t.Context(), ask("x"))
	for i, err := range []error{refused, redirected, unreachable} {
		if err == nil {
			t.Fatalf("%d: no error", i)
		}
		for _, secret := range []string{fakeKey, "canary-header-secret", "127.0.0.1", "://"} {
			if strings.Contains(err.Error()+log.String(), secret) {
				t.Errorf("%q is in error %q or log %s", secret, err, &log)
			}
		}
	}
	var e *llm.Error
	if !errors.As(refused, &e) || !e.Account || !strings.Contains(e.Text, "key") {
		t.Errorf("got %v, want a sentence about the key", refused)
	}
	if !errors.As(redirected, &e) || e.Class != llm.Permanent || !strings.Contains(e.Text, "another host") {
		t.Errorf("redirect: got %v", redirected)
	}
}

// A served answers every request with a stream.
type served func() io.Reader

func (s served) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(s()), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// transcript is what the emulator streams for a reply.
func transcript(t testing.TB, reply anthropictest.Reply) []byte {
	t.Helper()
	s := anthropictest.New(anthropictest.Config{Reply: func(anthropictest.Request) anthropictest.Reply { return reply }})
	c := New(Config{Model: "m"})
	body, err := c.api.Encode(ask("x"), 0)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	hr := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", bytes.NewReader(body))
	c.api.Authorize(hr.Header)
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
	reply := anthropictest.Reply{Text: strings.Repeat("thinking ", 25), Calls: twoCalls, Piece: 8}
	for form, step := range map[anthropictest.Fault]int{"": 1, anthropictest.FaultNoEnd: 11, anthropictest.FaultCRLF: 13} {
		reply.Fault = form
		whole := transcript(t, reply)
		if len(whole) < 4<<10 {
			t.Fatalf("the transcript has only %d bytes", len(whole))
		}
		finish := bytes.Index(whole, []byte(`"stop_reason":"tool_use"`))
		successes := 0
		for at := len(whole); at >= 0; at -= step {
			c := New(Config{Model: "m", HTTP: served(func() io.Reader { return bytes.NewReader(whole[:at]) })})
			resp, err := c.Chat(t.Context(), ask("x"))
			if err != nil {
				var e *llm.Error
				if !errors.As(err, &e) || e.Class != llm.Transient {
					t.Fatalf("%s cut at %d: %v", form, at, err)
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

// Whatever a server streams, what comes of it is a whole answer or an error.
func FuzzStream(f *testing.F) {
	f.Add(transcript(f, anthropictest.Reply{Text: "a b", Calls: twoCalls, Piece: 9}))
	f.Add([]byte("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n"))
	f.Add([]byte("data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		c := New(Config{Model: "m", HTTP: served(func() io.Reader { return bytes.NewReader(in) })})
		r := ask("x")
		resp, err := c.Chat(t.Context(), r)
		if err != nil {
			var e *llm.Error
			if !errors.As(err, &e) || e.Class == "" || e.Text == "" {
				t.Fatalf("failure %v says nothing", err)
			}
			return
		}
		ids := map[string]bool{}
		for _, call := range resp.Calls {
			if call.ID == "" || len(call.ID) > 40 || ids[call.ID] {
				t.Fatalf("call id %q", call.ID)
			}
			ids[call.ID] = true
		}
	})
}

// Whatever history there is, the request is one that the strict server accepts.
func FuzzRequest(f *testing.F) {
	f.Add(`[{"type":"user_message","text":"a"},{"type":"assistant_message","toolCalls":[{"id":"x.y:0","name":"a b","args":"{"}]},{"type":"tool_result","toolCallId":"x.y:0","text":" "}]`, "sys")
	f.Add(`[{"type":"assistant_message","text":" "},{"type":"assistant_message","text":"\u0000"}]`, " ")
	server := anthropictest.New(anthropictest.Config{})
	c := New(Config{Model: "m"})
	f.Fuzz(func(t *testing.T, in, system string) {
		var history []claybot.Record
		if json.Unmarshal([]byte(in), &history) != nil {
			return
		}
		body, err := c.api.Encode(llm.Request{Agent: "a", System: system, Messages: llm.Messages(history)}, fieldImages)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		hr := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", bytes.NewReader(body))
		c.api.Authorize(hr.Header)
		hr.Header.Set("Content-Type", "application/json")
		server.ServeHTTP(w, hr)
		if w.Code != http.StatusOK {
			t.Fatalf("%d %s for %s", w.Code, w.Body, body)
		}
	})
}

func TestGiants(t *testing.T) {
	s, c := serve(t, anthropictest.Config{}, Config{Timeouts: provider.Timeouts{Idle: time.Minute}})
	s.Script(anthropictest.Reply{Text: "x", Fault: anthropictest.FaultEndless})
	var e *llm.Error
	if _, err := c.Chat(t.Context(), ask("x")); !errors.As(err, &e) || e.Class != llm.Permanent || e.Text != provider.ErrTooLarge.Error() {
		t.Errorf("got %v", err)
	}
}

func TestDelta(t *testing.T) {
	s, c := serve(t, anthropictest.Config{}, Config{})
	text := "Grüße, 世界! This comes in pieces."
	s.Script(anthropictest.Reply{Thinking: "not shown", Text: text, Piece: 5, Border: 3})
	var got strings.Builder
	r := ask("go")
	r.Delta = func(offset int, s string) {
		if offset != got.Len() {
			t.Errorf("offset %d after %d bytes", offset, got.Len())
		}
		got.WriteString(s)
	}
	if _, err := c.Chat(t.Context(), r); err != nil || got.String() != text {
		t.Errorf("got %q, %v, want %q", got.String(), err, text)
	}
}
