package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// uncounted cannot count runs.
type uncounted struct{ accounts }

func (uncounted) Stats(context.Context) (storage.Stats, error) {
	return storage.Stats{}, errors.New("no figures")
}

// A system that cannot begin sends nothing after Run has returned.
func TestFailedBeginSendsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.chat.will(failing, failing, failing)
		r.start()
		_, err := r.db.Enqueue(r.Context(), claybot.Outgoing{
			ID: "o", Kind: claybot.OutgoingAnswer, Route: ann.Route(), Text: "hello", Part: 1, Parts: 1, At: claybot.Now(), State: claybot.SendWaiting,
		})
		if err != nil {
			t.Fatal(err)
		}
		r.crash()
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Counts = uncounted{s.Counts}
			return s
		}
		r.start()
		if err := <-r.ended; err == nil {
			t.Error("it has begun")
		}
		r.ended <- nil // for shut
		before := len(r.chat.sent())
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(r.chat.sent()); n != before {
			t.Errorf("%d sends after the end", n-before)
		}
	})
}

// What a store says by itself reaches its reader in their language.
func TestNoticesOfTheStoreAreTranslated(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		m := command("language", "language")
		m.Text = "de"
		r.post(ann, m)
		synctest.Wait() // the reply is sent: a crash would cut it off, and a notice say so
		for i, text := range []string{storage.NoticeDamaged, storage.NoticeRestored, "My own words."} {
			_, err := r.db.Enqueue(r.Context(), claybot.Outgoing{
				ID: fmt.Sprint("n", i), Kind: claybot.OutgoingNotice, Route: ann.Route(), Text: text, Part: 1, Parts: 1, At: claybot.Now(), State: claybot.SendWaiting,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		r.crash()
		r.start()
		german := texts.Voice{Language: texts.German}
		synctest.Wait()
		var sent []string
		for _, s := range r.chat.sent() {
			sent = append(sent, s.out.Text)
		}
		if want := []string{german.In(storage.NoticeDamaged), german.In(storage.NoticeRestored), "My own words."}; len(sent) < 3 || !slices.Equal(sent[len(sent)-3:], want) || want[0] == storage.NoticeDamaged {
			t.Errorf("sent %q", sent)
		}
	})
}
