package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/web"
)

func TestRequests(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/gone":
			http.Error(w, "no such thing", http.StatusNotFound)
		case "/busy":
			http.Error(w, "later", http.StatusServiceUnavailable)
		case "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case "/text":
			fmt.Fprint(w, "plain ", r.Header.Get("Authorization"))
		case "/large":
			fmt.Fprint(w, strings.Repeat("x", 2<<20))
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"method":%q,"body":%q,"type":%q,"auth":%t,"note":%q}`, r.Method, body, r.Header.Get("Content-Type"), r.Header.Get("Authorization") == "Bearer not-a-secret", r.Header.Get("X-Note"))
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	config := web.RequestConfig{
		Policy: egress.Policy{Private: []string{host}},
		Secret: func(reference string) (string, error) {
			if reference != "env:TOKEN" {
				return "", fmt.Errorf("the secret %s cannot be read", reference)
			}
			return "Bearer not-a-secret", nil
		},
	}
	set, err := tools.NewSet(web.Requests(config)...)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		in   web.Request
		want string
		ok   bool
	}{
		"get":              {web.Request{Method: "GET", URL: "/a"}, `{"body":{"auth":false,"body":"","method":"GET","note":"","type":""},"status":200,"type":"application/json"}`, true},
		"json":             {web.Request{Method: "POST", URL: "/a", Body: map[string]any{"n": 1}}, `"body":"{\"n\":1}"`, true},
		"text":             {web.Request{Method: "PUT", URL: "/a", Body: "hi"}, `"type":"text/plain; charset=utf-8"`, true},
		"secret":           {web.Request{Method: "GET", URL: "/a", Secrets: map[string]string{"Authorization": "env:TOKEN"}}, `"auth":true`, true},
		"no secret":        {web.Request{Method: "GET", URL: "/a", Secrets: map[string]string{"Authorization": "env:OTHER"}}, "the secret env:OTHER cannot be read", false},
		"secret in answer": {web.Request{Method: "GET", URL: "/text", Secrets: map[string]string{"Authorization": "env:TOKEN"}}, `plain [secret]`, true},
		"no reference":     {web.Request{Method: "GET", URL: "/a", Headers: map[string]string{"X-Note": "env:TOKEN"}}, `"note":"env:TOKEN"`, true},
		"gone":             {web.Request{Method: "GET", URL: "/gone"}, "status 404: no such thing", false},
		"busy":             {web.Request{Method: "GET", URL: "/busy"}, "status 503: later", false},
		"moved":            {web.Request{Method: "GET", URL: "/moved"}, `"status":302`, true},
		"large":            {web.Request{Method: "GET", URL: "/large"}, "the answer is larger than", false},
		"bad header":       {web.Request{Method: "GET", URL: "/a", Headers: map[string]string{"X": "a\r\nY: b"}}, "error:", false},
		"no address":       {web.Request{Method: "GET", URL: "nonsense"}, "this is not a web address", false},
		"private":          {web.Request{Method: "GET", URL: "http://127.0.0.2:1/"}, "refused", false},
	} {
		if strings.HasPrefix(tt.in.URL, "/") {
			tt.in.URL = server.URL + tt.in.URL
		}
		args, err := json.Marshal(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		r, wait := set.Call(t.Context(), tools.Env{}, claybot.ToolCall{ID: "c", Name: web.RequestOnce, Args: string(args)})
		if wait != nil || r.OK != tt.ok || !strings.Contains(r.Text, tt.want) || strings.Contains(r.Text, "not-a-secret") {
			t.Errorf("%s: %t %s, want %s", name, r.OK, r.Text, tt.want)
		}
		if r.OK && !r.Tainted {
			t.Errorf("%s: what a server said is trusted", name)
		}
	}
	for name, want := range map[string]tools.Effect{web.RequestRead: tools.ReadOnly, web.RequestKeyed: tools.Idempotent, web.RequestOnce: tools.Once} {
		if got := set.Effect(name); got != want {
			t.Errorf("%s: effect %s", name, got)
		}
	}
}
