package telegram

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// A user who blocks the bot, and a group that removes it, are reported, and what ends that.
func TestMembershipChanges(t *testing.T) {
	const group, small = -1000000000001, -6
	for name, c := range map[string]struct {
		do   func(s *telegramtest.Server)
		want []string
	}{
		"blocked":            {func(s *telegramtest.Server) { s.Block(7, true) }, []string{"7: the user blocked the bot"}},
		"unblocked":          {func(s *telegramtest.Server) { s.Block(7, true); s.Block(7, false) }, []string{"7: the user blocked the bot", "7: "}},
		"wrote again":        {func(s *telegramtest.Server) { s.Block(7, true); s.Say(7, 7, "hi") }, []string{"7: the user blocked the bot", "7: "}},
		"removed":            {func(s *telegramtest.Server) { s.Kick(group) }, []string{"-1000000000001: the bot was removed from the group"}},
		"removed from small": {func(s *telegramtest.Server) { s.Kick(small) }, []string{"-6: the bot was removed from the group"}},
		"added again":        {func(s *telegramtest.Server) { s.Kick(group); s.Add(group) }, []string{"-1000000000001: the bot was removed from the group", "-1000000000001: "}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				b.run()
				synctest.Wait()
				c.do(b.server)
				synctest.Wait()
				if got := b.sink.routes; !slices.Equal(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// Each status that Telegram documents is read, of this bot in a private chat or a group; of
// everything else nothing is reported.
func TestMembershipStatus(t *testing.T) {
	type object = map[string]any
	bot := object{"id": 1234567, "is_bot": true, "first_name": "claybot"}
	for name, c := range map[string]struct {
		chat object
		now  object
		want string
	}{
		"left":            {nil, object{"status": "left", "user": bot}, "-5: the bot left the chat"},
		"administrator":   {nil, object{"status": "administrator", "user": bot}, "-5: "},
		"restricted":      {nil, object{"status": "restricted", "user": bot, "is_member": true, "can_send_messages": true}, "-5: "},
		"may not write":   {nil, object{"status": "restricted", "user": bot, "is_member": true}, "-5: the bot may not write in the group"},
		"restricted, out": {nil, object{"status": "restricted", "user": bot, "can_send_messages": true}, "-5: the bot is not in the group"},
		"another bot":     {nil, object{"status": "kicked", "user": object{"id": 8, "is_bot": true}}, ""},
		"no user":         {nil, object{"status": "kicked"}, ""},
		"unknown status":  {nil, object{"status": "future", "user": bot}, ""},
		"a channel":       {object{"id": -5, "type": "channel"}, object{"status": "kicked", "user": bot}, ""},
		"no chat":         {object{}, object{"status": "kicked", "user": bot}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				b.run()
				synctest.Wait()
				if c.chat == nil {
					c.chat = object{"id": -5, "type": "group"}
				}
				b.server.Deliver("my_chat_member", object{"chat": c.chat, "from": object{"id": 9}, "date": time.Now().Unix(), "new_chat_member": c.now})
				b.server.Say(7, 7, "next")
				synctest.Wait()
				var want []string
				if c.want != "" {
					want = []string{c.want}
				}
				if !slices.Equal(b.sink.routes, want) || !slices.Equal(b.sink.texts(), []string{"next"}) {
					t.Errorf("got %q and %q, want %q", b.sink.routes, b.sink.texts(), want)
				}
			})
		})
	}
}

// A change that cannot be stored stays at Telegram, and comes again.
func TestMembershipChangeIsKept(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.sink.refuses = 1
		b.run()
		synctest.Wait()
		b.server.Block(7, true)
		synctest.Wait()
		if len(b.server.Pending()) != 1 {
			t.Error("confirmed before it was stored")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(b.server.Pending()) != 0 || !slices.Equal(b.sink.routes, []string{"7: the user blocked the bot"}) {
			t.Errorf("%d pending, got %q", len(b.server.Pending()), b.sink.routes)
		}
	})
}
