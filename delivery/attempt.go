package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Limits and pauses of the attempts to send one message.
const (
	maxTries    = 10
	firstPause  = time.Second
	longPause   = 10 * time.Minute
	sendTimeout = 30 * time.Second
)

// A courier takes messages to their platforms, for the lanes, which hand it the oldest message of
// a destination each: what all deliveries share.
type courier struct {
	cfg       Config
	addresses addresses
	routes    *Routes
	silences  *Silences
	pauses    *Silences // of chats after ambiguous sends, by destination; see copies.go
	instead   substitutes
	slots     chan struct{}
	missed    missed
	// stored is called with the notices that committed with the end of an attempt of a lane.
	stored func(l *lane, notices []claybot.Outgoing)
}

// A delivery is one message in progress.
type delivery struct {
	*courier
	o       claybot.Outgoing
	sender  connectors.Sender // the present one
	lane    *lane
	begun   bool // its attempt is stored already, and is not made yet
	lookups int  // that found no copy
	unknown int  // that failed
	// ready is when the message may be tried, ended is when its last attempt ended.
	// Both are on the monotonic clock of this process.
	ready, ended time.Time
	// took is the duration of the attempt that is not resolved yet; 0 when there is
	// none.
	took time.Duration
}

// errChanged means that an operator changed the message while it waited.
var errChanged = errors.New("changed by an operator")

// about returns a logger with the ids of an outgoing message.
func about(log *slog.Logger, o claybot.Outgoing) *slog.Logger {
	return log.With(fieldsOf(o)...)
}

// fieldsOf returns the log attributes of an outgoing message, without the empty ones.
func fieldsOf(o claybot.Outgoing) []any {
	fields := []any{"outgoing", o.ID, "connector", o.Route.Connector}
	if o.Agent != "" {
		fields = append(fields, "agent", o.Agent)
	}
	if o.Run != "" {
		fields = append(fields, "run", o.Run)
	}
	if o.Message != "" {
		fields = append(fields, "message", o.Message)
	}
	return fields
}

// deliver takes one message to a final state, unless ctx ends or the lane loses its
// claim first. It returns false when the state of the message has to be read from the
// store again.
func (c *courier) deliver(ctx context.Context, o claybot.Outgoing, l *lane) (known bool) {
	x := &delivery{courier: c, o: o, lane: l, begun: l.begun.ID == o.ID, ready: readyAt(o), ended: endedAt(o)}
	if x.begun {
		l.begun = claybot.Outgoing{}
	}
	defer x.unmade(ctx)
	if !x.connected() {
		return false
	}
	x.o.Route = c.addresses.follow(x.o.Route)
	if x.isAfterFormer(ctx) {
		claybot.Sleep(ctx, formerPause)
		return false
	}
	if r, ok := c.missed.take(o); ok { // known, although it could not be recorded
		x.resolve(ctx, r)
		if l.lost || r.State == claybot.SendSent || r.State == claybot.SendFailed {
			return true
		}
	}
	x.recall(ctx)
	x.speak(ctx)
	done, err := x.replaces(ctx)
	if done {
		return true
	}
	if err == nil {
		err = x.whole(ctx)
	}
	if err != nil {
		about(c.cfg.Log, o).Error("failed to read the context of an outgoing message, retrying", "err", err)
		claybot.Sleep(ctx, time.Second)
		return false
	}
	for ctx.Err() == nil && !l.lost {
		if !x.connected() {
			return false
		}
		if x.untried(ctx) {
			return true
		}
		done, err := x.advance(ctx)
		if errors.Is(err, errChanged) {
			return false
		}
		if errors.Is(err, storage.ErrLeaseLost) {
			about(c.cfg.Log, o).Info("destination claimed by another member")
			l.lost = true
			return false
		}
		if err != nil {
			about(c.cfg.Log, o).Error("failed to record an attempt, retrying", "err", err)
			claybot.Sleep(ctx, time.Second)
			return false
		}
		if done {
			return true
		}
	}
	return true
}

// connected looks up the connector, which may be another one than before. Without one that
// sends, the lane ends; it opens again with Connected.
func (x *delivery) connected() bool {
	var sends bool
	x.sender, sends = x.cfg.Active(x.o.Route.Connector).(connectors.Sender)
	x.lane.lost = x.lane.lost || !sends
	return sends
}

// untried fails a message that is not to be tried, and reports whether it did.
func (x *delivery) untried(ctx context.Context) bool {
	x.o.Route = x.addresses.follow(x.o.Route)
	dead, isDead := x.routes.confirm(ctx, x.o.Route)
	switch {
	case !x.cfg.Allowed(x.o):
		x.resolve(ctx, storage.Resolution{State: claybot.SendFailed, Cause: CauseRevoked})
	case x.crowded(ctx):
		x.resolve(ctx, storage.Resolution{State: claybot.SendFailed, Cause: CauseCrowded})
	case isDead && !whispers(x.sender, x.o):
		x.refuse(ctx, dead)
	default:
		return false
	}
	return true
}

