package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/web/webtest"
)

var pages = []webtest.Result{
	{Title: "Clay &amp; <strong>kilns</strong>", URL: "https://kilns.test/a?b=c", Snippet: "How to <strong>fire</strong>\n clay\u200b."},
	{Title: "", URL: "https://second.test/", Snippet: ""},
	{Title: "script", URL: "javascript:alert(1)", Snippet: "no address of the web"},
	{Title: "Third", URL: "http://third.test/", Snippet: strings.Repeat("x", 5000)},
}

// set makes the tools of a configuration, by name.
func set(t *testing.T, c Config) map[string]tools.Tool {
	t.Helper()
	list, err := Tools(c)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]tools.Tool)
	for _, tool := range list {
		all[tool.Spec().Name] = tool
	}
	return all
}

// An outcome is what a tool itself gives, before a Set marks it.
type outcome struct {
	text  string
	fault *tools.Fault
}

// do calls a tool as a Set does, which checks the arguments first.
func do(t *testing.T, s map[string]tools.Tool, name string, args any) outcome {
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	checked, err := tools.NewSet(s[name])
	if err != nil {
		t.Fatal(err)
	}
	call := claybot.ToolCall{ID: "c1", Name: name, Args: string(b)}
	err = checked.Check(call)
	var r tools.Result
	if err == nil {
		r, err = s[name].Call(t.Context(), tools.Env{}, b)
	}
	f, ok := errors.AsType[*tools.Fault](err)
	switch {
	case err == nil && !r.Untrusted:
		t.Errorf("%s %s: the result is not marked as untrusted", name, b)
	case err != nil && !ok:
		t.Errorf("%s %s: %v is not a fault", name, b, err)
	case err != nil:
		return outcome{"error: " + f.Text, f}
	}
	return outcome{r.Text, nil}
}

func TestSearch(t *testing.T) {
	brave, tavily, searxng := webtest.Brave("key-b", pages...), webtest.Tavily("key-t", pages...), webtest.SearXNG(pages...)
	for _, e := range []*webtest.Engine{brave, tavily, searxng} {
		defer e.Close()
	}
	for _, p := range []Provider{
		{Kind: Brave, Key: "key-b", BaseURL: brave.URL}, {Kind: Tavily, Key: "key-t", BaseURL: tavily.URL + "/"}, {Kind: SearXNG, BaseURL: searxng.URL},
	} {
		s := set(t, Config{Search: []Provider{p}})
		o := do(t, s, "web_search", map[string]any{"query": " clay \n kilns ", "count": 4})
		want := fmt.Sprintf("Results for \"clay kilns\" (%s):\n\n1. Clay & kilns\n   https://kilns.test/a?b=c\n   How to fire clay.\n\n2. second.test\n   https://second.test/\n\n3. Third\n   http://third.test/\n   %s…\n", p.Kind, strings.Repeat("x", 1000))
		if o.text != want {
			t.Errorf("%s: got\n%s\nwant\n%s", p.Kind, o.text, want)
		}
		if o := do(t, s, "web_search", map[string]any{"query": "q", "count": 1}); strings.Contains(o.text, "2. ") {
			t.Errorf("%s: more than was asked for", p.Kind)
		}
	}
	if got := brave.Asked(); !slices.Equal(got, []string{"clay kilns", "q"}) {
		t.Errorf("asked %q", got)
	}
}

func TestSearchSpec(t *testing.T) {
	list, err := Tools(Config{Search: []Provider{{Kind: Brave, Key: "k"}}})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	s := list[0].Spec()
	if s.Effect != tools.ReadOnly || s.Class != tools.Outward || !s.Listed(tools.Env{}, nil) {
		t.Errorf("%+v", s)
	}
	r, err := list[0].Call(t.Context(), tools.Env{}, json.RawMessage(`{"query":" "}`))
	if err == nil {
		t.Error("an empty query", r)
	}
}

func TestSearchArguments(t *testing.T) {
	e := webtest.SearXNG()
	defer e.Close()
	s := set(t, Config{Search: []Provider{{Kind: SearXNG, BaseURL: e.URL}}})
	for _, args := range []map[string]any{
		{}, {"query": ""}, {"query": "\n\t "}, {"query": strings.Repeat("x", 401)}, {"query": "x", "count": 21}, {"query": "x", "count": -1}, {"query": 3}, {"query": "x", "count": 1.5},
	} {
		if o := do(t, s, "web_search", args); o.fault == nil || o.fault.Code != tools.FaultArguments {
			t.Errorf("%v: %+v", args, o.fault)
		}
	}
	if n := len(e.Asked()); n != 0 {
		t.Errorf("%d were asked", n)
	}
	if o := do(t, s, "web_search", map[string]any{"query": "nothing"}); o.text != `Nothing was found for "nothing" (searxng).` {
		t.Errorf("%q", o.text)
	}
}

