package telegram

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/texts"
)

var (
	yesNo = claybot.Question{Type: claybot.QuestionBoolean, Required: true}
	tea   = claybot.Question{Type: claybot.QuestionMultiselect, Required: true, Options: []string{"tea", "coffee", "milk"}}
)

// restart ends the daemon and starts another one, which knows nothing.
func (b *bubble) restart() {
	_ = b.end()
	b.conn = New(b.conn.cfg)
	b.run()
	synctest.Wait()
}

// What the Handler says about a press is shown only to the user who pressed:
// in a window of its own when it is not the answer that counts.
func TestWhatTheUserWhoPressedReads(t *testing.T) {
	long := strings.Repeat("Please choose at least 2 of: tea, coffee.\n", 20)
	tests := []struct {
		name   string
		became connectors.PressResult
		text   string
		alert  bool
	}{
		{"taken", connectors.PressResult{OK: true, Text: "Thank you, I have it."}, "Thank you, I have it.", false},
		{"taken without a word", connectors.PressResult{OK: true}, "", false},
		{"unfit", connectors.PressResult{Again: true, Text: "Please choose at least 2."}, "Please choose at least 2.", true},
		{"too late", connectors.PressResult{Text: "Too late: this question has expired."}, "Too late: this question has expired.", true},
		{"a stranger", connectors.PressResult{Text: "This question is not for you."}, "This question is not for you.", true},
		{"long", connectors.PressResult{Text: long}, connectors.OneLine(long, 200), true},
		{"wide", connectors.PressResult{Text: strings.Repeat("😀", 150)}, strings.Repeat("😀", 99) + "…", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				b.server.Say(testGroup, asked, "hi")
				b.sink.answer = func(connectors.Press) (connectors.PressResult, error) { return tt.became, nil }
				if tt.became == (connectors.PressResult{OK: true}) {
					b.sink.answer = nil // the zero value asks the sink itself
					tt.text = "Thank you."
				}
				b.run()
				m := b.ask(yesNo, testGroup)
				if got := b.press(testGroup, 8, m.ID, "Yes"); !got.Answered || got.Text != tt.text || got.Alert != tt.alert {
					t.Errorf("the user who pressed reads %+v, want %q", got, tt.text)
				}
				if len(b.server.Sent(testGroup)) != 1 {
					t.Errorf("others read %+v", b.server.Sent(testGroup))
				}
			})
		})
	}
}

// Edit answers nothing: it says how an action is approved with other arguments.
func TestEditExplains(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		b.run()
		q := claybot.Question{ID: "abcdefgh", Text: "Pay?", Type: claybot.QuestionConfirm, Required: true, Tool: "pay", Args: `{"sum":5}`}
		m := b.ask(q, asked)
		if got := b.shown(asked, m.ID).Buttons(); !slices.Equal(got, []string{"Approve", "Deny", "Approve for this session", "Edit"}) {
			t.Errorf("buttons %q", got)
		}
		if got := b.press(asked, asked, m.ID, "Edit"); !got.Answered || !got.Alert || !strings.Contains(got.Text, "/approve abcdef {") {
			t.Errorf("the user who pressed reads %+v", got)
		}
		if len(b.sink.presses) != 0 {
			t.Errorf("answers %+v", b.sink.presses)
		}
	})
}

// The state of a question is in its message: a daemon that was started between
// asking and a press, and between two presses, takes the same answer.
func TestRestartBetweenAskAndPress(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		b.run()
		m := b.ask(tea, asked)
		b.restart()
		b.press(asked, asked, m.ID, "milk")
		b.restart()
		b.press(asked, asked, m.ID, "tea")
		b.restart()
		if got := b.shown(asked, m.ID).Buttons(); !slices.Equal(got, []string{"✓ tea", "coffee", "✓ milk", "Done"}) {
			t.Errorf("buttons %q", got)
		}
		b.press(asked, asked, m.ID, "Done")
		if len(b.sink.presses) != 1 || b.sink.presses[0].Answer.Text != `["1","3"]` {
			t.Errorf("answers %+v", b.sink.presses)
		}
	})
}