// speak says a notice of the store in the language of its reader.
func (x *delivery) speak(ctx context.Context) {
	if x.o.Text == storage.NoticeDamaged || x.o.Text == storage.NoticeRestored {
		x.o.Text = x.cfg.Voice(ctx, x.o).In(x.o.Text)
	}
}

// replaces finds the message that an update replaces. Without one, the update is sent
// as a message of its own, unless that could be one copy too many. It returns true when
// the update has reached a final state.
func (x *delivery) replaces(ctx context.Context) (done bool, err error) {
	if x.o.EditOf == "" || x.o.Edit != "" || x.o.Mark != nil {
		return false, nil
	}
	first, err := x.cfg.Reader.OutgoingByID(ctx, x.o.EditOf)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return false, err
	}
	cause := ""
	switch {
	case first.State == claybot.SendSent && first.Receipt != "":
		x.o.Edit = first.Receipt
		return false, nil
	case x.o.EditOnly:
		cause = "the message to replace was not sent"
	case first.Copies > 0 && x.o.State != claybot.SendAmbiguous:
		cause = "the message to replace may have arrived, and cannot be edited"
	default:
		return false, nil
	}
	x.resolve(ctx, storage.Resolution{State: claybot.SendFailed, Cause: cause})
	return true, nil
}

// whole removes the buttons from a question if an earlier part of it was not sent:
// people only decide about what they were shown.
func (x *delivery) whole(ctx context.Context) error {
	if x.o.Question == nil {
		return nil
	}
	for part := 1; part < x.o.Part; part++ {
		id := strings.TrimSuffix(x.o.ID, fmt.Sprint("/", x.o.Part)) + fmt.Sprint("/", part)
		o, err := x.cfg.Reader.OutgoingByID(ctx, id)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if err != nil || o.State != claybot.SendSent {
			x.o.Question, x.o.Round, x.o.Text = nil, nil, x.cfg.Voice(ctx, x.o).In(texts.NotShown)
			return nil
		}
	}
	return nil
}

// advance makes one step: a lookup, a wait, or an attempt. It reports whether the
// message has reached a final state; an error means that it was not tried.
func (x *delivery) advance(ctx context.Context) (done bool, err error) {
	if x.o.State == claybot.SendAmbiguous {
		return x.settle(ctx), nil
	}
	if wait := time.Until(x.due()); wait > 0 {
		x.unmade(ctx)
		return false, x.wait(ctx, wait)
	}
	select {
	case x.slots <- struct{}{}:
	case <-ctx.Done():
		return false, nil
	}
	defer func() { <-x.slots }()
	if !x.begun {
		if err := x.cfg.Outbox.Attempt(ctx, x.lane.hold.Claim, x.o.ID); err != nil {
			return false, err
		}
		x.o.Attempts++
		x.o.Tried = claybot.Now()
	}
	x.begun = false
	if x.lane.hold.Trusted() != nil { // the last check before bytes leave
		x.resolve(ctx, storage.Resolution{State: claybot.SendWaiting, Free: true})
		x.lane.lost = true
		return false, nil
	}
	// A send that began is completed, also during a shutdown.
	sendCtx, cancel := sendTime(ctx, x.o)
	defer cancel()
	voiced := texts.With(sendCtx, func() texts.Voice { return x.cfg.Voice(sendCtx, x.o) })
	defer x.routes.try(x.lane.dest)()
	began := time.Now()
	receipt, err := x.send(voiced, x.sender, x.o)
	x.ended = time.Now()
	x.took = x.ended.Sub(began)
	return x.attempted(ctx, receipt, err), nil
}

// unmade records that an attempt which is stored is not made for now.
func (x *delivery) unmade(ctx context.Context) {
	if x.begun {
		x.resolve(ctx, storage.Resolution{State: claybot.SendWaiting, Due: x.due(), Free: true})
	}
}

// wait waits for d or until ctx is done. It returns errChanged when an operator
// changes the message first.
func (x *delivery) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-x.lane.changed:
		return errChanged
	}
	return nil
}

// send attempts to send a message. A connector that panics on a message would panic again, so
// the message is given up; everything else continues.
func (c *courier) send(ctx context.Context, to connectors.Sender, o claybot.Outgoing) (receipt string, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.cfg.Meter.Panicked("send")
			about(c.cfg.Log, o).Error("connector panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = &connectors.PermanentError{Err: errors.New("the connector broke over this message")}
		}
	}()
	switch {
	case o.Mark != nil:
		return "", c.mark(ctx, to, o)
	case o.File != nil:
		return c.sendFile(ctx, to, o)
	case o.Shown != "" && o.Edit != "" && c.outdated(ctx, o):
		return o.Edit, nil
	}
	return to.Send(ctx, o)
}

