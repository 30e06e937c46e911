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
)

// trim gives memory back to the system whenever a busy time is over, so that an
// idle daemon is a small one: what is known of agents, the heap, and the pages of the binary.
// It returns with ctx.
func (s *stores) trim(ctx context.Context) {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	last, trimmed := allocated(), uint64(0)
	starting := true // what the start left behind goes with the first quiet look
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := allocated()
		busy := now-last > busyBytes
		last = now
		if !busy && (starting || now-trimmed > busyBytes) {
			s.agents.Release() // before the heap: what was made in a busy time lies scattered over it
			debug.FreeOSMemory()
			unmapBinary()
			trimmed, starting = now, false
		}
	}
}

// allocated is the number of bytes allocated since the start.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
