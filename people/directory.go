package people

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Reach returns the owners whose agents d may reach; nil for all.
func (dir *Directory) Reach(d claybot.Descriptor) []string {
	if dir.cfg.AllOwners() || d.OwnerID() == "" {
		return nil
	}
	return dir.Identities(d.OwnerID())
}

// Identities returns all owner ids of the person with this one.
func (dir *Directory) Identities(owner string) []string {
	if all := dir.cfg.Identities; all != nil {
		if ids := all(owner); ids != nil {
			return ids
		}
	}
	return []string{owner}
}

// Reaches reports whether an agent may reach another one.
func (dir *Directory) Reaches(from, to claybot.Descriptor) bool {
	ids := dir.Reach(from)
	return ids == nil || slices.Contains(ids, to.OwnerID())
}

// Recent returns the most recent foreground agent within reach of d, other than except,
// or storage.ErrNotFound. It skips people without access, and programs, and prefers
// conversations that their person alone reads.
func (dir *Directory) Recent(ctx context.Context, d claybot.Descriptor, except claybot.AgentID) (storage.IndexEntry, error) {
	return dir.recent(ctx, dir.Reach(d), except)
}

func (dir *Directory) recent(ctx context.Context, owners []string, except claybot.AgentID) (storage.IndexEntry, error) {
	var group *storage.IndexEntry // the most recent one that others read as well
	for e, err := range dir.cfg.Index.Foreground(ctx, owners) {
		switch {
		case err != nil:
			return e, fmt.Errorf("find the most recent agent: %w", err)
		case e.ID == except, dir.Program(e.Descriptor), !dir.MayWrite(e.Descriptor):
		case dir.AudienceOf(e.Descriptor, claybot.Route{}).Place == "":
			return e, nil
		case group == nil:
			group = &e
		}
	}
	if group != nil {
		return *group, nil
	}
	return storage.IndexEntry{}, fmt.Errorf("no foreground agent: %w", storage.ErrNotFound)
}

// MayWrite reports whether the person of a foreground agent may still write.
func (dir *Directory) MayWrite(d claybot.Descriptor) bool {
	return dir.Gate.Allowed(d, false) || dir.Gate.Allowed(d, true)
}

// Foreground returns the route of the most recent foreground agent and the time of its
// person's last message, or storage.ErrNotFound while there is none. It serves connectors
// whose output has no route of its own.
func (dir *Directory) Foreground(ctx context.Context) (claybot.Route, claybot.Time, error) {
	e, err := dir.Recent(ctx, claybot.Descriptor{}, "")
	if err != nil {
		return claybot.Route{}, 0, err
	}
	c, err := dir.LastContext(ctx, e.ID)
	if err != nil {
		return claybot.Route{}, 0, err
	}
	return claybot.AgentMessage{Context: c}.ReplyRoute(e.Descriptor), e.LastUserAt, nil
}

// Address completes a system message with the route of its reply: the thread of the
// person's last message, unless the message has a route.
func (dir *Directory) Address(ctx context.Context, agent claybot.Agent, p *storage.Posting) error {
	m := &p.Message
	if !agent.Descriptor.Foreground() {
		if err := dir.taskPlace(ctx, agent, m); err != nil {
			return err
		}
		return dir.completeTask(ctx, agent.Descriptor, p)
	}
	if !dir.MayWrite(agent.Descriptor) {
		p.Skip = "not_allowed"
		return nil
	}
	if m.Route != nil || m.Context != (claybot.MessageContext{}) {
		return nil
	}
	c, err := dir.LastContext(ctx, agent.ID)
	m.Context = c
	return err
}

// taskPlace routes the reply to a message of a task's subagent to the last route of the
// task's output.
func (dir *Directory) taskPlace(ctx context.Context, agent claybot.Agent, m *claybot.AgentMessage) error {
	if agent.Descriptor.Type != claybot.AgentCron || m.Route != nil || m.Firing != nil {
		return nil
	}
	a, err := dir.cfg.Agents.Agent(ctx, agent.ID)
	if err != nil {
		return storage.Ignore(err, storage.ErrDamaged) // its worker reports the damage
	}
	m.Route = a.State.Routing
	return nil
}

// LastContext returns the thread of the last message of a foreground agent's person.
func (dir *Directory) LastContext(ctx context.Context, id claybot.AgentID) (claybot.MessageContext, error) {
	r, err := dir.cfg.Receipts.LastReceipt(ctx, id)
	switch {
	case errors.Is(err, storage.ErrDamaged):
		dir.cfg.Log.Error("newest message damaged, thread unknown", "agent", id, "err", err)
		return claybot.MessageContext{}, nil
	case errors.Is(err, storage.ErrNotFound):
		return claybot.MessageContext{}, nil
	case err != nil:
		return claybot.MessageContext{}, fmt.Errorf("find the place of %s: %w", id, err)
	}
	return claybot.MessageContext{ThreadID: r.Message.Context.ThreadID, Group: r.Message.Context.Group}, nil
}

// completeTask checks the owner of a background agent: nothing runs for a person who
// has lost access. It records the reader of a task's output, so that nothing is sent
// there once their access is revoked. A route without messages was configured by the
// operator and stays unchanged.
func (dir *Directory) completeTask(ctx context.Context, d claybot.Descriptor, p *storage.Posting) error {
	if d.Owner == "" || d.Child() {
		return nil
	}
	known, welcome := false, false
	for e, err := range dir.cfg.Index.Foreground(ctx, dir.Identities(d.Owner)) {
		if err != nil {
			return fmt.Errorf("find the owner: %w", err)
		}
		known, welcome = true, welcome || dir.MayWrite(e.Descriptor)
		if err := dir.readBy(ctx, e, &p.Message); err != nil {
			return err
		}
	}
	if known && !welcome {
		p.Skip = "not_allowed"
	}
	return nil
}

// readBy records the person of a foreground agent as the reader of a message's
// output, if the output goes to their route and has no reader yet.
func (dir *Directory) readBy(ctx context.Context, e storage.IndexEntry, m *claybot.AgentMessage) error {
	r := m.Route
	if r == nil || r.UserID != "" || r.Connector != e.Descriptor.Connector || dir.Current(r.Connector, r.ChannelID) != e.Descriptor.ChannelID {
		return nil
	}
	c, err := dir.LastContext(ctx, e.ID)
	if err != nil {
		return err
	}
	to := *r
	to.UserID, to.Group = e.Descriptor.UserID, c.Group
	m.Route = &to
	return nil
}

// PlaceOf returns where a person reads: the agent to which they wrote last, if there is
// one, in a conversation that they alone read; storage.ErrNotFound. The members of a group
// that shares an agent are no person.
func (dir *Directory) PlaceOf(ctx context.Context, owner string) (storage.IndexEntry, error) {
	if _, shared := claybot.SharedPlace(owner); shared {
		return storage.IndexEntry{}, fmt.Errorf("%s is no person: %w", owner, storage.ErrNotFound)
	}
	return dir.recent(ctx, dir.Identities(owner), "")
}

// Program reports whether the agent of a conversation talks to a program: a client of the
// API, or a webhook. A program is no person, so nothing is sent there but its own answers.
func (dir *Directory) Program(d claybot.Descriptor) bool {
	return d.Foreground() && (d.Connector == claybot.ConnectorAPI || dir.webhook(d.OwnerID()))
}
