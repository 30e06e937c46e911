package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/api"
)

type agentRow struct {
	ID, Type, Name, Parent, Owner, Run, State string
	Waiting                                   int
	CreatedAt, LastUserAt                     int64
	Descriptor                                claybot.Descriptor
	Children                                  []agentRow
}

type agentPage struct {
	Agents []agentRow
	Next   string
}

// child makes a subagent.
func (r *rig) child(parent, name string) string {
	r.Helper()
	a, err := r.agents.NewAgent(r.Context(), claybot.Descriptor{
		Type: claybot.AgentSubagent, UID: "uid-" + name, Parent: claybot.AgentID(parent), Root: claybot.AgentID(parent), Name: name, Owner: "api/owner",
	}, claybot.Background{})
	if err != nil {
		r.Fatal(err)
	}
	return string(a.ID)
}

// tick waits for the next millisecond: what was made in the same one has no order.
func (r *rig) tick() {
	r.Helper()
	now := claybot.Now()
	r.until("the next millisecond", func() bool { return claybot.Now() > now })
}

func TestListAgents(t *testing.T) {
	r := start(t)
	defer r.mind.hold("slow", false)()
	var ids []string
	for i := range 3 {
		var a acceptedRun
		r.ask("POST", "/agents/runs", fmt.Sprintf(`{"text":"hello","descriptor":{"channelId":"c%d"}}`, i), http.StatusAccepted, &a)
		r.ended(a.Run)
		ids = append([]string{a.Agent}, ids...)
		r.tick()
	}
	busy := r.say("slow")
	r.until("the run works", func() bool { return r.run(busy.Run).State == "RUNNING" })
	r.say("waits")
	ids = append([]string{busy.Agent}, ids...)
	ids = append(ids, r.child(busy.Agent, "helper"))

	var seen []string
	for after := ""; ; {
		var page agentPage
		r.ask("GET", "/agents?limit=2&after="+after, "", http.StatusOK, &page)
		for _, a := range page.Agents {
			seen = append(seen, a.ID)
			if want := map[bool]string{true: "RUNNING", false: "idle"}[a.ID == busy.Agent]; a.State != want {
				t.Errorf("%s is %s, want %s", a.ID, a.State, want)
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if strings.Join(seen, " ") != strings.Join(ids, " ") {
		t.Errorf("agents %v, want %v", seen, ids)
	}
	for query, want := range map[string]int{
		"type=user": 4, "type=subagent": 1, "type=cron": 0, "owner=api%2Fowner": 5, "owner=nobody": 0, "parent=" + busy.Agent: 1,
		"state=busy": 1, "type=user&state=busy": 1, "type=subagent&state=busy": 0,
	} {
		var page agentPage
		r.ask("GET", "/agents?"+query, "", http.StatusOK, &page)
		if len(page.Agents) != want {
			t.Errorf("%s lists %d agents, want %d", query, len(page.Agents), want)
		}
	}
	var one agentRow
	r.ask("GET", "/agents/"+busy.Agent, "", http.StatusOK, &one)
	if one.Run != busy.Run || one.Waiting != 1 || one.Owner != "api/owner" || one.LastUserAt == 0 || one.CreatedAt == 0 || one.Type != "user" {
		t.Errorf("one %+v", one)
	}
	for _, bad := range []string{"type=person", "state=idle", "limit=-1", "offset=3"} {
		r.refused("GET", "/agents?"+bad, "", 400, "bad_request", "")
	}
}

func TestTree(t *testing.T) {
	r := start(t)
	a := r.say("hello")
	child := r.child(a.Agent, "one")
	r.tick()
	r.child(a.Agent, "two")
	grand := r.child(child, "below")
	var tree agentRow
	r.ask("GET", "/agents/"+a.Agent+"/tree", "", http.StatusOK, &tree)
	if tree.ID != a.Agent || len(tree.Children) != 2 || tree.Children[0].ID != child || len(tree.Children[0].Children) != 1 || tree.Children[0].Children[0].ID != grand || tree.Children[0].Name != "one" {
		t.Errorf("tree %+v", tree)
	}
	last := a.Agent
	for i := range 18 {
		last = r.child(last, fmt.Sprint("deep", i))
	}
	if g := r.do("GET", "/agents/"+a.Agent+"/tree", ""); !strings.Contains(g.body, `"more":true`) {
		t.Error("a tree that is cut does not say so")
	}
}

func TestHistory(t *testing.T) {
	r := start(t)
	r.mind.plan("use a tool", llmtest.Use(claybot.ToolCall{ID: "c1", Name: "wait", Args: `{"seconds":0.001}`}), llmtest.Say("done"))
	a := r.say("use a tool")
	r.ended(a.Run)
	b := r.say("hello")
	r.ended(b.Run)
	type page struct {
		Records []struct{ Type, Text, Name string }
		Next    string
	}
	var all []string
	after := ""
	var last string
	for {
		var p page
		r.ask("GET", "/agents/"+a.Agent+"/history?limit=2&after="+url.QueryEscape(after), "", http.StatusOK, &p)
		for _, rec := range p.Records {
			all = append(all, rec.Type+":"+rec.Text+rec.Name)
		}
		if p.Next == "" {
			break
		}
		after, last = p.Next, p.Next
	}
	want := "user_message:use a tool assistant_message: tool_result:waited 0.001 secondswait assistant_message:done user_message:hello assistant_message:re: hello"
	if got := strings.Join(all, " "); got != want {
		t.Errorf("history\n%s\nwant\n%s", got, want)
	}
	var whole page
	r.ask("GET", "/agents/"+a.Agent+"/history?limit=9999", "", http.StatusOK, &whole)
	if len(whole.Records) != 6 || whole.Next != "" {
		t.Errorf("%d records and %q", len(whole.Records), whole.Next)
	}
	for _, bad := range []string{"x", "1", "0-a", "-3-b", "99-abc"} {
		code, status := "bad_request", 400
		if bad == "99-abc" {
			code, status = "state", 409
		}
		r.refused("GET", "/agents/"+a.Agent+"/history?after="+bad, "", status, code, "")
	}
	r.ask("POST", "/agents/"+a.Agent+"/reset", "", http.StatusAccepted, nil)
	r.until("the reset is done", func() bool {
		var p page
		r.ask("GET", "/agents/"+a.Agent+"/history", "", http.StatusOK, &p)
		return len(p.Records) == 0
	})
	r.refused("GET", "/agents/"+a.Agent+"/history?after="+last, "", 409, "state", "leave out after")
}

func TestSettings(t *testing.T) {
	r := start(t)
	agent := r.say("hello").Agent
	type view struct {
		Profile  string
		Now, Own claybot.Settings
		Models   []string
		Tools    []string
	}
	get := func() (v view) {
		r.ask("GET", "/agents/"+agent+"/settings", "", http.StatusOK, &v)
		return v
	}
	if v := get(); v.Profile != "default" || v.Now.Model != "script" || v.Own.Model != "" || len(v.Models) != 2 || len(v.Tools) != 2 {
		t.Errorf("settings %+v", v)
	}
	r.ask("PATCH", "/agents/"+agent+"/config", `{"model":"other","debounceMs":5,"tools":["wait"]}`, http.StatusOK, nil)
	r.ask("PATCH", "/agents/"+agent+"/settings", `{"whenBusy":"injectAfterTools","tools":["ask_user"]}`, http.StatusOK, nil)
	v := get()
	if v.Now.Model != "other" || v.Own.DebounceMS == nil || *v.Own.DebounceMS != 5 || v.Now.WhenBusy != "injectAfterTools" || len(v.Own.Tools) != 1 || v.Own.Tools[0] != "ask_user" {
		t.Errorf("settings %+v", v)
	}
	for _, bad := range []string{`{"debounceMs":-1}`, `{"approved":["x"],"maxSteps":-1}`, `{"approvedBy":{"shell":{"by":"x"}},"maxSteps":-1}`, `{"modelChoice":{"by":"x"},"maxSteps":-1}`} {
		r.ask("PATCH", "/agents/"+agent+"/settings", bad, http.StatusBadRequest, nil)
		if after := get(); !reflect.DeepEqual(after, v) {
			t.Errorf("%s was refused and made %+v of %+v", bad, after, v)
		}
	}
	r.ask("PATCH", "/agents/"+agent+"/config", `{"model":null,"debounceMs":null,"tools":null,"maxSteps":7}`, http.StatusOK, nil)
	if v = get(); v.Now.Model != "script" || v.Own.DebounceMS != nil || v.Own.Tools != nil || v.Own.MaxSteps != 7 || v.Own.WhenBusy != "injectAfterTools" {
		t.Errorf("settings %+v", v)
	}
	for _, tc := range [][3]string{
		{`{"model":"none","maxSteps":3}`, "values", "model"},
		{`{"maxSteps":-1}`, "values", "maxSteps"},
		{`{"whenBusy":"never"}`, "values", "whenBusy"},
		{`{"tools":["nothing"]}`, "values", "tools"},
		{`{"modle":"other"}`, "bad_request", "modle"},
		{`{"modle":null}`, "bad_request", "modle"},
		{`{"maxsteps":5}`, "bad_request", "maxSteps, debounceMs"},
		{`{"MAXSTEPS":null}`, "bad_request", "no setting"},
		{`{"maxSteps":1e9}`, "bad_request", "not 1e9. "},
		{`{"maxSteps":"7"}`, "bad_request", "maxSteps must be a whole number"},
		{`{"tools":"wait"}`, "bad_request", "tools must be a list"},
		{`{}`, "bad_request", "Nothing to change"},
		{`{"model":}`, "bad_request", "field model"},
		{`[]`, "bad_request", "object"},
	} {
		r.refused("PATCH", "/agents/"+agent+"/config", tc[0], 400, tc[1], tc[2])
	}
	if after := get(); after.Own.MaxSteps != 7 || after.Own.Model != "" || after.Own.Tools != nil {
		t.Errorf("what was refused changed %+v", after.Own)
	}
	r.refused("PATCH", "/agents/nobody/config", `{"model":"other"}`, 404, "not_found", "No agent")
}

func TestManageAgents(t *testing.T) {
	r := start(t)
	defer r.mind.hold("slow", false)()
	a := r.say("slow")
	r.until("the run works", func() bool { return r.run(a.Run).State == "RUNNING" })
	b, c := r.say(strings.Repeat("ä", 201)), r.say("third")
	var inbox struct {
		Waiting []struct{ ID, Type, Text string }
	}
	r.ask("GET", "/agents/"+a.Agent+"/inbox", "", http.StatusOK, &inbox)
	if len(inbox.Waiting) != 2 || inbox.Waiting[0].Text != strings.Repeat("ä", 199)+"…" {
		t.Errorf("inbox %+v", inbox)
	}
	r.refused("DELETE", "/agents/"+a.Agent+"/inbox?mesage="+url.QueryEscape(b.Message), "", 400, "bad_request", "mesage") // or everything would go
	r.refused("DELETE", "/agents/"+a.Agent+"/inbox?message=", "", 400, "bad_request", "?message= is empty")
	var out struct{ Dropped []string }
	list := r.do("DELETE", "/agents/"+a.Agent+"/inbox?message="+url.QueryEscape(b.Message)+"&message=nothing", "", "Prefer", "wait=10, return=representation")
	r.read(list.body, &out)
	if len(out.Dropped) != 1 || out.Dropped[0] != b.Message {
		t.Errorf("dropped %v", out.Dropped)
	}
	r.ask("DELETE", "/agents/"+a.Agent+"/inbox", "", http.StatusNoContent, nil)
	if r.ask("GET", "/agents/"+a.Agent+"/inbox", "", http.StatusOK, &inbox); len(inbox.Waiting) != 0 {
		t.Errorf("inbox %+v", inbox)
	}
	for _, x := range []acceptedRun{b, c} {
		if got := r.run(x.Run).State; got != "CANCELED" {
			t.Errorf("the run of a dropped message is %s", got)
		}
	}
	var stop struct{ Stopped int }
	r.ask("POST", "/agents/"+a.Agent+"/stop", "", http.StatusAccepted, &stop)
	if stop.Stopped != 1 || r.ended(a.Run) != "CANCELED" {
		t.Errorf("stopped %d", stop.Stopped)
	}
	if err := r.db.AddReminder(t.Context(), storage.Reminder{ID: "m", Agent: claybot.AgentID(a.Agent), Due: 1 << 50, Note: "tea", Made: 5}, 9); err != nil {
		t.Fatal(err)
	}
	if g := r.do("GET", "/agents/"+a.Agent+"/reminders", ""); !strings.Contains(g.body, `"note":"tea"`) {
		t.Errorf("reminders %s", g.body)
	}
	if g := r.do("GET", "/agents/"+a.Agent+"/privacy", ""); !strings.Contains(g.body, `"readers":"api/owner"`) || !strings.Contains(g.body, `"reads":["this conversation`) {
		t.Errorf("privacy %s", g.body)
	}
	r.ask("DELETE", "/agents/"+a.Agent, "", http.StatusNoContent, nil)
	for _, path := range []string{
		"GET ", "DELETE ", "GET /tree", "GET /privacy", "GET /history", "GET /inbox", "GET /reminders", "GET /settings", "DELETE /inbox", "POST /stop", "POST /reset",
	} {
		method, rest, _ := strings.Cut(path, " ")
		for _, id := range []string{a.Agent, "nobody", "..%2F..%2F" + a.Agent, "%00", "x'--"} {
			r.refused(method, "/agents/"+id+rest, "", 404, "not_found", "GET /agents lists all agents")
		}
	}
	r.refused("GET", "/agents/"+a.Agent+"/nothing", "", 404, "not_found", "No such path")
	r.refused("DELETE", "/agents/"+a.Agent+"/history", "", 404, "not_found", "No such path")
}

// A broken desk makes every path fail with a fault.
type broken struct {
	web.AgentControl
	web.Inboxes
	fault *error
}

func (b broken) StopAgent(context.Context, claybot.AgentID) (int, error) { return 0, *b.fault }
func (b broken) ResetAgent(context.Context, claybot.AgentID) error       { return *b.fault }
func (b broken) DeleteAgent(context.Context, claybot.AgentID) error      { return *b.fault }
func (b broken) Inbox(context.Context, claybot.AgentID) (overview.InboxView, error) {
	return overview.InboxView{}, *b.fault
}

func (b broken) Drop(context.Context, claybot.AgentID, ...claybot.MessageID) ([]claybot.MessageID, error) {
	return nil, *b.fault
}

func TestFaultsAreTold(t *testing.T) {
	var fault error
	r := start(t, func(r *rig) {
		r.wrap = func(d *web.Backend) { all := broken{fault: &fault}; d.Control, d.Inboxes = all, all }
	})
	for _, tc := range []struct {
		err        error
		status     int
		code, says string
	}{
		{web.Refusal("not this one"), 409, "refused", "not this one"},
		{fmt.Errorf("inner: %w", storage.ErrState), 409, "state", "Not possible"},
		{storage.ErrBusy, 503, "busy", "Try again in a moment"},
		{storage.ErrFull, 503, "disk_full", "full or read-only"},
		{errors.New("inner detail"), 500, "internal", "see the log"},
	} {
		fault = tc.err
		for _, path := range []string{"POST /agents/p/stop", "POST /agents/p/reset", "DELETE /agents/p", "GET /agents/p/inbox", "DELETE /agents/p/inbox"} {
			method, path, _ := strings.Cut(path, " ")
			r.refused(method, path, "", tc.status, tc.code, tc.says)
			if g := r.do(method, path, ""); strings.Contains(g.body, "inner") {
				t.Errorf("the text of an error is told: %s", g.body)
			}
		}
	}
}

func TestConversations(t *testing.T) {
	r := start(t)
	r.ask("POST", "/agents/runs", `{"text":"x","descriptor":{"connector":"web","channelId":"home","userId":"operator"}}`, http.StatusAccepted, nil)
	r.ask("POST", "/agents/runs", `{"text":"x","descriptor":{"connector":"web","channelId":"other","userId":"somebody"}}`, http.StatusAccepted, nil)
	var out struct{ Conversations []struct{ ID string } }
	r.ask("GET", "/conversations", "", http.StatusOK, &out)
	if len(out.Conversations) != 1 || out.Conversations[0].ID != "home" {
		t.Errorf("conversations %+v", out)
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
		if got := api.Shorten(tc.text, tc.n); got != tc.want {
			t.Errorf("shorten(%q, %d) = %q, want %q", tc.text, tc.n, got, tc.want)
		}
	}
}
