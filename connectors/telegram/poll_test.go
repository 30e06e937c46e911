package telegram

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

func TestPollFaults(t *testing.T) {
	tests := []struct {
		name  string
		fault telegramtest.Fault
		least time.Duration // until the next poll
		most  time.Duration
	}{
		{"429", telegramtest.Fault{Status: 429, RetryAfter: 7}, 7 * time.Second, 7 * time.Second},
		{"429 for ages", telegramtest.Fault{Status: 429, RetryAfter: 1 << 40}, time.Hour, time.Hour},
		{"502 in HTML", telegramtest.Fault{Status: 502, Body: "<html>bad gateway</html>"}, 750 * time.Millisecond, time.Second},
		{"404 in HTML", telegramtest.Fault{Status: 404, Body: "<html>not here</html>"}, 750 * time.Millisecond, time.Second},
		{"200 in HTML", telegramtest.Fault{Status: 200, Body: "<html>a portal</html>"}, 750 * time.Millisecond, time.Second},
		{"redirect", telegramtest.Fault{Status: 302, Body: "elsewhere"}, 750 * time.Millisecond, time.Second},
		{"cut", telegramtest.Fault{Cut: true}, 750 * time.Millisecond, time.Second},
		{"dropped", telegramtest.Fault{Drop: true}, 750 * time.Millisecond, time.Second},
		{"hang", telegramtest.Fault{Hang: true}, 15 * time.Second, 16 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				tt.fault.Method = "getUpdates"
				b.server.Fail(tt.fault)
				b.server.Say(7, 7, "patience")
				start := time.Now()
				b.run()
				synctest.Wait()
				if err := b.server.WaitCalls(t.Context(), "getUpdates", 2); err != nil {
					t.Fatal(err)
				}
				if d := time.Since(start); d < tt.least || d > tt.most {
					t.Errorf("polled again after %v, want %v to %v", d, tt.least, tt.most)
				}
				synctest.Wait()
				if got := b.sink.texts(); !slices.Equal(got, []string{"patience"}) {
					t.Errorf("got %q", got)
				}
				if h := b.conn.Health(); h.State != connectors.StateLive {
					t.Errorf("not live again: %+v", h)
				}
			})
		})
	}
}

// A server that does not hold polls, or does not forget what it was told to,
// is not asked without end.
func TestPollsThatLeadNowhere(t *testing.T) {
	const update = `{"update_id":%d,"message":{"message_id":1,"date":1,"chat":{"id":7,"type":"private"},"from":{"id":7,"first_name":"A"},"text":"hi"}}`
	say := func(id int) string { return fmt.Sprintf(update, id) }
	tests := []struct {
		name   string
		result string
		state  string
		posts  int
		broken bool
	}{
		{"empty at once", "", connectors.StateLive, 0, false},
		{"the same update again and again", say(5), connectors.StateLive, 1, false},
		{"no id", say(0), connectors.StateFailing, 0, true},
		{"one of two without an id", say(5) + "," + say(0), connectors.StateLive, 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				b.server.Fail(telegramtest.Fault{Method: "getUpdates", Status: 200, Body: `{"ok":true,"result":[` + tt.result + `]}`, Times: -1})
				b.run()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := b.server.Calls("getUpdates"); n < 10 || n > 310 {
					t.Errorf("%d polls in ten minutes", n)
				}
				if h := b.conn.Health(); h.State != tt.state {
					t.Errorf("health %+v", h)
				}
				if _, _, broken := b.conn.Figures(); len(b.sink.texts()) != tt.posts || (broken > 0) != tt.broken {
					t.Errorf("got %q, %d broken", b.sink.texts(), broken)
				}
			})
		})
	}
}

// Nothing pauses behind polls that wait or bring something.
func TestGoodPollsAreNotPaused(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		for range 3*maxBatch + 1 {
			b.server.Say(7, 7, "backlog")
		}
		start := time.Now()
		b.run()
		synctest.Wait()
		if n := len(b.sink.texts()); n != 3*maxBatch+1 || time.Since(start) != 0 {
			t.Errorf("%d messages after %v", n, time.Since(start))
		}
		for range 20 {
			time.Sleep(10 * time.Millisecond)
			b.server.Say(7, 7, "traffic")
		}
		synctest.Wait()
		if n := len(b.sink.texts()); n != 3*maxBatch+21 || time.Since(start) != 200*time.Millisecond {
			t.Errorf("%d messages after %v", n, time.Since(start))
		}
		polls := b.server.Calls("getUpdates")
		time.Sleep(10*maxPoll + time.Second)
		synctest.Wait()
		if n := b.server.Calls("getUpdates") - polls; n != 10 {
			t.Errorf("%d polls in ten times the wait of one", n)
		}
	})
}

