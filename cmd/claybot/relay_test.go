package main

import (
	"context"
	"strconv"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// Relays of one file append to it one after the other: those that are configured at a time, and one that comes after
// another one is gone, whose last batch may hang.
func TestRelaysOfOneFile(t *testing.T) {
	h := startDaemon(t, "model: demo\nrelay: [{name: a, file: events.jsonl}, {name: b, file: events.jsonl}, {name: c, file: other.jsonl}]\n", nil)
	r := h.daemon.listeners.relay
	first := r.Sinks["a"]
	if r.Sinks["b"] != first || r.Sinks["c"] == first {
		t.Errorf("not one sink for one file: %v", r.Sinks)
	}
	h.reload("model: demo\n", nil)
	h.reload("model: demo\nrelay: [{name: d, file: events.jsonl}]\n", nil)
	if len(r.Sinks) != 1 || r.Sinks["d"] != first {
		t.Errorf("not the sink of those that are gone: %v", r.Sinks)
	}
}

// A gate is a sink whose first batch hangs until it is let through.
type gate struct{ begun, through chan struct{} }

func (g *gate) Publish(context.Context, []claybot.Event) error {
	select {
	case g.begun <- struct{}{}:
	default:
	}
	<-g.through
	return nil
}

// A relay that comes waits for no batch of one that is gone.
func TestRelayComesBesideOneThatHangs(t *testing.T) {
	h := startDaemon(t, "model: demo\n", nil)
	hangs, comes := &gate{make(chan struct{}, 1), make(chan struct{})}, &gate{make(chan struct{}, 1), make(chan struct{})}
	defer close(hangs.through)
	close(comes.through)
	for i, next := range [...]*gate{hangs, comes} {
		h.daemon.listeners.relay.Replace(h.ctx, map[string]runs.Sink{strconv.Itoa(i): next}, false)
		h.say("hello")
		select {
		case <-next.begun:
		case <-h.ctx.Done():
			t.Fatal("it gets no event")
		}
	}
}
