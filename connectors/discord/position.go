package discord

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot/connectors"
)

// A session is what a resume needs. It is stored as JSON.
type session struct {
	ID      string `json:"id"`
	URL     string `json:"url"` // at which it is resumed
	Seq     int64  `json:"seq"` // of the last event before which all are stored
	Intents int    `json:"intents"`
	// Open stands in place of Intents while a gap before the session is open. Versions that do not
	// know it do not resume the session, and read the gap.
	Open int   `json:"open,omitempty"`
	At   int64 `json:"at"` // Unix seconds: when it was stored
}

// A position is how far the events of one session are stored: up to the last one before which every one is.
type position struct {
	mu       sync.Mutex
	session  session
	received int64         // the last event that came; read by the gateway alone, which sets it
	kept     atomic.Int64  // the last event that the store has, which heartbeats may name
	queue    []*event      // in order, from the first that is not stored
	all      time.Time     // everything that Discord sent before has come; zero: unknown
	held     bool          // a gap before the session is open
	idle     chan struct{} // closed once nothing is left; nil: not asked for
	changed  func()        // does not block
}

// An event is one that was received.
type event struct {
	seq   int64
	left  int       // jobs
	after time.Time // Discord sent it after that
}

// newPosition is at the beginning of a session, or where a stored one is resumed.
func newPosition(s session, changed func()) *position {
	p := &position{received: s.Seq, held: s.Open != 0, changed: changed}
	s.Intents, s.Open = s.Intents+s.Open, 0
	p.session = s
	p.kept.Store(s.Seq)
	return p
}

// begin notes that an event came, with as many jobs; nil if it came before.
func (p *position) begin(seq int64, jobs int) *event {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seq <= p.received {
		return nil
	}
	p.received = seq
	e := &event{seq, jobs, p.all}
	p.queue = append(p.queue, e)
	p.advance()
	return e
}

// done notes that a job of an event is stored, or has nothing to store.
func (p *position) done(e *event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.left--
	p.advance()
}

// advance moves the session past the events that are stored, up to the first that is not. The lock is held.
func (p *position) advance() {
	for len(p.queue) > 0 && p.queue[0].left == 0 {
		p.session.Seq = p.queue[0].seq
		p.queue = p.queue[1:]
		p.changed()
	}
	if len(p.queue) == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// stored is the session as a restart resumes it.
func (p *position) stored() session {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.session
	if p.held {
		s.Intents, s.Open = 0, s.Intents
	}
	return s
}

// caught notes that everything has come that Discord sent before a time, and returns until when
// everything is stored; zero if that is unknown.
func (p *position) caught(all time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = all
	switch {
	case p.held:
		return time.Time{}
	case len(p.queue) > 0:
		return p.queue[0].after
	}
	return all
}

// drained is closed once everything that came is stored.
func (p *position) drained() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle == nil {
		idle := make(chan struct{})
		if len(p.queue) == 0 {
			close(idle)
			return idle
		}
		p.idle = idle
	}
	return p.idle
}

// release notes that a gap before the session is closed.
func (p *position) release() {
	p.mu.Lock()
	p.held = false
	p.mu.Unlock()
	p.changed()
}

// A keeper writes the position of the present session to the store, as soon as it changes.
type keeper struct {
	marks connectors.Marks // nil: memory only
	key   string
	wake  chan struct{}

	mu  sync.Mutex
	pos *position
}

// nudge says that the position changed.
func (k *keeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *keeper) follow(p *position) {
	k.mu.Lock()
	k.pos = p
	k.mu.Unlock()
	k.nudge()
}

// read returns the stored session, unless it is older than a restore of the store, and when
// that was: what came before must not run again.
func (k *keeper) read(ctx context.Context) (s session, restored time.Time, err error) {
	s, err = connectors.ReadMark[session](ctx, k.marks, k.key)
	if err != nil {
		return s, restored, err
	}
	restored, err = connectors.Restored(ctx, k.marks, time.Now())
	if s.At < restored.Unix() {
		s = session{} // restored with the store
	}
	return s, restored, err
}

// run writes until ctx is done, and then once more.
func (k *keeper) run(ctx context.Context, log *slog.Logger) {
	const warning = "failed to save the session"
	var written session
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-k.wake:
			connectors.Retry(ctx, log, warning, func() error { return k.write(ctx, &written) })
		}
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := k.write(late, &written); err != nil {
		log.Warn(warning, "err", err)
	}
}

func (k *keeper) write(ctx context.Context, written *session) error {
	k.mu.Lock()
	pos := k.pos
	k.mu.Unlock()
	if pos == nil {
		return nil
	}
	s := pos.stored()
	if s == *written {
		return nil
	}
	now := s
	now.At = time.Now().Unix()
	if err := connectors.WriteMark(ctx, k.marks, k.key, now); err != nil {
		return err
	}
	*written = s
	pos.kept.Store(s.Seq)
	return nil
}
