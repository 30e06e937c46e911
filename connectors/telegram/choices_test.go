package telegram

import (
	"errors"
	"fmt"
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

// Button presses that come faster than the buttons change all count, and Done behind them
// knows.
func TestFastPresses(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		b.run()
		m := b.ask(tea, asked)
		b.server.Fail(telegramtest.Fault{Method: "editMessageReplyMarkup", Delay: time.Second, Times: -1})
		var queries []string
		for _, text := range []string{"tea", "coffee", "tea", "milk", "Done"} { // the second press of tea means the same as the first
			query, _ := b.server.Press(asked, asked, m.ID, text)
			queries = append(queries, query)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if len(b.sink.presses) != 1 || b.sink.presses[0].Answer.Text != `["1","2","3"]` {
			t.Errorf("answers %+v", b.sink.presses)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := b.shown(asked, m.ID); !slices.Equal(got.Buttons(), []string{"✓ tea", "✓ coffee", "✓ milk", "Done"}) || got.Edits != 2 {
			t.Errorf("%d edits, buttons %q", got.Edits, got.Buttons())
		}
		for _, id := range queries {
			if got, _ := b.server.PressByID(id); !got.Answered || got.Alert {
				t.Errorf("not answered: %+v", got)
			}
		}
	})
}

// The same in one batch, and with the oldest of all keyboards.
func TestPressesInOneBatch(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		m, other := b.ask(tea, asked), b.ask(tea, asked)
		for _, text := range []string{"tea", "milk"} {
			b.server.Press(asked, asked, m.ID, text)
		}
		b.server.Press(asked, asked, other.ID, "coffee")
		b.run()
		synctest.Wait()
		for _, want := range []struct {
			id      int64
			buttons []string
		}{{m.ID, []string{"✓ tea", "coffee", "✓ milk", "Done"}}, {other.ID, []string{"tea", "✓ coffee", "milk", "Done"}}} {
			if got := b.shown(asked, want.id).Buttons(); !slices.Equal(got, want.buttons) {
				t.Errorf("buttons %q, want %q", got, want.buttons)
			}
		}
		b.restart()
		b.server.PressData(asked, asked, m.ID, "q:"+questionID+":t2.0") // an app that shows what was there at first
		b.server.PressData(asked, asked, m.ID, "q:"+questionID+":t1.5")
		b.server.PressData(asked, asked, m.ID, "q:"+questionID+":d0")
		synctest.Wait()
		if len(b.sink.presses) != 1 || b.sink.presses[0].Answer.Text != `["2","3"]` {
			t.Errorf("answers %+v", b.sink.presses)
		}
	})
}

// A batch that comes again, because another one's message could not be kept,
// chooses the same once more.
func TestTogglesAreRepeatable(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		b.run()
		synctest.Wait()
		m := b.ask(tea, asked)
		_ = b.end()
		failures := 3
		b.sink.fail = func(m claybot.AgentMessage) error {
			if m.Text != "other" || failures == 0 {
				return nil
			}
			failures--
			return errors.New("disk full")
		}
		b.server.Press(asked, asked, m.ID, "tea")
		b.server.Press(asked, asked, m.ID, "coffee")
		b.server.PressData(asked, asked, m.ID, "q:"+questionID+":t1.3")
		b.server.Say(8, 8, "other")
		b.run()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if len(b.server.Pending()) != 0 || failures != 0 {
			t.Fatalf("waiting %v, %d failures to come", b.server.Pending(), failures)
		}
		if got := b.shown(asked, m.ID).Buttons(); !slices.Equal(got, []string{"tea", "✓ coffee", "milk", "Done"}) {
			t.Errorf("buttons %q", got)
		}
	})
}

// In a group only who is asked may choose.
func TestOthersCannotChoose(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(testGroup, asked, "hi")
		b.run()
		m := b.ask(tea, testGroup)
		b.press(testGroup, asked, m.ID, "tea")
		for _, text := range []string{"✓ tea", "milk"} {
			if got := b.press(testGroup, 8, m.ID, text); got.Text != texts.NotYours || !got.Alert {
				t.Errorf("a stranger reads %+v", got)
			}
		}
		if got := b.shown(testGroup, m.ID); !slices.Equal(got.Buttons(), []string{"✓ tea", "coffee", "milk", "Done"}) || got.Edits != 1 {
			t.Errorf("buttons %q", got.Buttons())
		}
		// Who is done is judged by the Handler.
		b.sink.answer = func(t connectors.Press) (connectors.PressResult, error) {
			if t.UserID != fmt.Sprint(asked) {
				return connectors.PressResult{Text: "This question is not for you."}, nil
			}
			return connectors.PressResult{}, nil
		}
		if got := b.press(testGroup, 8, m.ID, "Done"); !got.Alert || len(b.sink.presses) != 0 {
			t.Errorf("a stranger reads %+v", got)
		}
		if got := b.press(testGroup, asked, m.ID, "Done"); got.Alert || len(b.sink.presses) != 1 || b.sink.presses[0].Answer.Text != `["1"]` {
			t.Errorf("got %+v, answers %+v", got, b.sink.presses)
		}
	})
}

