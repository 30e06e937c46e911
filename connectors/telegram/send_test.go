package telegram

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/texts"
)

func TestSendFormats(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		receipt, err := b.conn.Send(t.Context(), outgoing("7", "**b** & `c < d` https://x.test\n\n```go\nx\n```"))
		if err != nil || receipt != "2" {
			t.Fatalf("got %q, %v", receipt, err)
		}
		got := b.server.Sent(7)[0]
		if got.Text != "b & c < d https://x.test\n\nx" || len(got.Entities) != 3 {
			t.Errorf("got %q %+v", got.Text, got.Entities)
		}
		if e := got.Entities[2]; e.Type != "pre" || e.Language != "go" {
			t.Errorf("fence: %+v", e)
		}
		params := b.server.Journal("sendMessage")[0].Params
		if !strings.Contains(params, `"link_preview_options":{"is_disabled":true}`) || strings.Contains(params, "reply_parameters") {
			t.Errorf("sent %s", params)
		}
	})
}

// A server behind basic authentication gets the name and the password of its address.
func TestUserOfTheAddress(t *testing.T) {
	var user, password string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ = r.BasicAuth()
		fmt.Fprint(w, `{"ok":true,"result":{"message_id":2}}`)
	}))
	defer server.Close()
	c := New(Config{Token: telegramtest.Token, BaseURL: strings.Replace(server.URL, "://", "://ann:p%40ss@", 1)})
	if _, err := c.Send(t.Context(), outgoing("7", "hello")); err != nil || user != "ann" || password != "p@ss" {
		t.Errorf("sent as %q with %q, %v", user, password, err)
	}
}

func TestSendFallsBackToPlainText(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		b.server.Fail(telegramtest.Fault{Method: "sendMessage", Status: 400, Description: "Bad Request: can't parse entities: Unsupported start tag"})
		if _, err := b.conn.Send(t.Context(), outgoing("7", "**b**")); err != nil {
			t.Fatal(err)
		}
		if got := b.server.Sent(7)[0].Text; got != "**b**" || b.server.Calls("sendMessage") != 2 {
			t.Errorf("got %q in %d calls", got, b.server.Calls("sendMessage"))
		}
		b.server.Fail(telegramtest.Fault{Method: "sendMessage", Times: 9, Status: 400, Description: "Bad Request: can't parse entities: still"})
		_, err := b.conn.Send(t.Context(), outgoing("7", "**b**"))
		var stop *connectors.PermanentError
		if !errors.As(err, &stop) || b.server.Calls("sendMessage") != 4 {
			t.Errorf("refused twice: %v in %d calls", err, b.server.Calls("sendMessage")-2)
		}
	})
}

func TestSendToATopicAsAReply(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		const forum = -1000000000009
		topic := b.server.AddTopic(forum)
		_, message := b.server.Write(telegramtest.Incoming{ChatID: forum, UserID: 7, Text: "@claybot hi", ThreadID: topic})
		b.run()
		synctest.Wait()
		m := b.sink.got[0]
		if m.Context.ThreadID != "2" || m.Context.ReplyTo != "3" || m.Text != "hi" {
			t.Fatalf("got %+v", m)
		}
		o := outgoing("", "yes?")
		o.Route = m.ReplyRoute(b.sink.to[0])
		if _, err := b.conn.Send(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if got := b.server.Sent(forum)[0]; got.ThreadID != topic || got.ReplyTo != message {
			t.Errorf("got %+v", got)
		}
		o.Route.ReplyTo = "99999" // deleted meanwhile: sent all the same
		if _, err := b.conn.Send(t.Context(), o); err != nil {
			t.Error(err)
		}
	})
}

func TestEdit(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		receipt, err := b.conn.Send(t.Context(), outgoing("7", "first"))
		if err != nil {
			t.Fatal(err)
		}
		edit := outgoing("7", "first, then more")
		edit.Edit, edit.Resent = receipt, true // an edit can be repeated and needs no mark
		for range 2 {                          // "not modified" is success
			if again, err := b.conn.Send(t.Context(), edit); err != nil || again != receipt {
				t.Fatalf("got %q, %v", again, err)
			}
		}
		if got := b.server.Sent(7); len(got) != 1 || got[0].Text != "first, then more" || got[0].Edits != 1 {
			t.Errorf("got %+v", got)
		}
		b.server.Fail(telegramtest.Fault{Method: "editMessageText", Lost: true})
		edit.Text = "the end"
		var unknown *connectors.AmbiguousError
		if _, err := b.conn.Send(t.Context(), edit); err == nil || errors.As(err, &unknown) {
			t.Errorf("a lost edit is to be repeated: %v", err)
		}
		b.server.DeleteSent(7, 2)
		for _, id := range []string{receipt, "1", "nonsense"} { // deleted, not ours, not an id
			edit.Edit = id
			if _, err := b.conn.Send(t.Context(), edit); !errors.Is(err, connectors.ErrEditGone) {
				t.Errorf("edit of %s: %v", id, err)
			}
		}
	})
}

