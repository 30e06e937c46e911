// Package webtest has emulators of search engines: real HTTP servers that answer
// as Brave, Tavily and SearXNG do, check what they are sent, and fail on demand.
package webtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
)

// A Result is one page that an engine knows.
type Result struct{ Title, URL, Snippet string }

// An Engine is an emulator. Close ends it.
type Engine struct {
	*httptest.Server
	// Key is what it wants to be shown; empty: nothing.
	Key string

	mu      sync.Mutex
	results []Result
	asked   []string
	fail    http.HandlerFunc
}

// Brave starts an emulator of the Brave Search API.
func Brave(key string, results ...Result) *Engine {
	e := &Engine{Key: key, results: results}
	return e.start("GET /res/v1/web/search", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Subscription-Token") != e.Key {
			problem(w, http.StatusUnprocessableEntity, `{"type":"ErrorResponse","error":{"code":"SUBSCRIPTION_TOKEN_INVALID","status":422}}`)
			return
		}
		n, err := strconv.Atoi(r.URL.Query().Get("count"))
		if err != nil || n < 1 || n > 20 {
			problem(w, http.StatusUnprocessableEntity, `{"type":"ErrorResponse"}`)
			return
		}
		list := []map[string]string{}
		for _, x := range e.find(r.URL.Query().Get("q"), n) {
			list = append(list, map[string]string{"type": "search_result", "title": x.Title, "url": x.URL, "description": x.Snippet})
		}
		answer(w, map[string]any{"type": "search", "query": map[string]string{"original": r.URL.Query().Get("q")}, "web": map[string]any{"type": "search", "results": list}})
	})
}

// Tavily starts an emulator of the Tavily API.
func Tavily(key string, results ...Result) *Engine {
	e := &Engine{Key: key, results: results}
	return e.start("POST /search", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+e.Key {
			problem(w, http.StatusUnauthorized, `{"detail":{"error":"Unauthorized: missing or invalid API key."}}`)
			return
		}
		var in struct {
			Query string `json:"query"`
			Max   int    `json:"max_results"`
		}
		if json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in) != nil || in.Query == "" || in.Max < 1 || in.Max > 20 {
			problem(w, http.StatusBadRequest, `{"detail":{"error":"Bad request"}}`)
			return
		}
		list := []map[string]any{}
		for i, x := range e.find(in.Query, in.Max) {
			list = append(list, map[string]any{"title": x.Title, "url": x.URL, "content": x.Snippet, "score": 1 / float64(i+1), "raw_content": nil})
		}
		answer(w, map[string]any{"query": in.Query, "answer": nil, "images": []string{}, "results": list, "response_time": 0.1})
	})
}

// SearXNG starts an emulator of SearXNG with answers in JSON switched on.
func SearXNG(results ...Result) *Engine {
	e := &Engine{results: results}
	return e.start("GET /search", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") != "json" {
			http.Error(w, "<html>", http.StatusForbidden)
			return
		}
		list := []map[string]any{}
		for _, x := range e.find(r.URL.Query().Get("q"), len(e.results)) {
			list = append(list, map[string]any{"title": x.Title, "url": x.URL, "content": x.Snippet, "engine": "demo", "engines": []string{"demo"}, "score": 1})
		}
		answer(w, map[string]any{"query": r.URL.Query().Get("q"), "number_of_results": 0, "results": list, "answers": []string{}, "unresponsive_engines": []any{}})
	})
}

func (e *Engine) start(pattern string, h http.HandlerFunc) *Engine {
	mux := http.NewServeMux()
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		fail := e.fail
		e.mu.Unlock()
		if fail != nil {
			e.note("")
			fail(w, r)
			return
		}
		h(w, r)
	})
	e.Server = httptest.NewServer(mux)
	return e
}

// Fail makes the engine answer with h from now on; nil ends that.
func (e *Engine) Fail(h http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = h
}

// Asked are the queries that came, in their order; empty for those that failed.
func (e *Engine) Asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.asked...)
}

func (e *Engine) note(query string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, query)
}

func (e *Engine) find(query string, n int) []Result {
	e.note(query)
	return e.results[:min(n, len(e.results))]
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func problem(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprint(w, body)
}
