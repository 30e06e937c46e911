package agentsystem_test

import (
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm/llmtest"
)

var _ connectors.VisitHandler = (*agentsystem.AgentSystem)(nil)

// A person's page has their own work and no other's, also before they wrote; a stranger has none.
func TestHome(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", llmtest.Use(with("remind_me", obj{"in": "2h", "note": "water the plants"})), llmtest.Say("noted"))
		r.start()
		page := func(d claybot.Descriptor, outsider bool) string {
			r.Helper()
			var b strings.Builder
			all, err := r.system.Home(r.Context(), d, outsider)
			if err != nil {
				r.Fatal(err)
			}
			for _, s := range all {
				b.WriteString("# " + s.Title + "\n" + s.Text + "\n")
			}
			return b.String()
		}
		has := func(page, what string, want bool) {
			r.Helper()
			if strings.Contains(page, what) != want {
				r.Errorf("%q in the page: %v\n%s", what, !want, page)
			}
		}
		before := page(ann, false)
		for _, s := range []string{"# Right now", "# Your conversations\nYou have not written", "# Your tasks and reminders\nNo subagent", "# Your usage", "# Your privacy", "# Your settings\nI speak English"} {
			has(before, s, true)
		}
		r.say("begin")
		r.wants("noted")
		has(page(ann, false), "water the plants", true)
		has(page(ann, false), "chat: 1 conversation", true)
		has(page(bob, false), "water the plants", false)
		has(page(bob, false), "You have not written", true)
		stranger := claybot.User("chat", "dm-zed", "T9/zed")
		if got := page(stranger, true); got != "" || r.system.Welcome(stranger, true) || !r.system.Welcome(ann, false) {
			r.Errorf("a stranger reads %s", got)
		}
	})
}