// A button press that came while the daemon was down is taken when it is back; that it
// is too late to be answered is nothing to worry about.
func TestPressWhileDown(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		b.run()
		m := b.ask(yesNo, asked)
		_ = b.end()
		query, _ := b.server.Press(asked, asked, m.ID, "Yes")
		time.Sleep(time.Minute)
		b.logs.Reset()
		b.conn = New(b.conn.cfg)
		b.run()
		synctest.Wait()
		if len(b.sink.presses) != 1 || b.sink.presses[0].Answer.Text != "yes" || len(b.server.Pending()) != 0 {
			t.Errorf("answers %+v, waiting %v", b.sink.presses, b.server.Pending())
		}
		if got, _ := b.server.PressByID(query); got.Answered || b.server.Calls("answerCallbackQuery") != 1 || strings.Contains(b.logs.String(), "WARN") {
			t.Errorf("%+v, log %s", got, b.logs)
		}
	})
}

// Nothing is confirmed before the answer is durable, and then it is taken once
// and said so.
func TestRefusedAnswerKeepsTheOffset(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		b.run()
		synctest.Wait()
		m := b.ask(yesNo, asked)
		broken := true
		b.sink.answer = func(connectors.Press) (connectors.PressResult, error) {
			if broken {
				return connectors.PressResult{}, errors.New("disk full")
			}
			return connectors.PressResult{}, nil
		}
		query, _ := b.server.Press(asked, asked, m.ID, "No")
		b.server.Say(asked, asked, "behind")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(b.server.Pending()) != 2 || len(b.sink.presses) != 0 || len(b.sink.got) != 1 || b.server.Calls("answerCallbackQuery") != 0 {
			t.Errorf("waiting %v, taken %+v, %q", b.server.Pending(), b.sink.presses, b.sink.texts())
		}
		if h := b.conn.Health(); h.State != connectors.StateFailing || !strings.Contains(h.Err, "disk full") {
			t.Errorf("health %+v", h)
		}
		b.sink.mu.Lock()
		broken = false
		b.sink.mu.Unlock()
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if len(b.server.Pending()) != 0 || len(b.sink.presses) != 1 || b.sink.presses[0].Answer.Text != "no" {
			t.Errorf("waiting %v, answers %+v", b.server.Pending(), b.sink.presses)
		}
		if got, _ := b.server.PressByID(query); !got.Answered || got.Text != "Thank you." {
			t.Errorf("the user who pressed reads %+v", got)
		}
	})
}

// After a crash behind the answer the press is redelivered, and the Handler says that it
// has it.
func TestPressIsRedeliveredAfterACrash(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		m := b.ask(yesNo, asked)
		b.server.Press(asked, asked, m.ID, "Yes")
		b.server.Fail(telegramtest.Fault{Method: "getUpdates", Skip: 1, Hang: true})
		b.run()
		synctest.Wait()
		if len(b.sink.presses) != 1 {
			t.Fatalf("answers %+v", b.sink.presses)
		}
		b.restart()
		if len(b.sink.presses) != 2 || !reflect.DeepEqual(b.sink.presses[0], b.sink.presses[1]) || len(b.server.Pending()) != 0 {
			t.Errorf("answers %+v", b.sink.presses)
		}
	})
}

func TestDoublePress(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		b.run()
		m := b.ask(yesNo, asked)
		first := b.press(asked, asked, m.ID, "Yes")
		second := b.press(asked, asked, m.ID, "No")
		if first.Alert || !second.Alert || second.Text != "This was answered already." {
			t.Errorf("first %+v, second %+v", first, second)
		}
		if b.sink.presses[0].Answer.Text != "yes" {
			t.Errorf("answers %+v", b.sink.presses)
		}
	})
}

