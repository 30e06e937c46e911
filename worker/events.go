package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// An eventBuffer holds the events of a pass until the next thing that takes time: a tool,
// a model call, a pause or the end of the run. They are committed with it. Tools add to
// the buffer concurrently; all other methods belong to the goroutine of the pass.
type eventBuffer struct {
	job *job
	// store appends to the events of the run; progress clears its charges.
	store func(ctx context.Context, progress bool, ev []claybot.Event) error
	// observe is called once for each stored event, in order.
	observe func(claybot.Event)

	seq  int64                     // of the newest event, counted along with the store
	open map[runs.NodeStarted]bool // graph nodes that an earlier pass began and did not end

	mu        sync.Mutex
	pending   []claybot.Event
	subagents map[claybot.AgentID]bool // that events have reported
}

// emit adds events, and commits them when now is set.
func (b *eventBuffer) emit(ctx context.Context, now bool, ev ...claybot.Event) error {
	for _, e := range ev {
		if e.Type != claybot.EventNodeStarted || !b.known(e) {
			b.add(e)
		}
	}
	if !now {
		return nil
	}
	return b.commit(ctx, true)
}

// known reports whether e starts a graph node that an earlier pass started and did not
// end: its start is not reported twice. Other open nodes are ended.
func (b *eventBuffer) known(e claybot.Event) bool {
	node := nodeOf(e)
	known := b.open[node]
	delete(b.open, node)
	b.endNodes()
	return known
}

// endNodes ends the graph nodes that an earlier pass began and this one does not
// resume.
func (b *eventBuffer) endNodes() {
	for node := range b.open {
		b.add(runs.NodeEnded(b.job.run.ID, node.Node, node.Iteration, "cut off", 0))
	}
	clear(b.open)
}

// nodeOf identifies one execution of a graph node in its run.
func nodeOf(e claybot.Event) runs.NodeStarted { return runs.DataOf[runs.NodeStarted](e) }

// add appends events to the pending ones. It is safe for concurrent use.
func (b *eventBuffer) add(ev ...claybot.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range ev {
		if e.Type != claybot.EventSubagentStarted || b.firstStart(e) {
			b.pending = append(b.pending, e)
		}
	}
}

// firstStart reports whether an event is the first one about the start of its subagent,
// because that call may be repeated. It needs mu.
func (b *eventBuffer) firstStart(e claybot.Event) bool {
	if b.subagents == nil {
		b.subagents = make(map[claybot.AgentID]bool)
	}
	id := runs.DataOf[runs.SubagentStarted](e).Agent
	first := !b.subagents[id]
	b.subagents[id] = true
	return first
}

func (b *eventBuffer) take() []claybot.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	ev := b.pending
	b.pending = nil
	return ev
}

// closing returns the pending events and the last one of the run or of its pass.
func (b *eventBuffer) closing(last claybot.Event) []claybot.Event {
	b.endNodes()
	return append(b.take(), last)
}

// commit stores the pending events followed by ev, and shows them. progress means that ev
// is progress.
func (b *eventBuffer) commit(ctx context.Context, progress bool, ev ...claybot.Event) error {
	waiting := b.take()
	all := slices.Concat(waiting, ev)
	if len(all) == 0 {
		return nil
	}
	if err := b.store(ctx, progress || len(waiting) > 0, all); err != nil {
		b.mu.Lock()
		b.pending = append(waiting, b.pending...) // not written; the end of the run commits them
		b.mu.Unlock()
		b.job.broken = fmt.Errorf("append events: %w", err)
		return b.job.broken
	}
	b.show(all...)
	return nil
}

// show passes stored events on, once each and in order.
func (b *eventBuffer) show(events ...claybot.Event) {
	for _, e := range events {
		b.seq++
		e.Seq = b.seq
		b.observe(e)
	}
}
