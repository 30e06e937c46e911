package webchat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// Two people may give their conversations and messages the same names. The ids
// of the owner's messages are what they always were.
func TestMessageIDsAreOfOneUser(t *testing.T) {
	m, _ := start(t)
	want := map[string]claybot.MessageID{
		web.Operator: "web/main/1", "token:ci": "web/token:ci/main/1", "token:cd": "web/token:cd/main/1",
		"main": "web/main/main/1", "a/main": "web/a%2Fmain/main/1", "a%2Fmain": "web/a%252Fmain/main/1",
	}
	seen := make(map[claybot.MessageID]bool)
	for user, id := range want {
		h := m.chat.Handler(m, m, func(*http.Request) string { return user })
		w := do(t, h, "POST", "/messages", "application/json", `{"id":"1","text":"x"}`)
		var out struct{ MessageID claybot.MessageID }
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusAccepted || out.MessageID != id {
			t.Errorf("%s: %d %s, want %s", user, w.Code, w.Body, id)
		}
		seen[out.MessageID] = true
	}
	if len(seen) != len(want) {
		t.Errorf("%d ids for %d users: %v", len(seen), len(want), seen)
	}
	for _, p := range m.posted() {
		if !seen[p.ID] {
			t.Errorf("%s was posted", p.ID)
		}
	}
}

// Messages of a program that may not approve say so; without Approves, all may.
func TestProgramsThatMayNotApprove(t *testing.T) {
	m, _ := start(t)
	h := m.chat.Handler(m, m, func(*http.Request) string { return "token:ci" })
	m.chat.may = func(r *http.Request) (once, always bool) {
		return r.Header.Get("X-May") != "", r.Header.Get("X-May") == "always"
	}
	for _, may := range []string{"", "yes", "always"} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/messages", strings.NewReader(`{"text":"x"}`))
		r.Header.Set("X-May", may)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		all := m.posted()
		if w.Code != http.StatusAccepted || all[len(all)-1].From.Program == (may != "") || all[len(all)-1].From.NoRules == (may == "always") {
			t.Errorf("with %q: %d, posted %+v", may, w.Code, all)
		}
	}
	if once, always := New(Config{}).may(nil); !once || !always {
		t.Error("without Approves a message does not approve")
	}
}

// A message to another person in a conversation of the same name does not
// push a person's own lines out of the transcript, and is never in it.
func TestTranscriptOfOneAmongMany(t *testing.T) {
	m, srv := start(t)
	other := claybot.User("web", "main", "somebody-else")
	var want []string
	for i := range 5 {
		text := fmt.Sprint("mine ", i)
		m.say(t, me, "r", text)
		want = append(want, text)
		for range 60 {
			m.say(t, other, "r", "not for me")
		}
	}
	for _, tc := range []struct {
		limit int
		want  []string
	}{{1, want[4:]}, {3, want[2:]}, {5, want}, {100, want}} {
		code, v := call(t, srv, "GET", fmt.Sprint("/transcript?limit=", tc.limit), "")
		var got []string
		for _, e := range v["entries"].([]any) {
			got = append(got, e.(map[string]any)["message"].(map[string]any)["text"].(string))
		}
		if code != http.StatusOK || !slices.Equal(got, tc.want) {
			t.Errorf("limit %d: %d %q, want %q", tc.limit, code, got, tc.want)
		}
	}
}

// A conversation of others is not read without end.
func TestTranscriptIsBounded(t *testing.T) {
	m, srv := start(t)
	theirs := storage.Entry{Outgoing: &claybot.Outgoing{Route: claybot.User("web", "main", "somebody-else").Route()}}
	m.fixed = slices.Repeat([]storage.Entry{theirs}, 2*readLimit)
	code, v := call(t, srv, "GET", "/transcript", "")
	if code != http.StatusOK || !strings.Contains(fmt.Sprint(v), "entries:[]") {
		t.Errorf("%d %v", code, v)
	}
}
