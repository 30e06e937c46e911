package delivery

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// changedPrefix starts the keys of when, by its clock, a platform last reported a change of
// a route. The time commits with what the change does, so that a redelivered or late change
// is told from a new one.
const changedPrefix = "route changed/"

// Changed marks a route as dead, or ends its death, as its platform reports. It returns
// nil once that is durable. A change that is older than the newest one of the route has no
// effect.
func (d *Routes) Changed(ctx context.Context, c connectors.RouteChange) error {
	route := d.addresses.ids(claybot.Route{Connector: c.Connector, ChannelID: c.ChannelID})[0]
	r := DeadRoute{Connector: c.Connector, ChannelID: route.ChannelID, Why: c.Dead, Since: c.At}
	d.changing.Lock()
	defer d.changing.Unlock()
	if c.Dead == "" { // first, so that an attempt that has begun leaves no mark behind it
		d.lives(route, c.At)
	}
	if late, err := d.change(ctx, r); err != nil || late {
		return err
	}
	if c.Dead != "" {
		d.add(r)
		d.log.Warn("route is dead", "route", r.String(), "err", r.Why)
		return nil
	}
	for _, was := range d.get(route) {
		d.revived(was)
	}
	return nil
}

// change stores the mark of a route, or removes it if the route works, with the time of the
// change. It stores nothing if the platform has reported a newer one, here or to another member:
// late.
func (d *Routes) change(ctx context.Context, r DeadRoute) (late bool, err error) {
	if d.marks == nil {
		return false, nil
	}
	mark := ""
	if r.Why != "" {
		b, _ := json.Marshal(r) // strings and a number always encode
		mark = string(b)
	}
	marks := make(map[string]string)
	for _, id := range d.addresses.ids(claybot.Route{Connector: r.Connector, ChannelID: r.ChannelID}) {
		marks[DeadRoute{Connector: id.Connector, ChannelID: id.ChannelID}.key()] = ""
	}
	marks[r.key()] = mark
	newest, err := d.marks.AdvanceCheckpoint(ctx, changedPrefix+r.String(), int64(r.Since), marks)
	if err != nil {
		return false, fmt.Errorf("store a change of the route %s: %w", r, err)
	}
	return !newest, nil
}