func status(code int, header, value string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if header != "" {
			w.Header().Set(header, value)
		}
		w.WriteHeader(code)
		fmt.Fprint(w, "the key is key-secret")
	}
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// Each failure is of its kind, and lets the next engine answer.
func TestSearchFallback(t *testing.T) {
	tests := []struct {
		name      string
		fail      http.HandlerFunc
		retriable bool
		rest      time.Duration
		want      string
	}{
		{"bad key", status(401, "", ""), false, restKey, "does not let claybot in"},
		{"forbidden", status(403, "", ""), false, restKey, "does not let claybot in"},
		{"brave's bad key", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(422)
			fmt.Fprint(w, `{"error":{"code":"SUBSCRIPTION_TOKEN_INVALID"}}`)
		}, false, restKey, "does not let claybot in"},
		{"plan", status(432, "", ""), false, restKey, "plan is used up"},
		{"too often", status(429, "", ""), true, restLimit, "too often"},
		{"too often, for long", status(429, "Retry-After", "120"), true, 2 * time.Minute, "too often"},
		{"too often, forever", status(429, "Retry-After", "99999999"), true, restLong, "too often"},
		{"broken", status(500, "", ""), true, restBroken, "fails inside"},
		{"broken, for long", status(503, "Retry-After", "90"), true, 90 * time.Second, "fails inside"},
		{"unprocessable", status(422, "", ""), true, restBroken, "does not take the search (status 422)"},
		{"redirect", status(302, "Location", "http://127.0.0.1:1/"), false, restKey, "redirect"},
		{"no JSON", body("<html>key-secret"), true, restBroken, "something else"},
		{"other JSON", body(`{"x":1}`), true, restBroken, "something else"},
		{"wrong types", body(`{"results":[{"title":3}]}`), true, restBroken, "something else"},
		{"no engine of theirs", body(`{"results":[],"unresponsive_engines":[["x","timeout"]]}`), true, restBroken, "something else"},
		{"too large", body(`{"results":"` + strings.Repeat("x", maxAnswer) + `"}`), true, restBroken, "larger than"},
		{"broken off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"results":[`)
			panic(http.ErrAbortHandler)
		}, true, restBroken, "the connection broke"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first, second := webtest.SearXNG(pages...), webtest.Tavily("key-secret", pages...)
			defer first.Close()
			defer second.Close()
			first.Fail(tt.fail)
			var logged strings.Builder
			c := Config{Search: []Provider{{Kind: SearXNG, BaseURL: first.URL, Key: "key-secret"}, {Kind: Tavily, BaseURL: second.URL, Key: "key-secret"}}, Log: slog.New(slog.NewTextHandler(&logged, nil))}
			s := set(t, c)
			ask := func() outcome { return do(t, s, "web_search", map[string]any{"query": "clay"}) }
			if o := ask(); !strings.Contains(o.text, "(tavily)") {
				t.Fatalf("%q", o.text)
			}
			ask() // the first one rests
			if got := len(first.Asked()); got != 1 {
				t.Errorf("the first engine was asked %d times", got)
			}
			second.Fail(tt.fail)
			if tt.name == "no engine of theirs" { // which is SearXNG's alone
				second.Fail(status(500, "", ""))
				tt.want = "something else"
			}
			o := ask()
			if o.fault == nil || o.fault.Code != faultSearch || o.fault.Retriable != tt.retriable || !strings.Contains(o.fault.Text, tt.want) {
				t.Errorf("%+v", o.fault)
			}
			if o.fault != nil && tt.retriable && (o.fault.After <= 0 || o.fault.After > tt.rest) {
				t.Errorf("after %s, rest %s", o.fault.After, tt.rest)
			}
			if strings.Contains(logged.String()+o.text, "key-secret") {
				t.Error("the key is shown")
			}
		})
	}
}

func TestRest(t *testing.T) {
	e := &engine{name: "x"}
	now := time.Now()
	tests := []struct {
		err  error
		want time.Duration
	}{
		{&engineError{why: "a"}, restBroken},
		{&engineError{why: "b", lasting: true}, restKey},
		{&engineError{why: "c", rest: 5 * time.Minute}, 5 * time.Minute},
		{&engineError{why: "d", rest: 50 * time.Hour}, restLong},
		{errors.New("e"), restBroken},
	}
	for _, tt := range tests {
		e.failed(now, tt.err)
		if e.resting(now.Add(tt.want-1)) == nil || e.resting(now.Add(tt.want)) != nil {
			t.Errorf("%v: not %s", tt.err, tt.want)
		}
	}
	e.failed(now, &engineError{})
	e.worked()
	if e.resting(now) != nil {
		t.Error("it rests after it worked")
	}
}

func TestBadProviders(t *testing.T) {
	for want, p := range map[string]Provider{
		"unknown search engine": {Kind: "altavista", Key: "k"}, "no base_url": {Kind: SearXNG}, "no key": {Kind: Brave},
		"http://": {Kind: Tavily, Key: "k", BaseURL: "ftp://x/"}, "base_url": {Kind: SearXNG, BaseURL: "http://u:p@x/"}, "one line": {Kind: Brave, Key: "a\nb"},
		"never reached": {Kind: SearXNG, BaseURL: "http://169.254.169.254/"},
	} {
		if _, err := Tools(Config{Search: []Provider{p}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", p, err, want)
		}
	}
	if list, err := Tools(Config{}); len(list) != 0 || err != nil {
		t.Error(list, err)
	}
}
