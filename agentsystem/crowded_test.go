package agentsystem_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/texts"
)

// crowdBehind lets a run say progress and end while so many messages come behind that, before any is sent.
func (r *rig) crowdBehind(progress string, behind int) {
	r.line = platforms[0].line
	r.profile.Progress = true
	on := use("look")
	on.Text = progress
	r.mind.plan("a", on, llmtest.Say("end"))
	blocked := true
	r.chat.judge = func(claybot.Outgoing) verdict {
		if blocked {
			return slow(time.Minute, false)
		}
		return verdict{}
	}
	r.start()
	r.say("a")
	after(time.Second)
	for i := range behind {
		r.post(ann, command(fmt.Sprint("c", i), "start"))
	}
	r.chat.mu.Lock()
	blocked = false
	r.chat.mu.Unlock()
	after(10 * time.Minute)
}

// When 300 messages wait behind a progress text, the text is left out with a reason, and
// nothing else is; it counts as no lost reply.
func TestProgressMakesRoom(t *testing.T) {
	t.Parallel()
	for _, behind := range []int{298, 299} { // and the end of the run
		bubble(t, func(r *rig) {
			r.crowdBehind("I look it up.", behind)
			got := r.chat.seen()
			if said := slices.Contains(got, "I look it up."); said != (behind < 299) || len(got) != behind+1+map[bool]int{true: 1}[said] {
				t.Errorf("%d behind: %d messages, progress said: %v", behind, len(got), said)
			}
			o, err := r.db.OutgoingByID(r.Context(), fmt.Sprintf("%s%s/1/1", delivery.ProgressPrefix, r.receipt("a").Run.ID))
			if err != nil || behind == 299 && (o.State != claybot.SendFailed || o.Cause != delivery.CauseCrowded || delivery.Lost(o)) {
				t.Errorf("%d behind: %s %q, %v", behind, o.State, o.Cause, err)
			}
			if v := overview.VerdictOf(texts.Voice{}, r.receipt("a"), overview.Free); v.Outcome != overview.OutcomeAnswered {
				t.Errorf("%d behind: %+v", behind, v)
			}
		})
	}
}

// A progress text of several messages makes room as a whole, or not at all.
func TestProgressMakesRoomAsAWhole(t *testing.T) {
	t.Parallel()
	for behind, said := range map[int]bool{299: true, 300: false} { // the second part is one of them
		bubble(t, func(r *rig) {
			progress := strings.Repeat("x", partLimit)
			r.crowdBehind(progress+"y", behind-2)
			got := r.chat.seen()
			if first, second := slices.Contains(got, progress), slices.Contains(got, "y"); first != said || second != said {
				t.Errorf("%d behind: the first part said: %v, the second: %v", behind, first, second)
			}
		})
	}
}
