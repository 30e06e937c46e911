package agentsystem_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
)

// A small inbox takes fewer messages than the system asks for.
type smallInbox struct {
	agentsystem.Inbox
	most int
}

func (s smallInbox) Post(ctx context.Context, p storage.Posting) (storage.Posted, error) {
	p.MaxWaiting = s.most
	return s.Inbox.Post(ctx, p)
}

// A disk can be full for a while: nothing is written then.
type disk struct{ full atomic.Bool }

func (d *disk) err() error {
	if d.full.Load() {
		return storage.ErrFull
	}
	return nil
}

type diskInbox struct {
	agentsystem.Inbox
	*disk
}

func (i diskInbox) Post(ctx context.Context, p storage.Posting) (storage.Posted, error) {
	if err := i.err(); err != nil {
		return storage.Posted{}, err
	}
	return i.Inbox.Post(ctx, p)
}

func (i diskInbox) Acquire(ctx context.Context, node string, ttl time.Duration, limit, batch int) ([]storage.Acquired, time.Time, error) {
	if err := i.err(); err != nil {
		return nil, time.Time{}, err
	}
	return i.Inbox.Acquire(ctx, node, ttl, limit, batch)
}

func (i diskInbox) Release(ctx context.Context, l storage.Lease, w storage.Wait, orderly bool) error {
	if err := i.err(); err != nil {
		return err
	}
	return i.Inbox.Release(ctx, l, w, orderly)
}

type diskRuns struct {
	agentsystem.Runs
	*disk
}

func (r diskRuns) Begin(ctx context.Context, l storage.Lease, id claybot.RunID, batch []claybot.MessageID, with storage.Beginning) (claybot.Run, error) {
	if err := r.err(); err != nil {
		return claybot.Run{}, err
	}
	return r.Runs.Begin(ctx, l, id, batch, with)
}

func (r diskRuns) Append(ctx context.Context, l storage.Lease, id claybot.RunID, progress bool, ev ...claybot.Event) error {
	if err := r.err(); err != nil {
		return err
	}
	return r.Runs.Append(ctx, l, id, progress, ev...)
}

func (r diskRuns) Finish(ctx context.Context, l storage.Lease, id claybot.RunID, o storage.Outcome) ([]claybot.Outgoing, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.Runs.Finish(ctx, l, id, o)
}

type diskOutbox struct {
	agentsystem.Outbox
	*disk
}

func (o diskOutbox) Attempt(ctx context.Context, c storage.Claim, id string) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Outbox.Attempt(ctx, c, id)
}

func (o diskOutbox) Resolve(ctx context.Context, c storage.Claim, id string, r storage.Resolution) error {
	if err := o.err(); err != nil {
		return err
	}
	return o.Outbox.Resolve(ctx, c, id, r)
}
