package telegram

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
)

// growing is an unfinished answer to the user who is asked.
func growing(chat string, group bool) claybot.Outgoing {
	o := outgoing(chat, "It begins")
	o.Run, o.Progress, o.Route.UserID, o.Route.Group = "r1", true, idOf(asked), group
	return o
}

// An answer that grows has a button that stops it, until it is complete, also when a question stands
// below it or a button of its own.
func TestStopButton(t *testing.T) {
	for _, chat := range []int64{asked, testGroup} {
		inBubble(t, Config{}, func(t *testing.T, b *bubble) {
			b.server.Say(chat, asked, "hi")
			b.sink.works = true
			b.run()
			o := growing(idOf(chat), chat < 0)
			m := b.send(o)
			if got := m.Buttons(); !slices.Equal(got, []string{"Stop"}) {
				t.Fatalf("buttons %q", got)
			}
			o.Edit, o.Text = idOf(m.ID), "It begins and goes on"
			time.Sleep(5 * time.Second)
			if got := b.send(o).Buttons(); !slices.Equal(got, []string{"Stop"}) {
				t.Errorf("buttons %q while it grows", got)
			}
			if got := b.press(chat, asked, m.ID, "Stop"); !got.Answered || got.Text != "" {
				t.Errorf("the user who pressed reads %+v", got)
			}
			want := []string{"stop by 7 on " + idOf(m.ID) + " in " + idOf(chat) + " group=" + strconv.FormatBool(chat < 0) + " at=true"}
			if !slices.Equal(b.sink.routes, want) {
				t.Errorf("stopped is %q, want %q", b.sink.routes, want)
			}
			o.Progress = false
			if got := b.send(o).Buttons(); len(got) != 0 {
				t.Errorf("buttons %q behind the end", got)
			}
			o.Offer = []claybot.Offer{{Label: "Undo", Command: "/undo r1"}}
			if got := b.send(o).Buttons(); !slices.Equal(got, []string{"Undo"}) {
				t.Errorf("buttons %q behind the end", got)
			}
		})
	}
}

// A press that stops nothing says why: the answer has ended, or it is that of another user.
func TestStopButtonWithoutEffect(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(testGroup, asked, "hi")
		b.run()
		m := b.send(growing(idOf(testGroup), true))
		for user, want := range map[int64]string{asked: "This button no longer works.", 8: "This answers another person, so it is not yours to stop."} {
			if got := b.press(testGroup, user, m.ID, "Stop"); !got.Alert || got.Text != want {
				t.Errorf("user %d reads %+v, want %q", user, got, want)
			}
		}
		n := len(b.sink.routes)
		for _, data := range []string{"s:7 ", "s:-7", "s:07", "s:0", "s:ZZ", "s:zzzzzzzzzzzzzzzzzzzz"} {
			query := b.server.PressData(testGroup, asked, m.ID, data)
			synctest.Wait()
			if got, _ := b.server.PressByID(query); got.Text != "This button no longer works." || len(b.sink.routes) != n {
				t.Errorf("%q: the user reads %+v", data, got)
			}
		}
	})
}

// A press that cannot be stored stays at Telegram and comes again, as the same one.
func TestStopIsKept(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		b.sink.works = true
		b.run()
		synctest.Wait() // the message is taken; what is refused is the press
		m := b.send(growing(idOf(asked), false))
		b.sink.refuses = 1
		b.press(asked, asked, m.ID, "Stop")
		if len(b.sink.routes) != 0 || len(b.server.Pending()) != 1 {
			t.Errorf("stopped is %q, waiting %v", b.sink.routes, b.server.Pending())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(b.sink.routes) != 1 || len(b.server.Pending()) != 0 {
			t.Errorf("stopped is %q, waiting %v", b.sink.routes, b.server.Pending())
		}
	})
}

// Messages that are no growing answer have no such button.
func TestNoStopButton(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(asked, asked, "hi")
		o := growing(idOf(asked), false)
		o.Progress = false
		if got := b.send(o).Buttons(); len(got) != 0 {
			t.Errorf("a whole answer has %q", got)
		}
		o.Run, o.Progress = "", true
		if got := b.send(o).Buttons(); len(got) != 0 {
			t.Errorf("a text of no run has %q", got)
		}
	})
}

func idOf(id int64) string { return strconv.FormatInt(id, 10) }
