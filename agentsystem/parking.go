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
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/worker"
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
	parked inbox.Signal // one was parked here
	totals atomic.Pointer[storage.ParkedTotals]
	full   atomic.Bool // a message was refused since the totals were read
}

// take stores a message from a platform. It parks one whose agent cannot be used, or
// whose agent's files do not answer within callTime, so that it holds up no other
// agent's: the error is of storage.ClassStore, where nothing can be stored, of
// ClassMessage, where nothing can be done with the message, or the end of ctx. Behind a
// parked message it touches no files of the agent.
func (s *AgentSystem) take(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (storage.Posted, error) {
	if !to.Foreground() || m.Type == claybot.MessageSystem { // its source keeps it, and waits for nothing else
		return s.acceptTask(ctx, to, m)
	}
	held, err := s.Parking.IsParked(ctx, to)
	if held {
		if done, ok := s.answerAtOnce(ctx, to, m); ok {
			return done, nil
		}
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
		s.Worker.Unwell.Met(to.Key(), err)
		fallthrough
	case class == storage.ClassAgent:
		if done, ok := s.answerAtOnce(ctx, to, m); ok {
			return done, nil
		}
		return s.park(ctx, to, m, err, storage.ParkRules{Posted: errors.As(err, new(*inbox.UnfinishedError))})
	}
	return done, err
}

// park keeps a message until its agent can be used.
func (s *AgentSystem) park(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage, cause error, rules storage.ParkRules) (storage.Posted, error) {
	m.Text = claybot.Clean(m.Text)
	rules.All, rules.Agent = storage.MaxParked, storage.MaxParkedAgent
	p := storage.Parked{To: to, Message: m, Cause: cause.Error()}
	added, err := s.Parking.Park(ctx, p, rules)
	if errors.Is(err, storage.ErrTooMany) && m.Type == claybot.MessageCancel { // it makes room itself
		s.stopParked(ctx, to, m)
		rules.Behind = false // none may be left
		added, err = s.Parking.Park(ctx, p, rules)
	}
	log := s.Log.With("connector", to.Connector, "message", m.ID)
	switch {
	case errors.Is(err, storage.ErrTooMany):
		log.Warn("message will not run: too many are parked for its agent", "err", err)
		return s.refuse(ctx, to, m)
	case errors.Is(err, storage.ErrNotFound):
		return storage.Posted{}, err
	case err != nil:
		if errors.Is(err, storage.ErrParkingFull) {
			s.parking.full.Store(true)
			log.Error("the parking table is full; messages wait at their source", "err", err)
		}
		return storage.Posted{}, &storage.Fault{Class: storage.ClassStore, Err: errors.Join(err, cause)}
	}
	if added && m.Type == claybot.MessageCancel {
		s.stopParked(ctx, to, m)
	}
	if added && !rules.Behind {
		log.Error("a message is parked: its agent cannot be used", "class", storage.ClassOf(cause).String(), "err", cause)
	}
	s.parking.parked.Raise()
	return storage.Posted{Added: added, Skipped: parkedReason}, nil
}

// stopParked ends the parked messages before m that would start a run, because m asks to
// stop: they must not be answered after it. Of a reset only the text ends that follows
// it. It returns how many ended.
func (s *AgentSystem) stopParked(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) int {
	follows := func(p storage.Parked) bool { return p.Message.Type == claybot.MessageReset && p.Message.Text != "" }
	list, err := s.Parking.ParkedOf(ctx, to.Key(), storage.MaxParkedAgent)
	for _, p := range list {
		if err != nil || p.Damaged != nil || !follows(p) {
			continue
		}
		bare := p.Message // known already if this is done once more
		bare.ID, bare.Text, bare.Keys = bare.ID+"/reset", "", nil
		_, err = s.Parking.Park(ctx, storage.Parked{To: p.To, Message: bare, Cause: p.Cause}, storage.ParkRules{})
	}
	var dropped []claybot.MessageID
	if err == nil {
		dropped, err = s.dropParked(ctx, to.Key(), inbox.SkippedStopped, func(p storage.Parked) bool {
			return p.Damaged == nil && (p.Message.Type == claybot.MessageUser || p.Message.Command == "compact" || follows(p))
		})
	}
	if err != nil {
		s.Log.Warn("parked messages were not stopped", "connector", to.Connector, "message", m.ID, "err", err)
	}
	return len(dropped)
}

// refuse ends a message for which an agent has no room, and tells the person once an
// hour.
func (s *AgentSystem) refuse(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (storage.Posted, error) {
	err := s.tellFull(ctx, to, m)
	added := false
	if err == nil {
		added, err = s.Parking.EndParked(ctx, storage.Parked{To: to, Message: m}, inbox.SkippedFull)
	}
	if err != nil { // the person would hear nothing, or a redelivery would run: the source must keep it
		return storage.Posted{}, &storage.Fault{Class: storage.ClassStore, Err: fmt.Errorf("refuse a message: %w", err)}
	}
	return storage.Posted{Added: added, Skipped: inbox.SkippedFull}, nil
}

// tellFull says once an hour that no more messages for an agent are kept.
func (s *AgentSystem) tellFull(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	if err := s.deliverer.SendOnce(ctx, claybot.Outgoing{Kind: claybot.OutgoingNotice, Message: m.ID, Route: m.ReplyRoute(to)}, fmt.Sprintf("full/%s/%d", to.Key(), time.Now().Unix()/3600), texts.InboxFull()); err != nil {
		return fmt.Errorf("tell that too many messages are parked: %w", err)
	}
	return nil
}

// unparkFirst takes in what is parked for an agent before a message whose caller
// waits for it, and keeps it on an error.
func (s *AgentSystem) unparkFirst(ctx context.Context, to claybot.Descriptor) error {
	held, err := s.Parking.IsParked(ctx, to)
	if err != nil || !held {
		return err
	}
	_, err = s.unpark(ctx, to.Key())
	return err
}

// unpark takes in what is parked for the agent with a key, in order, and returns the
// first message that cannot be taken. It ends messages that are damaged and those of a
// person without access. Any number of calls at the same time do no harm: a message that
// was taken is known.
func (s *AgentSystem) unpark(ctx context.Context, key string) (first storage.Parked, err error) {
	for limit := 1; ; limit = parkedAtOnce { // the first says whether the agent can be used
		list, err := s.Parking.ParkedOf(ctx, key, limit)
		if err != nil || len(list) == 0 {
			return first, err
		}
		for _, first = range list {
			if err := s.unparkOne(ctx, first); err != nil {
				return first, err
			}
		}
	}
}

func (s *AgentSystem) unparkOne(ctx context.Context, p storage.Parked) error {
	switch {
	case p.Damaged != nil:
		return s.endDamaged(ctx, p)
	case !s.People.Allowed(p.To, p.Message.Context.Group):
		return s.endParked(ctx, p, inbox.SkippedRevoked)
	}
	if _, err := s.accept(ctx, p.To, p.Message); err != nil {
		return err
	}
	return s.Parking.Unpark(ctx, p.Message.ID)
}

// endParked ends a parked message with a reason.
func (s *AgentSystem) endParked(ctx context.Context, p storage.Parked, reason string) error {
	if _, err := s.Parking.EndParked(ctx, p, reason); err != nil {
		return err
	}
	s.Log.Info("parked message will not run", "connector", p.To.Connector, "message", p.Message.ID, "reason", reason)
	return nil
}

// dropParked ends those parked messages of the agent with a key that which picks, for a
// reason, and returns them. An agent for which none is left is well.
func (s *AgentSystem) dropParked(ctx context.Context, key, reason string, which func(storage.Parked) bool) (dropped []claybot.MessageID, err error) {
	list, err := s.Parking.ParkedOf(ctx, key, storage.MaxParkedAgent)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if !which(p) {
			continue
		}
		if err := s.endParked(ctx, p, reason); err != nil {
			return dropped, err
		}
		dropped = append(dropped, p.Message.ID)
	}
	if len(dropped) == len(list) {
		s.Worker.Faults.Over(key)
	}
	return dropped, nil
}

// endDamaged ends a parked message that cannot be read, and tells the person, if it is
// known who that is.
func (s *AgentSystem) endDamaged(ctx context.Context, p storage.Parked) error {
	s.Log.Error("a parked message is damaged and will not run", "connector", p.To.Connector, "message", p.Message.ID, "err", p.Damaged)
	route := claybot.DescriptorOf(p.Key).Route()
	if err := s.deliverer.SendOnce(ctx, claybot.Outgoing{Kind: claybot.OutgoingNotice, Message: p.Message.ID, Route: route}, fmt.Sprintf("damaged/%s", p.Message.ID), texts.ParkedDamaged); err != nil {
		return err
	}
	return s.endParked(ctx, p, inbox.SkippedDamaged)
}

// retryParked takes parked messages in as soon as their agents can be used, until
// ctx is done. Of several members one does so, for as long as there are any.
func (s *AgentSystem) retryParked(ctx context.Context) {
	for ctx.Err() == nil {
		woken := s.parking.parked.Next()
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
			claybot.Sleep(ctx, time.Second)
		case <-time.After(lookParked):
		}
	}
}