// Too few or too many is said by who checks answers, and the buttons go on
// working.
func TestUnfitChoice(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		q := tea
		q.Min, q.Max = number(1), number(2)
		b.sink.answer = func(t connectors.Press) (connectors.PressResult, error) {
			if _, err := q.Check(t.Answer.Text, nil); err != nil {
				return connectors.PressResult{Again: true, Text: err.Error()}, nil
			}
			return connectors.PressResult{}, nil
		}
		b.server.Say(asked, asked, "hi")
		b.run()
		m := b.ask(q, asked)
		if got := b.press(asked, asked, m.ID, "Done"); !got.Alert || !strings.Contains(got.Text, "at least 1 of: tea") {
			t.Errorf("none: %+v", got)
		}
		for _, text := range []string{"tea", "coffee", "milk"} {
			b.press(asked, asked, m.ID, text)
		}
		if got := b.press(asked, asked, m.ID, "Done"); !got.Alert || !strings.Contains(got.Text, "at most 2") {
			t.Errorf("three: %+v", got)
		}
		b.press(asked, asked, m.ID, "✓ tea")
		if got := b.press(asked, asked, m.ID, "Done"); got.Alert || len(b.sink.presses) != 1 || b.sink.presses[0].Answer.Text != `["2","3"]` {
			t.Errorf("two: %+v, answers %+v", got, b.sink.presses)
		}
	})
}

// What the message shows is the state: a choice that cannot be shown is not
// made, and the user who pressed is told so.
func TestChoiceThatCannotBeShown(t *testing.T) {
	for _, tt := range []struct {
		fault telegramtest.Fault
		made  bool
	}{
		{telegramtest.Fault{Status: 500}, false},
		{telegramtest.Fault{Hang: true}, false},
		{telegramtest.Fault{Status: 429, RetryAfter: 20}, false},
		{telegramtest.Fault{Status: 400, Description: "Bad Request: message to edit not found"}, false},
		{telegramtest.Fault{Lost: true}, true}, // the outcome is unknown, but the message shows it
		{telegramtest.Fault{Status: 400, Description: "Bad Request: message is not modified"}, false},
	} {
		inBubble(t, Config{}, func(t *testing.T, b *bubble) {
			b.server.Say(asked, asked, "hi")
			b.run()
			m := b.ask(tea, asked)
			tt.fault.Method = "editMessageReplyMarkup"
			b.server.Fail(tt.fault)
			query, _ := b.server.Press(asked, asked, m.ID, "tea")
			time.Sleep(asideTimeout)
			synctest.Wait()
			want := texts.TelegramAgain
			if strings.Contains(tt.fault.Description, "not modified") {
				want = ""
			}
			if got, _ := b.server.PressByID(query); !got.Answered || got.Text != want {
				t.Errorf("%+v: the user who pressed reads %+v", tt.fault, got)
			}
			if _, made := b.shown(asked, m.ID).Button("✓ tea"); made != tt.made {
				t.Errorf("%+v: buttons %q", tt.fault, b.shown(asked, m.ID).Buttons())
			}
			time.Sleep(choiceKept)
			if tt.fault.RetryAfter > 0 {
				if b.server.Violations() != 0 {
					t.Error("the silence was broken")
				}
			}
			b.press(asked, asked, m.ID, "milk")
			value := `["3"]`
			if tt.made {
				value = `["1","3"]`
			}
			b.press(asked, asked, m.ID, "Done")
			if len(b.sink.presses) != 1 || b.sink.presses[0].Answer.Text != value {
				t.Errorf("%+v: answers %+v, want %s", tt.fault, b.sink.presses, value)
			}
		})
	}
}

// While Telegram wants silence in a chat, buttons wait like messages.
func TestChoicesObeyTheSilence(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		b.run()
		m := b.ask(tea, asked)
		b.server.Silence(asked, 10*time.Second)
		for range 3 {
			if got := b.press(asked, asked, m.ID, "tea"); got.Text != texts.TelegramAgain {
				t.Errorf("the user who pressed reads %+v", got)
			}
			time.Sleep(time.Second)
		}
		if n := b.server.Calls("editMessageReplyMarkup"); n != 1 || b.server.Violations() != 0 {
			t.Errorf("%d edits, %d violations", n, b.server.Violations())
		}
		time.Sleep(10 * time.Second)
		b.press(asked, asked, m.ID, "tea")
		if _, ok := b.shown(asked, m.ID).Button("✓ tea"); !ok {
			t.Errorf("buttons %q", b.shown(asked, m.ID).Buttons())
		}
	})
}

// What is remembered of choices does not grow.
func TestChoicesAreForgotten(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		var c choices
		for i := range 1000 {
			m := &message{MessageID: int64(i), Chat: chat{ID: 7}}
			x, show := c.press(&callback{ID: "1", Message: m}, press{question: "q", verb: verbToggle, option: 1})
			if !show {
				t.Fatal("no call asks to show it")
			}
			if _, presses, ok := c.next(x); !ok || len(presses) != 1 {
				t.Fatalf("presses %v", presses)
			}
			if _, _, ok := c.next(x); ok {
				t.Fatal("there is more to show")
			}
			time.Sleep(time.Second)
		}
		if limit := int(choiceKept/time.Second) + 1; len(c.open) > limit {
			t.Errorf("%d are remembered, want at most %d", len(c.open), limit)
		}
	})
}
