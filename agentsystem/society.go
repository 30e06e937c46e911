package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Society is what agents may do with each other.
type Society struct {
	MaxDepth    int // of a chain of subagents below a root
	MaxChildren int // of one parent that are at work at the same time
	MaxStarts   int // of subagents below one root in an hour
	// AllOwners lets agents reach those of other people as well.
	AllOwners bool
	// Identities lists all owner ids of the person who has this one; nil means
	// that each stands for itself.
	Identities func(owner string) []string
	// Tools lists what an agent may use, and so what its subagents may be given;
	// nil means that only what the agent was given itself is known.
	Tools func(claybot.Agent) []string
	// Models lists the model names that an agent may give a subagent; nil allows
	// none but its own.
	Models func(claybot.Agent) []string
}

// DefaultSociety is how agents live together where nothing is configured.
var DefaultSociety = Society{MaxDepth: 3, MaxChildren: 8, MaxStarts: 30}

// archivedAfter is how long a subagent may be quiet and still be written to.
const archivedAfter = 7 * 24 * time.Hour

// identities are the owners whose agents d may reach; nil for all.
func (s *AgentSystem) identities(d claybot.Descriptor) []string {
	if s.Society().AllOwners || d.OwnerID() == "" {
		return nil
	}
	return s.people(d.OwnerID())
}

// people are all owner ids of the person who has this one.
func (s *AgentSystem) people(owner string) []string {
	if all := s.Society().Identities; all != nil {
		return all(owner)
	}
	return []string{owner}
}

// reaches reports whether an agent may deal with another one.
func (s *AgentSystem) reaches(from, to claybot.Descriptor) bool {
	ids := s.identities(from)
	return ids == nil || slices.Contains(ids, to.OwnerID())
}

// foreground finds the most recent foreground agent within reach of d, other
// than except; storage.ErrNotFound when there is none. People who may not write
// any more are passed over, and so are those to whom nothing can be sent.
func (s *AgentSystem) foreground(ctx context.Context, d claybot.Descriptor, except claybot.AgentID) (storage.IndexEntry, error) {
	for e, err := range s.Index.Foreground(ctx, s.identities(d)) {
		if err != nil {
			return e, fmt.Errorf("find the most recent agent: %w", err)
		}
		if e.ID != except && e.Descriptor.Route() != (claybot.Route{}) && s.welcome(e.Descriptor) {
			return e, nil
		}
	}
	return storage.IndexEntry{}, fmt.Errorf("no foreground agent: %w", storage.ErrNotFound)
}

// welcome reports whether the person of a foreground agent may still write.
func (s *AgentSystem) welcome(d claybot.Descriptor) bool {
	return s.gate.allowed(d, false) || s.gate.allowed(d, true)
}

// archived reports whether a subagent has been quiet for so long that it is not
// written to any more.
func (s *AgentSystem) archived(ctx context.Context, e storage.IndexEntry) (bool, error) {
	if e.Descriptor.Type != claybot.AgentSubagent || e.Busy {
		return false, nil
	}
	last := e.CreatedAt
	run, err := s.Runs.LastRun(ctx, e.ID)
	switch {
	case err == nil:
		last = max(last, run.Ended)
	case !errors.Is(err, storage.ErrNotFound):
		return false, fmt.Errorf("read the last run of %s: %w", e.ID, err)
	}
	return time.Since(last.Time()) > archivedAfter, nil
}

// Foreground is the place of the most recent foreground agent, and when its
// person wrote last; storage.ErrNotFound when nobody has written yet. It is for
// connectors whose output has no place of its own.
func (s *AgentSystem) Foreground(ctx context.Context) (claybot.Route, claybot.Time, error) {
	e, err := s.foreground(ctx, claybot.Descriptor{}, "")
	if err != nil {
		return claybot.Route{}, 0, err
	}
	c, err := s.lastPlace(ctx, e.ID)
	if err != nil {
		return claybot.Route{}, 0, err
	}
	return claybot.AgentMessage{Context: c}.ReplyRoute(e.Descriptor), e.LastUserAt, nil
}

