package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// listed is how many runs of the backlog are looked at in one round, besides
// those that are held.
const listed = 100

// A publisher is the loop of one sink.
type publisher struct {
	relay *Relay
	name  string
	sink  Sink
	log   *slog.Logger
	over  <-chan struct{} // closed when no further batch may begin

	health SinkHealth // by the lock of the relay

	fails int       // in a row, of whatever run
	until time.Time // until then the sink is left alone
	held  map[claybot.RunID]*heldRun
	loud  bool // that it fails was logged
}

// A heldRun is a run whose events did not get through, or not all at once.
type heldRun struct {
	fails int
	until time.Time
	last  int64 // the seq at which the batch ended, so that it comes again as it was
	told  int64 // the sink has these; the store does not know yet

	most int // events in a batch, because the sink refused more; 0: no such bound
	wins int // batches of most events that it took in a row
}

// took is told that the sink took a batch of n events: after some full ones
// the next may be larger.
func (h *heldRun) took(n int) {
	h.fails, h.until, h.last = 0, time.Time{}, 0
	if h.most == 0 || n < h.most {
		return
	}
	if h.wins++; h.wins < growAfter {
		return
	}
	if h.most, h.wins = 2*h.most, 0; h.most >= batchEvents {
		h.most = 0
	}
}

// halve makes the batches smaller than the one of n events that was refused.
func (h *heldRun) halve(n int) { h.most, h.wins = n/2, 0 }

// errStore marks failures that are not the sink's.
var errStore = errors.New("the store")

// report changes what Health says of the sink.
func (p *publisher) report(change func(*SinkHealth)) {
	p.relay.mu.Lock()
	defer p.relay.mu.Unlock()
	change(&p.health)
}

// isOver reports whether no further batch may begin.
func (p *publisher) isOver() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// run publishes until ctx is done. What it has begun then goes on while whole lasts.
func (p *publisher) run(ctx, whole context.Context) {
	every := relayEvery
	if p.relay.Turn != nil {
		every = sharedEvery
	}
	again := p.relay.retried()
	for ctx.Err() == nil {
		select {
		case <-again:
			again = p.relay.retried()
			p.resume()
		default:
		}
		woken := p.relay.Hub.happened()
		worked, mine := p.turn(whole)
		switch d := time.Until(p.until); {
		case worked:
		case !mine:
			rest(ctx, every, nil)
		case d > 0:
			rest(ctx, d, again)
		default:
			rest(ctx, every, woken)
		}
	}
}

// resume ends the pauses of the sink and of its runs.
func (p *publisher) resume() {
	p.until = time.Time{}
	for _, h := range p.held {
		h.until = time.Time{}
	}
}

// turn is a round, if it is this node's turn.
func (p *publisher) turn(ctx context.Context) (worked, mine bool) {
	if p.relay.Turn == nil {
		return p.round(ctx), true
	}
	held, free, err := p.relay.Turn(ctx, SinkClaim(p.name))
	if err != nil {
		// The new holder makes its own batches.
		clear(p.held)
		p.fails, p.until = 0, time.Time{}
		p.report(func(h *SinkHealth) {
			*h = SinkHealth{Standby: errors.Is(err, storage.ErrHeld)}
			if !h.Standby {
				h.Error = "it cannot be claimed: " + storage.Plain(err)
			}
		})
		return false, false
	}
	defer free()
	p.report(func(h *SinkHealth) { h.Standby = false })
	return p.round(held), true
}

// round publishes one batch of each run of the backlog and reports whether it
// got anything through. It ends with the first failure.
func (p *publisher) round(ctx context.Context) bool {
	limit := listed + len(p.held)
	backlog, err := p.relay.Store.Backlog(ctx, p.name, limit)
	if err != nil {
		p.failed(ctx, storage.Unpublished{}, 0, fmt.Errorf("%w cannot be read: %w", errStore, err))
		return false
	}
	if len(backlog) < limit {
		p.forget(backlog)
	}
	p.report(func(h *SinkHealth) {
		h.Backlog, h.Oldest = len(backlog), 0
		if len(backlog) > 0 {
			h.Oldest = backlog[0].Since
		}
	})
	worked := false
	for _, u := range p.turns(backlog) {
		if p.isOver() || p.relay.stopped(p.name) != "" {
			return false // before each batch: what it has already comes to its end
		}
		last, err := p.publish(ctx, u)
		if err != nil {
			p.failed(ctx, u, last, err)
			return false
		}
		worked = worked || last > 0
	}
	p.settle()
	return worked
}

// turns returns the runs whose turn it is: those that never failed, and then
// those that were held the longest, so that no number of runs that fail keeps
// the others back.
func (p *publisher) turns(backlog []storage.Unpublished) []storage.Unpublished {
	if len(p.held) == 0 {
		return backlog
	}
	now := time.Now()
	until := func(u storage.Unpublished) time.Time {
		if h := p.held[u.Run]; h != nil {
			return h.until
		}
		return time.Time{}
	}
	backlog = slices.DeleteFunc(backlog, func(u storage.Unpublished) bool { return now.Before(until(u)) })
	slices.SortStableFunc(backlog, func(a, b storage.Unpublished) int { return until(a).Compare(until(b)) })
	return backlog
}

// settle tells that all is well, if it is, after a round without a failure.
func (p *publisher) settle() {
	if p.failing() {
		return
	}
	p.fails = 0
	p.report(func(h *SinkHealth) { h.Error = "" })
	if p.loud {
		p.loud = false
		p.log.Info("relay recovered")
	}
}

