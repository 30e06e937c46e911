package agentsystem_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// Operators read over a connector that works that another one has stopped: once, also after
// a restart and hours later, never in a group, and no other person; and that it works again.
func TestStoppedConnectorIsTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		broken := true
		dead := &line{name: "dead", chat: &chat{}, fuse: newFuse(-1)}
		dead.run = func(ctx context.Context, _ connectors.Handler) error {
			if broken {
				dead.Stop("the token is refused; get a new one")
				return &connectors.PermanentError{Err: errors.New("the token is refused"), Fix: "get a new one"}
			}
			dead.OK()
			<-ctx.Done()
			return context.Cause(ctx)
		}
		r.instances = map[string]string{"chat": "telegram"}
		r.start()
		boss := msg("b", "b")
		r.post(claybot.User("chat", "boss", "boss"), boss)
		group := msg("g", "g")
		group.Context.Group = true
		r.post(claybot.User("chat", "-100", "boss"), group)
		r.say("a")
		synctest.Wait()
		before := len(r.chat.seen())
		r.also = []connectors.Connector{dead}
		for range 3 {
			r.restart()
			time.Sleep(2 * time.Hour)
		}
		want := []string{"Dead has stopped: the token is refused; get a new one"}
		if got := r.chat.seen()[before:]; !slices.Equal(got, want) {
			t.Errorf("people read %q, want %q", got, want)
		}
		if got := r.chat.seen("boss"); !slices.Contains(got, want[0]) {
			t.Errorf("the operator reads %q", got)
		}
		broken = false
		r.restart()
		time.Sleep(time.Minute)
		r.restart()
		time.Sleep(time.Hour)
		want = append(want, "Dead works again.")
		if got := r.chat.seen()[before:]; !slices.Equal(got, want) {
			t.Errorf("people read %q, want %q", got, want)
		}
	})
}
