package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func TestParked(t *testing.T) {
	r := start(t)
	if g := r.do("GET", "/parked", ""); g.code != http.StatusOK || strings.TrimSpace(g.body) != `{"parked":[]}` {
		t.Errorf("nothing parked = %d %s", g.code, g.body)
	}
	for i := range 3 {
		channel := fmt.Sprint("c", i%2)
		m := claybot.AgentMessage{ID: claybot.MessageID(fmt.Sprint("m/", i)), Type: claybot.MessageUser, Text: "text"}
		p := storage.Parked{To: claybot.User("nowhere", channel, "U1"), Message: m, Cause: "state.json: permission denied"}
		if _, err := r.db.Park(t.Context(), p, storage.ParkRules{}); err != nil {
			t.Fatal(err)
		}
	}
	var list struct {
		Parked []struct {
			Agent, First, Cause string
			Messages            int
		}
	}
	r.ask("GET", "/parked", "", http.StatusOK, &list)
	if got := fmt.Sprint(list.Parked); got != "[{nowhere:c0:U1 m/0 state.json: permission denied 2} {nowhere:c1:U1 m/1 state.json: permission denied 1}]" {
		t.Errorf("parked %s", got)
	}
	r.ask("GET", "/parked?limit=1", "", http.StatusOK, &list)
	if len(list.Parked) != 1 {
		t.Errorf("a page of one has %d", len(list.Parked))
	}
	r.refused("DELETE", "/parked", "", 400, "bad_request", "")
	r.refused("DELETE", "/parked?agent=nowhere:c9:U1", "", 404, "not_found", "")
	var gone struct{ Dropped []string }
	r.ask("DELETE", "/parked?agent=nowhere:c0:U1", "", http.StatusOK, &gone)
	if got := strings.Join(gone.Dropped, " "); got != "m/0 m/2" {
		t.Errorf("dropped %q", got)
	}
	if rec, err := r.db.Receipt(t.Context(), "m/2"); err != nil || rec.Skipped != "operator" {
		t.Errorf("a dropped message: %+v, %v", rec, err)
	}
	r.ask("GET", "/parked", "", http.StatusOK, &list)
	if len(list.Parked) != 1 || list.Parked[0].Agent != "nowhere:c1:U1" {
		t.Errorf("left %+v", list.Parked)
	}
}