func TestResent(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		o := outgoing("7", "answer")
		o.Resent = true
		if _, err := b.conn.Send(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		o.Text = "[a]: https://x.test" // nothing but a definition: shown as it is
		if _, err := b.conn.Send(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		got := b.server.Sent(7)
		const mark = "(sent again: the first copy may have arrived)"
		if len(got) != 2 || got[0].Text != mark+"\n\nanswer" || got[1].Text != mark+"\n\n"+o.Text {
			t.Errorf("got %d messages, the first %q", len(got), got[0].Text)
		}
	})
	for _, tt := range []struct {
		policy      string
		plain, once bool
	}{{"", true, false}, {AmbiguousAuto, true, false}, {AmbiguousResend, true, true}, {AmbiguousNotice, false, false}} {
		c := New(Config{OnAmbiguous: tt.policy})
		if got := c.Resend(claybot.Outgoing{}); got != tt.plain {
			t.Errorf("policy %q sends an answer again: %v", tt.policy, got)
		}
		if got := c.Resend(claybot.Outgoing{Once: true}); got != tt.once {
			t.Errorf("policy %q sends the output of a task again: %v", tt.policy, got)
		}
	}
}

// A part that an earlier version cut, with room for a shorter mark, keeps its mark.
func TestResentPartOfAnEarlierVersion(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		o := outgoing("7", strings.Repeat("x", maxTextUTF16-len("(sent again: the first copy may have arrived)\n\n")))
		o.Resent = true
		ctx := texts.With(t.Context(), func() texts.Voice { return texts.Voice{Language: texts.German} })
		if _, err := b.conn.Send(ctx, o); err != nil {
			t.Fatal(err)
		}
		if got := b.server.Sent(7); len(got) != 1 || got[0].Text != (texts.Voice{}).Resent()+o.Text {
			t.Errorf("%d messages: %.100q", len(got), got[0].Text)
		}
	})
}

// The mark stands in front of the longest text too, formatted or not, and is
// seen once, however often the text is refused.
func TestResentMarkIsPartOfALongText(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		parts := b.conn.Split(strings.Repeat("x", 2*maxTextUTF16))
		for _, refused := range []telegramtest.Fault{
			{Method: "sendMessage", Status: 429, RetryAfter: 5, Times: 3},
			{Method: "sendMessage", Status: 400, Description: "Bad Request: can't parse entities", Times: 1},
		} {
			before := len(b.server.Sent(7))
			german := texts.Voice{Language: texts.German} // with the longest mark
			b.server.Fail(refused)
			o := outgoing("7", parts[0])
			o.Resent = true
			receipt := ""
			for range 4 {
				var err error
				var wait *connectors.RetryError
				if receipt, err = b.conn.Send(texts.With(t.Context(), func() texts.Voice { return german }), o); !errors.As(err, &wait) {
					break
				}
				time.Sleep(wait.After)
			}
			got := b.server.Sent(7)[before:]
			if len(got) != 1 || got[0].Text != german.Resent()+parts[0] || receipt == "" {
				t.Fatalf("%d: %d messages, receipt %q", refused.Status, len(got), receipt)
			}
			if n := connectors.UTF16Len(got[0].Text); n != maxTextUTF16 {
				t.Errorf("%d: %d units, want all the room there is", refused.Status, n)
			}
		}
	})
}

