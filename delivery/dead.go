package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// A route is dead after its platform has refused it as a whole, or reported that the bot was
// blocked or removed, or that the chat is gone. The mark of a dead route that a message met
// commits with the failure of that message, so a crash leaves both or neither. From then on
// the route's messages fail without a call to the platform, until a person writes there
// again, the platform reports that the bot is back, or an operator retries one.
//
// A mark names the chat by the id that it has at that moment. It holds for every id that the
// chat has or had, and so does what ends it.
//
// The store has the marks. A member keeps them in memory as well, where a missing one
// costs a call to the platform, which refuses it again; a message fails by a mark only if
// the store still has it.

// DeadPrefix starts the keys of the marks of dead routes.
const DeadPrefix = storage.CheckpointDead

// A DeadRoute is a channel of a connector that its platform refuses.
type DeadRoute struct {
	Connector string       `json:"connector"`
	ChannelID string       `json:"channelId"`
	Why       string       `json:"why"` // without secrets
	Since     claybot.Time `json:"since"`
}

// String names the route as operators write it.
func (r DeadRoute) String() string { return r.Connector + "/" + r.ChannelID }

// cause is why a message to the route is not sent.
func (r DeadRoute) cause() string { return "not tried: the route is dead: " + r.Why }

func (r DeadRoute) key() string { return DeadPrefix + r.String() }

// Routes know which routes are dead. The methods are safe for concurrent use.
type Routes struct {
	marks     Marks // nil: they are only in memory
	addresses addresses
	active    func(name string) connectors.Connector // see Config
	members   *cluster.Membership
	log       *slog.Logger

	changing sync.Mutex // held while a change that a platform reports is stored and known

	mu    sync.Mutex
	known map[string]DeadRoute    // by Route.Dest
	alive map[string]claybot.Time // when routes were revived last, where other members may mark them
	tries map[string]bool         // the routes of attempts in progress: revived since the attempt began
}

func newRoutes(cfg Config, a addresses) *Routes {
	return &Routes{
		marks: cfg.Marks, addresses: a, active: cfg.Active, members: cfg.Members, log: cfg.Log,
		known: make(map[string]DeadRoute), alive: make(map[string]claybot.Time), tries: make(map[string]bool),
	}
}

// aliveFor is how long a member remembers that a route was revived: longer than another
// one needs for an attempt there, and this one to learn of the mark that it leaves.
const aliveFor = sendTimeout + 10*time.Second

// Marks stores the marks of dead routes; see storage.Checkpoints.
type Marks interface {
	Checkpoint(ctx context.Context, key string) (string, error)
	SetCheckpoints(ctx context.Context, values map[string]string) error
	AdvanceCheckpoint(ctx context.Context, key string, to int64, values map[string]string) (bool, error)
	ListCheckpoints(ctx context.Context, prefix string) ([]storage.Checkpoint, error)
}

// get returns the marks of a route as this member knows them: in general none, or one.
func (d *Routes) get(r claybot.Route) (all []DeadRoute) {
	r.Aside = false
	ids := d.addresses.ids(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if mark, ok := d.known[id.Dest()]; ok {
			all = append(all, mark)
		}
	}
	return all
}

func (d *Routes) add(r DeadRoute) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[claybot.Route{Connector: r.Connector, ChannelID: r.ChannelID}.Dest()] = r
}

func (d *Routes) forget(r DeadRoute) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, claybot.Route{Connector: r.Connector, ChannelID: r.ChannelID}.Dest())
}

// confirm returns the mark of a route if the store still has it. After an error of the
// store the platform decides.
func (d *Routes) confirm(ctx context.Context, r claybot.Route) (DeadRoute, bool) {
	for _, mark := range d.get(r) {
		if d.marks == nil {
			return mark, true
		}
		text, err := d.marks.Checkpoint(ctx, mark.key())
		if text != "" && err == nil {
			return mark, true
		}
		if err == nil {
			d.forget(mark)
		}
	}
	return DeadRoute{}, false
}

