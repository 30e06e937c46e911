package telegram

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// A change of the reactions of a person reaches the handler emoji by emoji, in private chats
// and in groups where the bot is an administrator.
func TestReactions(t *testing.T) {
	const group = -1000000000001
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.run()
		synctest.Wait()
		_, private := b.server.Write(telegramtest.Incoming{ChatID: 7, UserID: 7, Text: "hi"})
		_, open := b.server.Write(telegramtest.Incoming{ChatID: group, UserID: 7, Text: "/help"})
		if b.server.React(group, 7, open, "👍") != 0 {
			t.Error("a bot that is no administrator learns of reactions")
		}
		wantAdmin := func(want bool) {
			if got, err := b.conn.Administers(t.Context(), "-1000000000001"); err != nil || got != want {
				t.Errorf("an administrator: %t, %v, want %t", got, err, want)
			}
		}
		wantAdmin(false)
		b.server.Promote(group)
		wantAdmin(true)
		b.server.React(7, 7, private, "👍")
		b.server.React(7, 7, private, "👎", "🔥")
		b.server.React(7, 7, private)
		b.server.React(group, 8, open, "❤️")
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{
			"+👍 by 7 on 1 in 7 group=false", "-👍 by 7 on 1 in 7 group=false", "+👎 by 7 on 1 in 7 group=false", "+🔥 by 7 on 1 in 7 group=false",
			"-👎 by 7 on 1 in 7 group=false", "-🔥 by 7 on 1 in 7 group=false", "+❤ by 8 on 2 in -1000000000001 group=true",
		}
		slices.Sort(want) // updates of two chats have no order
		got := slices.Sorted(slices.Values(b.sink.routes))
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A reaction that cannot be stored stays at Telegram and comes again.
func TestReactionIsKept(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.run()
		synctest.Wait()
		_, message := b.server.Write(telegramtest.Incoming{ChatID: 7, UserID: 7, Text: "hi"})
		time.Sleep(time.Minute)
		synctest.Wait()
		b.sink.refuses = 1
		b.server.React(7, 7, message, "👍")
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(b.sink.routes) != 1 || len(b.server.Pending()) != 0 {
			t.Errorf("got %q, %v waits", b.sink.routes, b.server.Pending())
		}
	})
}

// What has no meaning is acknowledged and left: custom and paid emoji, anonymous
// administrators, bots and channels (core.telegram.org/bots/api#messagereactionupdated and
// …#reactiontype, read 2026-11-28).
func TestReactionShapes(t *testing.T) {
	type object = map[string]any
	ann, thumb := object{"id": 7, "is_bot": false, "first_name": "Ann"}, object{"type": "emoji", "emoji": "👍"}
	for name, c := range map[string]struct {
		change object
		want   int
	}{
		"an emoji":      {nil, 1},
		"a custom one":  {object{"new_reaction": []object{{"type": "custom_emoji", "custom_emoji_id": "5368324170671202286"}}}, 0},
		"a paid one":    {object{"new_reaction": []object{{"type": "paid"}}}, 0},
		"unchanged":     {object{"old_reaction": []object{thumb}}, 0},
		"anonymous":     {object{"user": nil, "actor_chat": object{"id": -5, "type": "supergroup"}}, 0},
		"of a bot":      {object{"user": object{"id": 9, "is_bot": true}}, 0},
		"of a channel":  {object{"chat": object{"id": -5, "type": "channel"}}, 0},
		"of no message": {object{"message_id": 0}, 0},
		"without time":  {object{"date": 0}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				b.run()
				synctest.Wait()
				update := object{
					"chat": object{"id": 7, "type": "private"}, "message_id": 4, "user": ann, "date": time.Now().Unix(),
					"old_reaction": []object{}, "new_reaction": []object{thumb},
				}
				for k, v := range c.change {
					update[k] = v
				}
				b.server.Deliver("message_reaction", update)
				synctest.Wait()
				if len(b.sink.routes) != c.want || len(b.server.Pending()) != 0 {
					t.Errorf("got %q, %v waits", b.sink.routes, b.server.Pending())
				}
			})
		})
	}
}