// place completes a system message with where its agent answers: the thread in
// which the person wrote last, unless the message says otherwise.
func (s *AgentSystem) place(ctx context.Context, agent claybot.Agent, p *storage.Posting) error {
	m := &p.Message
	if !agent.Descriptor.Foreground() {
		if err := s.taskPlace(ctx, agent, m); err != nil {
			return err
		}
		return s.completeTask(ctx, agent.Descriptor, p)
	}
	if !s.welcome(agent.Descriptor) {
		p.Skip = "not_allowed"
		return nil
	}
	if m.Route != nil || m.Context != (claybot.MessageContext{}) {
		return nil
	}
	c, err := s.lastPlace(ctx, agent.ID)
	m.Context = c
	return err
}

// taskPlace lets the agent of a task answer what its helpers say where the
// task's output went last.
func (s *AgentSystem) taskPlace(ctx context.Context, agent claybot.Agent, m *claybot.AgentMessage) error {
	if agent.Descriptor.Type != claybot.AgentCron || m.Route != nil || m.Firing != nil {
		return nil
	}
	a, err := s.lookup.Agent(ctx, agent.ID)
	if err != nil {
		return storage.Ignore(err, storage.ErrDamaged) // its worker will find out as well
	}
	m.Route = a.State.Routing
	return nil
}

// lastPlace is the thread in which the person of a foreground agent wrote last.
func (s *AgentSystem) lastPlace(ctx context.Context, id claybot.AgentID) (claybot.MessageContext, error) {
	r, err := s.Inbox.LastReceipt(ctx, id)
	switch {
	case errors.Is(err, storage.ErrDamaged):
		s.Log.Error("the newest message of an agent is damaged; its thread is not known", "agent", id, "err", err)
		return claybot.MessageContext{}, nil
	case errors.Is(err, storage.ErrNotFound):
		return claybot.MessageContext{}, nil
	case err != nil:
		return claybot.MessageContext{}, fmt.Errorf("find the place of %s: %w", id, err)
	}
	return claybot.MessageContext{ThreadID: r.Message.Context.ThreadID, Group: r.Message.Context.Group}, nil
}

// completeTask looks at the owner of a background agent: nothing runs for a
// person who may not write any more, and where a task's output goes, its reader
// is noted, so that nothing is sent there once he was revoked. A place that
// nobody has written from was named by the operator and stays as it is.
func (s *AgentSystem) completeTask(ctx context.Context, d claybot.Descriptor, p *storage.Posting) error {
	if d.Owner == "" || d.Type == claybot.AgentSubagent {
		return nil
	}
	known, welcome := false, false
	for e, err := range s.Index.Foreground(ctx, s.people(d.Owner)) {
		if err != nil {
			return fmt.Errorf("find the owner: %w", err)
		}
		known, welcome = true, welcome || s.welcome(e.Descriptor)
		if err := s.readBy(ctx, e, &p.Message); err != nil {
			return err
		}
	}
	if known && !welcome {
		p.Skip = "not_allowed"
	}
	return nil
}

// readBy notes the person of a foreground agent as the reader of a message's
// output, where that goes to his place and nobody is noted yet.
func (s *AgentSystem) readBy(ctx context.Context, e storage.IndexEntry, m *claybot.AgentMessage) error {
	r := m.Route
	if r == nil || r.UserID != "" || r.Connector != e.Descriptor.Connector || r.ChannelID != e.Descriptor.ChannelID {
		return nil
	}
	c, err := s.lastPlace(ctx, e.ID)
	if err != nil {
		return err
	}
	to := *r
	to.UserID, to.Group = e.Descriptor.UserID, c.Group
	m.Route = &to
	return nil
}
