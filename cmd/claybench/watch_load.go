package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage/sqlite"
)

// channels is how many agents the writers write to in turn: a run has ended
// long before its agent is written to again.
const channels = 400

// A house is a daemon with an audience.
type house struct {
	*watcher
	door    *door
	gauge   *door // for figures that only an operator gets
	process *process
	long    claybot.RunID // with many events
	said    int           // messages

	mu   sync.Mutex
	read []*follower // all streams that there were
}

// A spell is what was measured in one round.
type spell struct {
	accept, whole []time.Duration // of each message: until it was stored, until its run had ended
	heap          []int64         // bytes that live in the daemon; in gauged rounds
	busy          float64         // processors that the daemon kept busy
}

// A posted is a message of a writer.
type posted struct {
	run           claybot.RunID
	began         time.Time
	accept, whole time.Duration
}

// writers measures a steady load of messages, in turn without and with readers.
// The first rounds are for getting warm. To read the heap takes time, so that is
// done in two more rounds, which are not timed, when the caches of the daemon
// are full.
func (h *house) writers(ctx context.Context) error {
	var timed [2][]*spell // without readers, with readers
	for i := range h.size.rounds + 1 {
		for _, side := range []int{i % 2, 1 - i%2} {
			s, err := h.round(ctx, h.size.span, side == 1, false)
			if err != nil {
				return fmt.Errorf("round %d: %w", i, err)
			}
			fmt.Printf("watch: round %2d, %-7s accept p99 %7.2f ms; until the end p50 %8.2f ms, p99 %8.2f ms; %.2f processors busy\n",
				i, [2]string{"alone", "watched"}[side], ms(percentile(s.accept, 0.99)), ms(percentile(s.whole, 0.5)), ms(percentile(s.whole, 0.99)), s.busy)
			if i > 0 {
				timed[side] = append(timed[side], s)
			}
		}
	}
	h.tellTimes(timed[0], timed[1])
	alone, err := h.round(ctx, h.size.span, false, true)
	if err != nil {
		return err
	}
	watched, err := h.round(ctx, 2*h.size.span, true, true)
	if err != nil {
		return err
	}
	h.tellHeap(alone.heap, watched.heap)
	return nil
}

func (s watchSize) streams() int { return s.steady + s.hopping + s.asleep }

// tellTimes adds the times of the rounds to the table: medians of the rounds, so
// that a hiccup of the disk in one of them does not decide.
func (h *house) tellTimes(alone, watched []*spell) {
	streams, model := h.size.streams(), h.size.length()
	for _, x := range []struct {
		what string
		at   float64
		of   func(*spell) []time.Duration
		less time.Duration // that is not the daemon's
		bar  bool
	}{
		{"accept and run, p50", 0.5, func(s *spell) []time.Duration { return s.whole }, 0, false},
		{"accept and run, p99", 0.99, func(s *spell) []time.Duration { return s.whole }, 0, true},
		{"the same without the time of the model, p50", 0.5, func(s *spell) []time.Duration { return s.whole }, model, false},
		{"the same without the time of the model, p99", 0.99, func(s *spell) []time.Duration { return s.whole }, model, false},
		{"accept alone, p99", 0.99, func(s *spell) []time.Duration { return s.accept }, 0, false},
	} {
		base, mine := typical(alone, x.of, x.at)-x.less, typical(watched, x.of, x.at)-x.less
		h.table.add(x.what+": no reader", ms(base), "ms", 0, "")
		what, r := fmt.Sprintf("%s: %d open streams", x.what, streams), ratio(mine, base)
		if x.bar {
			h.bar(what, ms(mine), "ms", r, "ratio <= 1.10", r <= 1.1)
		} else {
			h.table.add(what, ms(mine), "ms", r, "")
		}
	}
	busy := func(all []*spell) (mean float64) {
		for _, s := range all {
			mean += s.busy / float64(len(all))
		}
		return mean
	}
	h.table.add("processors that the daemon keeps busy: no reader", busy(alone), "", 0, "")
	h.table.add(fmt.Sprintf("processors that the daemon keeps busy: %d open streams", streams), busy(watched), "", 0, "")
}

// tellHeap adds to the table what lives in the daemon.
func (h *house) tellHeap(alone, watched []int64) {
	mb := func(all []int64) float64 { return float64(median(all)) / 1e6 }
	first, last := mb(watched[:len(watched)/2]), mb(watched[len(watched)/2:])
	h.table.add("live heap: no reader", mb(alone), "MB", 0, "")
	h.table.add(fmt.Sprintf("live heap: %d open streams, first half", h.size.streams()), first, "MB", 0, "")
	flat := last / max(first, 0.001)
	h.bar(fmt.Sprintf("live heap: %d open streams, second half", h.size.streams()), last, "MB", flat, "flat: ratio <= 1.10", flat <= 1.1)
}

// typical is the median of a percentile of some rounds.
func typical(all []*spell, of func(*spell) []time.Duration, at float64) time.Duration {
	var each []int64
	for _, s := range all {
		each = append(each, int64(percentile(of(s), at)))
	}
	return time.Duration(median(each))
}