// due returns when the message may be tried: at its own time, and not before the
// silence of its route and the pause of its lane end.
func (x *delivery) due() time.Time {
	due := x.ready
	for _, t := range []time.Time{x.silences.Until(x.o.Route), x.pauses.Until(x.o.Route)} {
		if t.After(due) {
			due = t
		}
	}
	return due
}

// attempted records the outcome of an attempt and reports whether it is final.
func (x *delivery) attempted(ctx context.Context, receipt string, err error) (done bool) {
	var retry *connectors.RetryError
	var permanent *connectors.PermanentError
	var ambiguous *connectors.AmbiguousError
	switch {
	case err == nil:
		x.resolve(ctx, storage.Resolution{State: claybot.SendSent, Receipt: receipt})
		return true
	case errors.As(err, &retry):
		due := x.silences.Obey(x.o.Route, retry)
		x.resolve(ctx, storage.Resolution{State: claybot.SendWaiting, Due: due, Cause: err.Error(), Free: true})
		return false
	case errors.Is(err, connectors.ErrEditGone) && x.o.EditOnly:
		x.resolve(ctx, storage.Resolution{State: claybot.SendFailed, Cause: err.Error()})
		return true
	case errors.Is(err, connectors.ErrEditGone) && x.o.Edit != "":
		// It may still be visible: platforms also refuse to edit existing messages.
		return x.again(ctx, storage.Resolution{Cause: err.Error(), NoEdit: true})
	case errors.As(err, &permanent) && permanent.DeadRoute && x.isMoved(ctx):
		x.resolve(ctx, storage.Resolution{State: claybot.SendWaiting, Cause: err.Error(), Free: true})
		return false
	case errors.As(err, &permanent) && permanent.DeadRoute:
		x.died(ctx, err.Error())
		return true
	case errors.As(err, &permanent):
		x.giveUp(ctx, err.Error())
		return true
	case errors.As(err, &ambiguous) && x.o.Edit == "":
		x.resolve(ctx, storage.Resolution{State: claybot.SendAmbiguous, Cause: err.Error()})
		return false
	case x.o.Attempts >= maxTries:
		x.giveUp(ctx, err.Error())
		return true
	}
	about(x.cfg.Log, x.o).Info("send failed, retrying", "attempt", x.o.Attempts, "err", err)
	x.resolve(ctx, storage.Resolution{State: claybot.SendWaiting, Due: time.Now().Add(backoff(x.o.Attempts)), Cause: err.Error()})
	return false
}

// resolve records the outcome of an attempt. It retries until the store accepts the
// record: a lost receipt would cause a second send. When the claim has ended, the
// outcome is kept for the next claim.
func (x *delivery) resolve(ctx context.Context, r storage.Resolution) {
	attempts := x.o.Attempts
	x.begun = false
	x.o.State, x.o.Due, x.o.Resent = r.State, claybot.At(r.Due), x.o.Resent || r.Resent
	x.o.Copies, x.ready = max(x.o.Copies, r.Copies), r.Due
	if r.Free {
		x.o.Attempts--
	}
	if r.Edit != "" || r.NoEdit {
		x.o.Edit = r.Edit
	}
	x.cfg.Meter.Sent(x.o, sentAs(r.State), x.took)
	x.took = 0
	try := context.WithoutCancel(ctx)
	for {
		err := x.cfg.Outbox.Resolve(try, x.lane.hold.Claim, x.o.ID, r)
		if err == nil {
			x.stored(x.lane, r.Notices)
			return
		}
		gone := errors.Is(err, storage.ErrLeaseLost)
		if (gone || x.lane.hold.Trusted() != nil) && r.State != claybot.SendAmbiguous {
			x.missed.keep(x.o.ID, attempts, r)
		}
		if gone {
			about(x.cfg.Log, x.o).Warn("send not recorded: destination claimed by another member", "state", r.State)
			x.lane.lost = true
			return
		}
		about(x.cfg.Log, x.o).Error("failed to record the outcome of a send, retrying", "state", r.State, "err", err)
		if ctx.Err() != nil {
			return // ambiguous at the next start
		}
		claybot.Sleep(ctx, time.Second)
	}
}

// backoff returns the pause after the n-th failed attempt: one second and full jitter
// of an exponential.
func backoff(n int) time.Duration {
	d := min(firstPause<<min(n, 10), longPause)
	return firstPause + rand.N(d)
}

// sentAs returns the outcome of an attempt that leaves a message in state s.
func sentAs(s claybot.SendState) string {
	switch s {
	case claybot.SendSent:
		return AttemptSent
	case claybot.SendFailed:
		return AttemptFailed
	case claybot.SendAmbiguous:
		return AttemptAmbiguous
	case claybot.SendWaiting, claybot.SendAttempted:
	}
	return AttemptRetry
}
