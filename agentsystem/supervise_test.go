package agentsystem_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// A connector that fails or panics is started again, at once and then with
// growing pauses; one that fails for good stays stopped. The others go on.
func TestSupervise(t *testing.T) {
	tests := []struct {
		name   string
		run    func(ctx context.Context, n int) error
		within time.Duration
		least  int // starts within the time
		most   int
	}{
		{"fails", func(context.Context, int) error { return errNet }, time.Minute, 5, 9},
		{"panics", func(context.Context, int) error { panic("connector") }, time.Minute, 5, 9},
		{"returns", func(context.Context, int) error { return nil }, time.Minute, 5, 9},
		{"permanent", func(context.Context, int) error {
			return &connectors.PermanentError{Err: errors.New("invalid_auth"), Fix: "run claybot doctor"}
		}, time.Hour, 1, 1},
		{"permanent at the second start", func(_ context.Context, n int) error {
			if n == 1 {
				return errNet
			}
			return &connectors.PermanentError{Err: errors.New("link_disabled")}
		}, time.Hour, 2, 2},
		{"fails after working well", func(ctx context.Context, _ int) error {
			if err := rest(ctx, 2*time.Minute); err != nil {
				return err
			}
			return errNet
		}, 20 * time.Minute, 10, 11},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var starts []time.Time
				sick := &line{name: "sick", chat: new(chat), fuse: newFuse(-1)}
				sick.run = func(ctx context.Context, _ connectors.Handler) error {
					starts = append(starts, time.Now())
					return tt.run(ctx, len(starts))
				}
				r.also = []connectors.Connector{sick}
				r.start()
				after(tt.within)
				if n := len(starts); n < tt.least || n > tt.most {
					t.Errorf("%d starts in %v, want %d to %d", n, tt.within, tt.least, tt.most)
				}
				for i := 1; i < len(starts); i++ {
					if pause := starts[i].Sub(starts[i-1]); pause > 30*time.Second+2*time.Minute {
						t.Errorf("pause %d is %v", i, pause)
					}
				}
				r.say("hello")
				r.wants("re: hello")
			})
		})
	}
}

// Ready means that every connector has had its first success; before Run it is
// unknown which there are.
func TestReady(t *testing.T) {
	t.Parallel()
	if ready, why := agentsystem.New(agentsystem.Config{Members: cluster.Alone(storage.Member{})}).Overview.Ready(); ready || why == "" {
		t.Errorf("ready before the start: %q", why)
	}
	bubble(t, func(r *rig) {
		late := &line{name: "late", chat: new(chat), fuse: newFuse(-1)}
		late.run = func(ctx context.Context, _ connectors.Handler) error {
			if err := rest(ctx, time.Second); err != nil {
				return err
			}
			late.OK()
			<-ctx.Done()
			return context.Cause(ctx)
		}
		r.also = []connectors.Connector{late}
		r.start()
		if ready, why := r.system.Overview.Ready(); ready || why == "" {
			t.Errorf("ready too early: %q", why)
		}
		after(time.Second)
		if ready, why := r.system.Overview.Ready(); !ready {
			t.Errorf("not ready: %s", why)
		}
		late.Stop(errors.New("the token was revoked"))
		status, err := r.system.Overview.Status(r.Context())
		if err != nil || len(status.Connectors) != 2 || status.Connectors[1].Err == "" || status.Version != "test" {
			t.Errorf("status %+v, %v", status, err)
		}
		if ready, why := r.system.Overview.Ready(); ready || !strings.Contains(why, "connector late: off: the token was revoked") {
			t.Errorf("ready with a stopped connector: %v %q", ready, why)
		}
	})
}

// A connector that fails later makes the member unready once its last completed round trip is 30 s
// old, not sooner, and status says the same as readyz; the next round trip makes it ready again.
func TestReadyFollowsRoundTrips(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fails func(*line)
		state string // within 30 s
		want  string
	}{
		"a failing connector":  {func(l *line) { l.Fail("429, waits for an hour") }, connectors.StateFailing, "connector phone2: failed: 429, waits for an hour"},
		"no answer, no error":  {func(*line) {}, connectors.StateLive, "connector phone2: failed: the platform has not answered for 30s"},
		"another member polls": {func(l *line) { l.Standby("node2") }, connectors.StateStandby, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				polls := &line{name: "phone2", chat: new(chat), fuse: newFuse(-1), Pulse: connectors.Pulse{Within: connectors.LiveWithin}}
				r.also = []connectors.Connector{polls}
				r.start()
				after(29 * time.Second)
				polls.OK()
				tt.fails(polls)
				after(29 * time.Second)
				if ready, why := r.system.Overview.Ready(); !ready || r.status().Connectors[1].State != tt.state {
					t.Errorf("after 29 s: %v %s, %+v", ready, why, r.status().Connectors[1])
				}
				after(time.Second)
				ready, why := r.system.Overview.Ready()
				if c := r.status().Connectors[1]; ready != (tt.want == "") || !strings.HasPrefix(why, tt.want) || ready != c.Well() {
					t.Errorf("after 30 s: %v %q, status %+v", ready, why, c)
				}
				polls.OK()
				if ready, why := r.system.Overview.Ready(); !ready || r.status().Connectors[1].State != connectors.StateLive {
					t.Errorf("after the next round trip: %s", why)
				}
			})
		})
	}
}

// Tell says a thing once a day.
func TestTell(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.say("a")
		synctest.Wait()
		for _, text := range []string{"one", "one", "two"} {
			if err := r.system.Tell(r.Context(), r.agent(ann), func(texts.Voice) string { return text }); err != nil {
				t.Fatal(err)
			}
		}
		r.wants("re: a", "one", "two")
		if err := r.system.Tell(r.Context(), "unknown", func(texts.Voice) string { return "x" }); err == nil {
			t.Error("told an unknown agent")
		}
	})
}

// An operator is told a thing once, in the own chat; other people are not.
func TestNotifyOperators(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		boss := claybot.User("chat", "C9", "boss")
		r.say("a")
		synctest.Wait()
		r.post(boss, msg("b", "b"))
		synctest.Wait()
		for range 2 {
			if err := r.system.People.NotifyOperators(r.Context(), "key", func(texts.Voice) string { return "the cause" }); err != nil {
				t.Fatal(err)
			}
		}
		r.wants("re: a", "re: b", "the cause")
	})
}

// What a chat window shows: messages and replies in order.
func TestTranscript(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		if got, err := r.system.Overview.Transcript(r.Context(), ann, 10); err != nil || len(got) != 0 {
			t.Errorf("of an agent without messages: %v, %v", got, err)
		}
		r.say("a")
		after(time.Second)
		r.say("b")
		after(time.Second)
		entries, err := r.system.Overview.Transcript(r.Context(), ann, 10)
		var got []string
		for _, e := range entries {
			if e.Message != nil {
				got = append(got, e.Message.Text)
			} else {
				got = append(got, e.Outgoing.Text)
			}
		}
		if err != nil || !slices.Equal(got, []string{"a", "re: a", "b", "re: b"}) {
			t.Errorf("transcript %q, %v", got, err)
		}
		sent, err := r.system.Overview.SentAfter(r.Context(), ann, 1, 10)
		if err != nil || len(sent) != 1 || sent[0].Text != "re: b" {
			t.Errorf("sent after 1: %+v, %v", sent, err)
		}
		if len(r.chat.accepted) != 2 {
			t.Errorf("%d messages were shown to other windows", len(r.chat.accepted))
		}
	})
}
