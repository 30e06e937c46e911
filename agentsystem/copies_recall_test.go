package agentsystem_test

import (
	"testing"
	"time"
)

// What waits behind a message that may be missing is kept for as long as the chat is
// paused, also by the next process.
func TestPauseOfOthersSurvivesTheProcess(t *testing.T) {
	for name, crash := range map[string]bool{"one process": false, "a crash": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.line = resends
				r.setPolicy(oneByOne)
				r.grace = time.Millisecond
				r.chat.will(cut, cut)
				r.start()
				r.say("a", "b")
				after(4 * time.Second) // a is sent twice in vain, and b waits
				if crash {
					r.crash()
					r.start()
				}
				after(time.Hour)
				r.wants("re: b", mayBeMissing)
				sent := r.chat.sent()
				if got := sent[2].at.Sub(sent[1].at); got < 8*time.Second || got > 10*time.Second {
					t.Errorf("the pause is %v", got)
				}
			})
		})
	}
}

// A pause goes on when nothing is left to be sent.
func TestPauseOutlivesTheQueue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = resends
		r.setPolicy(oneByOne)
		r.chat.will(cut, cut, cut)
		r.start()
		r.say("a")
		after(25 * time.Second) // a is sent twice in vain, and so is the notice about it
		r.say("b")
		after(time.Hour)
		sent := r.chat.sent()
		if len(sent) != 4 {
			t.Fatalf("sent %+v", sent)
		}
		if got := sent[3].at.Sub(sent[2].at); got < 32*time.Second || got > 40*time.Second {
			t.Errorf("the pause is %v", got)
		}
	})
}
