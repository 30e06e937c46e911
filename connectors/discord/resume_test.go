package discord

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors/discord/discordtest"
)

// first lets a person write who never wrote before: no chat of theirs is known, so that no history
// is read for them. Only the session brings the message.
func (b *bot) first(text string) {
	b.Write(discordtest.Post{Channel: directID(2), User: userID(2), Text: text})
}

// Heartbeats name what the store has of the session, and not what is about to be written: Discord
// does not resume a session before what a heartbeat named.
func TestHeartbeatsNameWhatIsKept(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		b.pass(time.Minute)
		b.marks.stick(sessionKey)
		b.say("stored")
		b.pass(time.Minute) // several heartbeats
		b.first("hello")
		b.kill()
		b.marks.stick("")
		b.first("anyone there?")
		b.start()
		b.pass(time.Minute)
		b.want("stored", "hello", "anyone there?")
		b.wantSessions(1, 1)
	})
}

// A kill before the first heartbeat of the first session leaves what a restart resumes: what a person
// writes meanwhile for the first time comes, as long as Discord keeps the session.
func TestFirstSessionAcrossAKill(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		away             time.Duration
		texts            []string
		started, resumed int
	}{
		{4 * time.Minute, []string{"hello"}, 1, 1},
		{6 * time.Minute, nil, 2, 0}, // Discord lists a bot's direct chats nowhere
	} {
		inBubble(t, discordtest.Config{}, func(b *bot) {
			b.start()
			if n := b.Unnamed(); n == 0 {
				t.Fatal("a heartbeat came before")
			}
			b.kill()
			b.first("hello")
			b.pass(tt.away)
			b.start()
			b.pass(time.Minute)
			b.want(tt.texts...)
			b.wantSessions(tt.started, tt.resumed)
		})
	}
}

// A kill while a gap is read resumes the new session as well: its events belong to chats that may
// not be known yet.
func TestNewSessionAcrossAKill(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} { // the session ends as well
		inBubble(t, discordtest.Config{}, func(b *bot) {
			b.start()
			b.say("before")
			b.pass(time.Minute)
			b.kill()
			b.pass(10 * time.Minute)
			b.say("missed")
			b.Expire()
			b.inbox.fill(true)
			b.start()
			b.pass(10 * time.Second)
			b.say("live")
			if !again {
				b.first("hello")
			}
			b.pass(time.Minute)
			b.kill()
			if again {
				b.Expire()
			}
			b.inbox.fill(false)
			b.start()
			b.pass(time.Minute)
			if got := b.inbox.of(directID(1)); fmt.Sprint(got) != "[before missed live]" {
				t.Errorf("in the known chat: %q", got)
			}
			if got := b.inbox.of(directID(2)); !again && !slices.Equal(got, []string{"hello"}) {
				t.Errorf("in the new chat: %q", got)
			}
			if again {
				b.wantSessions(3, 0)
			} else {
				b.wantSessions(2, 1)
			}
			if s := b.marks.session(); s.Open != 0 || s.Intents == 0 {
				t.Errorf("kept %+v", s)
			}
		})
	}
}

// What was stored right before a gap is read again, and counts not as a part of it.
func TestGapAfterBusyMinutes(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		b.pass(time.Minute)
		for range (fewPages + 1) * pageItems {
			b.Write(discordtest.Post{Channel: groupID(1), User: userID(3), Text: "to the others"})
		}
		b.pass(time.Minute) // a heartbeat is acknowledged
		b.Expire()
		b.Disconnect(0)
		b.Write(discordtest.Post{Channel: groupID(1), User: userID(1), Text: "<@" + discordtest.Bot + "> missed"})
		b.pass(10 * time.Minute)
		b.want("missed")
		if n := len(b.inbox.missed); n != 0 {
			t.Errorf("%d chats are told: %+v", n, b.inbox.missed)
		}
	})
}

// The time until which everything is stored grows although something always waits, and passes
// nothing that is not stored.
func TestGoodWhileBusy(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		good := func() time.Time {
			text, _ := b.marks.Checkpoint(t.Context(), "discord/"+discordtest.Bot+"/last_good") // never fails
			at, _ := time.Parse(time.RFC3339, text)                                             // zero fails the test
			return at
		}
		b.inbox.slow = userID(2)
		b.start()
		for range 600 {
			b.first("again")
			b.pass(950 * time.Millisecond) // they take a second
		}
		if old := time.Since(good()); old > 4*time.Minute {
			t.Errorf("what was stored %v ago counts as unknown", old)
		}
		b.pass(time.Minute)
		full := time.Now()
		b.inbox.fill(true)
		b.say("waits")
		b.pass(10 * time.Minute)
		if passed := good().Sub(full); passed > 0 {
			t.Errorf("a message that waits is passed by %v", passed)
		}
		b.inbox.fill(false)
		b.pass(3 * time.Minute)
		if old := time.Since(good()); old > 2*time.Minute {
			t.Errorf("what was stored %v ago counts as unknown", old)
		}
	})
}