func median(all []int64) int64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// round lets writers write for a span, and waits until all their runs have
// ended.
func (h *house) round(ctx context.Context, span time.Duration, loaded, gauge bool) (*spell, error) {
	ctx, cancel := context.WithTimeout(ctx, span+quietLimit)
	defer cancel()
	s, news := new(spell), newNews()
	others, inner := errgroup.WithContext(ctx)
	done := make(chan struct{}) // the writers have ended
	if loaded {
		h.seat(inner, others, news, done)
	}
	if gauge {
		others.Go(func() error { return h.sample(inner, s, done) })
	}
	err := h.write(ctx, span, s, news)
	close(done)
	news.close()
	return s, errors.Join(err, others.Wait())
}

// write posts messages at a steady rate and waits for their runs to end. What is
// posted until the first runs have ended is not measured.
func (h *house) write(ctx context.Context, span time.Duration, s *spell, news *news) error {
	g, posting := errgroup.WithContext(ctx)
	lead := int(3 * h.size.length() / 2 / h.size.every)
	all := make([]*posted, lead+max(1, int(span/h.size.every)))
	began := time.Now()
	var busy time.Duration
	for i := range all {
		all[i] = &posted{began: began.Add(time.Duration(i) * h.size.every)}
		if err := rest(posting, time.Until(all[i].began)); err != nil {
			return errors.Join(err, g.Wait())
		}
		if i == lead {
			used, err := h.process.cpu()
			if err != nil {
				return errors.Join(err, g.Wait())
			}
			busy = -used
		}
		h.said++
		channel, key := "c"+strconv.Itoa(h.said%channels), strconv.Itoa(h.said)
		g.Go(func() (err error) {
			p := all[i]
			if p.run, err = h.door.say(posting, channel, key, "message "+key); err != nil {
				return err
			}
			p.accept = time.Since(p.began)
			news.announce(p.run)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	used, err := h.process.cpu()
	if err != nil {
		return err
	}
	s.busy = (busy + used).Seconds() / time.Since(all[lead].began).Seconds()
	for i, p := range all {
		if err := h.end(ctx, p); err != nil {
			return err
		}
		if i >= lead {
			s.accept, s.whole = append(s.accept, p.accept), append(s.whole, p.whole)
		}
	}
	slices.Sort(s.accept)
	slices.Sort(s.whole)
	return nil
}

// end waits until the run of a message has ended, and notes when it had.
func (h *house) end(ctx context.Context, p *posted) error {
	for {
		b, err := h.door.call(ctx, http.MethodGet, "/agents/runs/"+string(p.run), nil)
		if err != nil {
			return err
		}
		var run claybot.Run
		if err := json.Unmarshal(b, &run); err != nil {
			return err
		}
		switch {
		case run.State == claybot.RunSucceeded:
			p.whole = run.Ended.Time().Sub(p.began)
			return nil
		case run.State.Ended():
			return fmt.Errorf("run %s %s: %v", p.run, run.State, run.Error)
		case !pause(ctx, 50*time.Millisecond):
			return context.Cause(ctx)
		}
	}
}

// sample notes what lives in the daemon, until done.
func (h *house) sample(ctx context.Context, s *spell, done <-chan struct{}) error {
	for wait := 3 * h.size.length() / 2; ; wait = h.size.span / 10 {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		b, err := h.gauge.call(ctx, http.MethodGet, "/debug/pprof/heap?gc=1&debug=1", nil)
		if err != nil {
			return err
		}
		_, rest, _ := bytes.Cut(b, []byte("\n# HeapAlloc = "))
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		bytes, err := strconv.ParseInt(string(line), 10, 64)
		if err != nil {
			return fmt.Errorf("the profile of the heap does not tell how large it is: %w", err)
		}
		s.heap = append(s.heap, bytes)
	}
}

// judge compares what the streams said with the store, which no process uses any
// more, and counts.
func (h *house) judge(ctx context.Context, dir string) (err error) {
	db, err := sqlite.Open(ctx, filepath.Join(dir, "data", "claybot.db"), sqlite.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var found faults
	told, all := make(map[claybot.RunID][]note), 0
	for _, f := range h.read {
		if told[f.run] == nil {
			if told[f.run], err = storedNotes(ctx, db, f.run, &found); err != nil {
				return err
			}
		}
		found.compare("a stream of run "+string(f.run), f.got, told[f.run], f.whole, false)
		all += len(f.got)
	}
	if all == 0 {
		return errors.New("no stream said anything")
	}
	fmt.Printf("watch: %d streams of %d runs with %d events: %v\n", len(h.read), len(told), all, &found)
	h.table.add("events that streams told", float64(all), "", 0, "")
	h.count("gaps", found.gaps)
	h.count("duplicates", found.doubled)
	h.count("out of order", found.disorder)
	h.count("other than in the store", found.altered)
	h.faults.add(found)
	return nil
}

// storedNotes are the events of a run as the store has them. They must count
// from 1 without gaps, up to one that ends the run.
func storedNotes(ctx context.Context, db *sqlite.DB, run claybot.RunID, found *faults) ([]note, error) {
	var all []note
	ended := false
	for e, err := range db.Events(ctx, run, 0) {
		if err != nil {
			return nil, err
		}
		if ended || e.Seq != int64(len(all)+1) {
			found.story(&found.altered, 1, "run %s has the event %d %s after %d events in the store", run, e.Seq, e.Type, len(all))
		}
		ended = ended || e.Type.Ends()
		all = append(all, newNote(e.Seq, runs.Encode(e)))
	}
	if !ended {
		found.story(&found.altered, 1, "run %s has %d events in the store, and none that ends it", run, len(all))
	}
	return all, nil
}
