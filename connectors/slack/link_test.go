package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// Refreshes under traffic: the successor is open before the old socket goes,
// and the old one is read to its end.
func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		name  string
		every time.Duration
		n     int
	}{{"spaced", time.Minute, 800}, {"in a hurry", 12 * time.Second, 200}} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, slacktest.Config{Pick: slacktest.Oldest, Redeliver: time.Hour}, func(t *testing.T, w *world) {
				w.start(t)
				sent := 0
				for i := range c.n {
					w.slack.Disconnect([]string{"warning", "refresh_requested"}[i%2], 10*time.Second)
					for range 10 {
						w.slack.DM("U1", fmt.Sprint(sent))
						sent++
						time.Sleep(time.Second)
					}
					time.Sleep(c.every - 10*time.Second)
				}
				w.settled(t)
				got := w.slack.Traffic()
				if got.Gap != 0 || got.Most > 2 || got.Requeued != 0 || got.Stray != 0 || got.Opened != c.n+1 {
					t.Errorf("%+v: want no gap, at most 2 sockets, nothing requeued or stray, %d opened", got, c.n+1)
				}
				for i, text := range w.inbox.texts() {
					if text != fmt.Sprint(i) {
						t.Fatalf("message %d is %q", i, text)
					}
				}
				if len(w.inbox.texts()) != sent {
					t.Errorf("%d of %d messages", len(w.inbox.texts()), sent)
				}
			})
		})
	}
}

// A socket is replaced before its announced time is over.
func TestRefreshBeforeTheEnd(t *testing.T) {
	inWorld(t, slacktest.Config{ConnectionTime: 10 * time.Minute}, func(t *testing.T, w *world) {
		w.start(t)
		time.Sleep(8*time.Minute + 59*time.Second)
		if n := w.slack.Traffic().Opened; n != 1 {
			t.Errorf("%d sockets before 90 %% of the time, want 1", n)
		}
		time.Sleep(2 * time.Second)
		if n := w.slack.Traffic().Opened; n != 2 {
			t.Errorf("%d sockets after it, want 2", n)
		}
		time.Sleep(drainTime)
		if err := w.slack.WaitSockets(t.Context(), 1); err != nil {
			t.Error(err)
		}
		if g := w.slack.Traffic().Gap; g != 0 {
			t.Errorf("gap %v", g)
		}
	})
}

// A socket that became silent is noticed within 30 s, and its envelopes come
// again on the next one.
func TestHalfOpen(t *testing.T) {
	inWorld(t, slacktest.Config{Redeliver: time.Hour}, func(t *testing.T, w *world) {
		w.start(t)
		time.Sleep(time.Minute) // pings keep it alive
		if h := w.Health(); h.State != connectors.StateLive || time.Since(h.LastOK) > 5*time.Second {
			t.Errorf("health %+v while pings come", h)
		}
		w.slack.Freeze()
		began := time.Now()
		w.slack.DM("U1", "lost on the way")
		w.settled(t)
		if d := time.Since(began); d > silence+2*time.Second {
			t.Errorf("noticed after %v", d)
		}
		if n := w.slack.Traffic(); n.Most > 2 || n.Opened != 2 {
			t.Errorf("%+v", n)
		}
	})
}

// Sockets that are cut again and again are dialed with growing pauses.
func TestBackoff(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		for range 20 {
			w.slack.Fail("apps.connections.open", slacktest.Fault{Status: 503})
		}
		for range 5 {
			w.slack.Fail("socket", slacktest.Fault{Status: 503})
		}
		w.slack.Cut()
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		if h := w.Health(); h.State != connectors.StateFailing || h.Err == "" {
			t.Errorf("health %+v", h)
		} else {
			noCanary(t, "health", h.Err)
		}
		w.slack.DM("U1", "patience")
		w.settled(t)
		calls := w.slack.Calls("apps.connections.open")
		if len(calls) != 1+20+5+1 {
			t.Errorf("%d addresses asked for, want 27", len(calls))
		}
		for i := range calls[1:] {
			if d := calls[i+1].At.Sub(calls[i].At); i > 0 && d > maxBackoff+time.Second {
				t.Errorf("pause %d is %v", i, d)
			}
		}
		if d := time.Since(calls[1].At); d < 20*time.Second {
			t.Errorf("26 dials within %v", d)
		}
		if h := w.Health(); h.State != connectors.StateLive || h.Err != "" {
			t.Errorf("health %+v after recovery", h)
		}
	})
}

