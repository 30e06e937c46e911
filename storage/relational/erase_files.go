package relational

import (
	"context"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var _ storage.DeletedAgents = (*Agents)(nil)

// DeletedAgents implements storage.DeletedAgents.
func (s *Agents) DeletedAgents(ctx context.Context, owners []string) (all map[claybot.AgentID]claybot.Descriptor, err error) {
	err = s.read(ctx, func(c *Conn) error {
		all = make(map[claybot.AgentID]claybot.Descriptor)
		return c.each("SELECT agent, descriptor FROM quarantine", func(r Row) error {
			var d claybot.Descriptor
			if unmarshal(r.Str(1), &d) == nil && slices.Contains(owners, d.OwnerID()) {
				all[claybot.AgentID(r.Str(0))] = d
			}
			return nil
		})
	})
	return result(all, err, "list the deleted agents of %v", owners)
}

// EraseDeleted implements storage.DeletedAgents.
func (s *Agents) EraseDeleted(ctx context.Context, id claybot.AgentID) error {
	if err := id.Validate(); err != nil { // it is part of the place of its files
		return failed(err, "erase deleted agent")
	}
	return failed(s.forget(ctx, id), "erase the deleted agent %s", id)
}