// Messages and presses of one person stay in order, whatever becomes of them.
func TestOrderOfPressesAndMessages(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "0")
		m := b.ask(yesNo, asked)
		var order, want []string
		b.sink.fail = func(m claybot.AgentMessage) error { order = append(order, m.Text); return nil }
		b.sink.answer = func(t connectors.Press) (connectors.PressResult, error) {
			order = append(order, t.Answer.Question)
			return connectors.PressResult{OK: true}, nil
		}
		want = append(want, "0")
		for i := range 20 {
			id := fmt.Sprint("q", i)
			b.server.PressData(asked, asked, m.ID, "q:"+id+":y")
			b.server.Say(asked, asked, fmt.Sprint(i))
			want = append(want, id, fmt.Sprint(i))
		}
		b.run()
		synctest.Wait()
		if !slices.Equal(order, want) {
			t.Errorf("got %q", order)
		}
	})
}

// Buttons that mean nothing to us, and presses on messages that we cannot see, are
// no error: the user who pressed is told.
func TestDeadButtons(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		m := b.ask(yesNo, asked)
		forgotten := b.ask(yesNo, asked)
		b.server.Forget(asked, forgotten.ID)
		b.server.Say(testGroup, asked, "hi")
		choice := b.ask(claybot.Question{Type: claybot.QuestionSelect, Options: []string{"1", "2"}}, testGroup)
		var queries []string
		for _, data := range []string{
			"", "x", "q:", "q:a", "q:a:z", "c:", "c:stop", "c:/two\nlines", "c:/stop@otherbot", "\x00", "{}", strings.Repeat("q", 64),
			"q:other:O1",                 // of a keyboard that is not there
			"q:" + questionID + ":D1",    // the same
			"q:" + questionID + ":o99",   // no option
			"q:" + questionID + ":t1.zz", // no bits
		} {
			queries = append(queries, b.server.PressData(asked, asked, m.ID, data))
		}
		query, _ := b.server.Press(asked, asked, forgotten.ID, "Yes")
		queries = append(queries, query,
			b.server.PressInline(asked, "q:"+questionID+":y"),
			b.server.PressData(asked, asked, 99, "q:"+questionID+":y"),             // deleted
			b.server.PressData(testGroup, asked, choice.ID, "q:"+questionID+":O3"), // no such button
		)
		b.run()
		synctest.Wait()
		for _, id := range queries {
			if got, _ := b.server.PressByID(id); !got.Answered || got.Text != texts.ButtonDead || !got.Alert {
				t.Errorf("%q: the user who pressed reads %+v", got.Data, got)
			}
		}
		// Forms that Telegram does not send, or not to us.
		press := func(change func(press, message map[string]any)) {
			message := map[string]any{"message_id": 2, "date": 5, "chat": map[string]any{"id": asked, "type": "private"}, "from": map[string]any{"id": 1234567, "is_bot": true}}
			press := map[string]any{"id": "1", "from": map[string]any{"id": asked}, "data": "q:" + questionID + ":y", "message": message}
			change(press, message)
			b.server.Deliver("callback_query", press)
		}
		press(func(press, _ map[string]any) { delete(press, "id") })
		press(func(press, _ map[string]any) { delete(press, "from") })
		press(func(press, _ map[string]any) { press["data"] = 7 })
		press(func(press, _ map[string]any) { press["message"] = "gone" })
		press(func(_, m map[string]any) { m["from"] = map[string]any{"id": 8, "is_bot": true} })
		press(func(_, m map[string]any) { m["chat"] = map[string]any{"id": -5, "type": "channel"} })
		press(func(_, m map[string]any) { m["chat"] = map[string]any{} })
		press(func(_, m map[string]any) { m["date"] = 0 })
		press(func(press, _ map[string]any) { press["from"] = map[string]any{"id": 9, "is_bot": true} })
		b.server.DeliverRaw(func(id int64) string { return fmt.Sprintf(`{"update_id":%d,"callback_query":{}}`, id) })
		b.server.DeliverRaw(func(id int64) string { return fmt.Sprintf(`{"update_id":%d,"callback_query":[]}`, id) })
		synctest.Wait()
		if len(b.sink.presses) != 0 || len(b.sink.got) != 1 || len(b.server.Pending()) != 0 {
			t.Errorf("answers %+v, messages %q, waiting %v", b.sink.presses, b.sink.texts(), b.server.Pending())
		}
		if _, ignored, broken := b.conn.Figures(); ignored != int64(len(queries))+10 || broken != 1 {
			t.Errorf("%d ignored, %d broken; want %d and 1", ignored, broken, len(queries)+10)
		}
		if h := b.conn.Health(); h.State != connectors.StateLive {
			t.Errorf("health %+v", h)
		}
		// One field of an unexpected type does not lose a readable callback.
		press(func(press, m map[string]any) { press["chat_instance"], m["text"] = 5, 5 })
		synctest.Wait()
		if len(b.sink.presses) != 1 {
			t.Errorf("answers %+v", b.sink.presses)
		}
	})
}