// A permanent reason ends Run after one try, with the next step.
func TestPermanent(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(t *testing.T, w *world)
		tries int // dials
		says  string
	}{
		{"link disabled", func(t *testing.T, w *world) {
			go func() {
				if err := w.slack.WaitSockets(t.Context(), 1); err != nil {
					t.Error(err)
				}
				w.slack.Disconnect("link_disabled", time.Second)
			}()
		}, 1, "Socket Mode"},
		{"switched to requests", func(_ *testing.T, w *world) { w.slack.Push(testHook, signingSecret, nil) }, 1, "Socket Mode"},
		{"bot token", func(t *testing.T, w *world) { w.slack.Fail("auth.test", slacktest.Fault{Error: "invalid_auth"}) }, 0, "SLACK_BOT_TOKEN"},
		{"app token", func(t *testing.T, w *world) {
			w.slack.Fail("apps.connections.open", slacktest.Fault{Error: "invalid_auth"})
		}, 1, "SLACK_APP_TOKEN"},
		{"scope", func(t *testing.T, w *world) {
			w.slack.Fail("apps.connections.open", slacktest.Fault{Error: "missing_scope", Needed: "connections:write"})
		}, 1, "add the scope connections:write"},
		{"uninstalled", func(t *testing.T, w *world) {
			w.slack.Envelope("events_api", map[string]any{"team_id": "T1", "event": map[string]string{"type": "app_uninstalled"}})
		}, 1, "install it again"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				c.spoil(t, w)
				w.start(t)
				var p *connectors.PermanentError
				err := <-w.ended
				if !errors.As(err, &p) {
					t.Fatalf("Run ended with %v, want a permanent error", err)
				}
				if n := len(w.slack.Calls("apps.connections.open")); n != c.tries {
					t.Errorf("%d dials, want %d", n, c.tries)
				}
				h := w.Health()
				if h.State != connectors.StateStopped || !strings.Contains(h.Err, c.says) || !strings.Contains(h.Err, "claybot serve") && !strings.Contains(h.Err, connectors.Reload) {
					t.Errorf("health %+v, want %q and a command", h, c.says)
				}
				noCanary(t, "health", h.Err)
			})
		})
	}
}

func TestTokens(t *testing.T) {
	for _, c := range []struct{ bot, app, says string }{
		{"", "xapp-canary", "SLACK_BOT_TOKEN is missing"},
		{"xoxb-canary", "", "SLACK_APP_TOKEN is missing"},
		{"xapp-canary", "xoxb-canary", "swapped"},
		{"xoxp-canary", "xapp-canary", "SLACK_BOT_TOKEN does not begin with xoxb-"},
		{"xoxb-canary", "xoxb-canary", "SLACK_APP_TOKEN does not begin with xapp-"},
	} {
		var p *connectors.PermanentError
		k := New(Config{BotToken: c.bot, AppToken: c.app})
		if err := k.Run(t.Context(), newInbox()); !errors.As(err, &p) || p.Fix == "" || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q and %q: %v, want %q", c.bot, c.app, err, c.says)
		}
		noCanary(t, "health", k.Health().Err)
	}
}

// 429 on opening is obeyed to the second, up to an hour.
func TestOpenRateLimited(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{17 * time.Second: 17 * time.Second, 48 * time.Hour: time.Hour} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.slack.Fail("apps.connections.open", slacktest.Fault{RetryAfter: asked})
			began := time.Now()
			w.start(t)
			if err := w.slack.WaitSockets(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(began); d < want || d > want+time.Second {
				t.Errorf("asked for %v, opened after %v, want %v", asked, d, want)
			}
		})
	}
}

// Frames that make no sense harm nothing.
func TestStrangeFrames(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		for _, f := range []string{"", "{", "null", "[]", `"x"`, "\xff\xfe", `{"type":7}`, `{"type":"events_api"}`, `{"type":"events_api","payload":3}`} {
			w.slack.Frame([]byte(f))
		}
		w.slack.Envelope("events_api", "no object")
		w.slack.Envelope("events_api", map[string]any{"event": nil})
		w.slack.Envelope("events_api", map[string]any{"team_id": 5, "event": map[string]any{"type": "message", "channel": []int{1}, "user": "U1"}})
		w.slack.Envelope("something_new", nil)
		w.slack.DM("U1", strings.Repeat("long ", 400_000)) // 2 MB
		w.slack.DM("U2", "still here")
		w.settled(t)
		if n := len(w.inbox.texts()); n != 2 || w.slack.Traffic().Opened != 1 {
			t.Errorf("%d messages on %d sockets, want 2 on 1", n, w.slack.Traffic().Opened)
		}
		w.slack.Frame([]byte(strings.Repeat("x", maxFrameBytes+1)))
		w.slack.DM("U3", "on the next socket")
		w.settled(t)
		if n := w.slack.Traffic().Opened; n != 2 {
			t.Errorf("%d sockets after a frame over the limit, want 2", n)
		}
	})
}

// Many bad ends leave no goroutine behind: the bubble would not end.
func TestManyCuts(t *testing.T) {
	inWorld(t, slacktest.Config{Redeliver: time.Hour}, func(t *testing.T, w *world) {
		w.start(t)
		for i := range 100 {
			w.slack.DM("U1", fmt.Sprint(i))
			if i%3 == 0 {
				w.slack.Disconnect("warning", 2*time.Second)
			}
			w.slack.Cut()
			time.Sleep(stableAfter + time.Second)
		}
		w.settled(t)
		if n := len(w.inbox.texts()); n != 100 || w.slack.Traffic().Most > 2 {
			t.Errorf("%d messages, %+v", n, w.slack.Traffic())
		}
	})
}

