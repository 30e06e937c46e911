package overview

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// figuresTime bounds how long a status waits for the store's counts.
const figuresTime = 3 * time.Second

// The texts for a store that is unavailable or too slow.
const (
	noDatabase = "the database does not answer; nothing new is taken in until it does"
	oldFigures = "the database did not give its figures in time; they are the last that were read"
	noneRead   = "the database did not give its figures in time; they are not known yet"
	vacant     = "no live node has the connection; this one takes it over"
	noHolder   = "the node that has the connection is unknown until the database answers"
)

// held marks connectors as blocked while the store is unavailable. It leaves out those
// that stopped or stand by: they receive nothing for other reasons, and the member that
// they stand by for may have changed.
func held(all []ConnectorStatus) {
	for i, c := range all {
		switch c.State {
		case connectors.StateStopped, connectors.StateOff:
			continue
		case connectors.StateStandby:
			all[i].Err = noHolder
			continue
		}
		switch c.Name {
		case string(claybot.AgentCron), string(claybot.AgentHeartbeat):
			all[i].Held = "what is due waits until the database answers"
		case "web", "terminal":
			all[i].Held = "new messages are refused until the database answers"
		default:
			all[i].Held = "new messages wait at the platform until the database answers"
		}
	}
}

// worthShowing sorts live members before former ones and drops the earlier ids of a
// process that joined again.
func worthShowing(all []storage.Member) []storage.Member {
	var there, were []storage.Member
	for _, n := range all {
		if n.There() {
			there = append(there, n)
			continue
		}
		again := slices.ContainsFunc(all, func(o storage.Member) bool {
			return o.ID != n.ID && o.Name == n.Name && o.Started == n.Started && (o.There() || o.Seen > n.Seen)
		})
		if !again {
			were = append(were, n)
		}
	}
	return append(there, were...)
}

// Members lists the members of the last day, live ones first, then newest first. It adds
// the current load of this member.
func (o *Monitor) Members(ctx context.Context) ([]storage.Member, error) {
	all, err := o.Membership.Members(ctx)
	for i := range all {
		if all[i].ID == o.Membership.Node() {
			all[i].Working, all[i].MaxRuns = o.Inboxes.Working(), o.Reports.Limits.MaxRuns
		}
	}
	return worthShowing(all), err
}

// WorksOn returns the name of the member that works on an agent, or "" if there is none,
// if it is unknown, and in a process that has the store for itself.
func (o *Monitor) WorksOn(ctx context.Context, id claybot.AgentID) (string, error) {
	return o.Membership.HeldBy(ctx, id, o.Inboxes.Busy(id))
}

// nodeStatus returns the status of this member.
func (o *Monitor) nodeStatus() *NodeStatus {
	m := o.Membership
	st := &NodeStatus{ID: m.Node(), Name: m.Name(), Nodes: len(m.Alive()), OK: true}
	if m.Answering() != nil {
		st.OK, st.Err = false, noDatabase
	}
	return st
}

// figures are the store's counts and the time of the query.
type figures struct {
	storage.Stats
	at      claybot.Time
	old     bool // from an earlier query
	unknown bool // never read
}

// figures reads the store's counts. If the store does not answer, it returns the last
// known ones: a status matters most then, and has more to report than counts.
func (o *Monitor) figures(ctx context.Context) (figures, error) {
	last := figures{unknown: true}
	if f := o.counted.Load(); f != nil {
		last, last.old = *f, true
	}
	if o.Membership.Answering() != nil {
		return last, nil
	}
	short, cancel := context.WithTimeoutCause(ctx, figuresTime, errors.New(noDatabase))
	defer cancel()
	counts, err := o.Counts.Stats(short)
	switch {
	case err == nil:
		f := figures{Stats: counts, at: claybot.Now()}
		o.counted.Store(&f)
		return f, nil
	case ctx.Err() != nil:
		return figures{}, err // the caller canceled
	}
	o.Log.Debug("failed to read metrics", "err", err)
	return last, nil
}
