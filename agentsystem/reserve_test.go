package agentsystem_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
)

// An answer whose chat is free is stored as attempted, and sent without another write.
// One that has to wait is stored waiting, and attempted when its time comes.
func TestAnswersAreStoredAttempted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		attempts := func() (n int) {
			r.fuse.mu.Lock()
			defer r.fuse.mu.Unlock()
			for _, s := range r.fuse.steps {
				if s == "attempt" {
					n++
				}
			}
			return n
		}
		var during claybot.SendState
		r.chat.judge = func(o claybot.Outgoing) verdict {
			stored, err := r.db.OutgoingByID(r.Context(), o.ID)
			if err != nil {
				r.Error(err)
			}
			during = stored.State
			return verdict{}
		}
		r.start()
		r.say("a")
		after(time.Second)
		r.wants("re: a")
		if o := r.reply("a"); during != claybot.SendAttempted || o.State != claybot.SendSent || o.Attempts != 1 || o.Tried == 0 {
			t.Errorf("%s while it was sent; then %+v", during, o)
		}
		if n := attempts(); n != 0 {
			t.Errorf("%d writes before the send", n)
		}
		r.chat.judge = nil
		r.chat.will(slow(time.Minute, false))
		r.say("b")
		synctest.Wait()
		r.say("c") // behind b
		after(30 * time.Second)
		if o := r.reply("c"); o.State != claybot.SendWaiting || o.Attempts != 0 {
			t.Errorf("behind another one: %s after %d attempts", o.State, o.Attempts)
		}
		after(time.Hour)
		r.wants("re: a", "re: b", "re: c")
		if n := attempts(); n != 2 {
			t.Errorf("%d attempts of their own, want those of b and c", n)
		}
		r.chat.will(slow(time.Minute, true)) // everywhere
		r.post(claybot.User("chat", "dm-bob", "bob"), msg("x", "x"))
		synctest.Wait()
		r.say("d")
		synctest.Wait()
		if o := r.reply("d"); o.State != claybot.SendWaiting || o.Attempts != 0 {
			t.Errorf("in a silent chat: %s after %d attempts", o.State, o.Attempts)
		}
		after(time.Hour)
		if got := r.chat.seen(ann.ChannelID); !slices.Equal(got, []string{"re: a", "re: b", "re: c", "re: d"}) {
			t.Errorf("people see %q", got)
		}
	})
}
