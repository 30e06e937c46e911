package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// changedPrefix starts the keys of when, by its clock, a platform last reported a change of
// a route. The time commits with what the change does, so that a redelivered or late change
// is told from a new one.
const changedPrefix = "route changed/"

// RouteChanged marks a route as dead, or ends its death, as its platform reports. It returns
// nil once that is durable. A change that is older than the newest one of the route has no
// effect.
func (d *Deliverer) RouteChanged(ctx context.Context, c connectors.RouteChange) error {
	r := DeadRoute{Connector: c.Connector, ChannelID: c.ChannelID, Why: c.Dead, Since: c.At}
	d.dead.changing.Lock()
	defer d.dead.changing.Unlock()
	if late, err := d.dead.change(ctx, r); err != nil || late {
		return err
	}
	if c.Dead != "" {
		d.dead.add(r)
		d.cfg.Log.Warn("route is dead", "route", r.String(), "err", r.Why)
		return nil
	}
	_, err := d.Revive(ctx, c.Connector, c.ChannelID)
	return err
}

// change stores the mark of a route, or removes it if the route works, with the time of the
// change. It stores nothing if the platform has reported a newer one: late.
func (d *deadRoutes) change(ctx context.Context, r DeadRoute) (late bool, err error) {
	if d.marks == nil {
		return false, nil
	}
	key := changedPrefix + r.String()
	text, err := d.marks.Checkpoint(ctx, key)
	if err != nil {
		return false, fmt.Errorf("read the newest change of the route %s: %w", r, err)
	}
	if newest, err := strconv.ParseInt(text, 10, 64); err == nil && claybot.Time(newest) > r.Since {
		return true, nil
	}
	mark := ""
	if r.Why != "" {
		b, _ := json.Marshal(r) // strings and a number always encode
		mark = string(b)
	}
	if err := d.marks.SetCheckpoints(ctx, map[string]string{r.key(): mark, key: strconv.FormatInt(int64(r.Since), 10)}); err != nil {
		return false, fmt.Errorf("store a change of the route %s: %w", r, err)
	}
	return false, nil
}
