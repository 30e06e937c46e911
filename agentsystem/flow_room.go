package agentsystem

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/storage"
)

// flowRoom bounds the unfinished runs of workflows.
type flowRoom struct {
	flow     func(name string) *flows.Flow // nil for none
	counts   storage.StatsReader
	receipts storage.Receipts
}

// limits returns how many unfinished runs the workflow may have that a message starts; nil for a message
// that starts none. The further parts of an album belong to the run of the first one.
func (r flowRoom) limits(m claybot.AgentMessage) *storage.FlowLoad {
	if m.Flow == nil || m.Silent || r.flow == nil {
		return nil
	}
	var l flows.Limits
	if f := r.flow(m.Flow.Name); f != nil {
		l = f.Limits
	}
	return &storage.FlowLoad{Open: l.MaxOpen(), Waiting: l.MaxWaiting()}
}

// refuses reports whether the sender of a message that finds no room can send it again later, so that
// nothing of it is stored: a program, what asks for a run over the API, and a node that waits for no end.
func refuses(m claybot.AgentMessage) bool {
	switch {
	case m.Firing != nil || m.From.Bot:
		return false
	case m.Nested():
		return m.Awaited == nil
	}
	return m.From.Program || m.Run != ""
}

// check returns storage.ErrFlowFull for a message that its sender can send again, and that finds no room
// now. Post decides; this spares an agent that would get no message.
func (r flowRoom) check(ctx context.Context, m claybot.AgentMessage) error {
	most := r.limits(m)
	if most == nil || !refuses(m) {
		return nil
	}
	l, err := r.counts.FlowLoad(ctx, m.Flow.Name)
	if err != nil || l.Open < most.Open && l.Waiting < most.Waiting {
		return err
	}
	return r.unless(ctx, m, fmt.Errorf("start workflow %s: %w", m.Flow.Name, noRoom))
}

// fits returns a *flows.InputError for a message whose payload does not fit the input of the workflow that it
// starts, unless it is a duplicate of one that was stored. Nothing is stored of it.
func (r flowRoom) fits(ctx context.Context, m claybot.AgentMessage) error {
	if r.flow == nil || m.Flow == nil || m.Type != claybot.MessageSystem || m.Silent || m.Flow.Pinned {
		return nil
	}
	f := r.flow(m.Flow.Name)
	if f == nil {
		return nil
	}
	if wrong := f.Refuses(m.Payload); wrong != nil {
		return r.unless(ctx, m, &storage.Fault{Class: storage.ClassMessage, Err: wrong})
	}
	return nil
}

// unless returns why a message is refused, unless it was stored before.
func (r flowRoom) unless(ctx context.Context, m claybot.AgentMessage, refused error) error {
	_, err := r.receipts.Receipt(ctx, m.ID)
	if errors.Is(err, storage.ErrNotFound) {
		return refused
	}
	return err // a duplicate
}

// noRoom is a fault of one message: others go on.
var noRoom = &storage.Fault{Class: storage.ClassMessage, Err: storage.ErrFlowFull}
