package slack

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// Guests and users of other organizations are outsiders in channels, whichever way they act
// (SL-19).
func TestGuestsAreOutsiders(t *testing.T) {
	for name, c := range map[string]struct {
		user slacktest.User
		want bool
	}{
		"member":                     {slacktest.User{}, false},
		"guest":                      {slacktest.User{Restricted: true}, true},
		"guest of one channel":       {slacktest.User{UltraRestricted: true}, true},
		"stranger":                   {slacktest.User{Stranger: true}, true},
		"of another workspace":       {slacktest.User{Team: "T2"}, true},
		"of the same organization":   {slacktest.User{Team: "T2", Teams: []string{"T2", "T1"}}, false},
		"guest of the organization":  {slacktest.User{Team: "T2", Teams: []string{"T2", "T1"}, Restricted: true}, true},
		"of another in the grid":     {slacktest.User{Team: "T2", Teams: []string{"T2", "T3"}}, true},
		"deactivated":                {slacktest.User{Deleted: true}, true},
		"of whom Slack says nothing": {slacktest.User{Unknown: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				c.user.ID = "U1"
				w.slack.SetUser(c.user)
				w.start(t)
				w.slack.DM("U1", "direct")
				w.settled(t)
				w.slack.Mention("C1", "U1", "hello", false)
				w.slack.Slash("C1", "U1", "/claybot", "reset")
				o := outgoing("C1", "", "Done.")
				o.Offer = []claybot.Offer{{Label: "Undo", Command: "/undo"}}
				offer, err := w.Send(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				w.click(t, "U1", "C1", offer, "Undo")
				w.click(t, "U1", "C1", w.ask(t, "C1", "", claybot.Question{ID: "q1", Type: claybot.QuestionBoolean}), "Yes")
				form := w.modal(t, "U1", "C1", w.ask(t, "C1", "", claybot.Question{ID: "q2", Type: claybot.QuestionText}), "Answer…")
				if _, err := w.slack.Submit(t.Context(), form.ID, map[string]any{"": "text"}); err != nil {
					t.Fatal(err)
				}
				w.settled(t)
				synctest.Wait()
				if len(w.inbox.all()) != 4 || len(w.inbox.pressed()) != 2 {
					t.Errorf("%d messages and %d presses", len(w.inbox.all()), len(w.inbox.pressed()))
				}
				for _, in := range w.inbox.all() {
					if want := c.want && in.message.Context.Group; in.message.From.Outsider != want || in.to.UserID != "U1" {
						t.Errorf("%q: outsider %v, want %v", in.message.Text, in.message.From.Outsider, want)
					}
				}
				for _, p := range w.inbox.pressed() {
					if p.Outsider != c.want {
						t.Errorf("pressed %+v", p)
					}
				}
				if n := len(w.slack.Calls(methodUserInfo)); n != 1 {
					t.Errorf("%d calls of users.info", n)
				}
			})
		})
	}
}

// Messages carry the name that their sender has in Slack, which is asked for once; without an
// answer they come without it.
func TestNames(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.slack.SetUser(slacktest.User{ID: "U1", Name: "Ann\n\u202eobey"})
		w.slack.SetUser(slacktest.User{ID: "U3", Unknown: true})
		w.start(t)
		for _, user := range []string{"U1", "U1", "U2", "U3"} {
			w.slack.DM(user, "hello")
			w.settled(t)
		}
		w.slack.Write(slacktest.Post{Channel: "DU1", User: "U1", UserTeam: "T2", Text: "hello"})
		w.settled(t)
		w.slack.Lack("users:read", true)
		w.slack.DM("U4", "hello")
		w.settled(t)
		synctest.Wait()
		var names []string
		for _, in := range w.inbox.all() {
			names = append(names, in.message.From.Name)
		}
		if want := []string{"Ann obey", "Ann obey", "U2", "", "", ""}; !slices.Equal(names, want) {
			t.Errorf("names %q, want %q", names, want)
		}
		if n := len(w.slack.Calls(methodUserInfo)); n != 4 {
			t.Errorf("%d calls of users.info, want 4", n)
		}
	})
}

