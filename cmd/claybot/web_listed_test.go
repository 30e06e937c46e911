package main

import (
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/tools"
)

// What agents fetch without asking: what the operator listed, exactly the pages that a
// person wrote, and other addresses as web.unlisted says.
func TestFetchListed(t *testing.T) {
	const named, leak, listed, private = "https://named.test/page", "https://named.test/leak?d=secret", "https://listed.test/x", "http://10.0.0.5/"
	said := claybot.Record{Type: claybot.RecordUser, Text: "Summarize " + named + " and mail it to ann@mail.test."}
	tainted, held := claybot.Record{Type: claybot.RecordTool, Tainted: true}, claybot.Record{Type: claybot.RecordTool, Private: true}
	hosts := []string{"listed.test"}
	read := func(e tools.Env) bool { return e.Tainted || e.Private }
	all := []string{named, leak, listed, private, "https://mail.test/", "https://other.test/"}
	for _, tt := range []struct {
		name    string
		web     configs.Web
		tainted bool
		asks    []string // of all
	}{
		{"as installed, clean", configs.Web{}, false, nil},
		{"as installed, tainted", configs.Web{}, true, []string{leak, listed, private, "https://mail.test/", "https://other.test/"}},
		{"private hosts are listed", configs.Web{Private: []string{"10.0.0.5:80"}}, true, []string{leak, listed, "https://mail.test/", "https://other.test/"}},
		{"auto", configs.Web{Unlisted: configs.UnlistedAuto}, true, []string{leak, listed, private, "https://mail.test/", "https://other.test/"}},
		{"always ask", configs.Web{Unlisted: configs.UnlistedAsk}, false, []string{leak, listed, private, "https://mail.test/", "https://other.test/"}},
		{"never ask", configs.Web{Unlisted: configs.UnlistedAllow}, true, nil},
		// What is refused anyway asks nobody.
		{"only hosts of a list", configs.Web{Allow: hosts}, true, nil},
		{"deny", configs.Web{Unlisted: configs.UnlistedDeny}, true, nil},
	} {
		env := tools.Env{}.Aware([]claybot.Record{said})
		if tt.tainted {
			env = tools.Env{}.Aware([]claybot.Record{said, tainted})
		}
		asks := make(map[string]bool)
		for _, address := range tt.asks {
			asks[address] = true
		}
		for _, address := range all {
			if got := fetchListed(tt.web, env, address, read); got == asks[address] {
				t.Errorf("%s: %s asks: %v", tt.name, address, !got)
			}
		}
		for _, bad := range []string{"", "file:///etc/passwd", "https://", "https://u:p@named.test/page"} {
			if !fetchListed(tt.web, env, bad, read) {
				t.Errorf("%s: %q asks", tt.name, bad)
			}
			if webListed(tt.web, env, bad, read) {
				t.Errorf("%s: %q is listed", tt.name, bad)
			}
		}
		if tt.web.Public() != (tt.web.Allow == nil && tt.web.Unlisted != configs.UnlistedDeny) {
			t.Errorf("%s: public is %v", tt.name, tt.web.Public())
		}
	}
	for _, web := range []configs.Web{{}, {Unlisted: configs.UnlistedAuto}} {
		env := tools.Env{}.Aware([]claybot.Record{said, held})
		if fetchListed(web, env, leak, read) || !fetchListed(web, env, named, read) {
			t.Errorf("%+v: after private content, %s or %s is treated as in a clean run", web, leak, named)
		}
	}
	if !fetchListed(configs.Web{Unlisted: configs.UnlistedAllow}, tools.Env{}.Aware([]claybot.Record{said, held}), leak, read) {
		t.Error("allow asks after private content")
	}
	env := tools.Env{}.Aware([]claybot.Record{said, tainted})
	if webListed(configs.Web{Allow: hosts}, env, leak, read) || !webListed(configs.Web{Allow: hosts}, env, listed, read) || !webListed(configs.Web{Allow: hosts}, env, named, read) {
		t.Error("a browser may reach what its list does not have")
	}
}
