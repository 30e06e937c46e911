package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/claybot/claybot"
)

// A State is what a node works with.
type State[S, O any] struct {
	Turn *Turn
	// Scratch is working memory, Output what is shown.
	Scratch S
	Output  O
	// Node is where the walk is, Iteration how often it has been there.
	Node      string
	Iteration int

	reason   string
	failed   bool
	model    string
	usage    claybot.Usage
	recorded bool
	records  func() []claybot.Record
	record   func(claybot.Record) error
	emit     func(context.Context, bool, ...claybot.Event) error
}

// Because says in a few words why the node goes where it goes.
func (s *State[S, O]) Because(reason string) { s.reason = reason }

// Failed says that the node failed, where an edge takes its error.
func (s *State[S, O]) Failed() { s.failed = true }

// Pause tells that the node waits for its next try while wait does.
func (s *State[S, O]) Pause(ctx context.Context, wait func()) error {
	if err := s.emit(ctx, true, NodeEnded(s.Turn.Run.ID, s.Node, s.Iteration, NodeRetrying, 0)); err != nil {
		return err
	}
	wait()
	return s.emit(ctx, true, NodeBegan(s.Turn.Run.ID, s.Node, s.Iteration))
}

// Records are those of the run so far. They must not be changed.
func (s *State[S, O]) Records() []claybot.Record { return s.records() }

// Record hands over a record of the node's own, such as a tool call and its
// result. It is durable when Record returns nil; any error is to be returned by
// the node. A node that has recorded something is not tried again.
func (s *State[S, O]) Record(r claybot.Record) error {
	s.recorded = true
	return s.record(r)
}

// Emit tells what happens, see Turn.Emit.
func (s *State[S, O]) Emit(ctx context.Context, now bool, ev ...claybot.Event) error {
	return s.emit(ctx, now, ev...)
}

// Used counts a model call of the node that answered; it is recorded with the
// node.
func (s *State[S, O]) Used(model string, u claybot.Usage) {
	u.LLMCalls = max(u.LLMCalls, 1)
	s.model, s.usage = model, s.usage.Add(u)
}

// dropped counts what the calls of a node took that is not recorded, as it will
// work again or has failed.
func (s *State[S, O]) dropped() {
	if s.usage != (claybot.Usage{}) {
		s.Turn.Lost(s.model, s.usage)
	}
	s.usage = claybot.Usage{}
}

// state is what a node begins with.
func (w *walk[S, O]) state(node string, visit int) (*State[S, O], error) {
	s := &State[S, O]{
		Turn: w.turn, Node: node, Iteration: visit,
		records: func() []claybot.Record { return w.records }, record: w.record, emit: w.turn.Emit,
	}
	if err := w.saved.load(&s.Scratch, &s.Output); err != nil {
		return s, &Error{Code: CodeGraph, Text: fmt.Sprintf("graph %s: the state before %s cannot be read: %v", w.Name, node, err)}
	}
	return s, nil
}

// OutputOf is what a graph has put out in a run so far, by the run's records.
func OutputOf(records []claybot.Record, run claybot.RunID) map[string]json.RawMessage {
	st := newStored()
	for _, r := range records {
		if r.Run == run && r.Type == claybot.RecordNode {
			st.apply(r.Change)
		}
	}
	return st.output
}

// Walk calls fn for each node of a run that has ended, by the run's records, with what the graph has
// kept and put out by then; until it returns false. The maps must not be changed, or kept.
func Walk(records []claybot.Record, run claybot.RunID, fn func(r claybot.Record, scratch, output map[string]json.RawMessage) bool) {
	st := newStored()
	for _, r := range records {
		if r.Run != run || r.Type != claybot.RecordNode {
			continue
		}
		st.apply(r.Change)
		if r.Next != r.Name && !fn(r, st.scratch, st.output) {
			return
		}
	}
}

// A stored state is one by its members.
type stored struct{ scratch, output map[string]json.RawMessage }

func newStored() stored {
	return stored{make(map[string]json.RawMessage), make(map[string]json.RawMessage)}
}

// store takes a state apart.
func store(scratch, output any) (st stored, err error) {
	if st.scratch, err = members(scratch); err != nil {
		return st, err
	}
	st.output, err = members(output)
	return st, err
}

func members(v any) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var m map[string]json.RawMessage
	return m, json.Unmarshal(raw, &m)
}

// load puts a state together.
func (st stored) load(scratch, output any) error {
	for _, x := range []struct {
		from map[string]json.RawMessage
		to   any
	}{{st.scratch, scratch}, {st.output, output}} {
		raw, err := json.Marshal(x.from)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(raw, x.to); err != nil {
			return err
		}
	}
	return nil
}

// apply merges what a node changed.
func (st stored) apply(c *claybot.StateChange) {
	if c == nil {
		return
	}
	merge(st.scratch, c.Scratch)
	merge(st.output, c.Output)
}

func merge(to, changed map[string]json.RawMessage) {
	for k, v := range changed {
		if string(v) == "null" {
			delete(to, k)
			continue
		}
		to[k] = v
	}
}

// change is what turns st into now; nil when that is nothing.
func (st stored) change(now stored) *claybot.StateChange {
	c := claybot.StateChange{Scratch: changed(st.scratch, now.scratch), Output: changed(st.output, now.output)}
	if len(c.Scratch) == 0 && len(c.Output) == 0 {
		return nil
	}
	return &c
}

func changed(before, now map[string]json.RawMessage) map[string]json.RawMessage {
	diff := make(map[string]json.RawMessage)
	for k := range maps.Keys(before) {
		if _, kept := now[k]; !kept {
			diff[k] = json.RawMessage("null")
		}
	}
	for k, v := range now {
		if !bytes.Equal(before[k], v) {
			diff[k] = v
		}
	}
	return diff
}
