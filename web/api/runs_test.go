package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

// A runRow is a run as the API shows it.
type runRow struct {
	RunID, AgentID, State, Output, Cancel string
	Messages                              []string
	LastSeq                               int64
	Usage                                 struct{ Input int64 }
	Error                                 *struct{ Code, Text string }
	Awaiting                              *struct {
		Reason    string
		Questions []struct{ ID, Key, Text string }
	}
}

func (r *rig) run(id string) runRow {
	r.Helper()
	var run runRow
	r.ask("GET", "/agents/runs/"+id, "", http.StatusOK, &run)
	return run
}

// refused makes a request that is refused, and compares status, code, and a
// part of the words.
func (r *rig) refused(method, path, body string, status int, code, says string, head ...string) {
	r.Helper()
	var e struct {
		Error struct {
			Code, Message, Fix string
			Fields             map[string]string
		}
	}
	g := r.do(method, path, body, head...)
	if g.code != status {
		r.Errorf("%s %s %.100s = %d %s, want %d", method, path, body, g.code, g.body, status)
		return
	}
	r.read(g.body, &e)
	all := fmt.Sprint(e.Error.Message, " ", e.Error.Fix, " ", e.Error.Fields)
	if e.Error.Code != code || !strings.Contains(all, says) || e.Error.Message == "" {
		r.Errorf("%s %s %.100s says %s, want %s and %q", method, path, body, g.body, code, says)
	}
}

func TestStartAndRead(t *testing.T) {
	r := start(t)
	a := r.say("hello")
	if a.State != "PENDING" || a.Stream != "/agents/runs/"+a.Run+"/stream" || !strings.HasPrefix(a.Message, "api/owner/") {
		t.Errorf("accepted %+v", a)
	}
	if got := r.ended(a.Run); got != "SUCCEEDED" {
		t.Errorf("the run %s", got)
	}
	run := r.run(a.Run)
	if run.RunID != a.Run || run.AgentID != a.Agent || run.Output != "re: hello" || run.LastSeq < 3 || run.Usage.Input != 10 || len(run.Messages) != 1 || run.Messages[0] != a.Message {
		t.Errorf("run %+v", run)
	}
	// Nothing is to be sent: the API is no place.
	if g := r.do("GET", "/outbox", ""); !strings.Contains(g.body, `"outgoing":[]`) {
		t.Errorf("outbox %s", g.body)
	}
}

func TestStartTakesWhatItShould(t *testing.T) {
	r := start(t)
	first := r.say("hello")
	var b acceptedRun
	r.ask("POST", "/agents/runs", `{"agentId":"`+first.Agent+`","text":"by id"}`, http.StatusAccepted, &b)
	if b.Agent != first.Agent {
		t.Errorf("by id: %+v", b)
	}
	r.ask("POST", "/agents/"+first.Agent+"/messages", `{"text":"as a message"}`, http.StatusAccepted, &b)
	if b.Agent != first.Agent || b.Run == "" {
		t.Errorf("a message: %+v", b)
	}
	r.ask("POST", "/agents/runs", `{"text":"`+strings.Repeat("ä", 100_000)+`"}`, http.StatusAccepted, &b)
	var c acceptedRun
	r.ask("POST", "/agents/runs", `{"text":"/new","engine":"react"}`, http.StatusAccepted, &c)
	if b.Agent == c.Agent || b.Agent == first.Agent {
		t.Error("a caller that names no agent has none of its own")
	}
	if r.ended(c.Run); r.run(c.Run).Output != "re: /new" {
		t.Errorf("a text with a slash was not taken as it is: %+v", r.run(c.Run))
	}
	entry := struct{ Descriptor claybot.Descriptor }{}
	r.ask("GET", "/agents/"+c.Agent, "", http.StatusOK, &entry)
	if d := entry.Descriptor; d.Type != "user" || d.Connector != "api" || d.UserID != "owner" || d.ChannelID == "" {
		t.Errorf("descriptor %+v", d)
	}
}

