package agentsystem

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
)

const (
	// lookVersions bounds the age of settings and grants that are kept in memory: with
	// the query itself, less than two seconds.
	lookVersions = 1500 * time.Millisecond
	// stirEvery is how often pages that show everything look without a hint.
	stirEvery = 2 * time.Second
	// repairClaim is the claim of the member that repairs what others left undone, and
	// repairPause is the pause after a failed try.
	repairClaim = "mend"
	repairPause = time.Second
)

// A follower keeps this member in step with the others of its cluster. In a cluster of
// one its loops sleep.
type follower struct {
	members   *cluster.Membership
	hub       *runs.Hub
	inboxes   *inbox.Inboxes
	deliverer *delivery.Deliverer
	people    *people.Directory
	profiles  *profiles.Profiles
	subagents *subagents.Supervisor
	questions *questions.Questions
	windows   *windows // that show what they do
	log       *slog.Logger

	changed *inbox.Signal // another member has written something
	freed   *inbox.Signal // another member has released a claim that is no destination, or may have

	refreshing sync.Mutex // held while what is kept in memory is brought up to date
	seen       storage.Version
}

// join waits until this process is a member. Then it drains when ctx is done, unless drain
// is called before.
func (f *follower) join(ctx context.Context) (drain func() bool, err error) {
	if _, err := f.members.Joined(ctx); err != nil {
		return nil, err
	}
	return context.AfterFunc(ctx, f.members.Drain), nil
}

// heard is AgentSystem.Heard.
func (f *follower) heard(h storage.Notification) {
	f.members.Heard(h.Member)
	f.members.Ended(h.Ended)
	f.hub.Heard(h)
	lost := h.IsEmpty()
	if h.Due || lost {
		f.inboxes.Wake()
	}
	for _, c := range h.Cancel {
		if c.Run != "" { // by now the agent may be at work on the next one
			f.inboxes.Cancel(c.Agent, c.Run, c.By)
		}
	}
	f.deliverer.Heard(h)
	if lost || slices.ContainsFunc(h.Freed, isNoDest) {
		f.freed.Raise()
	}
	if len(h.Runs) > 0 || h.Due || lost {
		f.changed.Raise()
	}
}

// isNoDest reports whether a claim is not that of a destination.
func isNoDest(claim string) bool {
	_, dest := storage.ClaimedDest(claim)
	return !dest
}

// followTerms gives up what was held in a term that is over, and looks for work when the
// next one begins, until ctx is done.
func (f *follower) followTerms(ctx context.Context) {
	for ctx.Err() == nil {
		changed := f.members.Changed()
		f.inboxes.Lapse()
		f.inboxes.Wake()
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// refreshAll keeps what is in memory up to date, until ctx is done.
func (f *follower) refreshAll(ctx context.Context) {
	look, stir := f.members.Elsewhere(0), f.members.Elsewhere(stirEvery)
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-stir:
			f.hub.Stir()
			stir = f.members.Elsewhere(stirEvery)
		case <-look:
			err := f.refresh(ctx)
			if err != nil && !failing && ctx.Err() == nil {
				f.log.Warn("failed to read changes of other members, retrying", "err", err)
			}
			failing = err != nil
			look = f.members.Elsewhere(lookVersions)
		}
	}
}

// refresh reads grants, settings, languages, dead routes and the ids of chats again that other members have changed. What
// cannot be read holds up nothing else.
func (f *follower) refresh(ctx context.Context) error {
	f.refreshing.Lock()
	defer f.refreshing.Unlock()
	now, err := f.members.Versions(ctx)
	if err != nil {
		return err
	}
	if now.Voices != f.seen.Voices {
		f.people.ForgetVoices()
		f.seen.Voices = now.Voices
	}
	for _, x := range []struct {
		now  int64
		seen *int64
		load func(context.Context) error
	}{
		{now.Access, &f.seen.Access, f.people.Load},
		{now.Settings, &f.seen.Settings, f.profiles.Load},
		{now.DeadRoutes, &f.seen.DeadRoutes, func(ctx context.Context) error {
			return errors.Join(f.people.Moves.Load(ctx), f.deliverer.Routes.Load(ctx))
		}},
	} {
		if x.now == *x.seen {
			continue
		}
		fault := x.load(ctx)
		if fault == nil {
			*x.seen = x.now
		}
		err = errors.Join(err, fault)
	}
	return err
}

// repairAll repairs, at the start and whenever a member has gone, what that member may
// have left undone. Each repair walks over all agents, and two at a time could stop an
// agent that is at its next task already; so it stands on a claim.
func (f *follower) repairAll(ctx context.Context) {
	var known []storage.Member
	todo := true
	for ctx.Err() == nil {
		changed := f.members.Changed()
		for _, n := range known {
			todo = todo || f.members.Gone(n.ID)
		}
		if f.members.Term() != nil {
			known = f.members.Alive()
		}
		var later <-chan time.Time
		if todo {
			if todo = !f.repair(ctx); todo {
				later = time.After(repairPause)
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-later:
		}
	}
}

// repair stops subagents that nothing waits for, and executes stored answers. It returns
// false when it is to be tried again.
func (f *follower) repair(ctx context.Context) (done bool) {
	hold, err := f.members.Claim(ctx, repairClaim)
	if errors.Is(err, storage.ErrHeld) {
		return true // its holder repairs now, and again after a member that goes meanwhile
	}
	if err != nil {
		if ctx.Err() == nil && f.members.Trusted() == nil {
			f.log.Warn("failed to claim the repair of orphaned state, retrying", "err", err)
		}
		return false
	}
	mine, free := hold.Context(ctx)
	var all sync.WaitGroup
	for _, fix := range []func(context.Context){f.subagents.StopOrphans, f.questions.Texts.Recover} {
		all.Go(func() { fix(mine) })
	}
	all.Wait()
	done = mine.Err() == nil
	free()
	if err := hold.Yield(ctx, false); err != nil {
		f.log.Debug("failed to release a claim", "claim", repairClaim, "err", err)
	}
	return done
}
