package dashboard_test

import (
	"testing"

	"github.com/claybot/claybot"
)

// No page makes a request that fails or has an error on its console, neither when it
// is opened nor when news comes; see browser.watch.
func TestBrowserNoRequestFails(t *testing.T) {
	r := startRig(t)
	run := r.ran(r.say("hello"), claybot.RunSucceeded)
	b := r.browse()
	for _, path := range []string{
		"/", "/ui/agents", "/ui/agents/" + string(run.Agent), "/ui/runs", "/ui/runs/" + string(run.ID), "/ui/schedule", "/ui/deliveries",
		"/ui/usage", "/ui/access", "/ui/health", "/ui/why", "/ui/why?q=" + string(run.ID), "/ui/tools", "/ui/notes", "/ui/members",
	} {
		b.open(path)
		// All parts are fetched again, as when something has changed.
		b.do("news on "+path, until(`import("/assets/dashboard.js").then((m) => m.refresh()).then(() => true)`))
		if got := is[string](b, `[...document.querySelectorAll("[data-live]")].map((e) => e.dataset.live).filter((u) => !u.startsWith("/ui/")).join()`); got != "" {
			t.Errorf("%s: parts come from %s", path, got)
		}
	}
}
