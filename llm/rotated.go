package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// keyRest is how long a refused key is left alone while another one works.
const keyRest = 10 * time.Minute

// A Keyed model is one that is reached with one of several keys.
type Keyed struct {
	Fingerprint string // of the key, for logs
	Model       Model
}

// Rotated returns a model that uses one key after another: when the key or its
// account is refused (Error.Account), the next one is asked at once, and the
// refused one rests for ten minutes, or as long as the provider asks, unless
// none else is left. The key that worked last is asked first. A single key
// needs none of that and is returned as it is.
func Rotated(log *slog.Logger, keys ...Keyed) Model {
	if len(keys) == 1 {
		return keys[0].Model
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &rotated{log: log, keys: keys, rest: make([]time.Time, len(keys))}
}

type rotated struct {
	log  *slog.Logger
	keys []Keyed

	mu    sync.Mutex
	first int         // asked first
	rest  []time.Time // until when each key rests
}

func (m *rotated) Chat(ctx context.Context, r Request) (resp Response, err error) {
	err = Failed(Permanent, "no key is set")
	for _, i := range m.order() {
		resp, err = m.keys[i].Model.Chat(ctx, r)
		var e *Error
		if !errors.As(err, &e) || !e.Account || ctx.Err() != nil {
			m.done(i, err == nil)
			return resp, err
		}
		m.refused(i, e)
		m.log.Warn("model API key rejected", "key", m.keys[i].Fingerprint, "status", e.Status, "error", e.Text)
	}
	return resp, err
}

// order is the keys from the one that worked last, those that rest at the end.
func (m *rotated) order() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	var fresh, resting []int
	for n := range m.keys {
		i := (m.first + n) % len(m.keys)
		if m.rest[i].After(now) {
			resting = append(resting, i)
		} else {
			fresh = append(fresh, i)
		}
	}
	return append(fresh, resting...)
}

func (m *rotated) done(i int, worked bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if worked {
		m.first, m.rest[i] = i, time.Time{}
	}
}

func (m *rotated) refused(i int, e *Error) {
	rest := keyRest
	if e.RetryAfter > 0 {
		rest = min(e.RetryAfter, maxRest)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rest[i] = time.Now().Add(rest)
}

// Fingerprint names a key in logs without showing any of it.
func Fingerprint(key string) string {
	if key == "" {
		return "none"
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:4])
}
