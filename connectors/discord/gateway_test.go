package discord

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/discord/discordtest"
)

// TestConnectionEnds ends the connection in each way that Discord documents
// (docs.discord.com/developers/topics/opcodes-and-status-codes, Gateway Close Event Codes, and
// …/events/gateway, Resuming, read 2026-11-28). What is written meanwhile is stored once.
func TestConnectionEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		act              func(b *bot)
		started, resumed int
		stops            string // why the connector stops; empty: it does not
	}{
		"no close code":      {act: func(b *bot) { b.Disconnect(0) }, started: 1, resumed: 1},
		"unknown error":      {act: func(b *bot) { b.Disconnect(4000) }, started: 1, resumed: 1},
		"rate limited":       {act: func(b *bot) { b.Disconnect(4008) }, started: 1, resumed: 1},
		"reconnect":          {act: func(b *bot) { b.Ask(7) }, started: 1, resumed: 1},
		"invalid session":    {act: func(b *bot) { b.Expire(); b.Disconnect(0) }, started: 2},
		"invalid sequence":   {act: func(b *bot) { b.Expire(); b.Disconnect(4007) }, started: 2},
		"session timed out":  {act: func(b *bot) { b.Expire(); b.Disconnect(4009) }, started: 2},
		"silent":             {act: func(b *bot) { b.Mute(true); b.pass(2 * time.Minute); b.Mute(false) }, started: 1, resumed: 1},
		"down for a moment":  {act: func(b *bot) { b.Down(true); b.pass(time.Minute); b.Down(false) }, started: 1, resumed: 1},
		"token refused":      {act: func(b *bot) { b.Revoke() }, started: 1, stops: "token is refused; reset it"},
		"disallowed intents": {act: func(b *bot) { b.Disconnect(4014) }, started: 1, stops: "Message Content intent (4014); switch it on"},
		"sharding required":  {act: func(b *bot) { b.Disconnect(4011) }, started: 1, stops: "several connections (4011)"},
		"invalid intents":    {act: func(b *bot) { b.Disconnect(4013) }, started: 1, stops: "this version of claybot (4013); update claybot"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, discordtest.Config{}, func(b *bot) {
				b.start()
				b.say("before")
				b.pass(time.Second)
				tt.act(b)
				b.say("after")
				b.pass(2 * time.Minute)
				if tt.stops != "" {
					var stop *connectors.PermanentError
					if err := b.end(); !errors.As(err, &stop) || !strings.Contains(err.Error(), tt.stops) {
						t.Errorf("Run = %v, want %q", err, tt.stops)
					}
					if h := b.conn.Health(); h.State != connectors.StateStopped {
						t.Errorf("health %+v", h)
					}
					return
				}
				b.want("before", "after")
				if tt.resumed > 0 {
					b.wantSessions(tt.started, max(tt.resumed, func() int { _, r := b.Sessions(); return r }()))
				} else {
					b.wantSessions(tt.started, 0)
				}
				if h := b.conn.Health(); h.State != connectors.StateLive {
					t.Errorf("health %+v", h)
				}
			})
		})
	}
}

// A heartbeat that Discord asks for is sent at once.
func TestHeartbeatOnRequest(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{Heartbeat: time.Hour}, func(b *bot) {
		b.start()
		b.say("hello")
		b.pass(0)
		if b.Unnamed() == 0 {
			t.Fatal("a heartbeat came before it was due")
		}
		b.Ask(1)
		b.pass(0)
		if n := b.Unnamed(); n != 0 {
			t.Errorf("%d events are not named", n)
		}
	})
}

// Heartbeats name only what is stored: Discord keeps the rest for the process after a kill.
func TestHeartbeatsNameWhatIsStored(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{Keep: time.Hour}, func(b *bot) {
		b.start()
		b.say("stored")
		b.pass(0)
		b.inbox.fill(true)
		b.say("not stored")
		b.say("nor this")
		b.pass(3 * time.Minute) // several heartbeats
		b.kill()
		b.inbox.fill(false)
		b.want("stored")
		b.start()
		b.want("stored", "not stored", "nor this")
		b.wantSessions(1, 1)
	})
}

