package telegram

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/connectorstest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// eachWay runs a test with polls and with a webhook.
func eachWay(t *testing.T, test func(t *testing.T, b *bubble)) {
	t.Run("polls", func(t *testing.T) { inBubble(t, Config{}, test) })
	t.Run("webhook", func(t *testing.T) {
		hookBubble(t, func(t *testing.T, b *bubble, _ *connectorstest.Doorway) { test(t, b) })
	})
}

// refused returns what was posted of connections to business accounts.
func (s *sink) refused() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range s.got {
		all = append(all, fmt.Sprint(m.Type, " ", m.Command, m.Text, " of ", s.to[i].ChannelID, "/", s.to[i].UserID, " ", m.Context.Locale, m.Keys))
	}
	return all
}

// A user who connects the bot to their business account is answered in their own chat. The bot gets
// nothing that other people write to that account.
func TestBusinessConnection(t *testing.T) {
	eachWay(t, func(t *testing.T, b *bubble) {
		b.server.SetLanguage(7, "de")
		b.run()
		synctest.Wait()
		if id, _ := b.server.ConnectBusiness(7, true); id == 0 {
			t.Error("the bot did not ask for connections")
		}
		synctest.Wait()
		if got := b.server.WriteToBusiness(7, 9, "is it free on Friday?"); !slices.Equal(got, []int64{0, 0, 0}) {
			t.Errorf("the bot gets the messages of the account: updates %v", got)
		}
		b.server.ConnectBusiness(7, false)
		synctest.Wait()
		if want := []string{"command business of 7/7 de[telegram/1234567/business/business-7]"}; !slices.Equal(b.sink.refused(), want) {
			t.Errorf("got %q, want %q", b.sink.refused(), want)
		}
		if n := len(b.server.Pending()); n > 0 {
			t.Errorf("%d updates wait", n)
		}
	})
}

// Messages of business accounts that Telegram kept from a time when the bot asked for them, and what
// is no connection of a person, have no effect; what comes after it is read.
func TestBusinessUpdatesWithoutEffect(t *testing.T) {
	type object = map[string]any
	ann := object{"id": 7, "first_name": "Ann"}
	message := object{"message_id": 3, "business_connection_id": "b", "from": object{"id": 9}, "chat": object{"id": 9, "type": "private"}, "date": 1, "text": "hi"}
	for name, u := range map[string]struct {
		kind string
		body any
	}{
		"message":  {"business_message", message},
		"edit":     {"edited_business_message", message},
		"deletion": {"deleted_business_messages", object{"business_connection_id": "b", "chat": object{"id": 9, "type": "private"}, "message_ids": []int{3}}},
		"ended":    {"business_connection", object{"id": "b", "user": ann, "user_chat_id": 7, "date": 1, "is_enabled": false}},
		"no user":  {"business_connection", object{"id": "b", "user_chat_id": 7, "date": 1, "is_enabled": true}},
		"no chat":  {"business_connection", object{"id": "b", "user": ann, "date": 1, "is_enabled": true}},
		"no id":    {"business_connection", object{"user": ann, "user_chat_id": 7, "date": 1, "is_enabled": true}},
		"a bot":    {"business_connection", object{"id": "b", "user": object{"id": 8, "is_bot": true}, "user_chat_id": 8, "date": 1, "is_enabled": true}},
		"broken":   {"business_connection", object{"id": 5, "user": ann, "user_chat_id": 7, "date": 1, "is_enabled": true}},
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, b *bubble) {
				if b.server.Deliver(u.kind, u.body) == 0 { // before the bot said what it wants
					t.Fatal("not delivered")
				}
				b.run()
				synctest.Wait()
				b.server.Say(7, 7, "next")
				synctest.Wait()
				if got := b.sink.texts(); !slices.Equal(got, []string{"next"}) || len(b.server.Pending()) > 0 {
					t.Errorf("got %q, %d wait", got, len(b.server.Pending()))
				}
			})
		})
	}
}

// A connection that cannot be stored stays at Telegram, and comes again.
func TestBusinessConnectionIsKept(t *testing.T) {
	eachWay(t, func(t *testing.T, b *bubble) {
		broken := true
		b.sink.fail = func(m claybot.AgentMessage) error {
			if broken && m.Command == connectors.Business {
				return fmt.Errorf("disk full")
			}
			return nil
		}
		b.run()
		synctest.Wait()
		b.server.ConnectBusiness(7, true)
		synctest.Wait()
		if len(b.server.Pending()) != 1 || len(b.sink.refused()) > 0 {
			t.Error("acknowledged before it was stored")
		}
		b.sink.mu.Lock()
		broken = false
		b.sink.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(b.server.Pending()) != 0 || len(b.sink.refused()) != 1 {
			t.Errorf("%d wait, got %q", len(b.server.Pending()), b.sink.refused())
		}
	})
}

// The emulator gives the messages of a business account to a bot that asks for them.
func TestBusinessOfTheEmulator(t *testing.T) {
	s := telegramtest.New(telegramtest.Config{})
	defer s.Close()
	if got := s.WriteToBusiness(7, 9, "hello"); got != nil {
		t.Errorf("without a connection: %v", got)
	}
	s.ConnectBusiness(7, true)
	if got := s.WriteToBusiness(7, 9, "hello"); slices.Contains(got, 0) || len(got) != 3 {
		t.Errorf("by default, a bot gets all three: %v", got)
	}
	s.ConnectBusiness(7, false)
	if got := s.WriteToBusiness(7, 9, "hello"); got != nil {
		t.Errorf("after the end: %v", got)
	}
}
