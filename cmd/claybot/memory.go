package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercent lets the heap grow to four times what lives before it is
	// collected: what lives is small, and collecting is a good part of the work
	// of a busy daemon.
	gcPercent = 300
	// trimEvery is how often the daemon looks whether it has become quiet.
	trimEvery = 2 * time.Second
	// busyBytes are the allocations of one look's time that count as work.
	busyBytes = 4 << 20
	// mappedBytes are the pages of files that a quiet daemon keeps in memory beyond the fewest that
	// it was found with: these it needs from look to look.
	mappedBytes = 4 << 20
)

func (d *daemon) trim(ctx context.Context) { d.stores.trim(ctx, d.traffic.forget) }

// trim gives memory back to the system whenever a busy time is over, so that an
// idle daemon is a small one: what is known of agents, the heap, and the pages of the binary.
// It returns with ctx. forget drops what else a busy time has left behind.
func (s *stores) trim(ctx context.Context, forget func()) {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	since := calmSince(allocated())
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		heap, binary := since.due(allocated(), mappedFiles())
		if heap {
			forget() // before the heap: what was made in a busy time lies scattered over it
			s.agents.Release()
			debug.FreeOSMemory()
		}
		if binary {
			unmapBinary()
		}
	}
}

// A calm decides what of the memory is given back.
type calm struct {
	last    uint64 // allocated at the last look
	trimmed uint64 // allocated when the heap was last given back
	started bool   // it was given back since the start
	fewest  uint64 // what of files was in memory at the look that found the least since the start
}

// calmSince begins after a start that has allocated so much.
func calmSince(now uint64) *calm { return &calm{last: now} }

// due reports what is given back at a look, by what was allocated so far, and what of files is
// in memory. The first look gives back all, whatever goes on, such as the check of many agents:
// the start is over. The others do when a busy time is over; and where much of the binary came
// into memory for little work, as by a timer that asks Docker, they give back that.
func (c *calm) due(now, files uint64) (heap, binary bool) {
	quiet := now-c.last <= busyBytes
	c.last = now
	if !c.started { // of the start, most of the binary is in memory
		c.started, c.trimmed, c.fewest = true, now, files
		return true, true
	}
	c.fewest = min(c.fewest, files)
	if heap = quiet && now-c.trimmed > busyBytes; heap {
		c.trimmed = now
	}
	return heap, heap || quiet && files > c.fewest+mappedBytes
}

// allocated is the number of bytes allocated since the start.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
