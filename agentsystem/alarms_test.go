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
	"github.com/claybot/claybot/texts"
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
				dead.Stop("the token is refused (401); get a new one")
				return &connectors.PermanentError{Says: texts.StoppedToken, Err: errors.New("the token is refused (401)"), Fix: "get a new one"}
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
		want := []string{"Dead has stopped, so nothing is received or sent there: its token is refused. `claybot doctor` says what to do."}
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

// Where no operator could be reached when a connector stopped, one reads of it as soon as they can
// be reached, also one who has only ever sent commands; once, without a restart.
func TestStoppedConnectorIsToldLater(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		dead := &line{name: "dead", chat: &chat{}, fuse: newFuse(-1)}
		dead.run = func(context.Context, connectors.Handler) error {
			dead.Stop("gone")
			return &connectors.PermanentError{Err: errors.New("gone")}
		}
		r.instances = map[string]string{"chat": "telegram"}
		r.also = []connectors.Connector{dead}
		r.start()
		time.Sleep(time.Hour)
		if got := r.chat.seen("boss"); len(got) != 0 {
			t.Fatalf("an operator without a conversation reads %q", got)
		}
		status := command("c", "status")
		status.From.UserID = "boss"
		r.post(claybot.User("chat", "boss", "boss"), status)
		synctest.Wait()
		before := len(r.chat.seen("boss"))
		time.Sleep(3 * time.Hour)
		want := []string{"Dead has stopped, so nothing is received or sent there. `claybot doctor` says why, and what to do."}
		if got := r.chat.seen("boss")[before:]; !slices.Equal(got, want) {
			t.Errorf("the operator reads %q, want %q", got, want)
		}
	})
}