// countParked counts what is parked, for status and readiness.
func (s *AgentSystem) countParked(ctx context.Context) (storage.ParkedTotals, error) {
	totals, err := s.Counts.ParkedTotals(ctx)
	if err == nil {
		s.parking.totals.Store(&totals)
		s.parking.full.Store(totals.Messages >= storage.MaxParked)
	}
	return totals, err
}

// retryClaimed retries parked messages until none is left, while this member has the
// claim.
func (s *AgentSystem) retryClaimed(ctx context.Context) error {
	hold, err := s.Members.Claim(ctx, parkingClaim)
	if err != nil {
		return err
	}
	mine, free := hold.Context(ctx)
	defer free()
	r := retries{AgentSystem: s, next: make(map[string]time.Time), slots: make(chan struct{}, retriesAtOnce)}
	err = r.run(mine)
	r.wg.Wait()
	if yieldErr := hold.Yield(ctx, true); yieldErr != nil {
		s.Log.Warn("failed to release the claim of parked messages; it expires with the lease", "err", yieldErr)
	}
	return err
}

// retries are the tries of a member that has the claim.
type retries struct {
	*AgentSystem
	wg    sync.WaitGroup
	slots chan struct{}

	mu   sync.Mutex
	next map[string]time.Time // when an agent is tried again; the zero time: it is being tried
}

