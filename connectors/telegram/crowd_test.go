package telegram

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
)

// Thirty people who are answered at once share what Telegram allows a bot: the unfinished
// texts give way, and each final text is there at once.
func TestManyAnswersGrow(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.run()
		var people sync.WaitGroup
		for i := range 30 {
			id := int64(100 + i)
			b.server.AddPerson(id, "Ann", fmt.Sprint("ann", i))
			b.server.Say(id, id, "hi")
			people.Go(func() {
				time.Sleep(time.Duration(i) * 37 * time.Millisecond)
				o := outgoing(fmt.Sprint(id), "the beginning")
				receipt, err := b.conn.Send(t.Context(), o)
				if err != nil {
					t.Error(err)
					return
				}
				o.Edit, o.Progress = receipt, true
				for n := range 15 {
					time.Sleep(time.Second)
					o.Text = fmt.Sprint("grown ", n)
					var wait *connectors.RetryError
					if _, err := b.conn.Send(t.Context(), o); err != nil && !errors.As(err, &wait) {
						t.Error(err)
					}
				}
				o.Text, o.Progress = "the whole", false
				if _, err := b.conn.Send(t.Context(), o); err != nil {
					t.Errorf("the final text of %d: %v", i, err)
				}
			})
		}
		people.Wait()
		refused, edits := 0, 0
		for _, e := range b.server.Journal("editMessageText") {
			if edits++; e.Status == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused > 0 || edits < 30+15*15 {
			t.Errorf("%d edits, %d refused", edits, refused)
		}
	})
}
