package runs_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// report adds percentiles in microseconds to the figures of a benchmark.
func report(b *testing.B, name string, all []time.Duration) {
	slices.Sort(all)
	for p, share := range map[string]int{"p50": 50, "p99": 99} {
		d := all[min(len(all)-1, len(all)*share/100)]
		b.ReportMetric(float64(d.Nanoseconds())/1000, name+p+"-µs")
	}
}

// BenchmarkFirstEvent is the time from a commit to its event at an open Watch.
func BenchmarkFirstEvent(b *testing.B) {
	r := newRig(b)
	r.must(r.db.Close())
	var committed atomic.Int64
	base := time.Now()
	r.db = openDB(b, r.path, func(c storage.Commit) {
		committed.Store(int64(time.Since(base)))
		r.hub.Committed(c)
	})
	l := r.start()
	arrived := make(chan time.Duration)
	go func() {
		for u, err := range runs.Watch(b.Context(), r.db, r.hub, l.id, 1) {
			if err != nil || u.Event.Type.Ends() {
				close(arrived)
				return
			}
			arrived <- time.Since(base)
		}
	}()
	var all []time.Duration
	for b.Loop() {
		l.add(1)
		all = append(all, <-arrived-time.Duration(committed.Load()))
	}
	l.finish()
	<-arrived
	report(b, "", all)
}

// BenchmarkStored reads a run of 100,000 events.
func BenchmarkStored(b *testing.B) {
	const events = 100_000
	r := newRig(b)
	l := r.start()
	for l.seq < events-1000 {
		l.add(1000)
	}
	l.add(int(events - 1 - l.seq))
	l.finish()
	for b.Loop() {
		n, size := 0, 0
		for u, err := range runs.Watch(b.Context(), r.db, r.hub, l.id, 0) {
			if err != nil {
				b.Fatal(err)
			}
			n++
			size += len(u.Wire())
		}
		b.SetBytes(int64(size))
		if n != events {
			b.Fatalf("%d events", n)
		}
	}
	b.ReportMetric(events*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkAppend writes two runs in turns, one without readers and one that
// 200 read: each event when the last one has reached all of them, or flat out.
func BenchmarkAppend(b *testing.B) {
	b.Run("in step", func(b *testing.B) { benchmarkAppend(b, true) })
	b.Run("flat out", func(b *testing.B) { benchmarkAppend(b, false) })
}

func benchmarkAppend(b *testing.B, inStep bool) {
	const readers = 200
	r := newRig(b)
	alone, read := r.start(), r.start()
	var wg sync.WaitGroup
	var seen atomic.Int64
	for range readers {
		wg.Go(func() {
			for u, err := range runs.Watch(b.Context(), r.db, r.hub, read.id, 1) {
				if err != nil {
					b.Error(err)
					return
				}
				u.Wire()
				seen.Add(1)
			}
		})
	}
	timed := func(l *live) time.Duration {
		start := time.Now()
		l.add(1)
		return time.Since(start)
	}
	var without, with []time.Duration
	for n := 0; b.Loop(); n++ {
		if n%2 == 0 { // who comes first has waited for readers, not for a disk
			without = append(without, timed(alone))
			with = append(with, timed(read))
		} else {
			with = append(with, timed(read))
			without = append(without, timed(alone))
		}
		for inStep && seen.Load() < readers*(read.seq-1) {
			time.Sleep(50 * time.Microsecond)
		}
	}
	read.finish()
	alone.finish()
	wg.Wait()
	report(b, "0-readers-", without)
	report(b, "200-readers-", with)
}

// BenchmarkCommitted is what the hook costs the writer: a commit with one event
// of a run that 200 wait for.
func BenchmarkCommitted(b *testing.B) {
	r := newRig(b)
	l := r.start()
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			for _, err := range runs.Watch(b.Context(), r.db, r.hub, l.id, 1) {
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	e := runs.NodeBegan(l.id, "model", 1)
	var all []time.Duration
	n := int64(1)
	for b.Loop() {
		b.StopTimer()
		time.Sleep(time.Millisecond) // until they wait
		b.StartTimer()
		n++
		e.Seq = n
		start := time.Now()
		r.hub.Committed(storage.Commit{Events: []claybot.Event{e}})
		all = append(all, time.Since(start))
	}
	e = runs.Stopped(l.id, "the benchmark", "")
	e.Seq = n + 1
	r.hub.Committed(storage.Commit{Events: []claybot.Event{e}})
	wg.Wait()
	report(b, "", all)
}
