package worker

import (
	"context"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// emit is Turn.Emit.
func (p *pass) emit(ctx context.Context, now bool, ev ...claybot.Event) error {
	for _, e := range ev {
		if e.Type != claybot.EventNodeStarted || !p.known(e) {
			p.add(e)
		}
	}
	if !now {
		return nil
	}
	return p.commit(ctx)
}

// known reports whether a node begins that an earlier pass told of and could
// not end: nodes come in pairs. Any other node that is open so is ended.
func (p *pass) known(e claybot.Event) bool {
	node := nodeOf(e)
	known := p.begun[node]
	delete(p.begun, node)
	p.endNodes()
	return known
}

// endNodes ends the nodes that an earlier pass began, and that are not gone on
// with.
func (p *pass) endNodes() {
	for node := range p.begun {
		p.add(runs.NodeEnded(p.run.ID, node.Node, node.Iteration, "cut off", 0))
	}
	clear(p.begun)
}

// nodeOf names a node's turn within its run.
func nodeOf(e claybot.Event) runs.NodeStarted { return runs.DataOf[runs.NodeStarted](e) }

// add puts events behind those that wait to be committed.
func (p *pass) add(ev ...claybot.Event) {
	p.pendings.Lock()
	defer p.pendings.Unlock()
	for _, e := range ev {
		if e.Type != claybot.EventSubagentStarted || p.firstStart(e) {
			p.pending = append(p.pending, e)
		}
	}
}

// firstStart reports whether an event tells of a subagent for the first time.
// The call that starts it may be made again. It needs pendings.
func (p *pass) firstStart(e claybot.Event) bool {
	if p.helpers == nil {
		p.helpers = make(map[claybot.AgentID]bool)
	}
	id := runs.DataOf[runs.SubagentStarted](e).Agent
	first := !p.helpers[id]
	p.helpers[id] = true
	return first
}

func (p *pass) takePending() []claybot.Event {
	p.pendings.Lock()
	defer p.pendings.Unlock()
	ev := p.pending
	p.pending = nil
	return ev
}

// closing returns the events that are left to publish, with the last event of the run or of
// its pass.
func (p *pass) closing(last claybot.Event) []claybot.Event {
	p.endNodes()
	return append(p.takePending(), last)
}

// commit stores the pending events and shows them.
func (p *pass) commit(ctx context.Context) error { return p.commitWith(ctx, true) }

// commitWith is commit for events that are progress, or are none, with others
// behind them.
func (p *pass) commitWith(ctx context.Context, progress bool, ev ...claybot.Event) error {
	waiting := p.takePending()
	all := slices.Concat(waiting, ev)
	if len(all) == 0 {
		return nil
	}
	if err := p.Runs.Append(ctx, p.box.Lease, p.run.ID, progress || len(waiting) > 0, all...); err != nil {
		p.pendings.Lock()
		p.pending = append(waiting, p.pending...) // nothing was written; the end of the run tells them
		p.pendings.Unlock()
		p.broken = fmt.Errorf("append events: %w", err)
		return p.broken
	}
	p.show(all...)
	if progress || len(waiting) > 0 {
		p.progressed(ctx)
	}
	return nil
}