func TestOffers(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		const forum = -1000000000009
		topic := b.server.AddTopic(forum)
		b.server.AddPerson(8, "Bob", "bob")
		b.server.Write(telegramtest.Incoming{ChatID: forum, UserID: asked, Text: "@claybot hi", ThreadID: topic})
		b.server.Say(asked, asked, "hi")
		b.run()
		synctest.Wait()
		private := outgoing(fmt.Sprint(asked), "done")
		private.Offer = []claybot.Offer{{Label: "Undo", Command: "/undo r1"}, {Label: "Afresh", Command: "/new and say hello"}, {Label: "Stop", Command: "/STOP@claybot"}}
		group := private
		group.Route.ChannelID, group.Route.ThreadID, group.Route.Group = fmt.Sprint(forum), fmt.Sprint(topic), true
		inPrivate, inGroup := b.send(private), b.send(group)
		b.sink.got, b.sink.to = nil, nil
		for _, text := range []string{"Undo", "Afresh", "Stop"} {
			if got := b.press(asked, asked, inPrivate.ID, text); !got.Answered || got.Text != "" || got.Alert {
				t.Errorf("%s: the user who pressed reads %+v", text, got)
			}
		}
		query := b.press(forum, 8, inGroup.ID, "Undo").ID
		if len(b.sink.got) != 4 {
			t.Fatalf("posted %q", b.sink.texts())
		}
		undo, fresh, stop, other := b.sink.got[0], b.sink.got[1], b.sink.got[2], b.sink.got[3]
		if undo.Text != "r1" || undo.Command != "undo" || undo.Type != claybot.MessageCommand || undo.Context != (claybot.MessageContext{}) || undo.From.UserID != "7" || undo.At == 0 {
			t.Errorf("undo: %+v", undo)
		}
		if fresh.Type != claybot.MessageReset || fresh.Text != "and say hello" || stop.Type != claybot.MessageCancel {
			t.Errorf("fresh %+v, stop %+v", fresh, stop)
		}
		want := claybot.MessageContext{ThreadID: fmt.Sprint(topic), ReplyTo: fmt.Sprint(inGroup.ID), Group: true}
		if other.ID != claybot.MessageID("telegram/1234567/tap/"+query) || other.Context != want || other.From.Name != "Bob" {
			t.Errorf("in a group: %+v", other)
		}
		if to := b.sink.to[3]; to != claybot.User("telegram", fmt.Sprint(forum), "8") {
			t.Errorf("in a group for %+v, want the user who pressed", to)
		}
	})
}