// Load reads which routes are dead, those that other members met included. It removes the marks
// of routes that were revived here since the attempt that left the mark began.
func (d *Routes) Load(ctx context.Context) error {
	if d.marks == nil {
		return nil
	}
	all, err := d.marks.ListCheckpoints(ctx, DeadPrefix)
	if err != nil {
		return fmt.Errorf("read the dead routes: %w", err)
	}
	known, over := make(map[string]DeadRoute, len(all)), make(map[string]string)
	d.mu.Lock()
	for _, mark := range all {
		var r DeadRoute
		if json.Unmarshal([]byte(mark.Value), &r) != nil || r.key() != mark.Key {
			continue
		}
		route := claybot.Route{Connector: r.Connector, ChannelID: r.ChannelID}
		if slices.ContainsFunc(d.addresses.ids(route), func(id claybot.Route) bool { at, ok := d.alive[id.Dest()]; return ok && r.Since <= at }) {
			over[mark.Key] = ""
			continue
		}
		known[route.Dest()] = r
	}
	d.known = known
	d.mu.Unlock()
	if len(over) == 0 {
		return nil
	}
	if err := d.marks.SetCheckpoints(ctx, over); err != nil {
		return fmt.Errorf("read the dead routes: %w", err)
	}
	return nil
}

// marked reads the marks of a route that the store has.
func (d *Routes) marked(ctx context.Context, route claybot.Route) (all []DeadRoute, err error) {
	if d.marks == nil {
		return nil, nil
	}
	for _, id := range d.addresses.ids(route) {
		r := DeadRoute{Connector: id.Connector, ChannelID: id.ChannelID}
		text, err := d.marks.Checkpoint(ctx, r.key())
		if err != nil {
			return nil, err
		}
		if text != "" {
			_ = json.Unmarshal([]byte(text), &r) // a damaged mark is one all the same
			all = append(all, r)
		}
	}
	return all, nil
}

// Dead returns the mark of a route that is dead, as this member knows it.
func (d *Routes) Dead(r claybot.Route) (DeadRoute, bool) {
	for _, mark := range present(d.get(r), d.addresses.moves) {
		return mark, true
	}
	return DeadRoute{}, false
}

// AllDead lists the dead routes that this member knows of, by name.
func (d *Routes) AllDead() []DeadRoute {
	d.mu.Lock()
	all := slices.Collect(maps.Values(d.known))
	d.mu.Unlock()
	return present(all, d.addresses.moves)
}

// DeadRoutesOf lists the dead routes that the values of checkpoints below DeadPrefix say, as
// Routes.AllDead does. A damaged one says nothing.
func DeadRoutesOf(marks []string, moves Moves) (all []DeadRoute) {
	for _, mark := range marks {
		var r DeadRoute
		if json.Unmarshal([]byte(mark), &r) == nil {
			all = append(all, r)
		}
	}
	return present(all, moves)
}

// present lists marks, each with the id that its chat has now, by name. Of two of one chat it keeps
// the older one.
func present(all []DeadRoute, moves Moves) []DeadRoute {
	for i, r := range all {
		if moves != nil {
			all[i].ChannelID = moves.Current(r.Connector, r.ChannelID)
		}
	}
	slices.SortFunc(all, func(a, b DeadRoute) int {
		return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.Since, b.Since))
	})
	return slices.CompactFunc(all, func(a, b DeadRoute) bool { return a.String() == b.String() })
}

// Reachable reports whether a message on a route is likely to arrive: its connector sends
// and has not failed, and the route is not dead.
func (d *Routes) Reachable(r claybot.Route) bool {
	c := d.active(r.Connector)
	if _, sends := c.(connectors.Sender); !sends {
		return false
	}
	state := c.Health().State
	_, dead := d.Dead(r)
	return !dead && state != connectors.StateStopped && state != connectors.StateFailing
}

