package agentsystem

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
)

// How often and how patiently one message is tried.
const (
	maxTries    = 10
	firstPause  = time.Second
	longPause   = 10 * time.Minute
	sendTimeout = 30 * time.Second
)

// A delivery is one message on its way out.
type delivery struct {
	*deliverer
	o       claybot.Outgoing
	sender  connectors.Sender
	lane    *lane
	lookups int // that found nothing
	unknown int // that failed
	// ready is when the message may be tried, and ended when its last attempt
	// ended. Both follow the clock of this process, which nobody sets back.
	ready, ended time.Time
	// took is how long the platform took over the attempt that is not resolved
	// yet; 0 when there is none.
	took time.Duration
}

// errStirred: somebody changed the message while it waited.
var errStirred = errors.New("changed by an operator")

// about is a log for lines about an outgoing message.
func about(log *slog.Logger, o claybot.Outgoing) *slog.Logger {
	return log.With(fieldsOf(o)...)
}

// fieldsOf are the fields of lines about an outgoing message; those that it does
// not have are left out.
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

// deliver takes one message to a final state, or as far as it came when ctx
// ended or the claim of its lane was lost. It reports false when the store must be
// asked what became of it.
func (d *deliverer) deliver(ctx context.Context, o claybot.Outgoing, l *lane) (known bool) {
	sender, _ := d.connector(o.Route.Connector).(connectors.Sender) // its lane has seen that it sends
	x := &delivery{deliverer: d, o: o, sender: sender, lane: l, ready: readyAt(o), ended: endedAt(o)}
	if r, ok := d.missed.take(o); ok { // not recorded then, but known
		x.resolve(ctx, r)
		if l.lost || r.State == claybot.SendSent || r.State == claybot.SendFailed {
			return true
		}
	}
	done, err := x.replaces(ctx)
	if done {
		return true
	}
	if err == nil {
		err = x.whole(ctx)
	}
	if err != nil {
		about(d.log, o).Error("failed to read what a message belongs to; trying again", "err", err)
		pause(ctx, time.Second)
		return false
	}
	for ctx.Err() == nil && !l.lost {
		if !d.allowed(x.o) {
			x.resolve(ctx, storage.Resolution{State: claybot.SendFailed, Cause: "the receiver was revoked"})
			return true
		}
		done, err := x.advance(ctx)
		if errors.Is(err, errStirred) {
			l.pause = time.Time{} // what an operator changed does not wait for the chat
			return false
		}
		if errors.Is(err, storage.ErrLeaseLost) {
			about(d.log, o).Info("another node sends to the destination now")
			l.lost = true
			return false
		}
		if err != nil {
			about(d.log, o).Error("cannot record an attempt; trying again", "err", err)
			pause(ctx, time.Second)
			return false
		}
		if done {
			return true
		}
	}
	return true
}

// replaces finds the message that an update replaces. Where there is none, the
// update is sent as a message of its own, unless that could be one copy too many.
// It reports true when the update has reached its end.
func (x *delivery) replaces(ctx context.Context) (done bool, err error) {
	if x.o.EditOf == "" || x.o.Edit != "" {
		return false, nil
	}
	first, err := x.outbox.OutgoingByID(ctx, x.o.EditOf)
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

// whole takes the buttons from a question of which an earlier part was not sent:
// nobody decides about what he was not shown.
func (x *delivery) whole(ctx context.Context) error {
	if x.o.Question == nil {
		return nil
	}
	for part := 1; part < x.o.Part; part++ {
		id := strings.TrimSuffix(x.o.ID, fmt.Sprint("/", x.o.Part)) + fmt.Sprint("/", part)
		o, err := x.outbox.OutgoingByID(ctx, id)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if err != nil || o.State != claybot.SendSent {
			x.o.Question, x.o.Text = nil, textNotShown
			return nil
		}
	}
	return nil
}

// advance makes one step: a look-up, a wait, or an attempt. It reports whether
// the message has reached its end; an error means that it was not tried.
func (x *delivery) advance(ctx context.Context) (done bool, err error) {
	if x.o.State == claybot.SendAmbiguous {
		return x.settle(ctx), nil
	}
	if wait := time.Until(x.due()); wait > 0 {
		return false, x.rest(ctx, wait)
	}
	select {
	case x.slots <- struct{}{}:
	case <-ctx.Done():
		return false, nil
	}
	defer func() { <-x.slots }()
	if err := x.outbox.Attempt(ctx, x.lane.hold.Claim, x.o.ID); err != nil {
		return false, err
	}
	x.o.Attempts++
	x.o.Tried = claybot.Now()
	if x.lane.hold.Trusted() != nil { // the last look before bytes leave
		x.resolve(ctx, storage.Resolution{State: claybot.SendWaiting, Free: true})
		x.lane.lost = true
		return false, nil
	}
	// A send that began is brought to its end, also at a shutdown.
	sendCtx, cancel := x.sendTime(ctx)
	defer cancel()
	began := time.Now()
	receipt, err := x.send(sendCtx)
	x.ended = time.Now()
	x.took = x.ended.Sub(began)
	return x.attempted(ctx, receipt, err), nil
}

// rest waits for d, until ctx is done, or, with errStirred, until somebody
// changes the message.
func (x *delivery) rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-x.lane.stir:
		return errStirred
	}
	return nil
}