func TestStartRefuses(t *testing.T) {
	r := start(t)
	agent := r.say("hello").Agent
	for _, tc := range []struct {
		body   string
		status int
		says   string
	}{
		{``, 400, "is empty"},
		{` `, 400, "is empty"},
		{`{`, 400, "Invalid JSON at byte"},
		{`[]`, 400, "must be a JSON object"},
		{`"x"`, 400, "must be a JSON object"},
		{`{"text":"x"} {}`, 400, "after the JSON object"},
		{`{"text":"x",}`, 400, "Invalid JSON in the field text"},
		{`{"text":"x","descriptor":{"channelId":}}`, 400, "in the field descriptor.channelId"},
		{`{"text":5}`, 400, "The field text must be a string, not number"},
		{`{"text":"x","descriptor":{"channelId":7}}`, 400, "The field descriptor.channelId must be a string"},
		{`{"txt":"x"}`, 400, `Unknown field "txt"`},
		{`{"text":""}`, 400, "text is empty"},
		{`{"text":" \n"}`, 400, "text is empty"},
		{`{}`, 400, "text is empty"},
		{`{"text":"` + strings.Repeat("x", 100_001) + `"}`, 400, "100001 characters"},
		{`{"text":"x","agentId":"nobody"}`, 404, "No agent with that id"},
		{`{"text":"x","agentId":"` + agent + `","descriptor":{"channelId":"c"}}`, 400, "exclude each other"},
		{`{"text":"x","stateless":"yes"}`, 400, "The field stateless must be"},
		{`{"text":"x","engine":"plan"}`, 400, "Use one of: react."},
		{`{"text":"x","engine":"undo"}`, 400, "Undo a run with POST /agents/runs/{run}/undo"},
		{`{"text":"x","engine":7}`, 400, "The field engine must be a string"},
		{`{"text":"x","descriptor":{}}`, 400, "1 to 200"},
		{`{"text":"x","descriptor":{"channelId":"a\u0000b"}}`, 400, "control characters"},
		{`{"text":"x","descriptor":{"channelId":"` + strings.Repeat("c", 201) + `"}}`, 400, "1 to 200"},
		{`{"text":"x","descriptor":{"type":"cron","channelId":"c"}}`, 400, "type user"},
		{`{"text":"x","descriptor":{"channelId":"c","depth":3}}`, 400, `Unknown field "depth"`},
		{`{"text":"x","idempotencyKey":"a b"}`, 400, "idempotency key"},
		{`{"text":"x","idempotencyKey":"a/b"}`, 400, "idempotency key"},
		{`{"text":"x","idempotencyKey":"` + strings.Repeat("k", 129) + `"}`, 400, "idempotency key"},
		{`{"text":"x","files":[{}]}`, 400, "files[0] must have either id or data"},
		{`{"text":"x","files":[{"id":"f","data":"eA=="}]}`, 400, "files[0] must have either id or data"},
		{`{"text":"x","files":[{"name":"a","data":"%"}]}`, 400, ""},
		{`{"text":"x","files":[{"id":"f"}]}`, 400, "needs agentId"},
		{`{"text":"x","agentId":"` + agent + `","files":[{"id":"f"}]}`, 400, "has no file"},
		{`{"text":"x","agentId":"nobody","files":[{"id":"f"}]}`, 404, "No agent"},
		{`{"text":"x","files":[` + strings.Repeat(`{"data":"eA=="},`, 10) + `{"data":"eA=="}]}`, 400, "the limit is 10"},
	} {
		code := map[int]string{400: "bad_request", 404: "not_found"}[tc.status]
		r.refused("POST", "/agents/runs", tc.body, tc.status, code, tc.says)
	}
	r.refused("POST", "/agents/runs?key=x", `{"text":"x"}`, 400, "bad_request", "Unknown parameter")
	r.refused("POST", "/agents/nobody/messages", `{"text":"x"}`, 404, "not_found", "GET /agents lists all agents")
	r.refused("POST", "/agents/runs", quoted(strings.Repeat("x", 16<<20+1-len(quoted("")))), 413, "too_large", "larger") // one byte: of more, the rest would meet a closed connection
	r.refused("POST", "/agents/runs", `text=x`, 415, "content_type", "", "Content-Type", "application/x-www-form-urlencoded")
}

