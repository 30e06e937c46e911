package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

const (
	// parkingClaim is the claim of the member that retries parked messages.
	parkingClaim = "parking"
	// lookParked is how often a member looks for parked messages that it has not
	// parked itself.
	lookParked = 5 * time.Second
	// parkedAtOnce is how many parked messages of an agent are read at once, and
	// retriesAtOnce how many agents are tried side by side.
	parkedAtOnce  = 100
	retriesAtOnce = 32
)

// parkedReason is why a message that was accepted runs later.
const parkedReason = "parked"

// errBehind is why a message is parked whose agent has parked ones.
var errBehind = errors.New("earlier messages of the same agent are parked")

// A parkingLot is what this member knows of parked messages. The zero value is
// ready.
type parkingLot struct {
	parked signal // one was parked here
	totals atomic.Pointer[storage.ParkedTotals]
	full   atomic.Bool // a message was refused since the totals were read
}

// take stores a message from a platform. It parks one whose agent cannot be used, so
// that it holds up no other agent's: the error is of storage.ClassStore, where nothing
// can be stored, of ClassMessage, where nothing can be done with the message, or the
// end of ctx.
func (s *System) take(ctx context.Context, to claybot.Descriptor, m claybot.Message) (storage.Posted, error) {
	if !to.Foreground() || m.Type == claybot.MessageSystem { // its source keeps it, and waits for nothing else
		return s.accept(ctx, to, m)
	}
	held, err := s.Parking.IsParked(ctx, to)
	if held {
		done, err := s.park(ctx, to, m, errBehind, storage.ParkRules{Behind: true})
		if !errors.Is(err, storage.ErrNotFound) {
			return done, err
		} // they were taken in the meantime
	}
	var done storage.Posted
	if err == nil {
		done, err = s.accept(ctx, to, m)
	}
	switch class := storage.ClassOf(err); {
	case err == nil || ctx.Err() != nil:
		return done, err
	case class == storage.ClassMember:
		s.unwell.met(claybot.AgentID(to.Key()), err)
		fallthrough
	case class == storage.ClassAgent:
		return s.park(ctx, to, m, err, storage.ParkRules{Posted: errors.As(err, new(*unfinishedError))})
	}
	return done, err
}

// park keeps a message until its agent can be used.
func (s *System) park(ctx context.Context, to claybot.Descriptor, m claybot.Message, cause error, rules storage.ParkRules) (storage.Posted, error) {
	m.Text = clean(m.Text)
	rules.All, rules.Agent = storage.MaxParked, storage.MaxParkedAgent
	added, err := s.Parking.Park(ctx, storage.Parked{To: to, Message: m, Cause: cause.Error()}, rules)
	log := s.Log.With("connector", to.Connector, "message", m.ID)
	switch {
	case errors.Is(err, storage.ErrTooMany):
		log.Warn("too many messages are parked for an agent; the person is told", "err", err)
		return storage.Posted{Skipped: "inbox_full"}, s.tellFull(ctx, to, m)
	case errors.Is(err, storage.ErrNotFound):
		return storage.Posted{}, err
	case err != nil:
		if errors.Is(err, storage.ErrParkingFull) {
			s.parking.full.Store(true)
			log.Error("the parking table is full; messages wait at their source", "err", err)
		}
		return storage.Posted{}, &storage.Fault{Class: storage.ClassStore, Err: errors.Join(err, cause)}
	}
	if added && !rules.Behind {
		log.Error("a message is parked: its agent cannot be used", "class", storage.ClassOf(cause).String(), "err", cause)
	}
	s.parking.parked.raise()
	return storage.Posted{Added: added, Skipped: parkedReason}, nil
}

