package people

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// A Quota bounds the bytes of the files that the owner of agents has sent. It counts what is
// stored for all agents of the owner, so it needs no repair, and all members of a cluster see
// the same. Files that arrive at the same time do not know of each other: each may pass the
// limit, but the next one does not. What cannot be counted of one agent is logged and counts
// 0, so that it does not hold up the others of its owner.
type Quota struct {
	// Files counts the files of agents; see storage.Files.
	Files interface {
		SentBytes(ctx context.Context, ids ...claybot.AgentID) (int64, error)
	}
	// Index finds the agents of an owner; see storage.AgentReader.
	Index interface {
		OwnedAgents(ctx context.Context, owner string) ([]storage.IndexEntry, error)
	}
	Directory *Directory
	// Limit is the limit in bytes; 0: none.
	Limit func() int64
	Log   *slog.Logger
}

// Sent returns the size of the files that the owner of an agent has sent to all their agents,
// in bytes, and the limit; 0 if there is none. The members of a group that shares an agent
// are one owner. It is 0 for an agent without an owner. The error is that of ctx or of a store
// that is unavailable.
func (q *Quota) Sent(ctx context.Context, d claybot.Descriptor) (sent, limit int64, err error) {
	if d.OwnerID() == "" {
		return 0, 0, nil
	}
	var ids []claybot.AgentID
	for _, owner := range q.Directory.Identities(d.OwnerID()) {
		agents, err := q.Index.OwnedAgents(ctx, owner)
		if err := q.hinders(ctx, err); err != nil {
			return 0, 0, fmt.Errorf("find the agents of %s: %w", owner, err)
		}
		for _, a := range agents {
			ids = append(ids, a.ID)
		}
	}
	sent, err = q.Files.SentBytes(ctx, ids...)
	if err := q.hinders(ctx, err); err != nil {
		return 0, 0, err
	}
	return sent, q.Limit(), nil
}

// hinders returns err if a later try may succeed, and logs it otherwise.
func (q *Quota) hinders(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || storage.Unavailable(err) {
		return err
	}
	q.Log.Warn("failed to count the files of an owner", "err", err)
	return nil
}

// A Room is what the owner of an agent may still send.
type Room struct {
	Left  int64 // bytes; meaningless without a limit
	Limit int64 // of the quota; 0: there is none
}

// Room returns what the owner of an agent may still send. Ask once for all files of a message.
func (q *Quota) Room(ctx context.Context, d claybot.Descriptor) (Room, error) {
	if q.Limit() == 0 {
		return Room{}, nil
	}
	sent, limit, err := q.Sent(ctx, d)
	return Room{max(0, limit-sent), limit}, err
}

// Exceeded returns an error that wraps storage.ErrQuota if n more bytes exceed the quota.
func (r Room) Exceeded(n int64) error {
	if r.Limit == 0 || n <= r.Left {
		return nil
	}
	return fmt.Errorf("%w: limits.files_per_owner is %s", storage.ErrQuota, connectors.FileSize(r.Limit))
}

// Save stores a file of at most most bytes by save, and takes its size from the room. If the
// file is too large for the quota, the error wraps storage.ErrQuota; if it is too large for
// another limit, storage.ErrTooMany. A file that is stored already takes nothing.
func (r *Room) Save(content io.Reader, most int64, save func(content io.Reader, limit int64) (claybot.FileReference, error)) (claybot.FileReference, error) {
	limit := most
	if r.Limit > 0 {
		limit = min(most, r.Left)
	}
	counted := &counter{Reader: content}
	f, err := save(counted, limit)
	switch {
	case err == nil:
		r.Left -= counted.n
	case errors.Is(err, storage.ErrTooMany):
		if full := r.Exceeded(counted.n); full != nil {
			err = full
		}
	}
	return f, err
}

// A counter counts the bytes read.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}