// Sockets that are not of this claybot are named, and those of its other nodes
// are not mistaken for them.
func TestSocketsOfOthers(t *testing.T) {
	tests := []struct {
		name  string
		nodes int
		other int // sockets open before
		named bool
	}{
		{"none", 1, 0, false},
		{"another program", 1, 1, true},
		{"the other node", 2, 1, false},
		{"the other node at a hand-over", 2, 2, false},
		{"another program besides", 2, 3, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				w.Connector.cfg.Nodes = func() int { return tt.nodes }
				another := New(w.cfg)
				for range tt.other {
					s, err := another.open(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					done := make(chan struct{})
					go func() { defer close(done); _ = s.read(func(frame) error { return nil }) }()
					defer func() { s.close(); <-done }()
				}
				w.start(t)
				if h := w.Health(); h.Err != "" {
					t.Errorf("named before the nodes could know of each other: %+v", h)
				}
				time.Sleep(explainTime + crowdEvery)
				h := w.Health()
				if named := strings.Contains(h.Err, "perhaps a second claybot"); named != tt.named || h.State != connectors.StateLive {
					t.Errorf("%+v, want named: %v", h, tt.named)
				}
			})
		})
	}
}

// Nodes that start together, or in the place of one that was killed, are not taken for
// another program: whether a socket is that of a node is known only a renewal later, and
// that of a node which is gone is counted by Slack for longer than by claybot.
func TestSocketsOfNodes(t *testing.T) {
	tests := []struct {
		name  string
		other int
		nodes func(time.Duration) int // at a time
		named time.Duration           // 0: never
	}{
		{"not joined yet", 1, func(d time.Duration) int { return map[bool]int{true: 2}[d >= 2*time.Second] }, 0},
		{"joined alone at first", 2, func(d time.Duration) int { return 1 + int(min(d, 10*time.Second)/(5*time.Second)) }, 0},
		{"the other one is lost", 1, func(d time.Duration) int { return map[bool]int{true: 2, false: 1}[d < time.Second] }, 0},
		{"a cluster without its database", 1, func(time.Duration) int { return 0 }, 0},
		{"a stranger, and one node", 1, func(time.Duration) int { return 1 }, explainTime},
		{"a stranger, and two nodes", 3, func(time.Duration) int { return 2 }, explainTime},
		{"a node that comes late", 1, func(d time.Duration) int { return map[bool]int{true: 2, false: 1}[d > time.Minute] }, explainTime},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				var log strings.Builder
				began := time.Now()
				w.Connector.cfg.Nodes = func() int { return tt.nodes(time.Since(began)) }
				w.Connector.log = slog.New(slog.NewTextHandler(&log, nil))
				another := New(w.cfg)
				for range tt.other {
					s, err := another.open(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					done := make(chan struct{})
					go func() { defer close(done); _ = s.read(func(frame) error { return nil }) }()
					defer func() { s.close(); <-done }()
				}
				w.start(t)
				named := time.Duration(0)
				for range 100 {
					if named == 0 && w.Health().Err != "" {
						named = time.Since(began)
					}
					time.Sleep(time.Second)
				}
				if named < tt.named || (named > 0) != (tt.named > 0) {
					t.Errorf("named after %v, want %v", named, tt.named)
				}
				synctest.Wait()
				if n := strings.Count(log.String(), "another process may use"); n != min(1, int(tt.named/time.Second)) {
					t.Errorf("the log was told %d times", n)
				}
				if late := w.Health().Err; tt.nodes(100*time.Second) == 2 && tt.other == 1 && late != "" {
					t.Errorf("still named when it is explained: %s", late)
				}
			})
		})
	}
}

// More sockets than Slack allows are named as such, and the connector goes on as
// soon as there is room.
func TestTooManySockets(t *testing.T) {
	inWorld(t, slacktest.Config{PerMinute: map[string]int{"apps.connections.open": 0}}, func(t *testing.T, w *world) {
		var crowd []func()
		another := New(w.cfg)
		for range 10 {
			s, err := another.open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() { defer close(done); _ = s.read(func(frame) error { return nil }) }()
			crowd = append(crowd, func() { s.close(); <-done })
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx, w.inbox) }()
		time.Sleep(5 * time.Second)
		if h := w.Health(); h.State != connectors.StateFailing || !strings.Contains(h.Err, "run fewer nodes") {
			t.Errorf("%+v", h)
		}
		for _, leave := range crowd {
			leave()
		}
		time.Sleep(time.Minute)
		if h := w.Health(); h.State != connectors.StateLive || h.Err != "" {
			t.Errorf("with room again: %+v", h)
		}
		cancel()
		<-ended
	})
}
