package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

// TestPermissionsForm: the page of an agent shows and changes its permissions, and what is
// wrong changes nothing.
func TestPermissionsForm(t *testing.T) {
	r := startRig(t)
	r.ran(r.say("hello"), claybot.RunSucceeded)
	v, id := r.visitor(), r.agent(main)
	path := "/ui/agents/" + string(id) + "/settings"
	own := func() claybot.Permissions {
		if p := r.system.Profiles.OwnSettings(id).Permissions; p != nil {
			return *p
		}
		return claybot.Permissions{}
	}
	form := url.Values{
		"permissions": {"1"}, "offline": {"1"}, "readDirs": {"docs/, src"}, "writeDirs": {"-"}, "workingDir": {" src "},
		"routes": {""}, "deny": {"wait"},
	}
	if got := v.do(http.MethodPost, path, form); got.code >= 300 {
		t.Fatalf("%d %s", got.code, got.body)
	}
	p := own()
	if !p.Offline() || strings.Join(p.ReadDirs, " ") != "docs src" || p.WriteDirs == nil || len(p.WriteDirs) > 0 || p.WorkingDir != "src" || p.Routes != nil || strings.Join(p.Tools.Deny, " ") != "wait" {
		t.Errorf("the form set %+v", p)
	}
	page := v.page(path)
	for _, want := range []string{`name="offline" value="1" checked`, `value="docs, src"`, `name="writeDirs" value="-"`, `name="workingDir" value="src"`, `name="routes" value=""`, `name="deny" value="wait"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the form lacks %s:\n%s", want, page)
		}
	}
	for name, bad := range map[string]url.Values{
		"directory": {"permissions": {"1"}, "readDirs": {"/etc"}}, "tool": {"permissions": {"1"}, "deny": {"nonsense"}}, "route": {"permissions": {"1"}, "routes": {"nowhere"}},
	} {
		if got := v.do(http.MethodPost, path, bad); got.code != http.StatusBadRequest || !strings.Contains(got.body, `"permissions"`) {
			t.Errorf("a bad %s: %d %s", name, got.code, got.body)
		}
	}
	// A form without these fields, as of a page from before an update, leaves them.
	if got := v.do(http.MethodPost, path, url.Values{"maxSteps": {"7"}}); got.code >= 300 || !own().Offline() {
		t.Errorf("%d %s: %+v", got.code, got.body, own())
	}
	if got := v.do(http.MethodPost, path, url.Values{"permissions": {"1"}}); got.code >= 300 || !own().IsZero() {
		t.Errorf("%d %s: %+v", got.code, got.body, own())
	}
}