// Telegram takes a message and its answer gets lost, many times over: nothing
// is lost, and every copy after the first says what it is. Who prefers a notice
// gets no copies.
func TestLostAnswers(t *testing.T) {
	for _, policy := range []string{AmbiguousResend, AmbiguousNotice} {
		inBubble(t, Config{OnAmbiguous: policy}, func(t *testing.T, b *bubble) {
			const n = 200
			b.server.Say(7, 7, "hi")
			for i := range n {
				time.Sleep(time.Second) // Telegram takes one message a second
				o := outgoing("7", fmt.Sprintf("answer %d", i))
				b.server.Fail(telegramtest.Fault{Method: "sendMessage", Lost: i%2 == 0, Cut: i%2 == 1})
				_, err := b.conn.Send(t.Context(), o)
				var unknown *connectors.AmbiguousError
				if !errors.As(err, &unknown) {
					t.Fatalf("answer %d: %v", i, err)
				}
				if o.Resent = b.conn.Resend(o); !o.Resent {
					continue
				}
				if receipt, err := b.conn.Send(t.Context(), o); err != nil || receipt == "" {
					t.Fatalf("copy of answer %d: %q, %v", i, receipt, err)
				}
				time.Sleep(time.Second)
			}
			got := b.server.Sent(7)
			var want []string
			for i := range n {
				text := fmt.Sprintf("answer %d", i)
				if want = append(want, text); policy == AmbiguousResend {
					want = append(want, "(sent again: the first copy may have arrived)\n\n"+text)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%s: %d messages in the chat, want %d", policy, len(got), len(want))
			}
			for i, m := range got {
				if m.Text != want[i] {
					t.Errorf("%s: message %d is %q, want %q", policy, i, m.Text, want[i])
				}
			}
		})
	}
}

// How an attempt ended decides whether it may be repeated.
func TestSendErrors(t *testing.T) {
	ambiguous := func(err error) bool { var e *connectors.AmbiguousError; return errors.As(err, &e) }
	permanent := func(dead bool) func(error) bool {
		return func(err error) bool {
			var e *connectors.PermanentError
			return errors.As(err, &e) && e.DeadRoute == dead
		}
	}
	later := func(err error) bool {
		var r *connectors.RetryError
		return err != nil && !ambiguous(err) && !permanent(true)(err) && !permanent(false)(err) && !errors.As(err, &r)
	}
	retry := func(after time.Duration) func(error) bool {
		return func(err error) bool {
			var e *connectors.RetryError
			return errors.As(err, &e) && e.After == after && !e.All
		}
	}
	tests := []struct {
		name  string
		fault telegramtest.Fault
		is    func(error) bool
	}{
		{"lost answer", telegramtest.Fault{Lost: true}, ambiguous},
		{"dropped after the request", telegramtest.Fault{Drop: true}, ambiguous},
		{"cut answer", telegramtest.Fault{Cut: true}, ambiguous},
		{"hang", telegramtest.Fault{Hang: true}, ambiguous},
		{"500", telegramtest.Fault{Status: 500}, ambiguous},
		{"502 in HTML", telegramtest.Fault{Status: 502, Body: "<html>"}, ambiguous},
		{"200 in HTML", telegramtest.Fault{Status: 200, Body: "<html>"}, ambiguous},
		{"200 without a message", telegramtest.Fault{Status: 200, Body: `{"ok":true,"result":true}`}, ambiguous},
		{"413 by a proxy", telegramtest.Fault{Status: 413, Body: "<html>"}, later},
		{"302", telegramtest.Fault{Status: 302, Body: "x"}, later},
		{"401", telegramtest.Fault{Status: 401}, later},
		{"429", telegramtest.Fault{Status: 429, RetryAfter: 12}, retry(12 * time.Second)},
		{"429 for ages", telegramtest.Fault{Status: 429, RetryAfter: 1 << 40}, retry(24 * time.Hour)},
		{"429 without a time", telegramtest.Fault{Status: 429, Body: "slow down"}, retry(5 * time.Second)},
		{"blocked", telegramtest.Fault{Status: 403, Description: "Forbidden: bot was blocked by the user"}, permanent(true)},
		{"chat not found", telegramtest.Fault{Status: 400, Description: "Bad Request: chat not found"}, permanent(true)},
		{"restricted", telegramtest.Fault{Status: 400, Description: "Bad Request: CHAT_RESTRICTED"}, permanent(true)},
		{"no administrator", telegramtest.Fault{Status: 400, Description: "Bad Request: need administrator rights in the channel chat"}, permanent(true)},
		{"no rights", telegramtest.Fault{Status: 400, Description: "Bad Request: not enough rights to send text messages to the chat"}, permanent(true)},
		{"too long", telegramtest.Fault{Status: 400, Description: "Bad Request: message is too long"}, permanent(false)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				b.server.Say(7, 7, "hi")
				b.server.Fail(tt.fault)
				if _, err := b.conn.Send(t.Context(), outgoing("7", "x")); !tt.is(err) {
					t.Errorf("got %T %v", err, err)
				}
			})
		})
	}
	t.Run("unreachable", func(t *testing.T) {
		inBubble(t, Config{}, func(t *testing.T, b *bubble) {
			b.server.RefuseConnections(true)
			if _, err := b.conn.Send(t.Context(), outgoing("7", "x")); !later(err) {
				t.Errorf("got %T %v", err, err)
			}
		})
	})
	t.Run("cancelled before it began", func(t *testing.T) {
		inBubble(t, Config{}, func(t *testing.T, b *bubble) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := b.conn.Send(ctx, outgoing("7", "x")); !later(err) || !errors.Is(err, context.Canceled) {
				t.Errorf("got %T %v", err, err)
			}
		})
	})
	for name, o := range map[string]claybot.Outgoing{"no number": outgoing("C1", "x"), "no text": outgoing("7", " \n")} {
		if _, err := New(Config{Token: telegramtest.Token}).Send(t.Context(), o); !permanent(name == "no number")(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nothing is held back before the first 429. Then the chat is silent for
// exactly the time named, other chats are not, and it becomes free again.
func TestRatesAreLearned(t *testing.T) {
	inBubbleWith(t, telegramtest.Config{NoLimits: true}, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		b.server.Say(8, 8, "hi")
		send := func(chat string) error {
			_, err := b.conn.Send(t.Context(), outgoing(chat, "x"))
			return err
		}
		start := time.Now()
		for range 50 {
			if err := send("7"); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(start) != 0 {
			t.Errorf("50 sends took %v without a 429", time.Since(start))
		}
		b.server.Silence(7, 9*time.Second)
		var r *connectors.RetryError
		if err := send("7"); !errors.As(err, &r) || r.After != 9*time.Second {
			t.Fatalf("got %v", err)
		}
		calls := b.server.Calls("sendMessage")
		time.Sleep(4 * time.Second)
		if err := send("7"); !errors.As(err, &r) || r.After != 5*time.Second {
			t.Errorf("in the silence: %v", err)
		}
		if err := b.conn.Typing(t.Context(), outgoing("7", "").Route); err != nil || b.server.Typing(7) != 0 {
			t.Errorf("typing in the silence: %v", err)
		}
		if b.server.Calls("sendMessage") != calls || b.server.Violations() != 0 {
			t.Error("a call in the silence")
		}
		if err := send("8"); err != nil {
			t.Errorf("another chat: %v", err)
		}
		time.Sleep(5 * time.Second)
		sent := 0
		for range 400 { // a minute and a half behind the silence
			if send("7") == nil {
				sent++
			}
			time.Sleep(250 * time.Millisecond)
		}
		if sent < 300 {
			t.Errorf("%d of 400 sends went out: the chat did not become free again", sent)
		}
		if len(b.conn.pace.chats) != 0 || b.server.Violations() != 0 {
			t.Errorf("%d chats are still paced, %d violations", len(b.conn.pace.chats), b.server.Violations())
		}
	})
}

// Telegram does not say that a 429 is meant for the whole bot; refusing many
// chats at once does.
func TestRefusingManyChatsSilencesTheBot(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Fail(telegramtest.Fault{Method: "sendMessage", Status: 429, RetryAfter: 5, Times: 3})
		var r *connectors.RetryError
		for i, chat := range []string{"7", "8", "9", "10"} {
			_, err := b.conn.Send(t.Context(), outgoing(chat, "x"))
			if !errors.As(err, &r) || r.All != (i >= 2) {
				t.Errorf("chat %s: %v", chat, err)
			}
		}
		if n := b.server.Calls("sendMessage"); n != 3 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestTypingAndStreaming(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		if err := b.conn.Typing(t.Context(), claybot.Route{ChannelID: "7"}); err != nil || b.server.Typing(7) != 1 {
			t.Errorf("typing: %v", err)
		}
		private, group := b.conn.Streaming(claybot.Route{ChannelID: "7"}), b.conn.Streaming(claybot.Route{ChannelID: "-7"})
		if private.Off || private.First != 64 || private.Every != time.Second || group.Every != 3*time.Second {
			t.Errorf("streaming %+v %+v", private, group)
		}
	})
	if !New(Config{Delivery: DeliveryDirect}).Streaming(claybot.Route{}).Off {
		t.Error("direct delivery streams")
	}
}

func BenchmarkSend(b *testing.B) {
	s := telegramtest.New(telegramtest.Config{NoJournal: true, NoLimits: true})
	defer s.Close()
	url, err := s.Start()
	if err != nil {
		b.Fatal(err)
	}
	s.Say(7, 7, "hi")
	c := New(Config{Token: telegramtest.Token, BaseURL: url})
	for b.Loop() {
		if _, err := c.Send(b.Context(), outgoing("7", "Sure, the train leaves at half past nine.")); err != nil {
			b.Fatal(err)
		}
	}
}