// A session that cannot be resumed while messages wait for the store, nor the one after it: the newest
// is kept only once they are stored, so that a kill before does not lose them, and no chat waits for more.
func TestNewSessionWhileMessagesWait(t *testing.T) {
	t.Parallel()
	for _, refused := range []int{1, 2, 3} {
		for _, fullAfter := range []bool{true, false} {
			inBubble(t, discordtest.Config{}, func(b *bot) {
				b.start()
				b.say("stored")
				b.pass(time.Minute)
				b.inbox.fill(true)
				b.say("waits")
				b.pass(time.Second)
				for range refused {
					b.Expire()
					b.Disconnect(0)
					b.pass(time.Minute)
				}
				b.say("later")
				b.first("hello")
				b.inbox.fill(fullAfter)
				b.pass(time.Minute)
				if got := b.inbox.of(directID(1)); !fullAfter && fmt.Sprint(got) != "[stored waits later]" {
					t.Errorf("after %d refused sessions, in a known chat: %q", refused, got)
				}
				if got := b.inbox.of(directID(2)); !fullAfter && fmt.Sprint(got) != "[hello]" {
					t.Errorf("after %d refused sessions, in a new chat: %q", refused, got)
				}
				if s := b.marks.session(); (s.Open == 0) == fullAfter {
					t.Errorf("after %d refused sessions: kept %+v", refused, s)
				}
				b.kill()
				b.inbox.fill(false)
				b.start()
				b.pass(time.Minute)
				if got := b.inbox.of(directID(1)); fmt.Sprint(got) != "[stored waits later]" {
					t.Errorf("after %d refused sessions and a kill: %q", refused, got)
				}
			})
		}
	}
}

// A session that is refused while the gap before it is read: the next one reads that gap as well, also
// where nothing else was stored, and holds up no other chat.
func TestNewSessionWhileAGapIsRead(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} { // when the gateway delivered last
		inBubble(t, discordtest.Config{}, func(b *bot) {
			b.start()
			b.say("before")
			b.pass(time.Minute)
			b.kill()
			if !known {
				_ = b.marks.SetCheckpoint(t.Context(), "discord/"+discordtest.Bot+"/last_good", "") // never fails
			}
			b.pass(10 * time.Minute)
			b.say("missed")
			b.Expire()
			b.Server.Fail(discordtest.Fault{Route: "GET messages", Channel: directID(1), Times: -1, Status: http.StatusBadGateway})
			b.start()
			b.pass(30 * time.Second)
			b.say("live")
			b.pass(time.Second)
			b.Expire()
			b.Disconnect(0)
			b.pass(20 * time.Second)
			b.first("hello")
			b.pass(10 * time.Second)
			if got := b.inbox.of(directID(2)); fmt.Sprint(got) != "[hello]" {
				t.Errorf("in a new chat: %q", got)
			}
			if got := b.inbox.of(directID(1)); fmt.Sprint(got) != "[before]" {
				t.Errorf("in a chat that is read: %q", got)
			}
			b.Heal()
			b.pass(time.Minute)
			if got := b.inbox.of(directID(1)); fmt.Sprint(got) != "[before missed live]" {
				t.Errorf("in a chat that was read: %q", got)
			}
			if s := b.marks.session(); s.Open != 0 || s.Intents == 0 || len(b.inbox.missed) != 0 {
				t.Errorf("kept %+v, told %+v", s, b.inbox.missed)
			}
		})
	}
}

