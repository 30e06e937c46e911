package openaitest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
)

func start(t *testing.T, cfg Config) (*Server, string) {
	t.Helper()
	s := New(cfg)
	url, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s, url
}

func post(ctx context.Context, t *testing.T, url, body string) (int, string) {
	t.Helper()
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	hr.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(hr)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, _ := io.ReadAll(resp.Body) // cut bodies are a part of the tests
	return resp.StatusCode, string(b)
}

const user = `{"role":"user","content":"hi"}`

func TestStrict(t *testing.T) {
	s, url := start(t, Config{Models: []string{"m"}})
	call := `{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	result := `{"role":"tool","tool_call_id":"c1","content":"x"}`
	for _, tt := range []struct {
		name, body string
		status     int
	}{
		{"good", `{"model":"m","messages":[` + user + `]}`, 200},
		{"all fields", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"user":"a","max_tokens":5,"messages":[{"role":"system","content":"s"},` + user + `],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}]}`, 200},
		{"content in parts", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`, 200},
		{"call and result", `{"model":"m","messages":[` + user + `,` + call + `,` + result + `]}`, 200},
		{"call without result", `{"model":"m","messages":[` + user + `,` + call + `,` + user + `]}`, 400},
		{"result without call", `{"model":"m","messages":[` + user + `,` + result + `]}`, 400},
		{"two results", `{"model":"m","messages":[` + user + `,` + call + `,` + result + `,` + result + `]}`, 400},
		{"begins with assistant", `{"model":"m","messages":[{"role":"assistant","content":"x"},` + user + `]}`, 400},
		{"two system messages", `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"system","content":"s"},` + user + `]}`, 400},
		{"developer", `{"model":"m","messages":[{"role":"developer","content":"s"},` + user + `]}`, 400},
		{"no content", `{"model":"m","messages":[{"role":"user"}]}`, 400},
		{"no messages", `{"model":"m","messages":[]}`, 400},
		{"no JSON", `{"model":`, 400},
		{"unknown field", `{"model":"m","temprature":1,"messages":[` + user + `]}`, 400},
		{"unknown model", `{"model":"n","messages":[` + user + `]}`, 404},
		{"no model", `{"messages":[` + user + `]}`, 400},
		{"options without stream", `{"model":"m","stream_options":{"include_usage":true},"messages":[` + user + `]}`, 400},
		{"tool name", `{"model":"m","messages":[` + user + `],"tools":[{"type":"function","function":{"name":"a b","parameters":{"type":"object"}}}]}`, 400},
		{"tool schema", `{"model":"m","messages":[` + user + `],"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"string"}}}]}`, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, body := post(t.Context(), t, url, tt.body)
			if status != tt.status {
				t.Fatalf("got %d %s, want %d", status, body, tt.status)
			}
			var e struct {
				Error struct{ Message, Type string }
			}
			if status != 200 && (json.Unmarshal([]byte(body), &e) != nil || e.Error.Message == "" || e.Error.Type == "") {
				t.Errorf("error body %s", body)
			}
		})
	}
	if len(s.Refused()) == 0 || s.Calls() != 4 || len(s.Requests()) != 4 {
		t.Errorf("%d calls, %d refused", s.Calls(), len(s.Refused()))
	}
}

func TestKeyAndModels(t *testing.T) {
	_, url := start(t, Config{Key: "fake-key", Models: []string{"a", "b"}})
	for key, want := range map[string]int{"fake-key": 200, "other": 401} {
		hr, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/models", nil)
		hr.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(hr)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want || want == 200 && strings.Count(string(b), `"object":"model"`) != 2 {
			t.Errorf("%s: got %d %s", key, resp.StatusCode, b)
		}
	}
}

