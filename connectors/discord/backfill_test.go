package discord

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/discord/discordtest"
)

// TestBackfill reads what was written while no session could be resumed.
func TestBackfill(t *testing.T) {
	t.Parallel()
	const thread = "600000000000000001"
	for name, tt := range map[string]struct {
		away   func(b *bot)
		want   []string
		missed int // chats that are told
	}{
		"messages and mentions": {func(b *bot) {
			b.say("one")
			b.say("two")
			b.Write(discordtest.Post{Channel: groupID(1), User: userID(2), Text: "to the others"})
			b.Write(discordtest.Post{Channel: groupID(1), User: userID(2), Text: "<@" + discordtest.Bot + "> three"})
		}, []string{"before", "one", "two", "live", "three"}, 0},
		"thread": {func(b *bot) {
			b.AddThread(groupID(1), thread)
			b.inbox.chats[1].Threads = []string{thread}
			b.Write(discordtest.Post{Channel: thread, User: userID(2), Text: "<@" + discordtest.Bot + "> in the thread"})
		}, []string{"before", "live", "in the thread"}, 0},
		"new thread": {func(b *bot) {
			b.AddThread(groupID(1), thread)
			b.Write(discordtest.Post{Channel: thread, User: userID(2), Text: "<@" + discordtest.Bot + "> in a new thread"})
		}, []string{"before", "live", "in a new thread"}, 0},
		"many": {func(b *bot) {
			for i := range 250 {
				b.say(fmt.Sprint(i))
			}
		}, func() []string {
			all := []string{"before"}
			for i := range 250 {
				all = append(all, fmt.Sprint(i))
			}
			return append(all, "live")
		}(), 0},
		"too many": {func(b *bot) {
			for range fewPages*pageItems + 1 {
				b.say("again")
			}
		}, nil, 1},
		"of days": {func(b *bot) {
			b.say("two days ago")
			b.pass(48 * time.Hour)
			b.say("today")
		}, []string{"before", "today", "live"}, 1},
		"of days, out of order": {func(b *bot) {
			b.say("two days ago")
			b.pass(48 * time.Hour)
			b.say("today")
			b.Server.Fail(discordtest.Fault{Route: "GET messages", Channel: directID(1), Status: http.StatusBadGateway})
		}, []string{"before", "today", "live"}, 1},
		"of days, never answers": {func(b *bot) {
			b.pass(48 * time.Hour)
			b.Server.Fail(discordtest.Fault{Route: "GET messages", Channel: directID(1), Times: -1, Status: http.StatusBadGateway})
		}, []string{"before", "live"}, 1},
		"slow to resume": {func(b *bot) {
			b.say("one")
			b.pass(10 * time.Minute)
			b.Slow(time.Minute)
		}, []string{"before", "one", "live"}, 0},
		"quiet days": {func(b *bot) { b.pass(48 * time.Hour); b.say("today") }, []string{"before", "today", "live"}, 0},
		"no access":  {func(b *bot) { b.say("one"); b.DeleteChannel(groupID(1)) }, []string{"before", "one", "live"}, 0},
		"no history": {func(b *bot) {
			b.HideHistory(groupID(1))
			b.Write(discordtest.Post{Channel: groupID(1), User: userID(2), Text: "<@" + discordtest.Bot + "> not seen"})
		}, []string{"before", "live"}, 1},
		"no history of days": {func(b *bot) {
			b.HideHistory(groupID(1))
			b.Write(discordtest.Post{Channel: groupID(1), User: userID(2), Text: "<@" + discordtest.Bot + "> not seen"})
			b.pass(48 * time.Hour)
		}, []string{"before", "live"}, 1},
		"no history, nothing missed": {func(b *bot) {
			b.HideHistory(groupID(1))
			b.pass(48 * time.Hour)
		}, []string{"before", "live"}, 0},
		"deleted": {func(b *bot) {
			b.Delete(groupID(1), b.Write(discordtest.Post{Channel: groupID(1), User: userID(2), Text: "<@" + discordtest.Bot + "> gone"}))
		}, []string{"before", "live"}, 0},
		"paused": {func(b *bot) {
			b.say("one")
			b.Server.Fail(discordtest.Fault{Route: "GET messages", RetryAfter: 5 * time.Second})
		}, []string{"before", "one", "live"}, 0},
		"out of order": {func(b *bot) {
			b.say("one")
			b.Server.Fail(discordtest.Fault{Route: "GET messages", Times: 2, Status: http.StatusBadGateway})
		}, []string{"before", "one", "live"}, 0},
		"out of order for minutes": {func(b *bot) {
			b.say("one")
			b.Server.Fail(discordtest.Fault{Route: "GET messages", Times: -1, Status: http.StatusBadGateway})
			time.AfterFunc(4*time.Minute, b.Heal)
		}, []string{"before", "one", "live"}, 0},
		"never answers": {func(b *bot) {
			b.say("one")
			b.Server.Fail(discordtest.Fault{Route: "GET messages", Times: -1, Drop: true})
		}, []string{"before", "live"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, discordtest.Config{}, func(b *bot) {
				b.start()
				b.say("before")
				b.Write(discordtest.Post{Channel: groupID(1), User: userID(2), Text: "to the others"})
				b.pass(5 * time.Minute)
				b.kill()
				b.pass(10 * time.Minute)
				tt.away(b)
				b.Expire()
				b.start()
				b.pass(7 * time.Second) // the session is refused, and another one begins
				b.say("live")           // it waits for what was missed
				b.pass(10 * time.Minute)
				if tt.want != nil {
					b.wantEach(tt.want...)
				}
				if n := len(b.inbox.missed); n != tt.missed {
					t.Errorf("%d chats are told: %+v", n, b.inbox.missed)
				}
				if h := b.conn.Health().Err; strings.HasPrefix(name, "no history") && strings.Contains(h, "permission Read Message History") != (tt.missed > 0) {
					t.Errorf("health %q", h)
				}
				b.kill()
				b.say("last")
				b.start()
				b.pass(time.Minute)
				b.wantSessions(2, 1)
				if got := b.inbox.texts(); got[len(got)-1] != "last" {
					t.Errorf("stored last: %q", got[len(got)-1])
				}
			})
		})
	}
}

