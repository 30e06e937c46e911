package agentsystem_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// A followingLine is a connector that follows a chat to its new id by itself, as Telegram's does.
type followingLine struct{ *line }

func (followingLine) FollowsMoves() {}

// movedLines are the connectors of the tests of routes of chats with a new id.
var movedLines = map[string]func(*line) connectors.Connector{
	"claybot follows":       func(l *line) connectors.Connector { return l },
	"the connector follows": func(l *line) connectors.Connector { return followingLine{l} },
}

// mustBeDead checks by every id of the moved channel whether its route is dead.
func (r *rig) mustBeDead(want bool) {
	r.Helper()
	synctest.Wait()
	for _, d := range []claybot.Descriptor{annOld, annNew} {
		if why, _ := r.system.DeadRoute(d.Route()); (why != "") != want {
			r.Errorf("%s is dead: %q", d.ChannelID, why)
		}
	}
	st, err := r.system.Overview.Status(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	var names []string
	for _, x := range st.DeadRoutes {
		names = append(names, x.String())
	}
	if wanted := map[bool][]string{true: {"chat/T1/new"}}[want]; !slices.Equal(names, wanted) {
		r.Errorf("dead routes %q, want %q", names, wanted)
	}
}

// A channel with a new id is dead, and lives, by every id that it has or had.
func TestMovedDead(t *testing.T) {
	t.Parallel()
	for name, line := range movedLines {
		for what, test := range map[string]func(r *rig){
			"a person writes": func(r *rig) {
				r.post(annNew, inGroup("b"))
				r.mustBeDead(false)
				r.wants("re: b")
			},
			"a late message": func(r *rig) {
				r.post(annOld, inGroup("b"))
				r.mustBeDead(false)
				r.wants("re: b")
			},
			"an operator retries": func(r *rig) {
				if _, err := r.system.Control.RetryOutgoing(r.Context(), "1"); err != nil {
					r.Fatal(err)
				}
				r.mustBeDead(false)
				r.wants("1")
			},
			"the platform reports it": func(r *rig) {
				if err := r.system.RouteChanged(r.Context(), connectors.RouteChange{Connector: "chat", ChannelID: annNew.ChannelID, At: claybot.Now()}); err != nil {
					r.Fatal(err)
				}
				r.mustBeDead(false)
			},
			"the platform reports its end": func(r *rig) {
				if err := r.system.RouteChanged(r.Context(), connectors.RouteChange{Connector: "chat", ChannelID: annNew.ChannelID, Dead: "gone", At: claybot.Now()}); err != nil {
					r.Fatal(err)
				}
				r.mustBeDead(true)
			},
			"a restart": func(r *rig) {
				r.restart()
				r.mustBeDead(true)
				r.enqueue("2")
				sends := len(r.chat.sent())
				r.restart()
				r.mustBeDead(true)
				if n := len(r.chat.sent()); n != sends {
					r.Errorf("%d calls of the platform", n-sends)
				}
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				bubble(t, func(r *rig) {
					r.line = line
					r.start()
					r.post(annOld, inGroup("a"))
					r.wants("re: a")
					r.chat.deletePost(0)
					r.move()
					r.enqueue("1")
					r.chat.will(refused(true))
					r.restart()
					r.mustBeDead(true)
					test(r)
				})
			})
		}
	}
}

// A mark of a former id, as a member of an earlier version leaves it behind a move, holds for
// the present one, and ends with it.
func TestMovedDeadBefore(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.post(annOld, inGroup("a"))
		r.wants("re: a")
		r.move()
		mark := `{"connector":"chat","channelId":"T1/old","why":"kicked","since":1}`
		if err := r.db.SetCheckpoint(r.Context(), storage.CheckpointDead+"chat/T1/old", mark); err != nil {
			t.Fatal(err)
		}
		r.restart()
		r.mustBeDead(true)
		r.post(annNew, inGroup("b"))
		r.mustBeDead(false)
		r.restart()
		r.mustBeDead(false)
		r.wants("re: a", "re: b")
	})
}

// A channel whose route comes back during an attempt for a former id is not held for dead.
func TestMovedRevivedInTheAttempt(t *testing.T) {
	t.Parallel()
	for name, line := range movedLines {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.line = line
				r.start()
				r.post(annOld, inGroup("a"))
				synctest.Wait()
				r.move()
				r.enqueue("1")
				first := true
				r.chat.judge = func(claybot.Outgoing) verdict {
					if !first {
						return verdict{}
					}
					first = false
					r.system.RouteChanged(r.Context(), connectors.RouteChange{Connector: "chat", ChannelID: annNew.ChannelID, At: claybot.Now()}) //nolint:errcheck // nothing is stored here
					return refused(true)
				}
				r.restart()
				r.mustBeDead(false)
			})
		})
	}
}

// A message for a former id waits for those that were stored before it for the present one.
func TestMovedInOrder(t *testing.T) {
	t.Parallel()
	for name, line := range movedLines {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.line = line
				r.start()
				r.post(annOld, inGroup("a"))
				r.wants("re: a")
				r.move()
				r.chat.will(slow(time.Minute, false))
				r.post(annNew, inGroup("b"))
				synctest.Wait()
				r.enqueue("1")
				r.crash()
				r.start()
				after(2 * time.Minute)
				r.wants("re: a", "re: b", "1")
			})
		})
	}
}
