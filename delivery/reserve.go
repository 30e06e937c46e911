package delivery

import (
	"context"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A Reservation is a lane that waits for messages which are about to be stored, so that
// the first of them is stored as attempted and sent without another write. It must be
// ended by Hand.
type Reservation struct {
	deliverer *Deliverer
	lane      *lane // nil: none was free
}

// Reserve reserves the lane of the destination of the first message, if it could be sent
// at this moment: nothing else is being sent there, and nothing delays it. Otherwise the
// messages are to be stored as usual.
func (d *Deliverer) Reserve(ctx context.Context, out []claybot.Outgoing) *Reservation {
	r := &Reservation{deliverer: d}
	if len(out) == 0 {
		return r
	}
	switch o := out[0]; {
	case o.State != "" && o.State != claybot.SendWaiting, o.Due != 0, o.EditOf != "" && o.Mark == nil, o.File != nil, o.Question != nil:
		return r
	case d.Silences.Until(o.Route).After(time.Now()), d.courier.pauses.Until(o.Route).After(time.Now()), !d.cfg.Allowed(o):
		return r
	}
	if _, dead := d.Routes.Dead(out[0].Route); dead {
		return r
	}
	l := d.reserve(out[0].Route.Dest())
	if l == nil {
		return r
	}
	if l.hold = d.claims.claim(ctx, l); l.hold == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(l.queue) > 0 || l.more {
			d.open(l)
		} else {
			d.closeLane(l)
		}
		return r
	}
	r.lane = l
	return r
}

// reserve registers a lane that does not run yet; nil if the destination has one.
func (d *Deliverer) reserve(dest string) *lane {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil || d.ctx.Err() != nil || d.lanes[dest] != nil {
		return nil
	}
	if d.claims.left(dest) {
		return nil
	}
	l := d.newLane(dest)
	d.lanes[dest] = l
	return l
}

// Claim returns the claim of the reserved lane; the zero Claim if there is none.
func (r *Reservation) Claim() storage.Claim {
	if r.lane == nil {
		return storage.Claim{}
	}
	return r.lane.hold.Claim
}

// Hand passes on what was stored, as Deliverer.Hand does, and ends the reservation. After
// a failure, out is empty. A second call is Deliverer.Hand.
func (r *Reservation) Hand(out []claybot.Outgoing) {
	d, l := r.deliverer, r.lane
	if r.lane = nil; l != nil {
		d.mu.Lock()
		if len(out) > 0 && out[0].State == claybot.SendAttempted && out[0].Route.Dest() == l.dest {
			// It is the oldest of its destination, so it comes before all that the lane
			// has been handed meanwhile.
			l.queue, l.begun = append([]claybot.Outgoing{out[0]}, l.queue...), out[0]
			if !l.more {
				l.last = d.cfg.Members.Known(out[0].N)
			}
			out = out[1:]
		}
		ctx := d.ctx
		if ctx.Err() == nil {
			d.open(l)
		}
		d.mu.Unlock()
		if ctx.Err() != nil {
			d.run(ctx, l) // the lanes have ended: it only takes back what it was to send
		}
	}
	d.Hand(out)
}
