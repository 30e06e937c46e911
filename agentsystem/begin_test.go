package agentsystem_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
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