// A member who becomes a guest is one within ten minutes, and is asked about once in between.
func TestMembershipIsRemembered(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		says := func(want bool, calls int) {
			t.Helper()
			w.slack.Mention("C1", "U1", "hello", false)
			w.settled(t)
			all := w.inbox.all()
			if got := all[len(all)-1].message.From.Outsider; got != want || len(w.slack.Calls(methodUserInfo)) != calls {
				t.Errorf("outsider %v, want %v; %d calls, want %d", got, want, len(w.slack.Calls(methodUserInfo)), calls)
			}
		}
		says(false, 1)
		w.slack.SetUser(slacktest.User{ID: "U1", Restricted: true})
		time.Sleep(memberTime - time.Second)
		says(false, 1)
		time.Sleep(2 * time.Second)
		says(true, 2)
	})
}

// Without the scope nobody in a channel counts as a member, and the health says why, until
// the app has it.
func TestNoScopeForMembers(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.slack.Lack("users:read", true)
		w.start(t)
		for _, lacks := range []bool{true, false} {
			w.slack.Lack("users:read", lacks)
			w.slack.Mention("C1", "U1", "hello", false)
			w.settled(t)
			all := w.inbox.all()
			if got := all[len(all)-1].message.From.Outsider; got != lacks {
				t.Errorf("lacks the scope %v: outsider %v", lacks, got)
			}
			if h := w.Health(); h.State != connectors.StateLive || strings.Contains(h.Err, "users.info") != lacks {
				t.Errorf("lacks the scope %v: health %+v", lacks, h)
			}
			time.Sleep(memberAgain)
		}
	})
}

// While Slack cannot say who somebody is, their messages wait at Slack.
func TestMembershipUnknown(t *testing.T) {
	for name, fault := range map[string]slacktest.Fault{
		"rate":   {RetryAfter: 20 * time.Second},
		"broken": {Status: 503},
		"lost":   {Lost: true},
		"server": {Error: "internal_error"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				w.start(t)
				began := time.Now()
				w.slack.Fail(methodUserInfo, fault)
				w.slack.Mention("C1", "U1", "hello", false)
				synctest.Wait()
				if len(w.inbox.all()) != 0 {
					t.Errorf("posted %+v", w.inbox.all())
				}
				w.settled(t)
				all := w.inbox.all()
				if len(all) != 1 || all[0].message.From.Outsider || time.Since(began) < fault.RetryAfter {
					t.Errorf("after %v: %+v", time.Since(began), all)
				}
				if n := len(w.slack.Calls(methodUserInfo)); n > 3 {
					t.Errorf("%d calls", n)
				}
			})
		})
	}
}

// Messages that are read again after a gap go through the same door.
func TestGuestsAfterAGap(t *testing.T) {
	inGapWorld(t, forgetful(), func(w *gapWorld) {
		w.slack.SetUser(slacktest.User{ID: "U2", UltraRestricted: true})
		w.start(w.t)
		w.slack.Mention("C1", "U1", "before", false)
		w.settled(w.t)
		time.Sleep(2 * time.Minute)
		w.away(time.Hour, func() {
			w.slack.Mention("C1", "U1", "member", false)
			w.slack.Mention("C1", "U2", "guest", false)
			w.slack.Write(slacktest.Post{Channel: "C1", User: "U1", UserTeam: "T2", Text: "<@UBOT> foreign"})
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		want := map[string]bool{"before": false, "member": false, "guest": true, "foreign": true}
		all := w.inbox.all()
		for _, in := range all {
			if in.message.From.Outsider != want[in.message.Text] || (in.to.UserID == "T2/U1") != (in.message.Text == "foreign") {
				w.t.Errorf("%q of %s: outsider %v", in.message.Text, in.to.UserID, in.message.From.Outsider)
			}
		}
		if len(all) != len(want) {
			w.t.Errorf("%d messages: %q", len(all), w.inbox.texts())
		}
	})
}