// publish tells the sink of the next events of a run and the store of that. It
// returns the seq up to which it got, or wanted to get. Of a batch that the
// sink refuses as such it offers the first half, down to one event: a receiver
// may take no more at a time, and what comes before a bad event is to arrive.
func (p *publisher) publish(ctx context.Context, u storage.Unpublished) (int64, error) {
	h := p.held[u.Run]
	if h == nil {
		h = new(heldRun)
	}
	if h.told > u.After {
		return h.told, p.record(ctx, u.Run, h.told)
	}
	events, err := p.collect(ctx, u, h)
	if err != nil {
		return 0, err
	}
	if len(events) == 0 {
		// Its events are gone, and soon it will be, too.
		p.held[u.Run] = &heldRun{until: time.Now().Add(longestPause)}
		return 0, nil
	}
	for {
		last := events[len(events)-1].Seq
		err := p.offer(ctx, events)
		if err == nil {
			return last, p.took(ctx, u.Run, h, events)
		}
		fault, known := errors.AsType[*SinkError](err)
		if !known || !fault.Batch || len(events) == 1 || ctx.Err() != nil || p.isOver() {
			return last, err
		}
		h.halve(len(events))
		events = events[:h.most]
		p.held[u.Run] = h
		if fault.After > 0 {
			// The half of it may be taken, but not now.
			return events[h.most-1].Seq, &SinkError{Text: fault.Text, After: fault.After, Batch: true}
		}
	}
}

// offer hands events to the sink.
func (p *publisher) offer(ctx context.Context, events []claybot.Event) error {
	limited, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	err := p.sink.Publish(limited, events)
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*SinkError](err); !known && ctx.Err() == nil && limited.Err() != nil {
		return &SinkError{Text: "it does not come to an end within " + publishTimeout.String()}
	}
	return err
}

// took is told that the sink took events of a run.
func (p *publisher) took(ctx context.Context, run claybot.RunID, h *heldRun, events []claybot.Event) error {
	p.fails = 0
	p.report(func(h *SinkHealth) { h.Success = claybot.Now() })
	h.took(len(events))
	h.told = events[len(events)-1].Seq
	p.held[run] = h
	return p.record(ctx, run, h.told)
}

// collect reads the next batch of a run, as large as h allows.
func (p *publisher) collect(ctx context.Context, u storage.Unpublished, h *heldRun) ([]claybot.Event, error) {
	most := batchEvents
	if h.most > 0 {
		most = h.most
	}
	var events []claybot.Event
	size := 0
	for e, err := range p.relay.Store.Events(ctx, u.Run, u.After) {
		if err != nil {
			return nil, fmt.Errorf("%w cannot be read: %w", errStore, err)
		}
		if want := u.After + int64(len(events)) + 1; e.Seq != want {
			if len(events) > 0 {
				break // what is whole goes first
			}
			return nil, &SinkError{Text: fmt.Sprintf("event %d of run %s is missing in the store", want, u.Run), Refused: true, Batch: true}
		}
		if size += len(e.Data); len(events) > 0 && size > batchBytes {
			break
		}
		events = append(events, e)
		if len(events) == most || e.Seq == h.last {
			break
		}
	}
	return events, nil
}

// record notes in the store what the sink was told, also when a shutdown has
// begun meanwhile.
func (p *publisher) record(ctx context.Context, run claybot.RunID, seq int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	if err := p.relay.Store.Published(ctx, p.name, run, seq); err != nil {
		return fmt.Errorf("%w does not note what was published: %w", errStore, err)
	}
	if h := p.held[run]; h != nil && h.told > 0 {
		if h.told = 0; h.most == 0 {
			delete(p.held, run)
		}
	}
	return nil
}

// failing reports whether some run did not get through.
func (p *publisher) failing() bool {
	for _, h := range p.held {
		if h.fails > 0 {
			return true
		}
	}
	return false
}

// failed sets the pauses after a failure: that of the run, if it was the sink
// that failed, and that of the sink.
func (p *publisher) failed(ctx context.Context, u storage.Unpublished, last int64, err error) {
	if ctx.Err() != nil || p.isOver() {
		return // a shutdown is no fault of the sink, and what goes is not tried again
	}
	fault, known := errors.AsType[*SinkError](err)
	pause := shortestPause
	if !known || !fault.Batch {
		p.fails++
		pause = pauseAfter(p.fails)
	}
	if !errors.Is(err, errStore) {
		h := p.held[u.Run]
		if h == nil {
			h = new(heldRun)
			p.held[u.Run] = h
		}
		h.fails++
		h.last = last
		ofRun := pauseAfter(h.fails)
		if known {
			asked := min(fault.After, longestAsked)
			pause = max(pause, asked)
			if fault.Refused {
				ofRun = longestPause
			}
			ofRun = max(ofRun, asked)
		}
		h.until = time.Now().Add(ofRun)
	}
	p.until = time.Now().Add(pause)
	p.report(func(h *SinkHealth) { h.Error = words(err) })
	if !p.loud {
		p.loud = true
		p.log.Warn("relay failed, retrying", "run", u.Run, "err", err)
	}
}

// forget drops what is held of runs that have no backlog any more.
func (p *publisher) forget(backlog []storage.Unpublished) {
	if len(p.held) == 0 {
		return
	}
	waits := make(map[claybot.RunID]bool, len(backlog))
	for _, u := range backlog {
		waits[u.Run] = true
	}
	for run := range p.held {
		if !waits[run] {
			delete(p.held, run)
		}
	}
}

// pauseAfter is the pause after the nth failure in a row, with jitter in its
// upper half.
func pauseAfter(n int) time.Duration {
	d := longestPause
	if n < 10 {
		d = min(d, shortestPause<<(n-1))
	}
	return d/2 + rand.N(d/2+1)
}

// rest returns after d or when wake is closed; false when ctx is done.
func rest(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-t.C:
	}
	return true
}
