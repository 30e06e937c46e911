package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web/metrics"
)

// Memory is given back at the first look, even if a check of many agents goes on, and after
// busy times; an idle daemon gives back no more than what little work maps of the binary.
func TestCalm(t *testing.T) {
	type look struct {
		allocated, mapped uint64 // the former since the look before
		heap, binary      bool
	}
	const busy, half, few = busyBytes + 1, busyBytes / 2, 9 << 20
	const much = few + mappedBytes + 1
	for name, looks := range map[string][]look{
		"idle":              {{0, much, true, true}, {1, few, false, false}, {1, few + mappedBytes, false, false}, {1, few, false, false}},
		"needs much":        {{0, 2 * much, true, true}, {1, much, false, false}, {1, much + few/4, false, false}, {1, much, false, false}},
		"busy at the start": {{busy, much, true, true}, {busy, much, false, false}, {1, few, true, true}, {1, few, false, false}},
		"busy later":        {{0, few, true, true}, {busy, much, false, false}, {busy, much, false, false}, {1, few, true, true}, {1, few, false, false}},
		"bit by bit":        {{0, 0, true, true}, {half, 0, false, false}, {half, 0, false, false}, {half, 0, true, true}, {half, 0, false, false}},
		"a timer":           {{0, much, true, true}, {1, few, false, false}, {1, much, false, true}, {1, few, false, false}, {1, much, false, true}},
	} {
		const start = 100 << 20
		c, now := calmSince(start), uint64(start)
		for i, l := range looks {
			now += l.allocated
			if heap, binary := c.due(now, l.mapped); heap != l.heap || binary != l.binary {
				t.Errorf("%s, look %d: heap %t and binary %t, want %t and %t", name, i, heap, binary, l.heap, l.binary)
			}
		}
	}
}

// Of each agent that was busy, the map would keep an object that holds a page of the heap.
func TestTrafficForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		traffic := newTraffic(metrics.New(metrics.Config{}))
		for _, id := range []claybot.AgentID{"a1", "a2"} {
			traffic.Event(id, claybot.Event{Type: claybot.EventRunStarted})
		}
		traffic.Event("a2", claybot.Event{Type: claybot.EventToolCalled, Data: []byte(`{"tool":"clock"}`)})
		traffic.forget()
		if len(traffic.acts) != 2 {
			t.Errorf("forgot what is shown: %v", traffic.acts)
		}
		time.Sleep(trafficShown)
		traffic.forget()
		if len(traffic.acts) != 1 || len(traffic.acts["a2"]) != 1 {
			t.Errorf("keeps %v, want the call that goes on", traffic.acts)
		}
	})
}