func TestScriptThenMatcher(t *testing.T) {
	s, url := start(t, Config{Reply: func(r Request) Reply {
		if r.LastUser() == "hi" {
			return Reply{Text: "matched"}
		}
		return Echo(r)
	}})
	s.Script(Reply{Text: "first"}, Reply{Fault: FaultServer})
	body := `{"model":"m","user":"a","messages":[` + user + `]}`
	for _, want := range []string{`"content":"first"`, "server_error", `"content":"matched"`} {
		if _, got := post(t.Context(), t, url, body); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if in, out := s.Tokens(); in == 0 || out == 0 {
		t.Errorf("tokens %d, %d", in, out)
	}
}

// A stream is cut into chunks as scripted and ends with usage and the end mark.
func TestStream(t *testing.T) {
	s, url := start(t, Config{})
	s.Script(Reply{Text: "abcdef", Piece: 2, Border: 5, Calls: []claybot.ToolCall{{ID: "c", Name: "f", Args: `{"a":1}`}}})
	_, got := post(t.Context(), t, url, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[`+user+`]}`)
	var text, args, last string
	for sc := bufio.NewScanner(strings.NewReader(got)); sc.Scan(); {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue
		}
		last = data
		var c struct {
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
				}
			}
			Usage *struct {
				TotalTokens int `json:"total_tokens"`
			}
		}
		if data != "[DONE]" && json.Unmarshal([]byte(data), &c) != nil {
			t.Fatalf("chunk %s", data)
		}
		for _, ch := range c.Choices {
			text += ch.Delta.Content
			for _, p := range ch.Delta.ToolCalls {
				args += p.Function.Arguments
			}
		}
	}
	if text != "abcdef" || args != `{"a":1}` || last != "[DONE]" || !strings.Contains(got, `"usage":{`) {
		t.Errorf("got %s", got)
	}
}

// Two calls at once for one agent are noticed; one after another, those of
// several agents, and those whose client left are not.
func TestOverlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Latency: time.Second})
		dial, stop := s.Pipe()
		client := &http.Client{Transport: &http.Transport{DialContext: dial}}
		call := func(ctx context.Context, agent string) {
			body := `{"model":"m","stream":true,"user":"` + agent + `","messages":[` + user + `]}`
			hr, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://x/v1/chat/completions", strings.NewReader(body))
			hr.Header.Set("Content-Type", "application/json")
			if resp, err := client.Do(hr); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
		call(t.Context(), "a")
		call(t.Context(), "a")
		done := make(chan bool)
		for _, agent := range []string{"a", "b"} {
			go func() { call(t.Context(), agent); done <- true }()
		}
		<-done
		<-done
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		call(short, "a")
		cancel()
		call(t.Context(), "a")
		if got := s.Overlaps(); len(got) != 0 {
			t.Errorf("got overlaps %v, want none", got)
		}
		for range 2 {
			go func() { call(t.Context(), "c"); done <- true }()
		}
		<-done
		<-done
		if got := s.Overlaps(); len(got) != 1 || got[0] != "c" {
			t.Errorf("got overlaps %v, want one of c", got)
		}
		client.CloseIdleConnections()
		stop()
	})
}

// An answer that is held comes when it is released, and one that stalls grows to
// where it does; both end with their client.
func TestHeldAndStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		dial, stop := s.Pipe()
		client := &http.Client{Transport: &http.Transport{DialContext: dial}}
		call := func(ctx context.Context) (int, time.Duration, error) {
			began := time.Now()
			hr, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://x/v1/chat/completions", strings.NewReader(`{"model":"m","stream":true,"messages":[`+user+`]}`))
			hr.Header.Set("Content-Type", "application/json")
			resp, err := client.Do(hr)
			if err != nil {
				return 0, time.Since(began), err
			}
			b, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			return strings.Count(string(b), "data: "), time.Since(began), err
		}
		free := make(chan struct{})
		held := Reply{Text: "abc", Until: free}
		slow := Reply{Text: strings.Repeat("abcd", 100), Piece: 4, Gap: time.Second, Fault: FaultStall, CutAt: 3000}
		time.AfterFunc(time.Hour, func() { close(free) })
		s.Script(held, held, held, slow)
		if n, took, err := call(t.Context()); err != nil || n == 0 || took != time.Hour {
			t.Errorf("held: %d events after %v, %v", n, took, err)
		}
		if n, took, err := call(t.Context()); err != nil || n == 0 || took != 0 {
			t.Errorf("released before: %d events after %v, %v", n, took, err)
		}
		s.script[0].Until = make(chan struct{})
		for _, what := range []string{"held for good", "stalled"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			n, took, err := call(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || took != time.Minute || (n > 2 && n < 60) != (what == "stalled") {
				t.Errorf("%s: %d events after %v, %v", what, n, took, err)
			}
		}
		client.CloseIdleConnections()
		stop()
	})
}

func TestJournalIsBounded(t *testing.T) {
	s, url := start(t, Config{Keep: 4})
	for range 11 {
		post(t.Context(), t, url, `{"model":"m","messages":[`+user+`]}`)
	}
	got := s.Requests()
	if len(got) < 2 || len(got) > 4 || got[len(got)-1].N != 11 || s.Calls() != 11 {
		t.Errorf("%d requests kept of %d", len(got), s.Calls())
	}
}

// FuzzDecode feeds the strict decoder; whatever it accepts it can answer.
func FuzzDecode(f *testing.F) {
	f.Add(`{"model":"m","stream":true,"messages":[` + user + `]}`)
	f.Add(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"tools":[]}`)
	s := New(Config{})
	f.Fuzz(func(t *testing.T, body string) {
		w := &recorder{header: http.Header{}}
		hr, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "/chat/completions", strings.NewReader(body))
		hr.Header.Set("Content-Type", "application/json")
		s.ServeHTTP(w, hr)
		if w.status != http.StatusOK && w.status < 400 || w.status >= 500 {
			t.Fatalf("status %d for %s", w.status, body)
		}
	})
}

type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return len(b), nil
}