// The same key means the same message, however often and however many at a
// time.
func TestStartIsIdempotent(t *testing.T) {
	r := start(t)
	for _, body := range []string{
		`{"text":"once","idempotencyKey":"k-1"}`,
		`{"text":"once","idempotencyKey":"k.2","descriptor":{"channelId":"c"}}`,
	} {
		const tries = 8
		all := make([]acceptedRun, tries)
		var wg sync.WaitGroup
		for i := range tries {
			wg.Go(func() {
				if g := r.do("POST", "/agents/runs", body); g.code == http.StatusAccepted {
					r.read(g.body, &all[i])
				} else {
					t.Errorf("%d %s", g.code, g.body)
				}
			})
		}
		wg.Wait()
		for _, a := range all {
			if a.Run == "" || a.Run != all[0].Run || a.Agent != all[0].Agent || a.Message != all[0].Message {
				t.Errorf("%+v and %+v", all[0], a)
			}
		}
		r.ended(all[0].Run)
		var list struct{ Runs []runRow }
		r.ask("GET", "/agents/runs?agent="+all[0].Agent, "", http.StatusOK, &list)
		if len(list.Runs) != 1 || list.Runs[0].RunID != all[0].Run {
			t.Errorf("runs %+v", list.Runs)
		}
		var again acceptedRun
		r.ask("POST", "/agents/runs", body, http.StatusAccepted, &again)
		if again.Run != all[0].Run || again.State != "SUCCEEDED" {
			t.Errorf("after the end: %+v", again)
		}
	}
	// Another caller's key is another one.
	other := r.scoped("ci", "operate")
	var mine, its acceptedRun
	r.read(r.do("POST", "/agents/runs", `{"text":"x","idempotencyKey":"k-1"}`).body, &mine)
	r.read(r.do("POST", "/agents/runs", `{"text":"x","idempotencyKey":"k-1"}`, "Authorization", "Bearer "+other).body, &its)
	if mine.Run == its.Run || mine.Agent == its.Agent || its.Message != "api/ci/k-1" {
		t.Errorf("%+v and %+v", mine, its)
	}
}

// Who may not decide about people may not speak for them.
func TestSpeakingForOthersNeedsAdmin(t *testing.T) {
	r := start(t)
	operate, admin := r.scoped("ci", "operate"), r.scoped("boss", "admin")
	for _, tc := range []struct {
		token, descriptor string
		status            int
	}{
		{operate, `{"channelId":"c"}`, 202},
		{operate, `{"channelId":"c","connector":"api"}`, 202},
		{operate, `{"channelId":"c","connector":"api","userId":"ci"}`, 202},
		{operate, `{"channelId":"c","connector":"api","userId":"boss"}`, 403},
		{operate, `{"channelId":"1","connector":"telegram","userId":"1"}`, 403},
		{operate, `{"channelId":"main","connector":"web","userId":"operator"}`, 403},
		{admin, `{"channelId":"c","connector":"api","userId":"ci"}`, 202},
		{admin, `{"channelId":"1","connector":"telegram","userId":"1"}`, 202},
		{admin, `{"channelId":"1","connector":"telegram"}`, 400},
	} {
		g := r.do("POST", "/agents/runs", `{"text":"x","descriptor":`+tc.descriptor+`}`, "Authorization", "Bearer "+tc.token)
		if g.code != tc.status {
			t.Errorf("%s = %d %s, want %d", tc.descriptor, g.code, g.body, tc.status)
		}
	}
}