// A store that takes a while is not reported as a platform that does not answer, and what takes long
// is said as it is.
func TestSlowStore(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.sink.fail = func(claybot.AgentMessage) error { time.Sleep(40 * time.Second); return nil }
		b.run()
		time.Sleep(maxPoll - 5*time.Second)
		b.server.Say(7, 7, "hello")
		for _, tt := range []struct {
			after time.Duration
			state string
			err   string
		}{
			{29 * time.Second, connectors.StateLive, ""},
			{6 * time.Second, connectors.StateFailing, "messages that came 35s ago are not stored yet; claybot keeps trying"},
			{10 * time.Second, connectors.StateLive, ""},
		} {
			time.Sleep(tt.after)
			synctest.Wait()
			if h := b.conn.Health(); h.State != tt.state || h.Err != tt.err {
				t.Errorf("after %v: %+v, want %s %q", tt.after, h, tt.state, tt.err)
			}
		}
	})
}

func TestUnreachable(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.RefuseConnections(true)
		b.run()
		time.Sleep(time.Minute)
		synctest.Wait()
		if h := b.conn.Health(); h.State != connectors.StateFailing || !strings.Contains(h.Err, "refused") {
			t.Errorf("health %+v", h)
		}
		b.server.RefuseConnections(false)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if h := b.conn.Health(); h.State != connectors.StateLive {
			t.Errorf("not live again: %+v", h)
		}
	})
}

func TestWebhookIsClearedOnce(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "kept")
		b.server.SetWebhook("https://old.test/")
		b.run()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := b.sink.texts(); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("got %q", got)
		}
		b.server.SetWebhook("https://again.test/")
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := b.server.Calls("deleteWebhook"); n != 1 {
			t.Errorf("cleared %d times, want once", n)
		}
		if h := b.conn.Health(); !strings.Contains(h.Err, "webhook") {
			t.Errorf("health %+v", h)
		}
	})
}

// memory is Marks in memory.
type memory struct {
	mu    sync.Mutex
	marks map[string]string
}

func (m *memory) Checkpoint(_ context.Context, key string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.marks[key], nil
}

func (m *memory) SetCheckpoint(_ context.Context, key, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.marks == nil {
		m.marks = make(map[string]string)
	}
	m.marks[key] = value
	return nil
}

func TestGapIsToldOnce(t *testing.T) {
	for _, tt := range []struct {
		down time.Duration
		want int
	}{{22 * time.Hour, 0}, {24*time.Hour - time.Minute, 1}, {25 * time.Hour, 1}} {
		marks := &memory{}
		inBubble(t, Config{Marks: marks}, func(t *testing.T, b *bubble) {
			b.run()
			synctest.Wait()
			_ = b.end()
			time.Sleep(tt.down)
			b.conn = New(b.conn.cfg)
			b.run()
			time.Sleep(time.Hour)
			synctest.Wait()
			if n := strings.Count(b.logs.String(), "level=WARN"); n != tt.want || len(marks.marks) != 1 {
				t.Errorf("down %v: %d warnings, marks %v\n%s", tt.down, n, marks.marks, b.logs)
			}
			h := b.conn.Health()
			if h.State != connectors.StateLive || strings.Contains(h.Err, "may be missing") != (tt.want > 0) {
				t.Errorf("down %v: health %+v", tt.down, h)
			}
			time.Sleep(gapShown)
			synctest.Wait()
			if len(b.sink.missed) != tt.want {
				t.Errorf("down %v: people are told of %+v", tt.down, b.sink.missed)
			}
			if h := b.conn.Health(); h.State != connectors.StateLive || h.Err != "" {
				t.Errorf("down %v: a day later %+v", tt.down, h)
			}
		})
	}
}

// More chats than are told of a gap are reported to the operator.
func TestGapThatNotAllAreTold(t *testing.T) {
	inBubble(t, Config{Marks: &memory{}}, func(t *testing.T, b *bubble) {
		b.run()
		synctest.Wait()
		_ = b.end()
		time.Sleep(25 * time.Hour)
		b.sink.tooMany = 12
		b.conn = New(b.conn.cfg)
		b.run()
		time.Sleep(time.Hour)
		synctest.Wait()
		if h := b.conn.Health(); !strings.Contains(h.Err, "12 chats got no notice") {
			t.Errorf("the operator reads %q", h.Err)
		}
	})
}

// The clock was ahead when Telegram answered last, so nothing says how long ago that
// was: people are told once, and later gaps are noticed again.
func TestGapAfterClockWasAhead(t *testing.T) {
	marks := &memory{}
	inBubble(t, Config{Marks: marks}, func(t *testing.T, b *bubble) {
		b.run()
		synctest.Wait()
		_ = b.end()
		for key := range marks.marks {
			marks.marks[key] = time.Now().Add(1000 * time.Hour).UTC().Format(time.RFC3339)
		}
		for i, down := range []time.Duration{25 * time.Hour, time.Hour, 25 * time.Hour} {
			time.Sleep(down)
			b.conn = New(b.conn.cfg)
			b.run()
			time.Sleep(time.Hour)
			synctest.Wait()
			_ = b.end()
			if want := []int{1, 1, 2}[i]; len(b.sink.missed) != want || !b.sink.missed[0].Assumed || want == 2 && b.sink.missed[1].Assumed {
				t.Errorf("after start %d people are told of %+v, want %d gaps", i+1, b.sink.missed, want)
			}
			if i == 0 && !strings.Contains(b.logs.String(), "clock was ahead") {
				t.Errorf("the operator reads\n%s", b.logs)
			}
		}
	})
}