// run tries each agent with parked messages when its time has come, until there is
// none. An agent whose try takes long holds up no other.
func (r *retries) run(ctx context.Context) error {
	for ctx.Err() == nil {
		woken := r.parking.parked.Next()
		if _, err := r.countParked(ctx); err != nil {
			return err
		}
		agents, err := r.Parking.ParkedAgents(ctx, storage.MaxParked)
		if err != nil || len(agents) == 0 {
			return err
		}
		look := time.Now().Add(lookParked)
		for _, a := range agents {
			if at := r.try(ctx, a.Key); at.Before(look) {
				look = at
			}
		}
		select {
		case <-ctx.Done():
		case <-woken:
			claybot.Sleep(ctx, worker.LookUnwell)
		case <-time.After(time.Until(look)):
		}
	}
	return context.Cause(ctx)
}

// try begins a try for the agent with a key when its time has come, and returns when to
// look again.
func (r *retries) try(ctx context.Context, key string) time.Time {
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
		return now.Add(worker.LookUnwell)
	}
	r.next[key] = time.Time{}
	r.wg.Go(func() {
		defer func() { <-r.slots }()
		wait := r.attempt(ctx, key)
		r.mu.Lock()
		r.next[key] = time.Now().Add(wait)
		r.mu.Unlock()
		r.parking.parked.Raise()
	})
	return now.Add(lookParked)
}

// attempt tries to take in what is parked for the agent with a key, and returns how long
// to wait before the next try.
func (r *retries) attempt(ctx context.Context, key string) (wait time.Duration) {
	var p storage.Parked
	err := r.survive(func() (err error) { p, err = r.unpark(ctx, key); return err })
	if err == nil {
		r.Log.Info("no messages are parked for an agent any more", "connector", claybot.DescriptorOf(key).Connector, "last", p.Message.ID)
		r.Worker.Faults.Over(key)
		r.boxes.Wake()
		return 0
	}
	if ctx.Err() != nil {
		return time.Second
	}
	if storage.ClassOf(err) == storage.ClassMember {
		r.Worker.Unwell.Met(key, err)
	}
	wait, notify, _ := r.Worker.Faults.Met(key, "", err)
	r.Log.Debug("parked messages cannot be taken in", "connector", p.To.Connector, "err", connectors.OneLine(err.Error(), 500), "in", wait)
	if p.Message.ID == "" { // not even that can be read
		p = storage.Parked{To: claybot.DescriptorOf(key), Episode: claybot.MessageID(fmt.Sprintf("%s/%d", key, time.Now().Unix()/3600))}
	}
	if !notify || p.Damaged != nil || storage.ClassOf(err) == storage.ClassStore {
		return wait
	}
	if err := r.Worker.NotifyFault(ctx, key, p.To, p.Message, p.Episode); err != nil {
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

// acceptTask is accept for a message that its source keeps, and notifies the owner where
// the agent cannot be used.
func (s *AgentSystem) acceptTask(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (storage.Posted, error) {
	done, err := s.accept(ctx, to, m)
	switch class := storage.ClassOf(err); {
	case err == nil:
		s.Worker.Faults.Taken(to.Key())
	case ctx.Err() == nil && (class == storage.ClassAgent || class == storage.ClassMember) && s.Worker.Faults.Refused(to.Key(), err):
		if err := s.Worker.NotifyOf(ctx, to.Key(), to, "", []claybot.AgentMessage{m}); err != nil {
			s.Log.Warn("cannot notify the owner of a fault; trying again", "message", m.ID, "err", err)
		}
	}
	return done, err
}
