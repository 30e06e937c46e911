package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/claybot/claybot/storage"
)

// quietFor is how often the same is told of a store that does not answer.
const quietFor = time.Minute

// answersAgain is logged once when a database that did not answer does so again.
const answersAgain = "the database answers again"

// Quiet is a log's handler before h which tells of a store that does not answer what
// is worth reading, and only once. In such a record an error is one plain sentence,
// and what the driver says is the attribute "cause". The same message is passed on at
// its first time, then once a minute with the number of those that were left out
// ("repeats"), and anew after the store has answered again (answersAgain).
// What is left out is passed on at debug. Messages are the same when their words
// are, and their connector, whatever their other attributes: of a thousand agents
// that cannot go on, one is told. Records about anything else are passed on as they
// are.
func Quiet(h slog.Handler) slog.Handler {
	return &quiet{Handler: h, told: &told{all: make(map[string]telling)}}
}

type quiet struct {
	slog.Handler
	told *told
	who  string // the connector that logs, if one does
}

// told is what was told of the present outage. All handlers of a log share it.
type told struct {
	mu  sync.Mutex
	all map[string]telling
}

// A telling is when a message was told, and how often it was left out since.
type telling struct {
	at      time.Time
	repeats int
}

// Handle implements slog.Handler.
func (q *quiet) Handle(ctx context.Context, rec slog.Record) error {
	if rec.Message == answersAgain {
		q.told.forget()
	}
	if rec.Level < slog.LevelWarn {
		return q.Handler.Handle(ctx, rec)
	}
	plain, outage := plainly(rec)
	if !outage {
		return q.Handler.Handle(ctx, rec)
	}
	tell, repeats := q.told.tell(q.who+"\x00"+rec.Message, rec.Time)
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

// plainly is a record whose errors of the store are in plain words. False: there is
// none in it.
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

// tell reports whether a message is to be told now, and how often it was left out.
func (t *told) tell(message string, now time.Time) (tell bool, repeats int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x, known := t.all[message]
	if known && now.Sub(x.at) < quietFor {
		x.repeats++
		t.all[message] = x
		return false, 0
	}
	t.all[message] = telling{at: now}
	return true, x.repeats
}

// forget makes everything new.
func (t *told) forget() {
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
	return &quiet{q.Handler.WithAttrs(attrs), q.told, who}
}

// WithGroup implements slog.Handler.
func (q *quiet) WithGroup(name string) slog.Handler {
	return &quiet{q.Handler.WithGroup(name), q.told, q.who}
}
