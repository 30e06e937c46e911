package anthropictest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The emulator refuses what the service refuses.
func TestStrict(t *testing.T) {
	const (
		user   = `{"role":"user","content":"hi"}`
		use    = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}`
		tools  = `"tools":[{"name":"f","input_schema":{"type":"object"}}],`
		head   = `{"model":"m","max_tokens":5,"stream":true,`
	)
	chat := func(messages ...string) string {
		return head + tools + `"messages":[` + strings.Join(messages, ",") + `]}`
	}
	mark := `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}`
	for _, tt := range []struct {
		name, body string
		status     int
	}{
		{"good", chat(user), 200},
		{"all fields", head + `"metadata":{"user_id":"a"},"tool_choice":{"type":"none"},"system":[` + mark + `],` + tools + `"messages":[` + user + `]}`, 200},
		{"call and result", chat(user, use, result), 200},
		{"result and text", chat(user, use, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}]},{"type":"text","text":"y"}]}`), 200},
		{"four marks", chat(`{"role":"user","content":[` + mark + `,` + mark + `,` + mark + `,` + mark + `]}`), 200},
		{"five marks", chat(`{"role":"user","content":[` + mark + `,` + mark + `,` + mark + `,` + mark + `,` + mark + `]}`), 400},
		{"no max_tokens", `{"model":"m","stream":true,"messages":[` + user + `]}`, 400},
		{"max_tokens 0", `{"model":"m","max_tokens":0,"stream":true,"messages":[` + user + `]}`, 400},
		{"too many max_tokens", `{"model":"m","max_tokens":101,"stream":true,"messages":[` + user + `]}`, 400},
		{"unknown field", `{"model":"m","max_tokens":1,"stream":true,"temp":1,"messages":[` + user + `]}`, 400},
		{"unknown model", `{"model":"x","max_tokens":1,"stream":true,"messages":[` + user + `]}`, 404},
		{"no messages", chat(), 400},
		{"assistant first", chat(use, result), 400},
		{"two users", chat(user, user), 400},
		{"assistant last", chat(user, `{"role":"assistant","content":"x"}`), 400},
		{"system role", chat(`{"role":"system","content":"x"}`), 400},
		{"blank", chat(`{"role":"user","content":" \n"}`), 400},
		{"blank block", chat(`{"role":"user","content":[{"type":"text","text":""}]}`), 400},
		{"no block", chat(`{"role":"user","content":[]}`), 400},
		{"blank system", head + `"system":[{"type":"text","text":" "}],"messages":[` + user + `]}`, 400},
		{"call without result", chat(user, use, user), 400},
		{"result without call", chat(result), 400},
		{"late result", chat(user, use, `{"role":"user","content":[{"type":"text","text":"y"},{"type":"tool_result","tool_use_id":"a","content":"x"}]}`), 400},
		{"calls without tools", head + `"messages":[` + strings.Join([]string{user, use, result}, ",") + `]}`, 400},
		{"bad id", chat(user, strings.Replace(use, `"a"`, `"a.b"`, 1), strings.Replace(result, `"a"`, `"a.b"`, 1)), 400},
		{"input as text", chat(user, strings.Replace(use, `{}`, `"{}"`, 1), result), 400},
		{"no picture", chat(`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}`), 400},
		{"a PDF", chat(`{"role":"user","content":[{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQ="}}]}`), 200},
		{"no PDF", chat(`{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}]}`), 400},
		{"a document of another type", chat(`{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"text/csv","data":"AAAA"}}]}`), 400},
		{"a title of a text", chat(`{"role":"user","content":[{"type":"text","text":"x","title":"a.pdf"}]}`), 400},
		{"schema", strings.Replace(chat(user), `{"type":"object"}`, `{}`, 1), 400},
		{"two tools of one name", strings.Replace(chat(user), `"tools":[`, `"tools":[{"name":"f","input_schema":{"type":"object"}},`, 1), 400},
		{"choice without tools", head + `"tool_choice":{"type":"none"},"messages":[` + user + `]}`, 400},
		{"no JSON", `{`, 400},
	} {
		s := New(Config{Models: []string{"m"}, MaxTokens: 100})
		w := httptest.NewRecorder()
		hr := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", strings.NewReader(tt.body))
		hr.Header.Set("Content-Type", "application/json")
		hr.Header.Set("Anthropic-Version", "2023-06-01")
		s.ServeHTTP(w, hr)
		if w.Code != tt.status || (tt.status == 200) != (s.Calls() == 1) || (tt.status == 200) == (len(s.Refused()) == 1) {
			t.Errorf("%s: got %d %s, want %d", tt.name, w.Code, w.Body, tt.status)
		}
	}
}

func TestHead(t *testing.T) {
	s := New(Config{Key: "k"})
	for _, tt := range []struct {
		key, version string
		status       int
	}{{"k", "2023-06-01", 200}, {"x", "2023-06-01", 401}, {"", "2023-06-01", 401}, {"k", "", 400}} {
		w := httptest.NewRecorder()
		hr := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages",
			strings.NewReader(`{"model":"m","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"hi"}]}`))
		hr.Header.Set("Content-Type", "application/json")
		hr.Header.Set("X-Api-Key", tt.key)
		hr.Header.Set("Anthropic-Version", tt.version)
		if s.ServeHTTP(w, hr); w.Code != tt.status {
			t.Errorf("%+v: got %d %s", tt, w.Code, w.Body)
		}
	}
}
