package agentsystem_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

// inMoved is a message to the moved channel, with an id as Slack's connector makes it.
func inMoved(d claybot.Descriptor, n string) claybot.AgentMessage {
	m := inGroup("chat/" + d.ChannelID + "/" + n)
	m.Text, m.From.UserID = n, d.UserID
	return m
}

// A person edits and deletes what they wrote before the channel got its new id, by that id.
func TestMovedAmendments(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.profile.Policy = inbox.Policy{Debounce: time.Minute, DebounceMax: time.Minute}
		r.start()
		r.post(annOld, inMoved(annOld, "1"), inMoved(annOld, "2"))
		r.move()
		r.post(annNew, inMoved(annNew, "3"))
		for _, m := range []claybot.AgentMessage{
			amending("d", "chat/T1/new/1", ""), amending("e", "chat/T1/new/2", "two"), amending("f", "chat/T1/old/3", "three"), amending("g", "chat/T2/new/2", "elsewhere"),
		} {
			m.Context.Group = true
			r.post(annNew, m)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got, want := r.userTexts(annNew), []string{"two", "three"}; !slices.Equal(got, want) {
			t.Errorf("the agent heard %q, want %q", got, want)
		}
		if got := r.receipt("chat/T1/old/1").Skipped; got != storage.SkippedDeleted {
			t.Errorf("1 was skipped because %q", got)
		}
	})
}

// A reaction to a message from before the move finds it by the new id of the channel, unless the
// platform counts the messages there anew: then the number is that of another message.
func TestMovedReactions(t *testing.T) {
	t.Parallel()
	for name, line := range movedLines {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				_, anew := line(nil).(connectors.MoveFollower)
				r.line, r.profile.Reactions = line, reacting
				r.start()
				r.post(annOld, inMoved(annOld, "1"))
				r.wants("re: 1") // p1
				r.move()
				by := func(d claybot.Descriptor) connectors.Reaction {
					x := emoji(d, "p1", "👍")
					x.Group = true
					return x
				}
				r.rates(by(annNew), !anew)
				time.Sleep(time.Second)
				r.rates(by(annOld), true)
			})
		})
	}
}

// A person stops the run of what they wrote before the move by a reaction to it.
func TestMovedStop(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.profile.Reactions = reacting
		r.profile.Policy = inbox.Policy{Debounce: time.Minute, DebounceMax: time.Minute}
		r.start()
		r.post(annOld, inMoved(annOld, "1"))
		r.move()
		x := emoji(annNew, "1", "🛑")
		x.Group, x.Of = true, "chat/T1/new/1"
		r.react(x)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := r.receipt("chat/T1/old/1").Skipped; got == "" {
			t.Error("the message ran")
		}
	})
}
