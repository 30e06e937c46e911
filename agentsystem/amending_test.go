package agentsystem_test

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

// amending is the edit, or without text the deletion, of a message of Ann.
func amending(id string, of claybot.MessageID, text string) claybot.AgentMessage {
	m := typed(id, claybot.MessageEdit, text)
	if text == "" {
		m.Type = claybot.MessageDelete
	}
	m.Amends = of
	return m
}

// What a person changes or deletes before its turn is never read, wherever the process dies
// in between; what others change is.
func TestAmendments(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ownThreads = true
		r.profile.Policy = inbox.Policy{Debounce: time.Minute, DebounceMax: time.Minute}
		r.start()
		first := in("1", "a", "delete the database")
		first.Keys = []string{"key of a"}
		r.post(room, first, in("1", "b", "how are yuo"), in("1", "c", "keep this"))
		other := amending("e0", "c", "drop this")
		other.From.UserID = "bob"
		r.post(room, other)
		r.post(claybot.User("chat", "elsewhere", "bob"), amending("e1", "c", "drop this"))
		for _, m := range []claybot.AgentMessage{amending("d1", "key of a", ""), amending("e2", "b", "how are you"), amending("e3", "unknown", "never said")} {
			r.post(room, m)
			r.crash()
			r.start()
			r.post(room, m) // redelivered
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got, want := r.userTexts(thread("1")), []string{"how are you", "keep this"}; !slices.Equal(got, want) {
			t.Errorf("the agent heard %q, want %q", got, want)
		}
		if got := r.receipt("a").Skipped; got != storage.SkippedDeleted {
			t.Errorf("a was skipped because %q", got)
		}
		r.wants("re: keep this")
	})
}

// A deletion between the moment in which an agent reads its messages and that in which their run begins
// only makes it read them again, at once. An edit is late then.
func TestAmendmentsBeforeTheRunBegins(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"edit":     {"how are you", []string{"re: how are yuo"}},
		"deletion": {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				var logs bytes.Buffer
				r.logs, r.profile.Policy = &logs, inbox.Policy{Debounce: time.Second}
				r.start()
				change := func() {
					if err := r.system.Post(r.Context(), ann, amending("e", "m", tt.text)); err != nil {
						t.Error(err)
					}
				}
				r.fuse.beginning.Store(&change)
				r.post(ann, msg("m", "how are yuo"))
				time.Sleep(time.Second + time.Millisecond)
				r.wants(tt.want...)
				if r.fuse.beginning.Load() != nil || logs.Len() > 0 {
					t.Errorf("the log has %q", logs.String())
				}
			})
		})
	}
}

// A deletion stops the run of its message, and no other.
func TestDeletionStopsItsRun(t *testing.T) {
	bubble(t, func(r *rig) {
		r.mind.pace = time.Minute
		r.start()
		r.say("one")
		time.Sleep(time.Hour)
		r.say("two")
		synctest.Wait()
		r.post(ann, amending("d1", "one", ""))
		time.Sleep(time.Hour)
		r.wants("re: one", "re: two")
		r.say("three")
		synctest.Wait()
		r.post(ann, amending("d3", "three", ""))
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := r.receipt("three").Run; got == nil || got.State != claybot.RunCanceled {
			t.Errorf("the run of three: %+v, want it canceled", got)
		}
		if got := r.chat.seen(); got[len(got)-1] != "Stopped, because the message was deleted." {
			t.Errorf("people see %q", got)
		}
	})
}