// Where the bot may not read the history, only a message of the gap itself counts as missing: not one
// that came on the session before or after it.
func TestHiddenHistory(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		known  string // comes right before the connection ends
		gap    string // is written in the gap
		live   string // comes while what was missed is read
		missed int
	}{
		"nothing":                   {"", "", "", 0},
		"known":                     {"known", "", "", 0},
		"live":                      {"", "", "live", 0},
		"missed":                    {"", "missed", "", 1},
		"missed, after a known one": {"known", "missed", "", 1},
		"missed, before a live one": {"", "missed", "live", 1},
		"missed, and then edited":   {"", "missed", "edit", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, discordtest.Config{}, func(b *bot) {
				newest := ""
				write := func(text string) {
					switch text {
					case "":
					case "edit":
						b.Edit(groupID(1), newest, "missed, as edited")
					default:
						newest = b.Write(discordtest.Post{Channel: groupID(1), User: userID(2), Text: text})
					}
				}
				b.start()
				b.HideHistory(groupID(1))
				b.pass(5 * time.Minute)
				write(tt.known)
				b.pass(time.Millisecond)
				b.Expire()
				b.Server.Fail(discordtest.Fault{Route: "GET messages", Channel: groupID(1), Takes: 20 * time.Second})
				b.Disconnect(0)
				write(tt.gap)
				b.pass(15 * time.Second)
				write(tt.live)
				b.pass(time.Minute)
				if n := len(b.inbox.missed); n != tt.missed {
					t.Errorf("%d chats are told: %+v", n, b.inbox.missed)
				}
			})
		})
	}
}

// Where the bot may not read the history, and a gap is read again after a kill or the end of the session,
// nothing says what was the newest message before a live one: the chat is told.
func TestHiddenHistoryReadAgain(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{true, false} {
		inBubble(t, discordtest.Config{}, func(b *bot) {
			write := func(text string) {
				b.Write(discordtest.Post{Channel: groupID(1), User: userID(2), Text: "<@" + discordtest.Bot + "> " + text})
			}
			slow := func() {
				b.Server.Fail(discordtest.Fault{Route: "GET messages", Channel: groupID(1), Takes: 20 * time.Second})
			}
			b.start()
			b.HideHistory(groupID(1))
			b.pass(5 * time.Minute)
			b.Expire()
			slow()
			b.Disconnect(0)
			write("missed")
			b.pass(15 * time.Second)
			write("live")
			b.pass(time.Second)
			slow()
			if killed {
				b.kill()
				b.start()
			} else {
				b.Expire()
				b.Disconnect(0)
			}
			b.pass(time.Second)
			b.want()
			b.pass(time.Minute)
			b.want("live")
			if n := len(b.inbox.missed); n != 1 {
				t.Errorf("killed: %t: %d chats are told: %+v", killed, n, b.inbox.missed)
			}
		})
	}
}

