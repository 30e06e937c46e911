package web_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A crew is the agents of a test: what waits for them, and what was asked of
// them.
type crew struct {
	entries   []storage.IndexEntry // beside those that the world always has
	inboxes   map[claybot.AgentID]agentsystem.InboxView
	reminders map[claybot.AgentID][]storage.Reminder
	asked     []string
	fault     error // of what changes an agent
}

// find notes what was asked; an agent is one that has an inbox.
func (w *world) find(what string, id claybot.AgentID) (agentsystem.InboxView, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, ok := w.crew.inboxes[id]
	if !ok {
		return v, storage.ErrNotFound
	}
	w.crew.asked = append(w.crew.asked, what+" "+string(id))
	return v, w.crew.fault
}

func (w *world) StopAgent(_ context.Context, id claybot.AgentID) (int, error) {
	_, err := w.find("stop", id)
	return 2, err
}

func (w *world) ResetAgent(_ context.Context, id claybot.AgentID) error {
	_, err := w.find("reset", id)
	return err
}

func (w *world) DeleteAgent(_ context.Context, id claybot.AgentID) error {
	_, err := w.find("delete", id)
	return err
}

func (w *world) Inbox(_ context.Context, id claybot.AgentID) (agentsystem.InboxView, error) {
	return w.find("inbox", id)
}

func (w *world) Drop(_ context.Context, id claybot.AgentID, ids ...claybot.MessageID) ([]claybot.MessageID, error) {
	v, err := w.find("drop", id)
	var dropped []claybot.MessageID
	for _, m := range v.Waiting {
		named := len(ids) == 0
		for _, x := range ids {
			named = named || x == m.ID
		}
		if named {
			dropped = append(dropped, m.ID)
		}
	}
	return dropped, err
}

func (w *world) AgentReminders(_ context.Context, id claybot.AgentID) ([]storage.Reminder, error) {
	_, err := w.find("reminders", id)
	return w.crew.reminders[id], err
}

// withCrew is a server with a parent that works and a child that waits.
func withCrew(t *testing.T) (*world, *http.Client) {
	t.Helper()
	w, _ := start(t, t.TempDir(), nil)
	long := strings.Repeat("ä", 201)
	w.mu.Lock()
	w.crew = crew{
		entries: []storage.IndexEntry{
			{ID: "p", Descriptor: claybot.User("telegram", "9", "9"), LastUserAt: 50, CreatedAt: 5, Run: "r1", Waiting: 2},
			{ID: "c", Descriptor: claybot.Descriptor{Type: claybot.AgentSubagent, UID: "c", Parent: "p", Name: "helper", Owner: "telegram/9"}, CreatedAt: 7, Run: "r2", Waiting: 1},
			{ID: "gone", Descriptor: claybot.Descriptor{Type: claybot.AgentCron, UID: "u"}, CreatedAt: 6, Run: "r3"},
			{ID: "ended", Descriptor: claybot.Descriptor{Type: claybot.AgentHeartbeat}, CreatedAt: 8, Run: "r4", Waiting: 1},
		},
		inboxes: map[claybot.AgentID]agentsystem.InboxView{
			"p": {
				Agent: "p", Run: &claybot.Run{ID: "r1", State: claybot.RunAwaiting, Started: 3, Awaiting: &claybot.Awaiting{Answers: []claybot.MessageID{"x"}, Until: 9}},
				Waiting: []claybot.Message{
					{ID: "m/1", Type: claybot.MessageUser, Text: long, From: claybot.Sender{UserID: "9", Name: "Ann"}, At: 1},
					{ID: "m/2", Type: claybot.MessageSystem, Kind: claybot.KindReminder, Text: "tea", At: 2, Silent: true},
					{ID: "m/3", Type: claybot.MessageReset, Text: "again", At: 3},
					{ID: "m/4", Type: claybot.MessageCommand, Command: "status", At: 4},
					{ID: "m/5", Type: claybot.MessageCompact, At: 5},
				},
			},
			"c":     {Agent: "c", Run: &claybot.Run{ID: "r2", State: claybot.RunRunning}},
			"ended": {Agent: "ended", Run: &claybot.Run{ID: "r4", State: claybot.RunFailed}},
		},
		reminders: map[claybot.AgentID][]storage.Reminder{"p": {{ID: "r", Agent: "p", Due: 7, Note: "tea", Made: 5}}},
	}
	w.mu.Unlock()
	return w, w.loggedIn(t)
}

func TestAgentsTellTheirState(t *testing.T) {
	w, b := withCrew(t)
	var got struct {
		Agents []struct {
			ID, Type, Name, Parent, Owner, Run, State string
			CreatedAt                                 int64
		}
	}
	decode(t, do(t, b, "GET", w.url("/agents"), "").body, &got)
	states := map[string]string{}
	var order []string
	for _, a := range got.Agents {
		states[a.ID] = a.State
		order = append(order, a.ID)
		if a.ID == "c" && (a.Type != "subagent" || a.Name != "helper" || a.Parent != "p" || a.Owner != "telegram/9" || a.Run != "r2" || a.CreatedAt != 7) {
			t.Errorf("the child: %+v", a)
		}
		if a.ID == "p" && a.Owner != "telegram/9" {
			t.Errorf("the parent: %+v", a)
		}
	}
	if want := "p a4 a3 a2 a1 gone c ended"; strings.Join(order, " ") != want {
		t.Errorf("order %v, want %s", order, want)
	}
	for id, want := range map[string]string{"p": "AWAITING", "c": "RUNNING", "gone": "idle", "ended": "waiting", "a1": "idle"} {
		if states[id] != want {
			t.Errorf("%s is %q, want %q", id, states[id], want)
		}
	}
}