// A session from before a restore of the store is not resumed, and nothing from before the
// restore is stored again.
func TestRestoredStore(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{Keep: time.Hour, Heartbeat: time.Hour}, func(b *bot) {
		b.start()
		b.pass(time.Minute)
		kept := b.marks.clone()
		b.say("ran before the restore")
		b.pass(time.Minute)
		_ = b.end()
		b.inbox.got = nil // as the copy was
		kept[connectors.MarkRestored] = time.Now().UTC().Format(time.RFC3339)
		b.marks.set(kept)
		b.pass(time.Minute)
		b.say("after the restore")
		b.start()
		b.pass(time.Minute)
		b.want("after the restore")
		b.wantSessions(2, 0)
	})
}

// While too many events wait for the store, the gateway is not read: the health says that, and not
// that Discord does not answer.
func TestBlockedReader(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		b.inbox.fill(true)
		for range maxPending + 2 {
			b.say("again")
		}
		b.pass(time.Minute)
		if h := b.conn.Health(); h.State != connectors.StateFailing || !strings.HasSuffix(h.Err, "are not stored yet; claybot keeps trying") {
			t.Errorf("health %+v", h)
		}
		b.inbox.fill(false)
		b.pass(time.Minute)
		if h := b.conn.Health(); h.State != connectors.StateLive || len(b.inbox.texts()) != maxPending+2 {
			t.Errorf("%d messages, health %+v", len(b.inbox.texts()), h)
		}
	})
}

// Identifies keep five seconds between them, and a bot that may start no session waits.
func TestIdentifyLimits(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{Sessions: 3}, func(b *bot) {
		b.start()
		for range 4 {
			b.Expire()
			b.Disconnect(4007)
			b.pass(20 * time.Second)
		}
		if n := b.Hasty(); n != 0 {
			t.Errorf("%d identifies came too soon", n)
		}
		if started, _ := b.Sessions(); started != 3 {
			t.Errorf("%d sessions were started, of 3 that are allowed", started)
		}
		if h := b.conn.Health(); h.State != connectors.StateFailing || !strings.Contains(h.Err, "as many sessions as Discord allows") {
			t.Errorf("health %+v", h)
		}
	})
}

// Without the intent, the bot asks for the others alone, and reads direct messages and mentions.
func TestWithoutContentIntent(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{NoContent: true}, func(b *bot) {
		b.start()
		b.say("hello")
		b.Write(discordtest.Post{Channel: groupID(1), User: userID(1), Text: "to the others"})
		b.Write(discordtest.Post{Channel: groupID(1), User: userID(1), Text: "<@" + discordtest.Bot + "> and you"})
		b.wantEach("hello", "and you")
		if h := b.conn.Health(); h.State != connectors.StateLive || !strings.Contains(h.Err, "Message Content intent is off") {
			t.Errorf("health %+v", h)
		}
	})
}

// A gateway that refuses sessions is asked less and less often: each identify counts.
func TestRefusedSessions(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.Refuse(true)
		b.start()
		b.pass(10 * time.Minute)
		before := b.Refuse(true)
		b.pass(24 * time.Hour)
		if n := b.Refuse(false) - before; n < 100 || n >= 1000 {
			t.Errorf("%d identifies in a day", n)
		}
		if h := b.conn.Health(); h.State != connectors.StateFailing {
			t.Errorf("health %+v", h)
		}
		b.pass(2 * time.Minute)
		if h := b.conn.Health(); h.State != connectors.StateLive {
			t.Errorf("health %+v", h)
		}
	})
}

// A permanent error is reported although messages wait for the store and a call is retried.
func TestStopsWhileWorkWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.Server.Fail(discordtest.Fault{Route: "PUT commands", Times: -1, Drop: true})
		b.start()
		b.inbox.fill(true)
		b.say("waits")
		b.pass(time.Second)
		b.Disconnect(4014)
		b.pass(time.Minute)
		if h := b.conn.Health(); h.State != connectors.StateStopped {
			t.Errorf("health %+v", h)
		}
		b.inbox.fill(false)
	})
}