// A slow answer about one conversation, or about the threads of one server, holds up no other
// conversation; what is written in a slow one waits for what was missed there.
func TestSlowBackfill(t *testing.T) {
	t.Parallel()
	const other = "300000000000000002"
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.AddChannel(other, groupID(2))
		b.inbox.chats = []connectors.Chat{
			{ChannelID: directID(1)}, {ChannelID: guildID + "/" + groupID(1)}, {ChannelID: other + "/" + groupID(2)}, {ChannelID: directID(2)},
		}
		write := func(text string) {
			for n := range 2 {
				b.Write(discordtest.Post{Channel: directID(n + 1), User: userID(n + 1), Text: text})
				b.Write(discordtest.Post{Channel: groupID(n + 1), User: userID(n + 1), Text: "<@" + discordtest.Bot + "> " + text})
			}
		}
		b.start()
		b.say("before")
		b.pass(time.Minute)
		b.kill()
		b.pass(10 * time.Minute)
		write("missed")
		b.Expire()
		b.Server.Fail(discordtest.Fault{Route: "GET messages", Channel: directID(1), Takes: 29 * time.Second})
		b.Server.Fail(discordtest.Fault{Route: "GET threads", Takes: 29 * time.Second}) // of one server
		b.start()
		b.pass(10 * time.Second)
		write("live")
		b.pass(5 * time.Second)
		if got := b.inbox.of(directID(2)); fmt.Sprint(got) != "[missed live]" {
			t.Errorf("in a conversation whose calls are quick: %q", got)
		}
		if got := len(b.inbox.of(guildID+"/"+groupID(1))) + len(b.inbox.of(other+"/"+groupID(2))); got != 2 {
			t.Errorf("in two servers, one of them slow: %d messages", got)
		}
		if got := b.inbox.of(directID(1)); fmt.Sprint(got) != "[before]" {
			t.Errorf("in a conversation that is read: %q", got)
		}
		b.pass(time.Minute)
		for _, chat := range b.inbox.chats {
			if got := b.inbox.of(chat.ChannelID); !strings.HasSuffix(fmt.Sprint(got), "missed live]") {
				t.Errorf("%s: %q", chat.ChannelID, got)
			}
		}
	})
}

// A server whose calls are not answered holds up no other one, and its own conversations for minutes,
// however many threads they have: then each is told.
func TestBackfillOfAServerThatFails(t *testing.T) {
	t.Parallel()
	const channels, threads, other = backfillAtOnce + 2, 5, "300000000000000002"
	for _, lists := range []bool{true, false} {
		inBubble(t, discordtest.Config{}, func(b *bot) {
			b.inbox.chats = nil
			var ids []string
			for n := 2; n < channels+2; n++ {
				b.AddChannel(guildID, groupID(n))
				chat := connectors.Chat{ChannelID: guildID + "/" + groupID(n)}
				for i := range threads {
					thread := fmt.Sprintf("6000000000000000%d", 10*n+i)
					b.AddThread(groupID(n), thread)
					chat.Threads = append(chat.Threads, thread)
				}
				b.inbox.chats = append(b.inbox.chats, chat)
				ids = append(append(ids, groupID(n)), chat.Threads...)
			}
			b.AddChannel(other, groupID(50))
			quick := other + "/" + groupID(50)
			b.inbox.chats = append(b.inbox.chats, connectors.Chat{ChannelID: quick})
			write := func(text string) {
				for n := range channels + 1 {
					id := groupID(n + 2)
					if n == channels {
						id = groupID(50)
					}
					b.Write(discordtest.Post{Channel: id, User: userID(1), Text: "<@" + discordtest.Bot + "> " + text})
				}
			}
			b.start()
			b.pass(time.Minute)
			b.kill()
			b.pass(10 * time.Minute)
			write("missed")
			for _, id := range ids {
				b.Server.Fail(discordtest.Fault{Route: "GET messages", Channel: id, Times: -1, Takes: time.Hour})
			}
			b.Server.Fail(discordtest.Fault{Route: "GET threads", Channel: other, Takes: 10 * time.Second}) // the others are first
			if !lists {
				b.Server.Fail(discordtest.Fault{Route: "GET threads", Channel: guildID, Times: -1, Status: http.StatusBadGateway})
			}
			b.Expire()
			b.start()
			b.pass(10 * time.Second)
			write("live")
			b.pass(time.Minute)
			if got := b.inbox.of(quick); fmt.Sprint(got) != "[missed live]" {
				t.Errorf("in a server whose calls are answered: %q", got)
			}
			b.pass(2 * backfillPatience)
			for _, chat := range b.inbox.chats[:channels] {
				if got := b.inbox.of(chat.ChannelID); fmt.Sprint(got) != "[live]" {
					t.Errorf("%s, threads listed: %t: %q", chat.ChannelID, lists, got)
				}
			}
			if n := len(b.inbox.missed); n != channels {
				t.Errorf("%d chats are told: %+v", n, b.inbox.missed)
			}
			want := fmt.Sprintf("messages to %d conversations may be missing (read what was missed: ", channels)
			if h := b.conn.Health().Err; !strings.Contains(h, want) {
				t.Errorf("health %q", h)
			}
		})
	}
}

