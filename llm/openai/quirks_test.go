package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// A seen transport keeps the newest request.
type seen struct {
	canned
	url    string
	header http.Header
	body   []byte
}

func (s *seen) RoundTrip(r *http.Request) (*http.Response, error) {
	s.url, s.header = r.URL.String(), r.Header
	var err error
	if s.body, err = io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	return s.canned.RoundTrip(r)
}

// named returns a client of a provider with a name.
func named(t *testing.T, name, base, model string, rt http.RoundTripper) *Client {
	t.Helper()
	p, ok := llm.PresetNamed(name)
	if !ok {
		t.Fatal(name)
	}
	if base == "" {
		base = p.URL
	}
	return New(Config{BaseURL: base, Key: "k", Model: model, Quirks: &p.Quirks, MaxTokens: 9, HTTP: rt})
}

// toolTurn has results of another provider's calls, and a message behind them.
func toolTurn() llm.Request {
	r := ask("go")
	r.Messages = append(r.Messages,
		llm.Message{Role: llm.RoleAssistant, Calls: []claybot.ToolCall{{ID: "call_0123456789abcdef", Name: "look", Args: "{}"}}},
		llm.Message{Role: llm.RoleTool, CallID: "call_0123456789abcdef", Content: "done"},
		llm.Message{Role: llm.RoleUser, Content: "and?"})
	r.Format = &claybot.AnswerFormat{Schema: json.RawMessage(`{"type":"object"}`)}
	return r
}

// A quirk of a provider shows in its requests from the first one on.
func TestQuirksOfRequests(t *testing.T) {
	const bearer = "Authorization=Bearer k"
	for _, tt := range []struct {
		provider, base, model, url, key string
		has, lacks                      []string
	}{
		{"openai", "", "gpt-5", "https://api.openai.com/v1/chat/completions", bearer, []string{`"max_completion_tokens":9`, `"user":"agent1"`, `"include_usage":true`, `"json_schema"`}, []string{"cache_control", "[System instructions]", "prompt_cache_key"}},
		{"gemini", "", "gemini-3-pro", "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", bearer, []string{`"max_tokens":9`}, []string{"[System instructions]"}},
		{"mistral", "", "m", "https://api.mistral.ai/v1/chat/completions", bearer, []string{`"max_tokens":9`, `"json_schema"`, `"prompt_cache_key":"agent1"`, `{"role":"assistant","content":"(continue)"},{"role":"user"`}, []string{`"user":`, "stream_options", "call_0123456789abcdef"}},
		{"deepseek", "", "d", "https://api.deepseek.com/chat/completions", bearer, []string{`"response_format":{"type":"json_object"}`}, []string{"json_schema"}},
		{"openrouter", "", "anthropic/claude-sonnet-4.5", "https://openrouter.ai/api/v1/chat/completions", bearer, []string{
			`{"role":"system","content":[{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}}]}`, `{"role":"tool","content":[{"type":"text","text":"done","cache_control":{"type":"ephemeral"}}]`, `"text":"and?","cache_control"`,
		}, nil},
		{"openrouter", "", "openai/gpt-5", "https://openrouter.ai/api/v1/chat/completions", bearer, nil, []string{"cache_control"}},
		{"azure", "https://x.openai.azure.com", "d", "https://x.openai.azure.com/openai/v1/chat/completions", "Api-Key=k", []string{`"max_completion_tokens":9`}, nil},
		{"azure", "https://x.openai.azure.com/openai/deployments/d", "d", "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21", "Api-Key=k", nil, nil},
		{"ollama", "", "l", "http://127.0.0.1:11434/v1/chat/completions", bearer, []string{"[System instructions]", `"max_tokens":9`}, nil},
		{"llama.cpp", "", "l", "http://127.0.0.1:8080/v1/chat/completions", bearer, nil, nil},
	} {
		t.Run(tt.provider+"/"+tt.model, func(t *testing.T) {
			rt := &seen{canned: canned{kind: "text/event-stream", body: events(`{"content":"hi"}`)}}
			c := named(t, tt.provider, tt.base, tt.model, rt)
			if _, err := c.Chat(t.Context(), toolTurn()); err != nil {
				t.Fatal(err)
			}
			key := ""
			for _, name := range []string{"Authorization", "Api-Key"} {
				if v := rt.header.Get(name); v != "" {
					key += name + "=" + v
				}
			}
			if rt.url != tt.url || key != tt.key {
				t.Errorf("asked %s with %s", rt.url, key)
			}
			for _, part := range tt.has {
				if !strings.Contains(string(rt.body), part) {
					t.Errorf("%s lacks %s", rt.body, part)
				}
			}
			for _, part := range tt.lacks {
				if strings.Contains(string(rt.body), part) {
					t.Errorf("%s has %s", rt.body, part)
				}
			}
		})
	}
}