// tellFull says once an hour that no more messages for an agent are kept.
func (s *System) tellFull(ctx context.Context, to claybot.Descriptor, m claybot.Message) error {
	out := s.compose(claybot.Outgoing{Kind: claybot.OutgoingNotice, Message: m.ID, Route: m.ReplyRoute(to)}, textInboxFull())
	for i := range out {
		out[i].ID = fmt.Sprintf("full/%s/%d/%d", to.Key(), time.Now().Unix()/3600, i+1) // the id makes it one an hour
	}
	stored, err := s.Outbox.Enqueue(ctx, out...)
	if err != nil { // the person would hear nothing: the source must keep it
		return &storage.Fault{Class: storage.ClassStore, Err: fmt.Errorf("tell that too many messages are parked: %w", err)}
	}
	s.deliverer.Hand(stored)
	return nil
}

// unparkFirst takes in what is parked for an agent before a message whose caller
// waits for it, and keeps it on an error.
func (s *System) unparkFirst(ctx context.Context, to claybot.Descriptor) error {
	held, err := s.Parking.IsParked(ctx, to)
	if err != nil || !held {
		return err
	}
	return s.unpark(ctx, to)
}

// unpark takes in what is parked for an agent, in order, and stops at the first
// message that cannot be taken. Any number of calls at the same time do no harm: a
// message that was taken is known.
func (s *System) unpark(ctx context.Context, to claybot.Descriptor) error {
	for {
		list, err := s.Parking.ParkedOf(ctx, to, parkedAtOnce)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, p := range list {
			if p.Damaged != nil {
				err = s.endDamaged(ctx, to, p)
			} else {
				_, err = s.accept(ctx, to, p.Message)
			}
			if err == nil {
				err = s.Parking.Unpark(ctx, p.Message.ID)
			}
			if err != nil {
				return err
			}
		}
	}
}

// endDamaged ends a parked message that cannot be read, in a notice.
func (s *System) endDamaged(ctx context.Context, to claybot.Descriptor, p storage.Parked) error {
	s.Log.Error("a parked message is damaged and will not run", "connector", to.Connector, "message", p.Message.ID, "err", p.Damaged)
	out := s.compose(claybot.Outgoing{Kind: claybot.OutgoingNotice, Message: p.Message.ID, Route: to.Route()}, textParkedDamaged)
	for i := range out {
		out[i].ID = fmt.Sprintf("damaged/%s/%d", p.Message.ID, i+1)
	}
	stored, err := s.Outbox.Enqueue(ctx, out...)
	if err != nil {
		return err
	}
	s.deliverer.Hand(stored)
	return nil
}

