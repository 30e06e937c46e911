package dashboard_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

var prefixIn = regexp.MustCompile(`data-prefix="([^"]*)"`)

// Programs with tokens of their own may give their conversations and messages
// the same names: none takes the place of another, and the page knows under
// which ids the messages of who looks at it are stored.
func TestTokensDoNotMeetInOneConversation(t *testing.T) {
	r := startRig(t)
	v := r.visitor()
	logins := map[string][]string{"operator": nil}
	for _, name := range []string{"ci", "cd"} {
		got := v.send(http.MethodPost, "/tokens", "application/json", `{"name":"`+name+`","scope":"operate"}`)
		var made struct{ Token string }
		if err := json.Unmarshal([]byte(got.body), &made); err != nil || made.Token == "" {
			t.Fatalf("no token: %d %s", got.code, got.body)
		}
		logins["token:"+name] = []string{"Authorization", "Bearer " + made.Token}
	}
	agents := make(map[claybot.AgentID]bool)
	for user, head := range logins {
		who := v
		if head != nil {
			who = &visitor{r, &http.Client{}}
		}
		page := who.do("GET", "/", nil, head...)
		prefix := prefixIn.FindStringSubmatch(page.body)
		got := who.send(http.MethodPost, "/chat/messages", "application/json", `{"id":"1","text":"hello","conversation":"c"}`, head...)
		var out struct{ MessageID claybot.MessageID }
		if err := json.Unmarshal([]byte(got.body), &out); err != nil || got.code != http.StatusAccepted {
			t.Fatalf("%s: %d %s", user, got.code, got.body)
		}
		if prefix == nil || string(out.MessageID) != prefix[1]+"c/1" || (user == "operator") != (out.MessageID == "web/c/1") {
			t.Errorf("%s: the message has the id %s, and the page begins ids with %q", user, out.MessageID, prefix)
		}
		run := r.ran(out.MessageID, claybot.RunSucceeded)
		agents[run.Agent] = true
		if seen := who.do("GET", "/chat/transcript?conversation=c", nil, head...).body; strings.Count(seen, `"user":`) != 1 {
			t.Errorf("%s sees %s", user, seen)
		}
	}
	if len(agents) != len(logins) {
		t.Errorf("%d agents for %d users", len(agents), len(logins))
	}
}
