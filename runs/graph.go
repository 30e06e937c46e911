package runs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/claybot/claybot"
)

// End is where the edges of a graph lead to end the run.
const End = "END"

// The limits of a graph that sets none.
const (
	defaultGraphSteps = 64
	defaultNodeTime   = 10 * time.Minute
	nodeTries         = 3
)

// A Node does one thing and says which node is next, over an edge that the graph
// declares. What it changed of the state is kept when it returns; what is left
// to do in the outside world goes through the Turn and the tools. A node that
// was cut off starts again from the state before it.
//
// A *WaitError ends the pass with the state as it is; the next pass enters the
// same node. A *TransientError has the node tried again, from the state before
// it. Any other error ends the run as failed.
type Node[S, O any] func(ctx context.Context, s *State[S, O]) (next string, err error)

// A TransientError may be gone the next time.
type TransientError struct{ Err error }

func (e *TransientError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *TransientError) Unwrap() error { return e.Err }

// A Graph is an engine made of nodes. S is its working memory, O what people
// and programs see of it; both are structs with JSON names.
//
// The state is saved in history after each node, as a record of what changed,
// so a run goes on at the next node and never repeats a finished one.
type Graph[S, O any] struct {
	Name  string
	Start string
	Nodes map[string]Node[S, O]
	// Edges are where each node may lead, the usual way first.
	Edges map[string][]string
	// Steps is how many nodes one pass may enter; 0: 64.
	Steps func(*Turn) int
	// NodeTime limits one node; 0: 10 minutes.
	NodeTime time.Duration
}

var _ Engine = (*Graph[struct{}, struct{}])(nil)

// Check reports what is wrong with the graph itself: a mistake in the program.
func (g *Graph[S, O]) Check() error {
	if g.Nodes[g.Start] == nil {
		return fmt.Errorf("graph %s: it starts at %q, which is not a node", g.Name, g.Start)
	}
	reached := map[string]bool{g.Start: true}
	for from, all := range g.Edges {
		if g.Nodes[from] == nil {
			return fmt.Errorf("graph %s: an edge leaves %q, which is not a node", g.Name, from)
		}
		for _, to := range all {
			if to != End && g.Nodes[to] == nil {
				return fmt.Errorf("graph %s: an edge of %q leads to %q, which is not a node", g.Name, from, to)
			}
			reached[to] = true
		}
	}
	for name := range g.Nodes {
		switch {
		case !reached[name]:
			return fmt.Errorf("graph %s: no edge leads to %q", g.Name, name)
		case len(g.Edges[name]) == 0:
			return fmt.Errorf("graph %s: no edge leaves %q", g.Name, name)
		}
	}
	return nil
}

// Run implements Engine.
func (g *Graph[S, O]) Run(ctx context.Context, t *Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		w := walk[S, O]{Graph: g, turn: t, yield: yield}
		if err := w.run(ctx); err != nil && !errors.Is(err, errConsumed) {
			yield(claybot.Record{}, err)
		}
	}
}

// errConsumed: the consumer stopped ranging.
var errConsumed = errors.New("the consumer stopped reading")

// A walk is one pass through a graph.
type walk[S, O any] struct {
	*Graph[S, O]
	turn  *Turn
	yield func(claybot.Record, error) bool

	records []claybot.Record // of the run
	saved   stored           // after the last node
	at      string           // the node to enter
	visits  map[string]int
}

// restore reads from the records of the run where it is.
func (w *walk[S, O]) restore() {
	w.at, w.visits, w.saved = w.Start, make(map[string]int), newStored()
	for _, r := range w.turn.History {
		if r.Run != w.turn.Run.ID {
			continue
		}
		w.records = append(w.records, r)
		if r.Type != claybot.RecordNode {
			continue
		}
		w.at = r.Next
		w.visits[r.Name]++
		w.saved.apply(r.Change)
	}
}