// A command by a button is kept as safely as one that is typed.
func TestRefusedOfferKeepsTheOffset(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		o := outgoing(fmt.Sprint(asked), "done")
		o.Offer = []claybot.Offer{{Label: "Undo", Command: "/undo r1"}}
		m := b.send(o)
		broken := true
		b.sink.fail = func(m claybot.AgentMessage) error {
			if broken && m.Command == "undo" {
				return errors.New("disk full")
			}
			return nil
		}
		b.server.Press(asked, asked, m.ID, "Undo")
		b.run()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(b.server.Pending()) != 2 || b.server.Calls("answerCallbackQuery") != 0 {
			t.Errorf("waiting %v", b.server.Pending())
		}
		b.sink.mu.Lock()
		broken = false
		b.sink.mu.Unlock()
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if len(b.server.Pending()) != 0 || len(b.sink.got) != 2 {
			t.Errorf("waiting %v, posted %q", b.server.Pending(), b.sink.texts())
		}
	})
}

// However badly Telegram takes the answers to callbacks, messages go on.
func TestToastsHoldNothingUp(t *testing.T) {
	for _, fault := range []telegramtest.Fault{{Hang: true}, {Status: 500}, {Status: 429, RetryAfter: 30}, {Drop: true}, {Status: 400, Description: "Bad Request: QUERY_ID_INVALID"}} {
		inBubble(t, Config{}, func(t *testing.T, b *bubble) {
			b.server.Say(asked, asked, "hi")
			m := b.ask(yesNo, asked)
			fault.Method, fault.Times = "answerCallbackQuery", -1
			b.server.Fail(fault)
			b.run()
			synctest.Wait()
			start := time.Now()
			for i := range 20 {
				b.server.PressData(asked, asked, m.ID, fmt.Sprintf("q:q%d:y", i))
			}
			b.server.Say(asked, asked, "behind")
			synctest.Wait()
			if got := b.sink.texts(); len(got) != 2 || len(b.sink.presses) != 20 || time.Since(start) != 0 {
				t.Errorf("%+v: posted %q and %d answers after %v", fault, got, len(b.sink.presses), time.Since(start))
			}
			if err := b.end(); err == nil || time.Since(start) > asideTimeout {
				t.Errorf("%+v: ended after %v with %v", fault, time.Since(start), err)
			}
		})
	}
}

// What was taken is told also when the daemon is about to end.
func TestToastAtTheEnd(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		b.run()
		m := b.ask(yesNo, asked)
		b.server.Fail(telegramtest.Fault{Method: "answerCallbackQuery", Delay: 2 * time.Second})
		query := b.press(asked, asked, m.ID, "Yes").ID
		_ = b.end()
		if got, _ := b.server.PressByID(query); !got.Answered || strings.Contains(b.logs.String(), "WARN") {
			t.Errorf("the user who pressed reads %+v, log %s", got, b.logs)
		}
	})
}

// More button presses than there are places for their answers wait, and none is lost.
func TestManyPresses(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		m := b.ask(yesNo, asked)
		b.server.Fail(telegramtest.Fault{Method: "answerCallbackQuery", Hang: true, Times: 2 * maxAside})
		var last string
		for i := range 90 {
			last = b.server.PressData(int64(asked), asked, m.ID, fmt.Sprintf("q:q%d:y", i))
		}
		b.run()
		time.Sleep(14 * time.Second)
		synctest.Wait()
		if got, _ := b.server.PressByID(last); !got.Answered || len(b.sink.presses) != 90 || len(b.server.Pending()) != 0 {
			t.Errorf("%d answers, the last %+v", len(b.sink.presses), got)
		}
	})
}

// What is asked for is what comes: edits, button presses and memberships, too, and nothing else.
func TestAllowedUpdates(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.run()
		synctest.Wait()
		var p struct {
			Allowed []string `json:"allowed_updates"`
		}
		if err := json.Unmarshal([]byte(b.server.Journal("getUpdates")[0].Params), &p); err != nil || !slices.Equal(p.Allowed, []string{"message", "edited_message", "callback_query", "my_chat_member", "message_reaction", "business_connection"}) {
			t.Errorf("asked for %v, %v", p.Allowed, err)
		}
	})
}