// send makes the attempt. A connector that panics over a message would do so
// again: the message is given up, everything else goes on.
func (x *delivery) send(ctx context.Context) (receipt string, err error) {
	defer func() {
		if p := recover(); p != nil {
			x.meter.Panicked("send")
			about(x.log, x.o).Error("a connector panicked over a message", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = &connectors.PermanentError{Err: errors.New("the connector broke over this message")}
		}
	}()
	if x.o.File != nil {
		return x.sendFile(ctx)
	}
	return x.sender.Send(ctx, x.o)
}

// due is when the message may be tried: its own time, or when the silence of
// its route or the pause of its lane is over.
func (x *delivery) due() time.Time {
	due := x.ready
	for _, t := range []time.Time{x.quiet.over(x.o.Route), x.lane.pause} {
		if t.After(due) {
			due = t
		}
	}
	return due
}

// attempted records how an attempt ended and says whether that is the end.
func (x *delivery) attempted(ctx context.Context, receipt string, err error) (done bool) {
	var retry *connectors.RetryError
	var permanent *connectors.PermanentError
	var ambiguous *connectors.AmbiguousError
	switch {
	case err == nil:
		x.resolve(ctx, storage.Resolution{State: claybot.SendSent, Receipt: receipt})
		return true
	case errors.As(err, &retry):
		due := x.quiet.obey(x.o.Route, retry)
		x.resolve(ctx, storage.Resolution{State: claybot.SendWaiting, Due: due, Cause: err.Error(), Free: true})
		return false
	case errors.Is(err, connectors.ErrEditGone) && x.o.EditOnly:
		x.resolve(ctx, storage.Resolution{State: claybot.SendFailed, Cause: err.Error()})
		return true
	case errors.Is(err, connectors.ErrEditGone) && x.o.Edit != "":
		// It may still be visible: platforms also refuse to edit what is there.
		return x.again(ctx, storage.Resolution{Cause: err.Error(), NoEdit: true})
	case errors.As(err, &permanent):
		x.giveUp(ctx, err.Error(), !permanent.DeadRoute)
		return true
	case errors.As(err, &ambiguous) && x.o.Edit == "":
		x.resolve(ctx, storage.Resolution{State: claybot.SendAmbiguous, Cause: err.Error()})
		return false
	case x.o.Attempts >= maxTries:
		x.giveUp(ctx, err.Error(), true)
		return true
	}
	about(x.log, x.o).Info("a send failed; trying again", "attempt", x.o.Attempts, "err", err)
	x.resolve(ctx, storage.Resolution{State: claybot.SendWaiting, Due: time.Now().Add(backoff(x.o.Attempts)), Cause: err.Error()})
	return false
}

// resolve records the end of an attempt. The bookkeeping is repeated until the
// store takes it: a lost receipt would mean a second send. When the claim has
// ended, it is remembered for the next one.
func (x *delivery) resolve(ctx context.Context, r storage.Resolution) {
	attempts := x.o.Attempts
	x.o.State, x.o.Due, x.o.Resent = r.State, claybot.At(r.Due), x.o.Resent || r.Resent
	x.o.Copies, x.ready = max(x.o.Copies, r.Copies), r.Due
	if r.Free {
		x.o.Attempts--
	}
	if r.Edit != "" || r.NoEdit {
		x.o.Edit = r.Edit
	}
	x.meter.Sent(x.o, sentAs(r.State), x.took)
	x.took = 0
	try := context.WithoutCancel(ctx)
	for {
		err := x.outbox.Resolve(try, x.lane.hold.Claim, x.o.ID, r)
		if err == nil {
			if r.Notice != nil {
				x.more(x.lane)
			}
			return
		}
		gone := errors.Is(err, storage.ErrLeaseLost)
		if (gone || x.lane.hold.Trusted() != nil) && r.State != claybot.SendAmbiguous {
			x.missed.keep(x.o.ID, attempts, r)
		}
		if gone {
			about(x.log, x.o).Warn("a send could not be recorded: another node has the destination now", "state", r.State)
			x.lane.lost = true
			return
		}
		about(x.log, x.o).Error("cannot record how a send ended; trying again", "state", r.State, "err", err)
		if ctx.Err() != nil {
			return // found as ambiguous at the next start
		}
		pause(ctx, time.Second)
	}
}

// backoff is the pause after the n-th failed attempt, with full jitter above
// one second.
func backoff(n int) time.Duration {
	d := min(firstPause<<min(n, 10), longPause)
	return firstPause + rand.N(d)
}
