package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

type outgoingPage struct {
	Outgoing []struct {
		ID, State, Text, Cause string
		N                      int64
		Route                  claybot.Route
	}
	Next string
}

func TestOutbox(t *testing.T) {
	r := start(t)
	var all []claybot.Outgoing
	for i := range 5 {
		channel := fmt.Sprint("c", i%2)
		all = append(all, claybot.Outgoing{
			ID: fmt.Sprintf("tell/%d", i), Kind: claybot.OutgoingNotice, Route: claybot.Route{Connector: "nowhere", ChannelID: channel},
			Text: fmt.Sprint("text ", i), Part: 1, Parts: 1, At: claybot.Now(),
		})
	}
	if _, err := r.db.Enqueue(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	if err := r.db.Resolve(t.Context(), storage.Claim{}, "tell/0", storage.Resolution{State: claybot.SendFailed, Cause: "blocked"}); err != nil {
		t.Fatal(err)
	}
	if err := r.db.Attempt(t.Context(), storage.Claim{}, "tell/1"); err != nil {
		t.Fatal(err)
	}
	if err := r.db.Resolve(t.Context(), storage.Claim{}, "tell/1", storage.Resolution{State: claybot.SendSent, Receipt: "42"}); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for before := ""; ; {
		var page outgoingPage
		r.ask("GET", "/outbox?limit=2&before="+before, "", http.StatusOK, &page)
		for _, o := range page.Outgoing {
			seen = append(seen, o.ID)
		}
		if before = page.Next; before == "" {
			break
		}
	}
	if got := strings.Join(seen, " "); got != "tell/4 tell/3 tell/2 tell/1 tell/0" {
		t.Errorf("outbox %s", got)
	}
	for query, want := range map[string]int{
		"state=failed": 1, "state=sent": 1, "state=open": 3, "state=waiting": 3, "state=ambiguous": 0, "dest=nowhere:c1": 2, "dest=nowhere:c1&state=sent": 1, "dest=x:y": 0,
	} {
		var page outgoingPage
		r.ask("GET", "/outbox?"+query, "", http.StatusOK, &page)
		if len(page.Outgoing) != want {
			t.Errorf("%s lists %d, want %d", query, len(page.Outgoing), want)
		}
	}
	for _, bad := range []string{"state=lost", "dest=c1", "dest=:c", "before=x", "before=-1", "before=0"} {
		r.refused("GET", "/outbox?"+bad, "", 400, "bad_request", "")
	}
	if g := r.do("GET", "/outbox/tell%2F0", ""); g.code != 200 || !strings.Contains(g.body, `"cause":"blocked"`) {
		t.Errorf("one = %d %s", g.code, g.body)
	}
	if g := r.do("POST", "/outbox/tell%2F0/retry", ""); g.code != 202 || !strings.Contains(g.body, `"state":"waiting"`) {
		t.Errorf("retry = %d %s", g.code, g.body)
	}
	r.ask("DELETE", "/outbox/tell%2F2", "", http.StatusNoContent, nil)
	if g := r.do("GET", "/outbox/tell%2F2", ""); !strings.Contains(g.body, `"state":"failed"`) {
		t.Errorf("what was dropped is %s", g.body)
	}
	r.refused("POST", "/outbox/tell%2F1/retry", "", 409, "state", "was sent")
	r.refused("DELETE", "/outbox/tell%2F1", "", 409, "state", "was sent")
	for _, path := range []string{"GET /outbox/nothing", "POST /outbox/nothing/retry", "DELETE /outbox/nothing"} {
		method, path, _ := strings.Cut(path, " ")
		r.refused(method, path, "", 404, "not_found", "%2F")
	}
}
