package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

type pairingPage struct {
	Pairings []struct{ Code, Connector, UserID string }
	Grants   []struct{ Connector, Subject string }
}

// strangers write, and get codes.
func (r *rig) strangers(names ...string) pairingPage {
	r.Helper()
	for _, name := range names {
		err := r.system.Post(r.Context(), claybot.User("telegram", name, name), claybot.AgentMessage{
			ID: claybot.MessageID("telegram/" + name), Type: claybot.MessageUser, Text: "hello", From: claybot.Sender{UserID: name}, At: claybot.Now(),
		})
		if err != nil {
			r.Fatal(err)
		}
	}
	var p pairingPage
	r.ask("GET", "/pairing", "", http.StatusOK, &p)
	if len(p.Pairings) != len(names) {
		r.Fatalf("pairings %+v", p.Pairings)
	}
	return p
}

func TestPairing(t *testing.T) {
	r := start(t)
	p := r.strangers("1", "2")
	r.ask("POST", "/pairing", `{"code":" `+p.Pairings[0].Code+` ","approve":true}`, http.StatusAccepted, nil)
	r.ask("POST", "/pairing", `{"code":"`+p.Pairings[1].Code+`","approve":false}`, http.StatusAccepted, nil)
	r.ask("POST", "/pairing", `{"connector":"telegram","subject":"3"}`, http.StatusAccepted, nil)
	r.ask("GET", "/pairing", "", http.StatusOK, &p)
	if len(p.Pairings) != 0 || len(p.Grants) != 2 {
		t.Errorf("after decisions %+v", p)
	}
	for _, body := range []string{
		`{}`, `{"code":"X"}`, `{"approve":true}`, `{"connector":"telegram"}`, `{"code":"X","approve":true,"connector":"telegram","subject":"1"}`, `{"code":" ","approve":true}`,
	} {
		r.refused("POST", "/pairing", body, 400, "bad_request", "Give")
	}
	r.refused("POST", "/pairing", `{"code":"X","approve":"yes"}`, 400, "bad_request", "approve must be true or false")
	r.refused("POST", "/pairing", `{"connector":"nowhere","subject":"1"}`, 400, "refused", "no connector")
	r.refused("POST", "/pairing", `{"code":"ZZZZZZZZ","approve":true}`, 404, "not_found", "No such code")

	r.ask("DELETE", "/pairing/telegram:1", "", http.StatusNoContent, nil)
	r.ask("DELETE", "/pairing?connector=telegram&subject=3", "", http.StatusNoContent, nil)
	r.refused("DELETE", "/pairing/telegram:1", "", 404, "not_found", "GET /pairing lists")
	r.refused("DELETE", "/pairing?connector=telegram&subject=3", "", 404, "not_found", "No user or channel")
	r.refused("DELETE", "/pairing/telegram:listed", "", 409, "refused", "the list")
	for _, path := range []string{"/pairing", "/pairing?connector=telegram", "/pairing/telegram", "/pairing/:1", "/pairing/telegram:"} {
		r.refused("DELETE", path, "", 400, "bad_request", "connector or subject")
	}
}

// A person without a connector or an id is none, so nothing is erased by mistake.
func TestForgetNoPerson(t *testing.T) {
	r := start(t)
	for _, who := range []string{"telegram", ":1", "telegram:", "a%2Fb:1"} {
		for _, method := range []string{"GET", "DELETE"} {
			r.refused(method, "/people/"+who, "", 400, "bad_request", "connector:user")
		}
	}
}

// No token changes roles, whatever its scope; the list of people is for admins.
func TestRolesAreForTheMachine(t *testing.T) {
	r := start(t)
	r.ask("POST", "/pairing", `{"connector":"telegram","subject":"3"}`, http.StatusAccepted, nil)
	for _, role := range []string{"owner", "operator", "user", "king"} {
		r.refused("PUT", "/people/telegram:3/role", `{"role":"`+role+`"}`, 403, "local", "over the network")
	}
	for scope, want := range map[string]int{"read": 403, "operate": 403, "approve": 403, "admin": 200} {
		token := r.scoped("p-"+scope, scope)
		for _, path := range []string{"/people", "/people/roles"} {
			if g := r.do("GET", path, "", "Authorization", "Bearer "+token); g.code != want {
				t.Errorf("GET %s with %s = %d %s", path, scope, g.code, g.body)
			}
		}
	}
	var list struct {
		People []struct{ ID, Role string }
	}
	r.ask("GET", "/people", "", http.StatusOK, &list)
	found := false
	for _, p := range list.People {
		found = found || p.ID == "telegram:3" && p.Role == "user"
	}
	if !found {
		t.Errorf("people %+v", list.People)
	}
}

// Codes are for those who may decide about them.
func TestCodesAreForAdmins(t *testing.T) {
	r := start(t)
	code := r.strangers("1").Pairings[0].Code
	for _, scope := range []string{"read", "operate", "admin"} {
		g := r.do("GET", "/pairing", "", "Authorization", "Bearer "+r.scoped("s-"+scope, scope))
		if g.code != http.StatusOK || strings.Contains(g.body, code) != (scope == "admin") || strings.Contains(g.body, `"code"`) != (scope == "admin") || !strings.Contains(g.body, `"userId":"1"`) {
			t.Errorf("with the scope %s: %d %s", scope, g.code, g.body)
		}
	}
}

func TestGuessingCodesIsLocked(t *testing.T) {
	r := start(t)
	for range 50 {
		if g := r.do("POST", "/pairing", `{"code":"WRONG000","approve":true}`); g.code == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("codes can be guessed for ever")
}

// A pairing link is made for a connector that has them, alone in its request.
func TestPairingLink(t *testing.T) {
	r := start(t)
	var out struct {
		Invitation struct{ Connector, URL string }
	}
	r.ask("POST", "/pairing", `{"invite":"telegram"}`, http.StatusAccepted, &out)
	if x := out.Invitation; x.Connector != "telegram" || !strings.Contains(x.URL, "?start=") {
		t.Errorf("%+v", x)
	}
	r.ask("POST", "/pairing", `{"invite":"nowhere"}`, http.StatusBadRequest, nil)
	r.ask("POST", "/pairing", `{"invite":"telegram","code":"ABCDEFGH","approve":true}`, http.StatusBadRequest, nil)
}