func TestInbox(t *testing.T) {
	w, b := withCrew(t)
	got := do(t, b, "GET", w.url("/agents/p/inbox"), "").body
	want := `{"waiting":[` +
		`{"id":"m/1","type":"user","from":{"userId":"9","name":"Ann"},"text":"` + strings.Repeat("ä", 199) + `…","at":1},` +
		`{"id":"m/2","type":"system","kind":"reminder","text":"tea","at":2,"silent":true},` +
		`{"id":"m/3","type":"reset","text":"/new again","at":3},` +
		`{"id":"m/4","type":"command","text":"/status","at":4},` +
		`{"id":"m/5","type":"compact","text":"/compact","at":5}],` +
		`"run":{"id":"r1","state":"AWAITING","started":3,"awaiting":{"answers":["x"],"until":9}}}` + "\n"
	if got != want {
		t.Errorf("inbox\n%s\nwant\n%s", got, want)
	}
	if got := do(t, b, "GET", w.url("/agents/ended/inbox"), "").body; got != `{"waiting":[]}`+"\n" {
		t.Errorf("of one that ended: %s", got)
	}
	if got := do(t, b, "GET", w.url("/agents/p/reminders"), "").body; got != `{"reminders":[{"id":"r","at":7,"note":"tea","scheduled":5}]}`+"\n" {
		t.Errorf("reminders %s", got)
	}
	if got := do(t, b, "GET", w.url("/agents/c/reminders"), "").body; got != `{"reminders":[]}`+"\n" {
		t.Errorf("no reminders %s", got)
	}
}

func TestShorten(t *testing.T) {
	for _, tc := range []struct {
		text string
		n    int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöü", 3, "äöü"}, {"äöüß", 3, "äö…"}, {"ab", 1, "…"}, {"a\xffcd", 3, "a\xff…"},
	} {
		if got := web.Shorten(tc.text, tc.n); got != tc.want {
			t.Errorf("shorten(%q, %d) = %q, want %q", tc.text, tc.n, got, tc.want)
		}
	}
}

func TestManageAgents(t *testing.T) {
	w, b := withCrew(t)
	for _, tc := range []struct {
		method, path string
		code         int
		says, asks   string
	}{
		{"POST", "/agents/p/stop", 200, `{"stopped":2}`, "stop p"},
		{"POST", "/agents/p/reset", 204, "", "reset p"},
		{"DELETE", "/agents/p", 204, "", "delete p"},
		{"DELETE", "/agents/p/inbox", 200, `{"dropped":["m/1","m/2","m/3","m/4","m/5"]}`, "drop p"},
		{"DELETE", "/agents/p/inbox?message=m%2F2&message=m%2F9", 200, `{"dropped":["m/2"]}`, "drop p"},
		{"DELETE", "/agents/c/inbox", 200, `{"dropped":[]}`, "drop c"},
		{"DELETE", "/agents/p/inbox?message=", 400, "names no message", ""},
		{"DELETE", "/agents/p/inbox?mesage=m%2F2", 400, "mesage", ""}, // or everything would go
		{"POST", "/agents/nobody/stop", 404, "no agent with that id", ""},
		{"POST", "/agents/nobody/reset", 404, "no agent with that id", ""},
		{"DELETE", "/agents/nobody", 404, "no agent with that id", ""},
		{"GET", "/agents/nobody/inbox", 404, "no agent with that id", ""},
		{"DELETE", "/agents/nobody/inbox", 404, "no agent with that id", ""},
		{"GET", "/agents/nobody/reminders", 404, "no agent with that id", ""},
		{"GET", "/agents/..%2F..%2Fp/inbox", 404, "no agent with that id", ""},
		{"PUT", "/agents/p", 405, "", ""},
	} {
		w.mu.Lock()
		w.crew.asked = nil
		w.mu.Unlock()
		got := do(t, b, tc.method, w.url(tc.path), "")
		w.mu.Lock()
		asked := strings.Join(w.crew.asked, ", ")
		w.mu.Unlock()
		if got.code != tc.code || !strings.Contains(got.body, tc.says) || asked != tc.asks {
			t.Errorf("%s %s = %d %s, asked %q; want %d %s, asked %q", tc.method, tc.path, got.code, got.body, asked, tc.code, tc.says, tc.asks)
		}
	}
	for _, tc := range []struct {
		err  error
		code int
		says string
	}{
		{web.Refusal("not this one"), 409, "not this one"},
		{storage.ErrBusy, 503, "Try again in a moment"},
		{storage.ErrFull, 503, "full or read-only"},
		{errors.New("inner detail"), 500, "the log says why"},
	} {
		w.mu.Lock()
		w.crew.fault = tc.err
		w.mu.Unlock()
		for _, path := range []string{"POST /agents/p/stop", "POST /agents/p/reset", "DELETE /agents/p", "GET /agents/p/inbox", "DELETE /agents/p/inbox"} {
			method, path, _ := strings.Cut(path, " ")
			got := do(t, b, method, w.url(path), "")
			if got.code != tc.code || !strings.Contains(got.body, tc.says) || strings.Contains(got.body, "inner detail") {
				t.Errorf("%s %s with %v = %d %s", method, path, tc.err, got.code, got.body)
			}
		}
	}
	if got := do(t, b, "GET", w.url("/agents"), ""); got.code != 500 {
		t.Errorf("agents whose runs cannot be read = %d", got.code)
	}
	stranger := browser(t)
	for _, path := range []string{"GET /agents/p/inbox", "DELETE /agents/p", "POST /agents/p/stop", "GET /cron", "POST /heartbeat/run"} {
		method, path, _ := strings.Cut(path, " ")
		if got := do(t, stranger, method, w.url(path), ""); got.code != 401 {
			t.Errorf("%s %s without a login = %d", method, path, got.code)
		}
	}
}
