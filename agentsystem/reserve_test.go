package agentsystem_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
)

// count returns how many steps with a name reached the disk or the platform.
func (f *fuse) count(name string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.steps {
		if s == name {
			n++
		}
	}
	return n
}

// The run of an idle agent begins in the commit that stores its message; what comes while
// it is busy, or is held back, waits for a run of its own.
func TestRunsBeginWithTheirMessages(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.setPolicy(oneByOne)
		r.mind.hold("", time.Second)
		r.start()
		r.say("a")
		synctest.Wait()
		if n := r.fuse.count("begin"); n != 0 {
			t.Errorf("%d begins of their own", n)
		}
		r.say("b")
		after(time.Minute)
		if n := r.fuse.count("begin"); n != 1 {
			t.Errorf("%d begins, want that of b", n)
		}
		r.wants("re: a", "re: b")
		if run := r.receipt("a").Run; run == nil || run.Attempts > 1 {
			t.Errorf("the run of a: %+v", run)
		}
		r.setPolicy(inbox.Policy{Debounce: time.Second})
		r.say("c")
		after(time.Minute)
		if n := r.fuse.count("begin"); n != 2 {
			t.Errorf("%d begins, want that of c as well", n)
		}
		r.say("d")
		synctest.Wait()
		r.crash()
		r.start()
		after(time.Minute)
		r.wants("re: a", "re: b", "re: c", "re: d")
	})
}

// An answer whose chat is free is stored as attempted, and sent without another write.
// One that has to wait is stored waiting, and attempted when its time comes.
func TestAnswersAreStoredAttempted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		attempts := func() int { return r.fuse.count("attempt") }
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
