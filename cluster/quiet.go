package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/claybot/claybot/storage"
)

// quietFor is how often the same message about a store that does not answer is logged.
const quietFor = time.Minute

// answersAgain is logged once when a database that did not answer does so again.
const answersAgain = "the database answers again"

// Quiet returns a handler before h that thins out records about a store that does not
// answer. In such a record an error is one plain sentence, and what the driver says is the
// attribute "cause". The same message is passed on the first time, then once a minute with
// the number of those left out ("repeats"), and anew after the store has answered again
// (answersAgain); what is left out is passed on at debug. Messages are the same when their
// words and their connector are, whatever their other attributes: of a thousand agents that
// cannot go on, one is logged. All other records are passed on as they are.
func Quiet(h slog.Handler) slog.Handler {
	return &quiet{Handler: h, outage: &outage{all: make(map[string]logged)}}
}

type quiet struct {
	slog.Handler
	outage *outage
	who    string // the connector that logs, if one does
}

// An outage is what was logged of the present outage. All handlers of a log share it.
type outage struct {
	mu  sync.Mutex
	all map[string]logged
}

// logged is when a message was logged, and how often it was left out since.
type logged struct {
	at      time.Time
	repeats int
}

// Handle implements slog.Handler.
func (q *quiet) Handle(ctx context.Context, rec slog.Record) error {
	if rec.Message == answersAgain {
		q.outage.forget()
	}
	if rec.Level < slog.LevelWarn {
		return q.Handler.Handle(ctx, rec)
	}
	plain, about := plainly(rec)
	if !about {
		return q.Handler.Handle(ctx, rec)
	}
	tell, repeats := q.outage.tell(q.who+"\x00"+rec.Message, rec.Time)
	switch {
	case tell && repeats > 0:
		plain.AddAttrs(slog.Int("repeats", repeats))
	case !tell && !q.Handler.Enabled(ctx, slog.LevelDebug):
		return nil
	case !tell:
		plain.Level = slog.LevelDebug
	}
	return q.Handler.Handle(ctx, plain)
}

// plainly returns a record whose errors of the store are in plain words; outage is false
// when it has none.
func plainly(rec slog.Record) (plain slog.Record, outage bool) {
	plain = slog.NewRecord(rec.Time, rec.Level, rec.Message, rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		err, _ := a.Value.Resolve().Any().(error)
		switch {
		case err != nil && errors.Is(err, storage.ErrBusy):
			outage = true
			plain.AddAttrs(slog.String(a.Key, storage.Plain(err)), slog.Any("cause", err))
			return true
		case err != nil && (errors.Is(err, ErrLapsed) || errors.Is(err, ErrExpired)):
			outage = true
		}
		plain.AddAttrs(a)
		return true
	})
	return plain, outage
}

// tell reports whether to log a message now, and how often it was left out.
func (t *outage) tell(message string, now time.Time) (tell bool, repeats int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x, known := t.all[message]
	if known && now.Sub(x.at) < quietFor {
		x.repeats++
		t.all[message] = x
		return false, 0
	}
	t.all[message] = logged{at: now}
	return true, x.repeats
}

// forget ends the outage.
func (t *outage) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.all)
}

// WithAttrs implements slog.Handler.
func (q *quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	who := q.who
	for _, a := range attrs {
		if a.Key == "connector" {
			who = a.Value.String()
		}
	}
	return &quiet{q.Handler.WithAttrs(attrs), q.outage, who}
}

// WithGroup implements slog.Handler.
func (q *quiet) WithGroup(name string) slog.Handler {
	return &quiet{q.Handler.WithGroup(name), q.outage, q.who}
}
