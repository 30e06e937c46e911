package agentsystem

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// figuresTime bounds how long a status waits for the figures of a store that
// several nodes share, and that may not answer.
const figuresTime = 3 * time.Second

// What is said of a store that does not answer, or not this time.
const (
	noDatabase = "the database does not answer; nothing new is taken in until it does"
	oldFigures = "the database did not give its figures in time; they are the last that were read"
	noneRead   = "the database did not give its figures in time; they are not known yet"
	noHolder   = "nobody knows which node has the connection until the database answers"
)

// held says of connectors that they take nothing in while the store does not answer.
// Those that stopped, or stand by, take nothing in for reasons of their own; for whom
// these stand by may have changed since.
func held(all []ConnectorStatus) {
	for i, c := range all {
		switch c.State {
		case connectors.StateStopped:
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

// worthShowing puts the nodes that are there before those that were, and leaves out
// what a process was called before it joined again.
func worthShowing(all []storage.Node) []storage.Node {
	var there, were []storage.Node
	for _, n := range all {
		if n.There() {
			there = append(there, n)
			continue
		}
		again := slices.ContainsFunc(all, func(o storage.Node) bool {
			return o.ID != n.ID && o.Name == n.Name && o.Started == n.Started && (o.There() || o.Seen > n.Seen)
		})
		if !again {
			were = append(were, n)
		}
	}
	return append(there, were...)
}

// Nodes lists who shares the store: all nodes of the last day, those that are there
// first, and then the newest first. A process that has the store for itself is the
// only one, and has no beats.
func (s *AgentSystem) Nodes(ctx context.Context) ([]storage.Node, error) {
	if !s.Members.IsAlone() && s.Stores.Nodes != nil {
		all, err := s.Stores.Nodes.Nodes(ctx)
		return worthShowing(all), err
	}
	all := s.Members.Alive()
	if s.Members.IsAlone() {
		for i := range all {
			all[i].Working, all[i].MaxRuns = s.Working(), s.MaxRuns
		}
	}
	return all, nil
}

// nodeStatus tells of this node.
func (s *AgentSystem) nodeStatus() *NodeStatus {
	m := s.Members
	st := &NodeStatus{ID: m.Node(), Name: m.Name(), Nodes: len(m.Alive()), OK: true}
	if !m.IsAlone() && m.Answering() != nil {
		st.OK, st.Err = false, noDatabase
	}
	return st
}

// figures are what the store counts, and when it was asked.
type figures struct {
	storage.Counts
	at      claybot.Time
	old     bool // not of this moment
	unknown bool // never read
}

// figures reads what the store counts. Of one that nodes share and that does not
// answer it is what was read last, if anything was: a status is asked for then above
// all, and has more to tell than figures.
func (s *AgentSystem) figures(ctx context.Context) (figures, error) {
	if s.Members.IsAlone() {
		counts, err := s.Counts.Figures(ctx)
		return figures{Counts: counts}, err
	}
	last := figures{unknown: true}
	if f := s.counted.Load(); f != nil {
		last, last.old = *f, true
	}
	if s.Members.Answering() != nil {
		return last, nil
	}
	short, cancel := context.WithTimeoutCause(ctx, figuresTime, errors.New(noDatabase))
	defer cancel()
	counts, err := s.Counts.Figures(short)
	switch {
	case err == nil:
		f := figures{Counts: counts, at: claybot.Now()}
		s.counted.Store(&f)
		return f, nil
	case ctx.Err() != nil:
		return figures{}, err // nobody waits for it any more
	}
	s.Log.Debug("figures cannot be read", "err", err)
	return last, nil
}
