package people

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A Quota bounds the bytes of the files that the owner of agents has sent. It counts what is
// stored for all agents of the owner, so it needs no repair, and all members of a cluster see
// the same. Files that arrive at the same time do not know of each other: each may pass the
// limit, but the next one does not.
type Quota struct {
	// Files counts the files of an agent; see storage.Files.
	Files interface {
		SentBytes(ctx context.Context, id claybot.AgentID) (int64, error)
	}
	// Index finds the agents of an owner; see storage.AgentReader.
	Index interface {
		OwnedAgents(ctx context.Context, owner string) ([]storage.IndexEntry, error)
	}
	Directory *Directory
	// Limit is the limit in bytes; 0: none.
	Limit func() int64
}

// Sent returns the size of the files that the owner of an agent has sent to all their agents,
// in bytes, and the limit; 0 if there is none. The members of a group that shares an agent
// are one owner. It is 0 for an agent without an owner.
func (q *Quota) Sent(ctx context.Context, d claybot.Descriptor) (sent, limit int64, err error) {
	if d.OwnerID() == "" {
		return 0, 0, nil
	}
	for _, owner := range q.Directory.Identities(d.OwnerID()) {
		agents, err := q.Index.OwnedAgents(ctx, owner)
		if err != nil {
			return 0, 0, fmt.Errorf("find the agents of %s: %w", owner, err)
		}
		for _, a := range agents {
			n, err := q.Files.SentBytes(ctx, a.ID)
			if err != nil {
				return 0, 0, err
			}
			sent += n
		}
	}
	return sent, q.Limit(), nil
}

// Room returns how many of most bytes a file to an agent may have, and the limit that makes
// it less; 0 if none does.
func (q *Quota) Room(ctx context.Context, d claybot.Descriptor, most int64) (room, limit int64, err error) {
	if q.Limit() == 0 {
		return most, 0, nil
	}
	sent, limit, err := q.Sent(ctx, d)
	if err != nil {
		return 0, 0, err
	}
	if limit == 0 || limit-sent >= most {
		return most, 0, nil
	}
	return max(0, limit-sent), limit, nil
}