// The list of models is beside the operation, wherever that is.
func TestListOfPresets(t *testing.T) {
	for _, tt := range []struct{ provider, base, want string }{
		{"openai", "", "https://api.openai.com/v1/models"},
		{"ollama", "", "http://127.0.0.1:11434/v1/models"},
		{"azure", "https://x.openai.azure.com", "https://x.openai.azure.com/openai/v1/models"},
		{"azure", "https://x.openai.azure.com/openai/deployments/d", "https://x.openai.azure.com/openai/models?api-version=2024-10-21"},
	} {
		rt := &seen{canned: canned{kind: "application/json", body: `{"data":[{"id":"b"},{"id":"a"}]}`}}
		names, err := named(t, tt.provider, tt.base, "", rt).Models(t.Context())
		if err != nil || fmt.Sprint(names) != "[a b]" || rt.url != tt.want {
			t.Errorf("%s: %v, %v from %s, want %s", tt.provider, names, err, rt.url, tt.want)
		}
	}
}

// The ids of calls stay the same for the provider that made them, and fit another one after a change; both stay pairs.
func TestCallIDs(t *testing.T) {
	q := llm.Quirks{CallID: 9}
	a := &api{quirks: q}
	for _, id := range []string{"", "abcDEF123", "call_0123456789abcdef", "a", "abc-DEF12", "äbcDEF12"} {
		got := a.callID(id)
		if kept := id == "" || id == "abcDEF123"; kept != (got == id) || !kept && len(got) != 9 {
			t.Errorf("%q became %q", id, got)
		}
	}
	if a.callID("call_1") == a.callID("call_2") {
		t.Error("two ids became one")
	}
}

// A settled message is sent to each provider as that takes it, whichever asked first.
func TestQuirksOfSettledMessages(t *testing.T) {
	history := []claybot.Record{
		{Type: claybot.RecordUser, At: 1, MessageID: "m1", Text: "go"},
		{Type: claybot.RecordAssistant, Run: "r", ToolCalls: []claybot.ToolCall{{ID: "call_0123456789abcdef", Name: "look", Args: "{}"}}},
		{Type: claybot.RecordTool, Run: "r", ToolCallID: "call_0123456789abcdef", OK: true, Text: "done"},
	}
	r := llm.Request{Messages: new(llm.Chat).Messages(history, true, 0)}
	for range 2 {
		for name, foreign := range map[string]bool{"mistral": false, "gemini": true} {
			rt := &seen{canned: canned{kind: "text/event-stream", body: events(`{"content":"hi"}`)}}
			if _, err := named(t, name, "", "m", rt).Chat(t.Context(), r); err != nil || strings.Count(string(rt.body), "call_0123456789abcdef") == 2 != foreign {
				t.Errorf("%s: %s, %v", name, rt.body, err)
			}
		}
	}
}

// Servers count what their cache gave in fields of their own.
func TestUsageShapes(t *testing.T) {
	for name, tt := range map[string]struct {
		usage                    string
		input, cached, write, re int64
	}{
		"OpenAI":     {`{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":12}}`, 100, 60, 0, 12},
		"DeepSeek":   {`{"prompt_tokens":100,"completion_tokens":20,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}`, 100, 64, 0, 0},
		"Kimi":       {`{"prompt_tokens":100,"completion_tokens":20,"cached_tokens":50}`, 100, 50, 0, 0},
		"OpenRouter": {`{"prompt_tokens":100,"completion_tokens":20,"cost":0.0012,"prompt_tokens_details":{"cached_tokens":30,"cache_write_tokens":50}}`, 100, 30, 50, 0},
		"too much":   {`{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":300,"cache_write_tokens":50},"completion_tokens_details":{"reasoning_tokens":99}}`, 100, 100, 0, 20},
		"null":       {`{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":null,"completion_tokens_details":null}`, 100, 0, 0, 0},
	} {
		body := `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":` + tt.usage + `}`
		resp, err := New(Config{BaseURL: "http://model.invalid/v1", Model: "m", HTTP: &canned{kind: "application/json", body: body}}).Chat(t.Context(), ask("x"))
		u := resp.Usage
		if err != nil || u.Input != tt.input || u.CachedInput != tt.cached || u.CacheWrite != tt.write || u.Reasoning != tt.re || u.Output != 20 {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
}

// The emulators refuse what their servers refuse: without its own ways, a provider has to be asked again, or refuses for good.
func TestProfilesAreStrict(t *testing.T) {
	for name, gives := range map[string]bool{"mistral": true, "deepseek": false, "openrouter": false} {
		p, _ := llm.PresetNamed(name)
		for _, q := range []llm.Quirks{p.Quirks, {System: true}} {
			s, c := serve(t, openaitest.Config{Dialect: openaitest.Dialect(name)}, Config{Quirks: &q, Model: "anthropic/m"})
			r := toolTurn()
			r.Messages[1].State = nil
			_, err := c.Chat(t.Context(), r)
			own := q == p.Quirks
			if n := len(s.Refused()); own && name != "deepseek" && (n > 0 || err != nil) || !own && gives && err == nil || name == "deepseek" && (err != nil || own && n > 1 || !own && n < 2) {
				t.Errorf("%s with its own ways %v: %q, %v", name, own, s.Refused(), err)
			}
			if marks := s.Requests(); name == "openrouter" && len(marks) > 0 && (marks[0].Marks == 3) != own {
				t.Errorf("%s: %d marks", name, marks[0].Marks)
			}
		}
	}
}