// Revive ends the death of a route, for good reasons: a person has written there, the bot
// was added again, or an operator wants a try. Call it before what revives the route is
// acknowledged. It also ends a death that another member has marked but this one has not
// read, and one that another member meets in an attempt that has begun. Revived reports
// whether the route was dead.
func (d *Routes) Revive(ctx context.Context, connector, channel string) (revived bool, err error) {
	route := claybot.Route{Connector: connector, ChannelID: channel}
	d.lives(route, claybot.Now())
	marks := d.get(route)
	if len(marks) == 0 && len(d.members.Alive()) > 1 {
		marks, err = d.marked(ctx, route)
	}
	if err == nil && len(marks) > 0 && d.marks != nil {
		over := make(map[string]string)
		for _, r := range marks {
			over[r.key()] = ""
		}
		err = d.marks.SetCheckpoints(ctx, over)
	}
	if err != nil {
		return false, fmt.Errorf("revive the route %s/%s: %w", connector, channel, err)
	}
	for _, r := range marks {
		d.revived(r)
	}
	return len(marks) > 0, nil
}

// revived forgets the mark of a route that the store has no more.
func (d *Routes) revived(r DeadRoute) {
	d.forget(r)
	d.log.Info("route works again", "route", r.String(), "dead since", r.Since.Time().UTC())
}

// lives notes that a route was revived at a time, for attempts that have begun before it.
func (d *Routes) lives(route claybot.Route, revived claybot.Time) {
	ids := d.addresses.ids(route)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		for _, id.Aside = range []bool{false, true} {
			if _, tried := d.tries[id.Dest()]; tried {
				d.tries[id.Dest()] = true
			}
		}
	}
	if d.members.Known(1) == 0 { // other members may send there
		maps.DeleteFunc(d.alive, func(_ string, at claybot.Time) bool { return time.Since(at.Time()) > aliveFor })
		d.alive[ids[0].Dest()] = max(d.alive[ids[0].Dest()], revived)
	}
}

// try begins an attempt on the route of a lane; end follows it.
func (d *Routes) try(dest string) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries[dest] = false
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.tries, dest)
	}
}

// isAlive reports whether a person wrote on the route of a lane since its attempt began.
func (d *Routes) isAlive(dest string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tries[dest]
}

// died fails a message whose platform refuses the whole route, marks the route, and sends
// the message on another route of its reader, all in one commit.
func (x *delivery) died(ctx context.Context, why string) {
	about(x.cfg.Log, x.o).Warn("route is dead", "attempts", x.o.Attempts, "err", why)
	began := claybot.At(time.Now().Add(-x.took)) // of the attempt: what revived the route since counts
	r := storage.Resolution{State: claybot.SendFailed, Cause: why, Notices: x.instead.reroute(ctx, x.o)}
	dead := DeadRoute{Connector: x.o.Route.Connector, ChannelID: x.addresses.ids(x.o.Route)[0].ChannelID, Why: strings.TrimSpace(why), Since: began}
	if x.routes.isAlive(x.lane.dest) { // a person wrote meanwhile: the next message finds out
		x.resolve(ctx, r)
		return
	}
	text, _ := json.Marshal(dead) // strings and a number always encode
	r.Mark = storage.Checkpoint{Key: dead.key(), Value: string(text)}
	x.resolve(ctx, r)
	x.routes.add(dead)
	if x.routes.isAlive(x.lane.dest) {
		if _, err := x.routes.Revive(ctx, dead.Connector, dead.ChannelID); err != nil {
			x.cfg.Log.Warn("failed to revive a route; the next message there revives it", "route", dead.String(), "err", err)
		}
	}
}

// whispers reports whether a message reaches its reader without the route.
func whispers(sender connectors.Sender, o claybot.Outgoing) bool {
	w, ok := sender.(connectors.Whisperer)
	return ok && w.Whispers(o)
}

// refuse fails a message to a dead route without a call to the platform.
func (x *delivery) refuse(ctx context.Context, dead DeadRoute) {
	about(x.cfg.Log, x.o).Info("not sent: the route is dead", "err", dead.Why)
	x.resolve(ctx, storage.Resolution{State: claybot.SendFailed, Cause: dead.cause(), Notices: x.instead.reroute(ctx, x.o)})
}