func TestFiles(t *testing.T) {
	r := start(t)
	data := base64.StdEncoding.EncodeToString([]byte("the magic word is plugh"))
	a := r.say("hello")
	var b acceptedRun
	r.ask("POST", "/agents/runs", `{"agentId":"`+a.Agent+`","text":"read","files":[{"name":"../n.txt","mimeType":"text/plain","data":"`+data+`"}]}`, http.StatusAccepted, &b)
	r.ended(b.Run)
	g := r.do("POST", "/agents/"+a.Agent+"/files?name=two.txt", "second", "Content-Type", "text/plain; charset=utf-8")
	if g.code != http.StatusCreated {
		t.Fatalf("upload = %d %s", g.code, g.body)
	}
	var file struct{ ID, Name, MIMEType, SHA256 string }
	r.read(g.body, &file)
	if file.Name != "two.txt" || file.MIMEType != "text/plain" || len(file.SHA256) != 64 {
		t.Errorf("file %+v", file)
	}
	var c acceptedRun
	r.ask("POST", "/agents/"+a.Agent+"/messages", `{"files":[{"id":"`+file.ID+`"}]}`, http.StatusAccepted, &c)
	r.ended(c.Run)
	var h struct {
		Records []struct {
			Type, Text string
			Files      []struct{ ID, Name string }
		}
	}
	r.ask("GET", "/agents/"+a.Agent+"/history", "", http.StatusOK, &h)
	var names []string
	for _, rec := range h.Records {
		for _, f := range rec.Files {
			names = append(names, f.Name)
			if strings.Contains(f.Name, "/") {
				t.Errorf("a name with a separator: %q", f.Name)
			}
		}
	}
	if len(names) != 2 || names[1] != "two.txt" {
		t.Errorf("files of the history %q", names)
	}
	g = r.do("GET", "/agents/"+a.Agent+"/files/"+file.ID, "")
	if g.code != 200 || g.body != "second" || g.head.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(g.head.Get("Content-Disposition"), "attachment") {
		t.Errorf("download %+v", g)
	}
	r.refused("GET", "/agents/"+a.Agent+"/files/nothing", "", 404, "not_found", "no file")
	r.refused("GET", "/agents/"+a.Agent+"/files/"+esc("../state.json"), "", 404, "not_found", "no file")
	r.refused("GET", "/agents/"+a.Agent+"/history/x", "", 404, "not_found", "No such path")
	r.refused("POST", "/agents/nobody/files", "x", 404, "not_found", "No agent", "Content-Type", "text/plain")
}

func TestListRuns(t *testing.T) {
	r := start(t)
	var ids []string
	agents := make(map[string]bool)
	for i := range 5 {
		var a acceptedRun
		r.ask("POST", "/agents/runs", fmt.Sprintf(`{"text":"n%d","descriptor":{"channelId":"c%d"}}`, i, i%2), http.StatusAccepted, &a)
		r.ended(a.Run)
		ids = append([]string{a.Run}, ids...)
		agents[a.Agent] = true
	}
	var seen []string
	for before, pages := "", 0; ; pages++ {
		var page struct {
			Runs []runRow
			Next string
		}
		r.ask("GET", "/agents/runs?limit=2&before="+before, "", http.StatusOK, &page)
		for _, x := range page.Runs {
			seen = append(seen, x.RunID)
		}
		if before = page.Next; before == "" {
			if pages != 2 {
				t.Errorf("%d more pages", pages)
			}
			break
		}
	}
	if strings.Join(seen, " ") != strings.Join(ids, " ") {
		t.Errorf("runs %v, want %v", seen, ids)
	}
	total := 0
	for id := range agents {
		var page struct{ Runs []runRow }
		r.ask("GET", "/agents/runs?state=SUCCEEDED&agent="+id, "", http.StatusOK, &page)
		total += len(page.Runs)
	}
	if total != 5 {
		t.Errorf("%d runs of all agents", total)
	}
	r.ask("GET", "/agents/runs?state=FAILED", "", http.StatusOK, nil)
	r.refused("GET", "/agents/runs?state=DONE", "", 400, "bad_request", "PENDING, RUNNING")
	r.refused("GET", "/agents/runs?limit=0", "", 400, "bad_request", "number from 1")
	r.refused("GET", "/agents/runs?limit=many", "", 400, "bad_request", "number from 1")
	r.refused("GET", "/agents/runs?limit=1&limit=2", "", 400, "bad_request", "more than once")
	r.refused("GET", "/agents/runs?agnt=x", "", 400, "bad_request", "Known parameters: agent, state, before, limit")
	r.refused("GET", "/agents/runs?agent=%zz", "", 400, "bad_request", "query")
	r.refused("GET", "/agents/runs/nothing", "", 404, "not_found", "GET /agents/runs lists all runs")
}

