package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// Bounds of a search.
const (
	engineLimit  = 12 * time.Second // for one engine
	maxQuery     = 400              // characters; Brave takes no more
	maxResults   = 20
	usualResults = 5
	maxAnswer    = 2 << 20 // bytes of an engine's answer
	maxSnippet   = 1000    // characters
)

// How long an engine that failed is not asked.
const (
	restBroken = 30 * time.Second // it does not answer as it should
	restLimit  = time.Minute      // it is asked too often, and does not say for how long
	restKey    = 10 * time.Minute // it does not take the key
	restLong   = time.Hour        // the longest that it may say itself
)

type searcher struct {
	engines []*engine
	log     *slog.Logger
}

const searchName = "web_search"

type searchInput struct {
	Query string `json:"query" jsonschema:"what to search for"`
	Count int    `json:"count,omitempty" jsonschema:"how many results, 1 to 20; 5 when absent"`
}

func (s *searcher) tool() tools.Tool {
	return tools.New(tools.Spec{
		Tool: llm.Tool{
			Name:        searchName,
			Description: "Searches the web. Returns titles, addresses and short texts; fetch_url reads a whole page.",
		},
		Effect:  tools.ReadOnly,
		Public:  true,
		Timeout: time.Duration(len(s.engines))*engineLimit + 5*time.Second,
		Scopes:  []string{tools.ScopeWeb},
		Class:   tools.Outward,
		// The engines are those that the operator chose, whatever is searched.
		Listed: func(tools.Env, json.RawMessage) bool { return true },
	}, s.search)
}

type hit struct{ title, address, snippet string }

func (s *searcher) search(ctx context.Context, _ tools.Env, in searchInput) (tools.Result, error) {
	query := strings.Join(strings.Fields(in.Query), " ")
	count := in.Count
	if count == 0 {
		count = usualResults
	}
	switch {
	case query == "":
		return tools.Result{}, &tools.Fault{Code: tools.FaultArguments, Text: "field query: is empty"}
	case len([]rune(query)) > maxQuery:
		return tools.Result{}, &tools.Fault{Code: tools.FaultArguments, Text: fmt.Sprintf("field query: is longer than %d characters", maxQuery)}
	case count < 1 || count > maxResults:
		return tools.Result{}, &tools.Fault{Code: tools.FaultArguments, Text: fmt.Sprintf("field count: want 1 to %d", maxResults)}
	}
	var faults []*engineError
	for _, e := range s.engines {
		if failed := e.resting(time.Now()); failed != nil {
			faults = append(faults, failed)
			continue
		}
		hits, err := e.ask(ctx, query, count)
		if err == nil {
			e.worked()
			return tools.Result{Text: list(query, e.name, hits, count), Untrusted: true}, nil
		}
		if ctx.Err() != nil {
			return tools.Result{}, ctx.Err() // the run was stopped, which says nothing about the engine
		}
		failed := e.failed(time.Now(), err)
		s.log.Warn("search engine failed", "engine", e.name, "why", failed.why, "rest", failed.rest)
		faults = append(faults, failed)
	}
	return tools.Result{}, noEngine(faults)
}

func noEngine(faults []*engineError) *tools.Fault {
	f := &tools.Fault{Code: faultSearch}
	var words []string
	for _, e := range faults {
		words = append(words, e.engine+" "+e.why)
		if e.lasting {
			continue
		}
		after := max(time.Until(e.until), time.Second)
		if !f.Retriable || after < f.After {
			f.After = after
		}
		f.Retriable = true
	}
	f.Text = "no search engine answers: " + strings.Join(words, "; ")
	if !f.Retriable {
		f.Text += "; an operator has to change the configuration, under web"
	}
	return f
}

func list(query, engine string, hits []hit, count int) string {
	if len(hits) == 0 {
		return fmt.Sprintf("Nothing was found for %q (%s).", query, engine)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Results for %q (%s):\n", query, engine)
	for i, h := range hits[:min(len(hits), count)] {
		fmt.Fprintf(&b, "\n%d. %s\n   %s\n", i+1, h.title, h.address)
		if h.snippet != "" {
			fmt.Fprintf(&b, "   %s\n", h.snippet)
		}
	}
	return b.String()
}

// An engineError is why an engine gave no results.
type engineError struct {
	engine  string
	why     string
	lasting bool          // nothing gets better by waiting
	rest    time.Duration // that the engine wants; 0: it did not say
	until   time.Time
}

func (e *engineError) Error() string { return e.why }

// A rest keeps an engine that failed from being asked again at once.
type rest struct {
	mu   sync.Mutex
	last *engineError
}

// resting is the failure for which an engine is not asked at the moment; nil when
// it may be.
func (r *rest) resting(now time.Time) *engineError {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || !now.Before(r.last.until) {
		return nil
	}
	return r.last
}

func (r *rest) worked() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = nil
}

func (e *engine) failed(now time.Time, err error) *engineError {
	failed, ok := errors.AsType[*engineError](err)
	if !ok {
		failed = &engineError{why: fault(err).Text}
	}
	failed.engine = e.name
	switch {
	case failed.rest > 0:
		failed.rest = min(failed.rest, restLong)
	case failed.lasting:
		failed.rest = restKey
	default:
		failed.rest = restBroken
	}
	failed.until = now.Add(failed.rest)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = failed
	return failed
}
