package cron

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// A task whose route is dead pauses when it is due, and resumes when the route works
// again. The reason of the pause names the route.
const (
	deadRoute = "the route "
	isDead    = " is dead: "
)

// routeOf returns where the output of a shot goes; the zero Route for nowhere.
func (r *runner) routeOf(ctx context.Context, s shot) (claybot.Route, error) {
	switch {
	case s.def.route.place.Connector != "":
		return s.def.route.place, nil
	case s.def.agent == "" || s.def.route.nowhere || s.def.route.agent != "":
		return claybot.Route{}, nil
	}
	d, err := r.cfg.Index.IndexedDescriptor(ctx, s.def.agent)
	if err != nil {
		return claybot.Route{}, storage.Ignore(err, storage.ErrNotFound) // found out when it is posted
	}
	return d.Route(), nil
}

// rest pauses a task whose route is dead, after one notice to its owner for all their tasks
// of that route. All members use the same key. paused reports whether it did; after an error
// it did not, and the task is due again.
func (r *runner) rest(ctx context.Context, s shot) (paused bool, err error) {
	if r.cfg.Dead == nil {
		return false, nil
	}
	route, err := r.routeOf(ctx, s)
	if err != nil {
		return false, err
	}
	why, since := r.cfg.Dead(route)
	if why == "" {
		return false, nil
	}
	name, owner := route.Connector+"/"+route.ChannelID, s.def.spec.Owner
	if r.cfg.Notice != nil { // first, so that no crash leaves a silent pause
		key := fmt.Sprintf("cron/dead/%s/%d/%s", name, since, owner)
		say := func(v texts.Voice) string { return v.TaskRests(s.def.spec.Name, route.Connector) }
		err := r.cfg.Notice(ctx, owner, key, say)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			r.sched.Log.Warn("the owner of a paused task has no chat for a notice", "task", s.slug, "owner", owner)
		case err != nil:
			return false, fmt.Errorf("notify the owner of task %s, whose route is dead: %w", s.slug, err)
		}
	}
	err = r.sched.Locked(ctx, func() error {
		return r.table.facts.mark(ctx, s.slug, s.def.uid, func(f *fact) {
			f.Paused, f.PausedText = deadRoute+name+isDead+why, s.def.text
		})
	})
	if err != nil {
		return false, err
	}
	r.sched.Log.Warn("task paused: its route is dead; it resumes when the route works again", "task", s.slug, "route", name, "owner", owner, "cause", why)
	return true, nil
}

// deadRouteOf returns the route because of which a task is paused.
func deadRouteOf(paused string) (r claybot.Route, ok bool) {
	rest, ok := strings.CutPrefix(paused, deadRoute)
	if !ok {
		return r, false
	}
	name, _, ok := strings.Cut(rest, isDead)
	if !ok {
		return r, false
	}
	r.Connector, r.ChannelID, ok = strings.Cut(name, "/")
	return r, ok
}

// wake resumes the tasks whose route works again. The caller holds the lock of the files.
func (b *table) wake(ctx context.Context) error {
	if b.cfg.Dead == nil {
		return nil
	}
	var slugs, uids []string
	b.sched.Mu.Lock()
	for uid, t := range b.tasks {
		r, paused := deadRouteOf(b.facts.known[uid].Paused)
		if !paused || t.gone {
			continue
		}
		if why, _ := b.cfg.Dead(r); why == "" {
			slugs, uids = append(slugs, t.slug), append(uids, uid)
		}
	}
	b.sched.Mu.Unlock()
	if len(slugs) == 0 {
		return nil
	}
	_, err := b.facts.edit(ctx, slugs, uids, func(_ int, f *fact) {
		if _, paused := deadRouteOf(f.Paused); paused {
			f.PausedText = "" // the next look at the file ends the pause
		}
	})
	if err != nil {
		return err
	}
	b.sched.Log.Info("tasks resumed: their route works again", "tasks", slugs)
	return b.scan(ctx, nil, true)
}
