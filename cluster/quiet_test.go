package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/storage"
)

// What is logged when an outage is over.
const answersAgain = "the database answers again"

var errDial = errors.New("failed to connect to `user=u`: 10.1.2.3:5432: connection refused")

// logged is a log that keeps its lines, without their times.
func logged(level slog.Level) (*slog.Logger, *strings.Builder) {
	var b strings.Builder
	return slog.New(cluster.Quiet(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))), &b
}

// Of a database that does not answer the log tells the same once a minute, in plain
// words, and anew when it has answered again.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, b := logged(slog.LevelInfo)
		away := fmt.Errorf("acquire agents: %w", storage.Unanswered(errDial))
		for range 150 {
			log.Error("cannot look for work", "agent", time.Now(), "err", away)
			log.With("connector", "cron").Warn("cannot read", "err", away)
			log.With("connector", "heartbeat").WithGroup("g").Warn("cannot read", "err", away)
			log.Warn("cannot claim", "err", fmt.Errorf("claim: %w", cluster.ErrLapsed))
			time.Sleep(time.Second)
		}
		for _, s := range []string{"cannot look for work", "connector=cron", "connector=heartbeat", "cannot claim"} {
			if n := strings.Count(b.String(), s); n != 3 {
				t.Errorf("%q was told %d times in 150 s, want 3", s, n)
			}
		}
		if n := strings.Count(b.String(), "repeats=59"); n != 8 {
			t.Errorf("repeats are told %d times, want 8:\n%s", n, b)
		}
		for line := range strings.Lines(b.String()) {
			plain, _, _ := strings.Cut(line, "cause=")
			if strings.Contains(plain, "10.1.2.3") || strings.Contains(line, "answer") && !strings.Contains(line, "cause=\"") && !strings.Contains(line, "g.cause=\"") {
				t.Errorf("the cause is not apart: %s", line)
			}
		}
		b.Reset()
		log.Info(answersAgain)
		log.Error("cannot look for work", "err", away)
		if n := strings.Count(b.String(), "cannot look for work"); n != 1 || strings.Contains(b.String(), "repeats") {
			t.Errorf("a new outage: %s", b)
		}
	})
}

// What is not about the store is never left out, and at debug nothing is.
func TestQuietOthers(t *testing.T) {
	log, b := logged(slog.LevelInfo)
	for range 3 {
		log.Warn("other", "err", errDial)
		log.Warn("none")
		log.Info("some", "err", storage.Unanswered(errDial))
		log.Error("deadline", "err", context.DeadlineExceeded)
	}
	if n := strings.Count(b.String(), "\n"); n != 12 {
		t.Errorf("%d lines of 12:\n%s", n, b)
	}
	log, b = logged(slog.LevelDebug)
	for range 3 {
		log.Warn("away", "err", storage.Unanswered(errDial))
	}
	if strings.Count(b.String(), "level=WARN") != 1 || strings.Count(b.String(), "level=DEBUG") != 2 {
		t.Errorf("at debug:\n%s", b)
	}
}

// The log is told once that the database answers again, whether the term was kept
// or a new one began; a term that the store gave up was answered all along.
func TestAnswersAgain(t *testing.T) {
	tests := []struct {
		name string
		out  time.Duration
		hang bool
		want int
	}{
		{"short", 4 * time.Second, false, 1},
		{"longer than trust", time.Minute, false, 1},
		{"silent", time.Minute, true, 1},
		{"none", 0, false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *register) {
				log, b := logged(slog.LevelInfo)
				m := cluster.New(cluster.Config{Store: r, Claims: r, TTL: ttl, Log: log, Self: storage.Member{Name: "a"}})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- m.Run(ctx) }()
				time.Sleep(time.Minute)
				if tt.out > 0 {
					r.set(storage.Unanswered(errDial), tt.hang)
					time.Sleep(tt.out)
					r.set(nil, false)
				}
				time.Sleep(time.Minute)
				if tt.out == 0 { // the store answers, but knows nothing of the node
					r.mu.Lock()
					n := r.nodes[m.Node()]
					n.Until = 0
					r.nodes[n.ID] = n
					r.mu.Unlock()
					time.Sleep(time.Minute)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if n := strings.Count(b.String(), answersAgain); n != tt.want {
					t.Errorf("told %d times, want %d:\n%s", n, tt.want, b)
				}
				for _, s := range []string{"failed to renew the membership", "failed to join the cluster"} {
					if n := strings.Count(b.String(), s); n > 2 { // a minute and a bit
						t.Errorf("%q was told %d times:\n%s", s, n, b)
					}
				}
			})
		})
	}
}
