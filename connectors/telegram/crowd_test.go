package telegram

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// grow lets an answer grow in a chat as a run does, and returns by how much its final text was
// late. It asks for no more than an edit each time that the connector names.
func (b *bubble) grow(t *testing.T, chat, name string, grows time.Duration) (late time.Duration) {
	o := outgoing(chat, "the beginning")
	o.ID = name
	send := func(text string, progress bool) time.Duration {
		o.Text, o.Progress = text, progress
		receipt, err := b.conn.Send(t.Context(), o)
		var wait *connectors.RetryError
		switch {
		case err == nil:
			o.Edit = receipt
			return 0
		case errors.As(err, &wait) && wait.After > 0:
			return wait.After
		}
		t.Errorf("%s: %v", name, err)
		return time.Second
	}
	every := b.conn.Streaming(claybot.Route{ChannelID: chat}).Every
	for end, n := time.Now().Add(grows), 0; time.Now().Before(end); n++ {
		wait := send(fmt.Sprint("grown ", n), true)
		if wait == 0 {
			wait = every
		}
		time.Sleep(min(wait, time.Until(end)))
	}
	for {
		wait := send("the whole", false)
		if wait == 0 {
			return late
		}
		late += wait
		time.Sleep(wait)
	}
}

// crowd lets answers grow at once, each in the chat that chat names, and returns how many calls
// were made and refused, and the worst delay of a final text.
func (b *bubble) crowd(t *testing.T, answers int, chat func(i int) string, grows time.Duration) (calls, refused int, worst time.Duration) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			time.Sleep(time.Duration(i) * 37 * time.Millisecond)
			late := b.grow(t, chat(i), fmt.Sprint("answer ", i), grows)
			mu.Lock()
			defer mu.Unlock()
			worst = max(worst, late)
		})
	}
	all.Wait()
	for _, method := range []string{"sendMessage", "editMessageText"} {
		for _, e := range b.server.Journal(method) {
			if calls++; e.Status == http.StatusTooManyRequests {
				refused++
			}
		}
	}
	return calls, refused, worst
}

// Answers that grow at once share what Telegram allows a chat and a bot: the unfinished texts
// give way, and each final text is there at once. The limits of telegramtest are those of
// core.telegram.org/bots/faq, "My bot is hitting limits", read 2026-11-28.
func TestManyAnswersGrow(t *testing.T) {
	for name, tt := range map[string]struct {
		answers int
		group   bool
		same    bool // all in one chat
		grows   time.Duration
		used    float64 // of the allowed calls, at least
	}{
		"thirty private chats": {30, false, false, 60 * time.Second, .9 * 30 * 60},
		"one group, one":       {1, true, true, 3 * time.Minute, .9 * 20 * 3},
		"one group, two":       {2, true, true, 3 * time.Minute, .9 * 20 * 3},
		// In each minute, six of the twenty calls are kept for the final texts, which are to be there at
		// once and end together: more cannot be used.
		"one group, six":          {6, true, true, 3 * time.Minute, .95 * ((20-6)*3 + 6)},
		"topics of a private one": {3, false, true, time.Minute, .8 * 60},
		"five groups":             {5, true, false, time.Minute, .9 * 20 * 5},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				b.run()
				chat := func(i int) string {
					if tt.same {
						i = 0
					}
					if tt.group {
						return fmt.Sprint(-100 - i)
					}
					return fmt.Sprint(100 + i)
				}
				for i := range tt.answers {
					id := int64(100 + i)
					b.server.AddPerson(id, "Ann", fmt.Sprint("ann", i))
					if tt.group {
						b.server.Mention(-id, id, "hi")
					} else {
						b.server.Say(id, id, "hi")
					}
				}
				calls, refused, worst := b.crowd(t, tt.answers, chat, tt.grows)
				if refused > 0 || worst > 0 || float64(calls) < tt.used {
					t.Errorf("%d calls, want at least %.0f; %d refused; a final text came %v late", calls, tt.used, refused, worst)
				}
			})
		})
	}
}

// Where Telegram takes less than it documents, unfinished texts learn from its refusals: few
// calls are refused, and final texts come soon.
func TestRatesOfAChatAreLearned(t *testing.T) {
	inBubble(t, Config{Rate: Rate{Group: 60}}, func(t *testing.T, b *bubble) {
		b.run()
		b.server.Mention(-100, 7, "hi")
		for round := range 3 {
			calls, refused, worst := b.crowd(t, 3, func(int) string { return "-100" }, 4*time.Minute)
			if refused > 8*(round+1) || worst > 20*time.Second {
				t.Errorf("round %d: %d calls, %d refused, %v late", round, calls, refused, worst)
			}
		}
	})
}

// Chats in which nothing happens any more are forgotten.
func TestRatesForgetChats(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		r := &b.conn.rates
		for i := range 100 * maxChats {
			r.spend(int64(i), "m")
			time.Sleep(time.Second)
		}
		if n := len(r.chats); n > 2*maxChats {
			t.Errorf("%d chats are known", n)
		}
	})
}