// retryParked takes parked messages in as soon as their agents can be used, until
// ctx is done. Of several members one does so, for as long as there are any.
func (s *System) retryParked(ctx context.Context) {
	for ctx.Err() == nil {
		woken := s.parking.parked.next()
		totals, err := s.countParked(ctx)
		switch {
		case err == nil && totals.Messages > 0:
			err = s.retryClaimed(ctx)
			if err == nil {
				continue
			}
		case err == nil && s.Members.IsAlone(): // what is parked is parked here
			select {
			case <-ctx.Done():
			case <-woken:
			}
			continue
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, storage.ErrHeld) {
			s.Log.Debug("cannot retry parked messages; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-woken:
			pause(ctx, time.Second)
		case <-time.After(lookParked):
		}
	}
}

// countParked counts what is parked, for status and readiness.
func (s *System) countParked(ctx context.Context) (storage.ParkedTotals, error) {
	totals, err := s.Parking.ParkedTotals(ctx)
	if err == nil {
		s.parking.totals.Store(&totals)
		s.parking.full.Store(totals.Messages >= storage.MaxParked)
	}
	return totals, err
}

// retryClaimed retries parked messages until none is left, while this member has the
// claim.
func (s *System) retryClaimed(ctx context.Context) error {
	hold, err := s.Members.Claim(ctx, parkingClaim)
	if err != nil {
		return err
	}
	mine, free := hold.Context(ctx)
	defer free()
	r := retries{System: s, next: make(map[string]time.Time), slots: make(chan struct{}, retriesAtOnce)}
	err = r.run(mine)
	r.wg.Wait()
	if yieldErr := hold.Yield(ctx, true); yieldErr != nil {
		s.Log.Warn("failed to release the claim of parked messages; it expires with the lease", "err", yieldErr)
	}
	return err
}

// retries are the tries of a member that has the claim.
type retries struct {
	*System
	wg    sync.WaitGroup
	slots chan struct{}

	mu   sync.Mutex
	next map[string]time.Time // when an agent is tried again; the zero time: it is being tried
}

// run tries each agent with parked messages when its time has come, until there is
// none. An agent whose try takes long holds up no other.
func (r *retries) run(ctx context.Context) error {
	for ctx.Err() == nil {
		woken := r.parking.parked.next()
		if _, err := r.countParked(ctx); err != nil {
			return err
		}
		heads, err := r.Parking.ParkedHeads(ctx, storage.MaxParked)
		if err != nil || len(heads) == 0 {
			return err
		}
		look := time.Now().Add(lookParked)
		for _, p := range heads {
			if at := r.try(ctx, p); at.Before(look) {
				look = at
			}
		}
		select {
		case <-ctx.Done():
		case <-woken:
			pause(ctx, lookUnwell)
		case <-time.After(time.Until(look)):
		}
	}
	return context.Cause(ctx)
}

// try begins a try for the agent of p when its time has come, and returns when to
// look again.
func (r *retries) try(ctx context.Context, p storage.Parked) time.Time {
	key := p.To.Key()
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.next[key]
	switch {
	case known && at.IsZero():
		return now.Add(lookParked) // its end wakes the loop
	case known && at.After(now):
		return at
	}
	select {
	case r.slots <- struct{}{}:
	default:
		return now.Add(lookUnwell)
	}
	r.next[key] = time.Time{}
	r.wg.Go(func() {
		defer func() { <-r.slots }()
		wait := r.attempt(ctx, key, p)
		r.mu.Lock()
		r.next[key] = time.Now().Add(wait)
		r.mu.Unlock()
		r.parking.parked.raise()
	})
	return now.Add(lookParked)
}

// attempt tries to take in what is parked for the agent of p, the oldest of it, and
// returns how long to wait before the next try.
func (r *retries) attempt(ctx context.Context, key string, p storage.Parked) (wait time.Duration) {
	err := r.survive(func() error { return r.unpark(ctx, p.To) })
	if err == nil {
		r.Log.Info("parked messages were taken in", "connector", p.To.Connector, "since", p.At.Time())
		r.faults.over(key)
		r.boxes.Wake()
		return 0
	}
	if ctx.Err() != nil {
		return time.Second
	}
	if storage.ClassOf(err) == storage.ClassMember {
		r.unwell.met(claybot.AgentID(key), err)
	}
	wait, notify, _ := r.faults.met(key)
	r.Log.Debug("parked messages cannot be taken in", "connector", p.To.Connector, "err", connectors.OneLine(err.Error(), 500), "in", wait)
	if !notify || p.Damaged != nil || storage.ClassOf(err) == storage.ClassStore {
		return wait
	}
	if err := r.notifyFault(ctx, key, p.To, p.Message, p.Episode); err != nil {
		r.Log.Warn("cannot notify the person that a message is parked; trying again", "err", err)
		return min(wait, time.Second)
	}
	return wait
}

// survive makes a panic of fn an error.
func (r *retries) survive(fn func() error) (err error) {
	defer func() {
		if x := recover(); x != nil {
			r.Meter.Panicked("parking")
			err = fmt.Errorf("panic: %v", x)
		}
	}()
	return fn()
}

// ParkedStatus counts the messages whose agents cannot be used.
type ParkedStatus struct {
	storage.ParkedTotals
	// Full: no more are taken, and messages of such agents wait at their source.
	Full bool `json:"full,omitempty"`
}

// status is what is parked, as far as this member knows; nil for nothing.
func (l *parkingLot) status() *ParkedStatus {
	t := l.totals.Load()
	if t == nil || t.Messages == 0 {
		return nil
	}
	return &ParkedStatus{ParkedTotals: *t, Full: l.full.Load()}
}
