package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot/storage"
)

const (
	// maxHint is the most bytes of a notification: the server takes less than 8000.
	maxHint = 7900
	// gatherTime is how long hints wait for others.
	gatherTime = 5 * time.Millisecond
	// keptHints bounds what waits to be told; more than that is dropped.
	keptHints = 4096
	// relistenFirst and relistenMost are the pauses between tries to listen again.
	relistenFirst = 100 * time.Millisecond
	relistenMost  = 2 * time.Second
)

// A horn carries hints from node to node.
type horn struct {
	db   *DB
	wake chan struct{}

	mu    sync.Mutex
	next  storage.Hint // what is told next
	grown []storage.Growth
	size  int
}

func newHorn(db *DB) *horn { return &horn{db: db, wake: make(chan struct{}, 1)} }

// Tell implements storage.Hints.
func (db *DB) Tell(h storage.Hint) {
	if db.horn == nil {
		return
	}
	if _, others := db.mates.get(); others > 0 {
		db.horn.tell(h)
	}
}

func (b *horn) tell(h storage.Hint) {
	n := len(h.Dests) + len(h.Sent) + len(h.Freed) + len(h.Runs) + len(h.Cancel) + len(h.Watched) + len(h.Grown)
	if n == 0 && !h.Due {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size+n > keptHints {
		return // the others look by themselves
	}
	b.size += n
	b.next.Due = b.next.Due || h.Due
	b.next.Dests = union(b.next.Dests, h.Dests)
	b.next.Sent = union(b.next.Sent, h.Sent)
	b.next.Freed = union(b.next.Freed, h.Freed)
	b.next.Runs = union(b.next.Runs, h.Runs)
	b.next.Watched = union(b.next.Watched, h.Watched)
	b.next.Cancel = append(b.next.Cancel, h.Cancel...)
	b.grown = append(b.grown, h.Grown...)
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// union adds what is new; lists are short.
func union[T comparable](all, more []T) []T {
	for _, v := range more {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// blow tells what has gathered, until ctx is done. Notifications are sent outside
// of the transactions that they are about, and a few milliseconds of them at once,
// because those that notify commit one after the other.
func (b *horn) blow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		}
		gather := time.NewTimer(gatherTime)
		select {
		case <-ctx.Done():
			gather.Stop()
			return
		case <-gather.C:
		}
		for _, payload := range b.payloads() {
			if err := b.notify(ctx, payload); err != nil && ctx.Err() == nil {
				b.db.log.Debug("cannot tell other nodes; they look by themselves", "err", err)
				break
			}
		}
	}
}

func (b *horn) notify(ctx context.Context, payload string) error {
	ctx, cancel := context.WithTimeout(ctx, b.db.cfg.patience(relistenMost))
	defer cancel()
	_, err := b.db.pool.Exec(ctx, "SELECT pg_notify('claybot_' || current_schema(), $1)", payload)
	return err
}

// payloads takes what is to be told, in pieces that the server takes.
func (b *horn) payloads() []string {
	b.mu.Lock()
	h, grown := b.next, b.grown
	b.next, b.grown, b.size = storage.Hint{}, nil, 0
	b.mu.Unlock()
	self, _ := b.db.mates.get()
	h.Node = self
	var all []string
	var add func(h storage.Hint)
	add = func(h storage.Hint) {
		p, err := json.Marshal(h)
		if err != nil {
			return // there is nothing in it that cannot be marshaled
		}
		if len(p) <= maxHint {
			all = append(all, string(p))
			return
		}
		if one, two, ok := halves(h); ok {
			add(one)
			add(two)
		}
	}
	if h.Due || len(h.Dests)+len(h.Sent)+len(h.Freed)+len(h.Runs)+len(h.Cancel)+len(h.Watched) > 0 {
		add(h)
	}
	for _, g := range grown {
		add(storage.Hint{Node: self, Grown: []storage.Growth{g}})
	}
	return all
}

// halves divides a hint; ok is false for what cannot be divided, and is dropped.
func halves(h storage.Hint) (one, two storage.Hint, ok bool) {
	one, two = storage.Hint{Node: h.Node, Due: h.Due}, storage.Hint{Node: h.Node}
	one.Dests, two.Dests = half(h.Dests)
	one.Sent, two.Sent = half(h.Sent)
	one.Freed, two.Freed = half(h.Freed)
	one.Runs, two.Runs = half(h.Runs)
	one.Watched, two.Watched = half(h.Watched)
	one.Cancel, two.Cancel = half(h.Cancel)
	return one, two, len(h.Dests) > 1 || len(h.Sent) > 1 || len(h.Freed) > 1 || len(h.Runs) > 1 || len(h.Watched) > 1 || len(h.Cancel) > 1
}

func half[T any](all []T) (one, two []T) { return all[:len(all)/2], all[len(all)/2:] }

// listen hears the hints of other nodes until ctx is done. After each gap it says
// that some may have been lost.
func (b *horn) listen(ctx context.Context) {
	wait := relistenFirst
	for ctx.Err() == nil {
		began := time.Now()
		err := b.hear(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > relistenMost {
			wait = relistenFirst
		}
		b.db.log.Debug("hints of other nodes are not heard; listening again", "err", err)
		pause := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
		wait = min(2*wait, relistenMost)
	}
}

func (b *horn) hear(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, b.db.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	var schema string
	if err := conn.QueryRow(ctx, "SELECT current_schema()").Scan(&schema); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{"claybot_" + schema}.Sanitize()); err != nil {
		return err
	}
	b.heard(storage.Hint{})
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("wait for hints: %w", err)
		}
		var h storage.Hint
		if json.Unmarshal([]byte(n.Payload), &h) != nil {
			continue // of a later version
		}
		if self, _ := b.db.mates.get(); h.Node != self || self == "" {
			b.heard(h)
		}
	}
}

func (b *horn) heard(h storage.Hint) {
	if b.db.cfg.Heard != nil {
		b.db.cfg.Heard(h)
	}
}
