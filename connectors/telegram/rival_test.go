package telegram

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// second starts another connector with the same bot token, as a second installation does, and
// returns it with what stops it.
func (b *bubble) second(t *testing.T) (_ *Connector, _ *sink, stop func()) {
	cfg := b.conn.cfg
	transport := b.server.Transport()
	cfg.HTTP, cfg.Log = transport, slog.New(slog.DiscardHandler)
	c, s := New(cfg), &sink{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, s) }()
	return c, s, func() {
		cancel()
		<-ended
		transport.CloseIdleConnections()
	}
}

const rivalNamed = "another program polls with the same bot token (409), perhaps a second claybot"

// Two installations with one bot token both report it within 30 s for as long as both run,
// handle each message once between them, and recover by themselves.
func TestSecondPoller(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.run()
		time.Sleep(time.Minute)
		other, s, stop := b.second(t)
		defer func() { stop() }()
		time.Sleep(30 * time.Second)
		var said []string
		for i := range 120 {
			for name, c := range map[string]*Connector{"first": b.conn, "second": other} {
				if h := c.Health(); h.State != connectors.StateFailing || !strings.Contains(h.Err, rivalNamed) || !strings.Contains(h.Err, "stop it, or create a bot of your own") {
					t.Fatalf("%d s later: %s: %+v", i, name, h)
				}
				if h := c.Health(); i > 30 && !h.Lapsed() {
					t.Fatalf("%d s later: %s is ready: %+v", i, name, h)
				}
			}
			if i%10 == 0 {
				said = append(said, fmt.Sprint("message ", i))
				b.server.Say(7, 7, said[len(said)-1])
			}
			time.Sleep(time.Second)
		}
		stop()
		stop = func() {}
		time.Sleep(rivalMemory + maxPoll + time.Second)
		got := slices.Concat(b.sink.texts(), s.texts())
		slices.Sort(got)
		slices.Sort(said)
		if !slices.Equal(got, said) {
			t.Errorf("got %q, want %q", got, said)
		}
		if h := b.conn.Health(); h.State != connectors.StateLive || h.Err != "" {
			t.Errorf("alone again: %+v", h)
		}
		if n := strings.Count(b.logs.String(), "level=WARN"); n != 1 {
			t.Errorf("%d warnings, want 1:\n%s", n, b.logs)
		}
	})
}

// A previous process whose last poll ends is no second installation.
func TestPredecessorEnds(t *testing.T) {
	for _, overlap := range []time.Duration{0, 2 * time.Second, 8 * time.Second} {
		inBubble(t, Config{}, func(t *testing.T, b *bubble) {
			other, _, stop := b.second(t)
			time.Sleep(time.Minute)
			b.run()
			time.Sleep(overlap)
			synctest.Wait()
			if h := other.Health(); h.State != connectors.StateLive {
				t.Errorf("overlap %v: the previous process: %+v", overlap, h)
			}
			stop()
			for range 120 {
				if h := b.conn.Health(); h.State != connectors.StateLive || h.Err != "" {
					t.Fatalf("overlap %v: %+v", overlap, h)
				}
				time.Sleep(time.Second)
			}
			if strings.Contains(b.logs.String(), "level=WARN") {
				t.Errorf("overlap %v: %s", overlap, b.logs)
			}
		})
	}
}

// A program that takes the bot whenever claybot polls is reported before a poll has succeeded.
func TestPollsRefused(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Fail(telegramtest.Fault{Method: "getUpdates", Status: 409, Times: 4, Description: "Conflict: terminated by other getUpdates request"})
		start := time.Now()
		b.run()
		synctest.Wait()
		if h := b.conn.Health(); h.State != connectors.StateStarting || h.Err != "" {
			t.Errorf("after one conflict, which may be with our predecessor: %+v", h)
		}
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if h := b.conn.Health(); h.State != connectors.StateFailing || !strings.Contains(h.Err, rivalNamed) {
			t.Errorf("after three conflicts: %+v", h)
		}
		_ = b.server.WaitCalls(t.Context(), "getUpdates", 5)
		if d := time.Since(start); d < 12*time.Second || d > 16*time.Second {
			t.Errorf("five polls took %v, want one in 3 to 4 s", d)
		}
	})
}