// A gap of which people could not be told is one until they are, also for the
// next process.
func TestGapIsToldAfterAll(t *testing.T) {
	marks := &memory{}
	inBubble(t, Config{Marks: marks}, func(t *testing.T, b *bubble) {
		b.run()
		synctest.Wait()
		_ = b.end()
		down := time.Now()
		time.Sleep(25 * time.Hour)
		b.sink.untold = 2
		b.conn = New(b.conn.cfg)
		b.run()
		synctest.Wait()
		_ = b.end()
		time.Sleep(time.Minute)
		b.conn = New(b.conn.cfg)
		b.run()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(b.sink.missed) != 1 || down.Sub(b.sink.missed[0].From).Abs() > time.Minute || b.sink.missed[0].Connector != "telegram" {
			t.Errorf("people are told of %+v, down at %v", b.sink.missed, down)
		}
	})
}

// The status must show at once why a bot does not start.
func TestWebhookIsNamedAtOnce(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.SetWebhook("https://old.test/")
		b.server.Fail(telegramtest.Fault{Method: "deleteWebhook", Status: 502, Body: "oops"})
		b.run()
		synctest.Wait()
		if h := b.conn.Health(); h.State != connectors.StateFailing || !strings.Contains(h.Err, "webhook") || b.server.Calls("getUpdates") != 1 {
			t.Errorf("after the first poll: %+v", h)
		}
		time.Sleep(10 * time.Second) // what failed to be removed is removed with the next conflict
		synctest.Wait()
		if h := b.conn.Health(); h.State != connectors.StateLive || b.server.Calls("deleteWebhook") != 2 {
			t.Errorf("%+v after %d removals", h, b.server.Calls("deleteWebhook"))
		}
	})
}

// A bot is polled by one node. Its claim is named after the bot, and tells nothing
// of the token, also where tokens have no form.
func TestExclusive(t *testing.T) {
	a, b := New(Config{Token: "42:first-secret"}), New(Config{Token: "42:second-secret"})
	if a.Exclusive() != "telegram/42" || a.Exclusive() != b.Exclusive() {
		t.Errorf("%q and %q", a.Exclusive(), b.Exclusive())
	}
	odd := New(Config{Token: "odd-secret", BaseURL: "http://127.0.0.1:1"}).Exclusive()
	if strings.Contains(odd, "odd") || strings.Contains(odd, "secret") || odd == a.Exclusive() {
		t.Errorf("%q", odd)
	}
	a.Standby("here")
	if h := a.Health(); h.State != connectors.StateStandby || !strings.Contains(h.Err, "here") || !h.Settled() || !h.Well() {
		t.Errorf("%+v", h)
	}
}

// One that stood by begins to poll, and can send all the time.
func TestAfterStandby(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.AddPerson(7, "Ann", "ann")
		b.server.Say(7, 7, "hi")
		b.conn.Standby("other")
		if _, err := b.conn.Send(t.Context(), claybot.Outgoing{ID: "o1", Text: "hello", Route: claybot.Route{Connector: "telegram", ChannelID: "7"}}); err != nil {
			t.Error(err)
		}
		if h := b.conn.Health(); h.State != connectors.StateStandby {
			t.Errorf("after a send: %+v", h)
		}
		b.run()
		synctest.Wait()
		if h := b.conn.Health(); h.State != connectors.StateLive || h.Err != "" {
			t.Errorf("%+v", h)
		}
	})
}

// A long poll that hangs turns the connector red 30 seconds after the last answer, at the latest,
// wherever in the poll it began to hang, and an answer turns it live again.
func TestHungPollShows(t *testing.T) {
	for _, quiet := range []time.Duration{0, maxPoll - time.Second, 3*maxPoll + time.Second} {
		t.Run(quiet.String(), func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				b.run()
				synctest.Wait()
				time.Sleep(quiet)
				b.server.Fail(telegramtest.Fault{Method: "getUpdates", Hang: true, Times: 2})
				b.server.Say(7, 7, "first") // ends this poll; the next one hangs
				synctest.Wait()
				last := b.conn.Health().LastOK
				if h := b.conn.Health(); h.State != connectors.StateLive || time.Since(last) > time.Second {
					t.Fatalf("before: %+v", h)
				}
				time.Sleep(connectors.LiveWithin - time.Second)
				synctest.Wait()
				if h := b.conn.Health(); h.State != connectors.StateLive || h.Lapsed() {
					t.Errorf("before the bound: %+v", h)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				h := b.conn.Health()
				if h.State != connectors.StateFailing || !h.Lapsed() || h.Err != "the platform has not answered for 30s; claybot keeps trying" || !h.LastOK.Equal(last) {
					t.Errorf("after 30 s: %+v", h)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				b.server.Say(7, 7, "second")
				synctest.Wait()
				if h := b.conn.Health(); h.State != connectors.StateLive || !slices.Equal(b.sink.texts(), []string{"first", "second"}) {
					t.Errorf("afterwards: %+v, %q", h, b.sink.texts())
				}
			})
		})
	}
}
