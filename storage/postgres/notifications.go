package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/claybot/claybot/storage"
)

const (
	// maxPayload is the size limit of a notification; the server accepts less than 8000 bytes.
	maxPayload = 7900
	// gatherTime is how long notifications wait to be combined.
	gatherTime = 5 * time.Millisecond
	// keptNotifications bounds the queue; the rest is dropped.
	keptNotifications = 4096
	// relistenFirst and relistenMost are the pauses between tries to listen again.
	relistenFirst = 100 * time.Millisecond
	relistenMost  = 2 * time.Second
)

// A notifier carries notifications between members.
type notifier struct {
	db   *DB
	wake chan struct{}

	mu     sync.Mutex
	next   storage.Notification // what is sent next
	joined bool                 // whether to send first that this member has joined
	grown  []storage.Growth
	size   int
}

func newNotifier(db *DB) *notifier { return &notifier{db: db, wake: make(chan struct{}, 1)} }

// Notify implements storage.Notifications.
func (db *DB) Notify(h storage.Notification) {
	if db.notifier == nil {
		return
	}
	if _, others := db.mates.get(); others > 0 {
		db.notifier.enqueue(h)
	}
}

func (b *notifier) enqueue(h storage.Notification) {
	n := len(h.Dests) + len(h.Sent) + len(h.Freed) + len(h.Runs) + len(h.Cancel) + len(h.Watched) + len(h.Grown) + len(h.Ended)
	if n == 0 && !h.Due {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size+n > keptNotifications {
		b.db.counters.lost.Add(1)
		return // the others poll
	}
	b.size += n
	b.next.Due = b.next.Due || h.Due
	b.next.Dests = union(b.next.Dests, h.Dests)
	b.next.Sent = union(b.next.Sent, h.Sent)
	b.next.Freed = union(b.next.Freed, h.Freed)
	b.next.Runs = union(b.next.Runs, h.Runs)
	b.next.Watched = union(b.next.Watched, h.Watched)
	b.next.Ended = union(b.next.Ended, h.Ended)
	b.next.Cancel = append(b.next.Cancel, h.Cancel...)
	b.grown = append(b.grown, h.Grown...)
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// A sessionNews is what a notification says of the session of its member, which listens. Members
// of earlier versions ignore it.
type sessionNews struct {
	Joined bool `json:"j,omitempty"` // it is to take the lock of the member now
	Holds  bool `json:"l,omitempty"` // it has taken it
}

// join has this member take its lock now instead of at the next look.
func (b *notifier) join() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.joined = true
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// union appends the elements that are new; the lists are short.
func union[T comparable](all, more []T) []T {
	for _, v := range more {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// send sends the queued notifications until ctx is done. It sends them outside of the
// transactions that they are about, a few milliseconds of them at once, because
// transactions that notify commit one after the other.
func (b *notifier) send(ctx context.Context) {
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
		all := b.payloads()
		for i, payload := range all {
			if err := b.notify(ctx, payload); err != nil && ctx.Err() == nil {
				b.db.counters.lost.Add(int64(len(all) - i))
				b.db.log.Debug("failed to notify other members; they poll", "err", err)
				break
			}
		}
	}
}

func (b *notifier) notify(ctx context.Context, payload string) error {
	ctx, cancel := context.WithTimeout(ctx, b.db.cfg.patience(relistenMost))
	defer cancel()
	_, err := b.db.pool.Exec(ctx, "SELECT pg_notify('claybot_' || current_schema(), $1)", payload)
	return err
}

// payloads empties the queue, in pieces that the server accepts.
func (b *notifier) payloads() []string {
	b.mu.Lock()
	h, grown, joined := b.next, b.grown, b.joined
	b.next, b.grown, b.joined, b.size = storage.Notification{}, nil, false, 0
	b.mu.Unlock()
	self, _ := b.db.mates.get()
	h.Member = self
	var all []string
	if joined {
		all = append(all, sessionPayload(self, sessionNews{Joined: true}))
	}
	var add func(h storage.Notification)
	add = func(h storage.Notification) {
		p, err := json.Marshal(h)
		if err != nil {
			return // every field can be marshaled
		}
		if len(p) <= maxPayload {
			all = append(all, string(p))
			return
		}
		if one, two, ok := halves(h); ok {
			add(one)
			add(two)
			return
		}
		b.db.counters.lost.Add(1)
	}
	if h.Due || len(h.Dests)+len(h.Sent)+len(h.Freed)+len(h.Runs)+len(h.Cancel)+len(h.Watched)+len(h.Ended) > 0 {
		add(h)
	}
	for _, g := range grown {
		add(storage.Notification{Member: self, Grown: []storage.Growth{g}})
	}
	return all
}

// sessionPayload is the notification of news of a member's session.
func sessionPayload(member string, news sessionNews) string {
	p, err := json.Marshal(struct {
		Member string `json:"n"`
		sessionNews
	}{member, news})
	if err != nil {
		panic(err) // every field can be marshaled
	}
	return string(p)
}

// halves splits a notification; ok is false for one that cannot be split, which is dropped.
func halves(h storage.Notification) (one, two storage.Notification, ok bool) {
	one, two = storage.Notification{Member: h.Member, Due: h.Due}, storage.Notification{Member: h.Member}
	one.Dests, two.Dests = half(h.Dests)
	one.Sent, two.Sent = half(h.Sent)
	one.Freed, two.Freed = half(h.Freed)
	one.Runs, two.Runs = half(h.Runs)
	one.Watched, two.Watched = half(h.Watched)
	one.Cancel, two.Cancel = half(h.Cancel)
	one.Ended, two.Ended = half(h.Ended)
	return one, two, max(len(h.Dests), len(h.Sent), len(h.Freed), len(h.Runs), len(h.Watched), len(h.Cancel), len(h.Ended)) > 1
}

func half[T any](all []T) (one, two []T) { return all[:len(all)/2], all[len(all)/2:] }

// listen delivers the notifications of other members until ctx is done. After each
// reconnection it delivers an empty one, because some may be lost.
func (b *notifier) listen(ctx context.Context) {
	wait := relistenFirst
	for ctx.Err() == nil {
		began := time.Now()
		err := b.receive(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > relistenMost {
			wait = relistenFirst
		}
		b.db.log.Debug("notifications from other members interrupted; reconnecting", "err", err)
		pause := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
		wait = min(2*wait, relistenMost)
	}
}

func (b *notifier) receive(ctx context.Context) error {
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
	b.db.counters.listens.Add(1)
	b.db.counters.listening.Store(true)
	defer b.db.counters.listening.Store(false)
	b.deliver(storage.Notification{})
	p := newPresence(b.db, conn)
	for look := time.Now(); ; {
		n, err := receiveUntil(ctx, conn, look)
		if err != nil {
			return fmt.Errorf("wait for notifications: %w", err)
		}
		if n == nil {
			pause, err := p.look(ctx)
			if err != nil {
				return fmt.Errorf("look at the sessions of other members: %w", err)
			}
			look = time.Now().Add(pause)
			continue
		}
		var h struct {
			storage.Notification
			sessionNews
		}
		if json.Unmarshal([]byte(n.Payload), &h) != nil {
			continue // of a later version
		}
		switch self, _ := b.db.mates.get(); {
		case h.sessionNews != sessionNews{}:
			p.meet(h.Member, self, h.sessionNews)
			look = time.Now()
		case h.Member != self || self == "":
			b.deliver(h.Notification)
		}
	}
}

// receiveUntil returns the next notification; nil if there is none until a time.
func receiveUntil(ctx context.Context, conn *pgx.Conn, until time.Time) (*pgconn.Notification, error) {
	wait, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	n, err := conn.WaitForNotification(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil && !conn.IsClosed() {
		return nil, nil
	}
	return n, err
}

func (b *notifier) deliver(h storage.Notification) {
	b.db.idle.due() // another member may have made an agent due
	if b.db.cfg.OnNotification != nil {
		b.db.cfg.OnNotification(h)
	}
}