// Reading what was missed in many conversations leaves calls for answers in others.
func TestBackfillLeavesCalls(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.inbox.chats = nil
		for n := 1; n < 100; n++ {
			b.AddDirect(directID(n), userID(n))
			b.inbox.chats = append(b.inbox.chats, connectors.Chat{ChannelID: directID(n)})
		}
		b.start()
		b.pass(time.Minute)
		b.kill()
		b.pass(10 * time.Minute)
		b.Write(discordtest.Post{Channel: directID(99), User: userID(99), Text: "missed"})
		b.Expire()
		b.start()
		for b.Calls("GET messages") == 0 {
			b.pass(10 * time.Millisecond)
		}
		if _, err := b.conn.Send(b.Context(), out("o", "answer")); err != nil {
			t.Errorf("an answer after %d calls: %v", b.Calls("GET messages"), err)
		}
		b.pass(10 * time.Second)
		b.want("missed")
	})
}

// A slow response to an interaction holds up nothing of its user.
func TestSlowResponse(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		b.Server.Fail(discordtest.Fault{Route: "POST callback", Takes: 2 * time.Second})
		b.Slash(directID(1), userID(1), "new", "tea")
		b.say("cake")
		b.pass(time.Second)
		b.want("tea", "cake")
		b.pass(time.Minute)
		if n := b.Unanswered(); n != 0 || b.Calls("DELETE original") != 1 {
			t.Errorf("%d interactions without a response", n)
		}
	})
}

// A kill in the middle of a backfill begins it again.
func TestBackfillAcrossAKill(t *testing.T) {
	t.Parallel()
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
		b.pass(time.Minute)
		b.kill()
		b.inbox.fill(false)
		b.want("before")
		b.start()
		b.pass(time.Minute)
		b.want("before", "missed")
	})
}

// A gap whose beginning the store does not give at first is read once it does, whether a session
// was stored or not.
func TestGapWhileTheStoreFails(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{true, false} {
		inBubble(t, discordtest.Config{}, func(b *bot) {
			b.start()
			b.say("before")
			b.pass(time.Minute)
			b.kill()
			b.pass(10 * time.Minute)
			b.say("missed")
			b.pass(10 * time.Minute)
			b.Expire()
			if !stored {
				_ = b.marks.SetCheckpoint(t.Context(), sessionKey, "") // never fails
			}
			b.marks.breakKey("discord/" + discordtest.Bot + "/last_good")
			b.start()
			b.pass(5 * time.Minute)
			b.say("live")
			b.pass(time.Minute)
			b.want("before")
			b.marks.breakKey("")
			b.pass(time.Minute)
			b.want("before", "missed", "live")
		})
	}
}

// The health reports the conversations that a gap leaves unread.
func TestUnreadAfterAGap(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.inbox.more = 3
		b.start()
		b.pass(time.Minute)
		b.Expire()
		b.Disconnect(0)
		b.pass(time.Minute)
		if h := b.conn.Health(); !strings.Contains(h.Err, "UTC; 3 more conversations or threads were neither read nor notified") {
			t.Errorf("health %+v", h)
		}
	})
}
