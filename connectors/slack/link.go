package slack

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot/connectors"
)

// A link keeps one socket open, and two during a handover. Its loop owns every
// change of state; readers and dials only send it news.
type link struct {
	dial  func(context.Context) (*socket, error)
	take  func(context.Context, *socket, frame) error // must be quick, or may block its own socket
	log   *slog.Logger
	pulse *connectors.Pulse
	// opening is called for each socket after hello, before it is read. It must
	// not block.
	opening func()

	news    chan news
	ended   chan struct{}
	sockets sync.WaitGroup // one goroutine for each dial and its socket

	current, draining *socket
	leaving           bool // current is to be replaced once its successor is open
	dialing           bool
	failures          int // in a row

	crowd crowd // detects foreign sockets

	retry, refresh, drained <-chan time.Time
}

// news is something that happened to a socket.
type news struct {
	what   happening
	socket *socket
	reason string // of a dismissal
	err    error  // of a failed dial and of an end
}

type happening int

const (
	opened happening = iota
	unopened
	dismissal
	closed
)

func newLink(dial func(context.Context) (*socket, error), take func(context.Context, *socket, frame) error, log *slog.Logger, pulse *connectors.Pulse) *link {
	return &link{
		dial: dial, take: take, log: log, pulse: pulse, opening: func() {}, crowd: crowd{told: new(atomic.Pointer[string]), log: log},
		news: make(chan news), ended: make(chan struct{}),
	}
}

// run works until ctx is done or a permanent error. Then it calls settle, which
// returns when no more acknowledgements will come, and closes the sockets.
func (l *link) run(ctx context.Context, settle func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		settle()
		close(l.ended)
		for _, s := range []*socket{l.current, l.draining} {
			if s != nil {
				s.close()
			}
		}
		l.sockets.Wait()
	}()
	for {
		l.fill(ctx)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.retry:
			l.retry = nil
		case <-l.crowd.again:
			l.crowd.look()
		case <-l.refresh:
			l.refresh = nil
			l.leave("its time is nearly over")
		case <-l.drained:
			l.drained = nil
			l.draining.close() // its reader will say that it is closed
		case n := <-l.news:
			if err := l.hear(n); err != nil {
				return err
			}
		}
	}
}

// fill dials when a socket is wanted and there is room for it.
func (l *link) fill(ctx context.Context) {
	wanted := l.current == nil || l.leaving
	room := l.current == nil || l.draining == nil
	if !wanted || !room || l.dialing || l.retry != nil {
		return
	}
	l.dialing = true
	l.sockets.Go(func() { l.live(ctx) })
}

// live dials one socket and reads it until it closes.
func (l *link) live(ctx context.Context) {
	s, err := l.dial(ctx)
	if err != nil {
		l.tell(news{what: unopened, err: err})
		return
	}
	l.opening()
	if !l.tell(news{what: opened, socket: s}) {
		s.close()
		return
	}
	err = s.read(func(f frame) error {
		if f.Type == "disconnect" {
			l.tell(news{what: dismissal, socket: s, reason: f.Reason})
			return nil // it is read until Slack closes it
		}
		return l.take(ctx, s, f)
	})
	l.tell(news{what: closed, socket: s, err: err})
}

// tell sends n to the loop and reports whether the loop received it.
func (l *link) tell(n news) bool {
	select {
	case l.news <- n:
		return true
	case <-l.ended:
		return false
	}
}

func (l *link) hear(n news) error {
	switch n.what {
	case opened:
		l.dialing = false
		l.promote(n.socket)
	case unopened:
		l.dialing = false
		return l.failed(n.err)
	case dismissal:
		if err := dismissed(n.reason); err != nil {
			return err
		}
		if n.reason == reasonCrowded {
			text := errCrowded.Error()
			l.crowd.told.Store(&text)
		}
		if n.socket == l.current && !l.leaving {
			l.leave(word(n.reason))
		}
	case closed:
		return l.lost(n.socket, n.err)
	}
	return nil
}

// promote makes s the current socket; the one before drains.
func (l *link) promote(s *socket) {
	own := 1
	if l.current != nil {
		own++
		l.draining, l.drained = l.current, time.After(drainTime)
	}
	l.current, l.leaving, l.refresh = s, false, nil
	if d := s.lifetime(); d > 0 {
		l.refresh = time.After(d * 9 / 10)
	}
	l.crowd.counted(s.hello.NumConnections, own)
	l.pulse.OK()
	l.log.Debug("slack socket opened", "lifetime", s.lifetime())
}

// leave requests a successor of the current socket.
func (l *link) leave(why string) {
	l.leaving, l.refresh = true, nil
	l.log.Debug("slack socket will be replaced", "reason", why)
	if l.draining != nil {
		l.drained = time.After(hurriedDrain)
	}
	// A socket that is closed right after hello counts as a failure, which
	// prevents a dial loop.
	l.judge(l.current)
}

// lost records that a socket has ended.
func (l *link) lost(s *socket, err error) error {
	if permanent(err) {
		return err
	}
	switch s {
	case l.draining:
		l.draining, l.drained = nil, nil
	case l.current:
		expected := l.leaving
		l.current, l.leaving, l.refresh = nil, false, nil
		if expected {
			return nil
		}
		l.log.Warn("slack socket lost", "err", err)
		l.pulse.Fail("the socket to Slack was lost; trying again")
		l.judge(s)
	}
	return nil
}

// judge counts the end of s as a failure unless it lived long enough.
func (l *link) judge(s *socket) {
	if time.Since(s.opened) >= stableAfter {
		l.failures = 0
	}
	l.backOff()
}

// failed records a failed dial.
func (l *link) failed(err error) error {
	if permanent(err) {
		return err
	}
	l.log.Warn("failed to open slack socket", "err", err)
	if l.current == nil {
		l.pulse.Fail(err.Error() + "; trying again")
	}
	var wait *connectors.RetryError
	if errors.As(err, &wait) {
		l.retry = time.After(min(wait.After, maxPause))
		return nil
	}
	l.backOff()
	return nil
}

// backOff sets the wait before the next dial: none after the first failure,
// then 1 s doubling to 30 s, with jitter. A wait that is already running is
// kept.
func (l *link) backOff() {
	l.failures++
	if l.failures == 1 || l.retry != nil {
		return
	}
	most := maxBackoff
	if doublings := l.failures - 2; doublings < 5 {
		most = min(time.Second<<doublings, maxBackoff)
	}
	l.retry = time.After(rand.N(most)) // spreads load; no secret depends on it
}
