package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// How long a route may go on trying when there is another one, and when
	// there is none: then the caller waits to hear of it.
	nextPatience = 2 * time.Second
	lastPatience = 10 * time.Second

	minRest  = 15 * time.Second // after a failure that says nothing of its length
	maxRest  = time.Hour        // whatever a provider asks for
	deadRest = 5 * time.Minute  // the key is refused, the model is unknown
)

// NoneAnswered begins the text of the error of a call that none of several routes answered; the text of each
// follows.
const NoneAnswered = "no model answered"

// A Route is one way to a model.
type Route struct {
	Name  string // for logs and events: the model's name, or what tells it apart
	Model Model  // usually Retried
}

// patient models can be told how long they may go on trying.
type patient interface {
	Model
	chat(ctx context.Context, r Request, patience time.Duration) (Response, error)
}

// Fallback returns a model that asks routes in their order until one answers.
// The next one is asked within two seconds of the first failure of a Retried
// route, also when its provider asks to wait longer. Which errors go on: Rate,
// Transient, and Permanent ones unless the request is to blame (400, 413, 422).
// Context and Budget end the call.
//
// A route that failed rests: as long as its provider asks for, up to an hour,
// and is then not asked; else for seconds to minutes, and is then asked after
// the others. An error that one request caused lets no route rest. When no
// route is left, the call ends within 15 seconds of the last route's first
// failure. A single route is returned as it is.
func Fallback(log *slog.Logger, routes ...Route) Model {
	if len(routes) == 1 {
		return routes[0].Model
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &fallback{log: log, routes: routes, rests: make([]rest, len(routes))}
}

type fallback struct {
	log    *slog.Logger
	routes []Route

	mu    sync.Mutex
	rests []rest
}

// A rest is what is known of a route's failures.
type rest struct {
	until    time.Time
	asked    bool // the provider asked for it
	failures int  // in a row
}

func (m *fallback) Chat(ctx context.Context, r Request) (Response, error) {
	step, cancel := context.WithTimeoutCause(ctx, StepTime, ErrStep)
	defer cancel()
	order, err := m.order(step)
	if err != nil {
		return Response{}, caused(ctx, err)
	}
	shown := false
	if told := r.Delta; told != nil {
		r.Delta = func(offset int, text string) { shown = true; told(offset, text) }
	}
	var failures []failure
	for n, i := range order {
		last := n == len(order)-1
		resp, err := m.ask(step, i, r, last)
		var e *Error
		if err == nil {
			m.settle(i, nil)
			return resp, nil
		}
		if !errors.As(err, &e) || ctx.Err() != nil {
			return resp, err
		}
		if !goesOn(e) {
			return resp, err
		}
		m.settle(i, e)
		failures = append(failures, failure{m.routes[i].Name, e})
		if last || step.Err() != nil {
			return resp, caused(ctx, m.none(failures))
		}
		next := m.routes[order[n+1]].Name
		m.log.Warn("trying the fallback model", "agent", r.Agent, "run", r.Run, "from", m.routes[i].Name, "to", next, "class", e.Class, "status", e.Status)
		if r.Failed != nil {
			r.Failed(Attempt{Route: m.routes[i].Name, Next: next, Err: e})
		}
		if shown { // what was shown is no part of the answer
			r.Delta(0, "")
			shown = false
		}
	}
	return Response{}, Failed(Permanent, "no model is configured")
}

func (m *fallback) ask(ctx context.Context, i int, r Request, last bool) (Response, error) {
	route := m.routes[i]
	if p, ok := route.Model.(patient); ok {
		if last {
			return p.chat(ctx, r, lastPatience)
		}
		return p.chat(ctx, r, nextPatience)
	}
	return route.Model.Chat(ctx, r)
}

func goesOn(e *Error) bool {
	switch e.Class {
	case Transient, Rate:
		return true
	case Permanent:
		return e.Account || e.Status != 400 && e.Status != 413 && e.Status != 422
	}
	return false
}

// order is the routes to ask now: those that do not rest, then those that rest
// without having been asked to, the shortest first. When every provider asked to
// be left alone, the first that may be asked again is waited for, if that is
// soon.
func (m *fallback) order(ctx context.Context) ([]int, error) {
	order, i, wait := m.ready()
	if len(order) > 0 || len(m.routes) == 0 {
		return order, nil
	}
	e := Failed(Rate, "all of %d models are limited at the moment", len(m.routes))
	e.RetryAfter = wait
	if wait > lastPatience || !sleep(ctx, wait) {
		return nil, e
	}
	return []int{i}, nil
}

func (m *fallback) ready() (order []int, soonest int, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	var tired []int
	for i, r := range m.rests {
		switch left := r.until.Sub(now); {
		case left <= 0:
			order = append(order, i)
		case !r.asked:
			tired = append(tired, i)
		case wait == 0 || left < wait:
			soonest, wait = i, left
		}
	}
	slices.SortStableFunc(tired, func(a, b int) int { return m.rests[a].until.Compare(m.rests[b].until) })
	return append(order, tired...), soonest, wait
}

// settle notes how a call of a route ended; nil means well.
func (m *fallback) settle(i int, e *Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &m.rests[i]
	if e == nil {
		*r = rest{}
		return
	}
	var d time.Duration
	switch {
	case e.RetryAfter > 0 && e.Class != Permanent:
		d = min(e.RetryAfter, maxRest)
	case e.Class == Transient, e.Class == Rate:
		d = min(minRest<<min(r.failures, 10), deadRest)
	case e.Account, e.Status == 404:
		d = deadRest
	default:
		return // the request may be to blame
	}
	r.failures++
	r.asked = e.RetryAfter > 0 && e.Class != Permanent
	r.until = time.Now().Add(d)
}

// Refresh ends all rests of a model of Fallback, Retried and Rotated: its next call asks every route and key in
// their order.
func Refresh(m Model) {
	switch m := m.(type) {
	case *fallback:
		m.mu.Lock()
		clear(m.rests)
		m.mu.Unlock()
		for _, r := range m.routes {
			Refresh(r.Model)
		}
	case *retried:
		Refresh(m.model)
	case *rotated:
		m.mu.Lock()
		m.first = 0
		clear(m.rest)
		m.mu.Unlock()
	}
}

type failure struct {
	route string
	err   *Error
}

// none is the error of a call that no route answered. Its class is the one that
// leaves most hope.
func (m *fallback) none(failures []failure) *Error {
	out := *failures[len(failures)-1].err
	texts := make([]string, len(failures))
	for i, f := range failures {
		texts[i] = f.route + ": " + f.err.Text
		out.Account = out.Account && f.err.Account
		switch {
		case f.err.Class == Transient, f.err.Class == Rate && out.Class == Permanent:
			out.Class = f.err.Class
		}
		if f.err.RetryAfter > 0 && (out.RetryAfter == 0 || f.err.RetryAfter < out.RetryAfter) {
			out.RetryAfter = f.err.RetryAfter
		}
	}
	if len(m.routes) > 1 {
		out.Text = fmt.Sprintf("%s (%s)", NoneAnswered, strings.Join(texts, "; "))
	}
	return &out
}