func (w *walk[S, O]) run(ctx context.Context) error {
	w.restore()
	limit := defaultGraphSteps
	if w.Steps != nil && w.Steps(w.turn) > 0 {
		limit = w.Steps(w.turn)
	}
	for n := 0; w.at != End; n++ {
		if n >= limit {
			return &Error{Code: CodeTooMany, Text: fmt.Sprintf("graph %s: more than %d nodes in one pass", w.Name, limit)}
		}
		if w.Nodes[w.at] == nil {
			return &Error{Code: CodeGraph, Text: fmt.Sprintf("graph %s has no node %.80q", w.Name, w.at)}
		}
		if err := w.enter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// enter takes the walk through one node.
func (w *walk[S, O]) enter(ctx context.Context) error {
	node, visit, began := w.at, w.visits[w.at]+1, time.Now()
	if err := w.turn.Emit(ctx, true, NodeBegan(w.turn.Run.ID, node, visit)); err != nil {
		return err
	}
	s, next, err := w.try(ctx, node, visit)
	wait, waits := errors.AsType[*WaitError](err)
	result := s.reason
	switch {
	case s.failed:
		result = "failed"
	case waits:
		result, next = "waits", node
	case ctx.Err() != nil:
		result, err = "cut off", Ended(ctx)
	case err != nil:
		result = "failed"
	}
	told := w.turn.Emit(ctx, false, NodeEnded(w.turn.Run.ID, node, visit, result, time.Since(began)))
	switch {
	case err != nil && !waits:
		s.dropped()
		return err
	case told != nil:
		s.dropped()
		return told
	}
	if err := w.leave(s, node, next, began); err != nil {
		return err
	}
	if waits {
		return wait
	}
	return nil
}

// try lets a node work, again when what stopped it may be gone.
func (w *walk[S, O]) try(ctx context.Context, node string, visit int) (s *State[S, O], next string, err error) {
	limit := w.NodeTime
	if limit <= 0 {
		limit = defaultNodeTime
	}
	for try := 1; ; try++ {
		if s, err = w.state(node, visit); err != nil {
			return s, "", err
		}
		inner, cancel := context.WithTimeoutCause(ctx, limit, &Error{
			Code: CodeDeadline, Text: fmt.Sprintf("the node %s took longer than %s", node, limit),
		})
		next, err = w.Nodes[node](inner, s)
		if err != nil && ctx.Err() == nil && inner.Err() != nil {
			err = context.Cause(inner)
		}
		cancel()
		_, again := errors.AsType[*TransientError](err)
		if !again || try == nodeTries || ctx.Err() != nil || s.recorded {
			break
		}
		s.dropped()
		if told := s.Pause(ctx, func() { claybot.Sleep(ctx, time.Second<<try) }); told != nil {
			return s, "", told
		}
	}
	if err == nil && !slices.Contains(w.Edges[node], next) {
		err = &Error{Code: CodeGraph, Text: fmt.Sprintf("graph %s: no edge leads from %s to %.80q", w.Name, node, next)}
	}
	return s, next, err
}

// leave records the end of a node; the run is at the next one from then on.
func (w *walk[S, O]) leave(s *State[S, O], node, next string, began time.Time) error {
	now, err := store(s.Scratch, s.Output)
	if err != nil {
		s.dropped()
		return fmt.Errorf("graph %s: state after %s: %w", w.Name, node, err)
	}
	r := claybot.Record{
		Type: claybot.RecordNode, Name: node, Next: next, Text: s.reason, Change: w.saved.change(now),
		Model: s.model, MS: time.Since(began).Milliseconds(),
	}
	if s.usage != (claybot.Usage{}) {
		r.Tokens = &s.usage
		w.turn.Used(s.usage)
	}
	if err := w.record(r); err != nil {
		return err
	}
	w.visits[node]++
	w.saved, w.at = now, next
	return nil
}

// record hands over a record; it is durable when record returns nil.
func (w *walk[S, O]) record(r claybot.Record) error {
	r.Run = w.turn.Run.ID
	if r.At == 0 {
		r.At = claybot.Now()
	}
	if !w.yield(r, nil) {
		return errConsumed
	}
	w.records = append(w.records, r)
	return nil
}

// Ended explains the end of ctx: a passed deadline is a failure with a code, any
// other cause is the canceler's to judge.
func Ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return &Error{Code: CodeDeadline, Text: "the run reached its time limit", Err: cause}
	}
	return cause
}

// A Shape is a graph to be drawn.
type Shape struct {
	Name  string              `json:"name"`
	Start string              `json:"start"`
	Edges map[string][]string `json:"edges"`
}

// Shaped is an engine that is a graph.
type Shaped interface{ Shape() Shape }

// Shape is the graph without what its nodes do.
func (g *Graph[S, O]) Shape() Shape {
	return Shape{Name: g.Name, Start: g.Start, Edges: maps.Clone(g.Edges)}
}