func TestCancel(t *testing.T) {
	r := start(t)
	defer r.mind.hold("slow", false)()
	a := r.say("slow")
	r.until("the run works", func() bool { return r.run(a.Run).State == "RUNNING" })
	b := r.say("waits behind it")
	if got := r.run(b.Run); got.State != "PENDING" || got.RunID != b.Run {
		t.Errorf("what waits is %+v", got)
	}
	var list struct{ Runs []runRow }
	r.ask("GET", "/agents/runs?state=PENDING", "", http.StatusOK, &list)
	if len(list.Runs) != 1 || list.Runs[0].RunID != b.Run {
		t.Errorf("pending %+v", list.Runs)
	}
	var inbox struct {
		Waiting []struct{ ID string }
		Run     *struct{ ID, State string }
	}
	r.ask("GET", "/agents/"+a.Agent+"/inbox", "", http.StatusOK, &inbox)
	if len(inbox.Waiting) != 1 || inbox.Waiting[0].ID != b.Message || inbox.Run == nil || inbox.Run.ID != a.Run {
		t.Errorf("inbox %+v", inbox)
	}
	r.ask("DELETE", "/agents/runs/"+b.Run, "", http.StatusAccepted, nil)
	if got := r.run(a.Run); got.State != "RUNNING" {
		t.Errorf("taking back what waits ended the run: %+v", got)
	}
	last := r.stream("/agents/runs/" + b.Run + "/stream")
	if len(last) != 1 || last[0].event != "RunCanceled" || last[0].id != "1" {
		t.Errorf("what was taken back tells %+v", last)
	}
	r.ask("DELETE", "/agents/runs/"+a.Run, "", http.StatusAccepted, nil)
	if got := r.ended(a.Run); got != "CANCELED" {
		t.Errorf("the run %s", got)
	}
	before := r.stream("/agents/runs/" + a.Run + "/stream")
	for _, id := range []string{a.Run, b.Run} {
		r.ask("DELETE", "/agents/runs/"+id, "", http.StatusOK, nil)
	}
	after := r.stream("/agents/runs/" + a.Run + "/stream")
	if len(before) != len(after) || after[len(after)-1].event != "RunCanceled" || !strings.Contains(after[len(after)-1].data, `"by":"operator"`) {
		t.Errorf("canceled twice: %+v", after)
	}
	r.refused("DELETE", "/agents/runs/nothing", "", 404, "not_found", "No run")
}

// Messages that waited together are one run; the other ids mean that run.
func TestReservedIdsOfOneBatch(t *testing.T) {
	r := start(t)
	letGo := r.mind.hold("slow", false)
	a := r.say("slow")
	r.until("the run works", func() bool { return r.run(a.Run).State == "RUNNING" })
	b, c := r.say("one"), r.say("two")
	letGo()
	r.ended(a.Run)
	r.ended(c.Run)
	first, second := r.run(b.Run), r.run(c.Run)
	if first.RunID != b.Run || second.RunID != first.RunID || len(second.Messages) != 2 {
		t.Errorf("%+v and %+v", first, second)
	}
	one, two := r.stream("/agents/runs/"+b.Run+"/stream"), r.stream("/agents/runs/"+c.Run+"/stream")
	if len(one) == 0 || fmt.Sprint(one) != fmt.Sprint(two) {
		t.Errorf("the streams differ:\n%v\n%v", one, two)
	}
	r.ask("DELETE", "/agents/runs/"+c.Run, "", http.StatusOK, nil)
}

// A run under way tells what it has taken so far.
func TestUsageOfARunUnderWay(t *testing.T) {
	r := start(t)
	r.mind.plan("take your time", llmtest.Use(claybot.ToolCall{ID: "w", Name: "wait", Args: `{"seconds":300}`}))
	a := r.say("take your time")
	r.until("the model has answered", func() bool { return r.run(a.Run).Usage.Input == 10 })
	if run := r.run(a.Run); run.State != "RUNNING" {
		t.Errorf("run %+v", run)
	}
	r.ask("DELETE", "/agents/runs/"+a.Run, "", http.StatusAccepted, nil)
	if got := r.ended(a.Run); got != "CANCELED" || r.run(a.Run).Usage.Input != 10 {
		t.Errorf("the run %s with %+v", got, r.run(a.Run).Usage)
	}
}
