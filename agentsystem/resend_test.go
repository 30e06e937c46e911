package agentsystem_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
)

const (
	resending  = "This is my last reply that could not be delivered:"
	resendNone = "Every reply of mine in this conversation has been delivered, or sent again already."
	undeliver  = "I couldn't deliver a reply here. /why shows what happened to your last message."
)

// TestResend: /resend sends the last failed reply of its conversation once more, whatever comes twice.
func TestResend(t *testing.T) {
	t.Parallel()
	bob := claybot.User("chat", "dm-bob", "bob")
	for name, tt := range map[string]struct {
		verdicts []verdict
		test     func(r *rig)
		want     []string
	}{
		"nothing failed": {nil, func(r *rig) { r.post(ann, command("c", "resend")) }, []string{"re: a", resendNone}},
		"a redelivered command": {[]verdict{refused(false)}, func(r *rig) {
			r.post(ann, command("c", "resend"), command("c", "resend"))
			synctest.Wait()
			r.post(ann, command("c", "resend"))
		}, []string{undeliver, resending, "re: a"}},
		"a second command": {[]verdict{refused(false)}, func(r *rig) {
			r.post(ann, command("c", "resend"))
			synctest.Wait()
			r.post(ann, command("c2", "resend"))
		}, []string{undeliver, resending, "re: a", resendNone}},
		"a crash after it was stored": {[]verdict{refused(false)}, func(r *rig) {
			r.chat.will(slow(time.Minute, true))
			r.post(ann, command("c", "resend"))
			r.crash()
			r.start()
			r.post(ann, command("c", "resend"))
			after(2 * time.Minute)
		}, []string{undeliver, resending, "re: a"}},
		"it fails again": {[]verdict{refused(false)}, func(r *rig) {
			r.chat.will(verdict{}, refused(false))
			r.post(ann, command("c", "resend"))
			synctest.Wait()
			r.post(ann, command("c2", "resend"))
		}, []string{undeliver, resending, undeliver, resending, "re: a"}},
		"another conversation": {[]verdict{refused(false)}, func(r *rig) {
			r.post(bob, command("c", "resend"))
		}, []string{undeliver, resendNone}},
		"still on its way": {[]verdict{slow(time.Hour, false)}, func(r *rig) {
			r.post(ann, command("c", "resend"))
			after(2 * time.Hour)
		}, []string{"re: a", "I am still trying to deliver my last reply here. You don't have to do anything."}},
		"a dead route": {[]verdict{refused(true)}, func(r *rig) {
			r.post(ann, command("c", "resend"))
		}, []string{resending, "re: a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.line = platforms[0].line
				r.chat.will(tt.verdicts...)
				r.start()
				r.say("a")
				synctest.Wait()
				tt.test(r)
				synctest.Wait()
				got := r.chat.seen()
				if !slices.Equal(got, tt.want) {
					t.Errorf("people see %q, want %q", got, tt.want)
				}
				if len(r.mind.asked()) != 1 {
					t.Errorf("%d model calls", len(r.mind.asked()))
				}
			})
		})
	}
}

// What was sent again after it failed was delivered, for /why and for operators.
func TestWhyAfterResend(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		r.chat.will(refused(false))
		r.start()
		r.say("a")
		synctest.Wait()
		why := func(id, want string, outcome overview.Outcome) {
			r.Helper()
			r.post(ann, command(id, "why"))
			synctest.Wait()
			seen := r.chat.seen()
			if got := seen[len(seen)-1]; !strings.Contains(got, want) {
				r.Errorf("/why says %q, want %q", got, want)
			}
			stories, err := r.system.Overview.Why(r.Context(), "a")
			if err != nil || len(stories) != 1 || stories[0].Verdict().Outcome != outcome {
				r.Errorf("stories %+v, %v, want %s", stories, err, outcome)
			}
		}
		why("w1", "could not be delivered", overview.OutcomeUndelivered)
		r.chat.will(verdict{}, refused(false))
		r.post(ann, command("c1", "resend"))
		synctest.Wait()
		why("w2", "could not be delivered", overview.OutcomeUndelivered)
		r.post(ann, command("c2", "resend"))
		synctest.Wait()
		why("w3", "the platform confirmed the reply", overview.OutcomeAnswered)
	})
}
