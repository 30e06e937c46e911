package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/web"
)

// allPages are the paths of whole pages.
var allPages = []string{"/", "/ui/agents", "/ui/runs", "/ui/tools", "/ui/notes", "/ui/schedule", "/ui/deliveries", "/ui/usage", "/ui/access", "/ui/health", "/ui/members", "/ui/why", "/ui/why?q=nothing"}

// An ageless is a desk whose daemon gets no older, so that a page that shows the
// age is the same at the next look.
type ageless struct{ web.System }

func (d ageless) Status(ctx context.Context) (overview.Status, error) {
	s, err := d.System.Status(ctx)
	s.Uptime = "7s"
	return s, err
}

// Every page is there before anything has happened, and says what to do.
func TestPagesOfANewDaemon(t *testing.T) {
	r := newRig(t)
	r.desk = func(d *web.Backend) { d.System = ageless{d.System} }
	r.start()
	v := r.visitor()
	for _, path := range allPages {
		page := v.page(path)
		if strings.Count(page, "<h1") != 1 || strings.Count(page, "<main") != 1 || strings.Count(page, `aria-current="page"`) > 1 {
			t.Errorf("%s has %d headings", path, strings.Count(page, "<h1"))
		}
		for _, m := range regexp.MustCompile(`data-live="([^"]+)"`).FindAllStringSubmatch(page, -1) {
			part := html.UnescapeString(m[1])
			first := v.do(http.MethodGet, part, nil)
			if first.code != http.StatusOK || strings.Contains(first.body, "<html") {
				t.Errorf("%s: the part %s = %d", path, part, first.code)
			}
			if again := v.do(http.MethodGet, part, nil, "If-None-Match", first.head.Get("ETag")); first.head.Get("ETag") == "" || again.code != http.StatusNotModified {
				t.Errorf("%s: the part %s again = %d", path, part, again.code)
			}
		}
	}
	for path, want := range map[string]string{
		"/ui/agents": "No agents yet.", "/ui/agents?busy=1": "No matching agents.",
		"/ui/runs": "No runs yet.", "/ui/runs?state=FAILED": "No matching runs.",
	} {
		if page := v.page(path); !strings.Contains(page, want) {
			t.Errorf("%s does not say %q", path, want)
		}
	}
}

// What is not there, or asked for wrongly, is said in words: to a person as a
// page, to a script in the one shape of errors.
func TestPagesThatAreNotThere(t *testing.T) {
	v := startRig(t).visitor()
	unknown := string(claybot.NewID())
	for _, tt := range []struct {
		method, path string
		code         int
		page         bool
	}{
		{"GET", "/ui/agents/" + unknown, 404, true},
		{"GET", "/ui/agents/..%2f..%2fetc", 404, true},
		{"GET", "/ui/agents/" + url.PathEscape(hostile[1]), 404, true},
		{"GET", "/ui/runs/" + unknown, 404, true},
		{"GET", "/ui/runs?state=DONE", 400, true},
		{"GET", "/ui/agents?type=robot", 400, true},
		{"GET", "/ui/nope", 404, true},
		{"GET", "/ui/notes?scope=everybody", 400, true},
		{"GET", "/ui/notes/note?scope=global&path=none.md", 404, true},
		{"GET", "/ui/notes/note?scope=global", 400, true},
		{"POST", "/ui/tools/skills/none/allow?hash=x", 404, false},
		{"POST", "/ui/tools/skills/none/allow", 400, false},
		{"POST", "/ui/tools/skills/none/forbid", 404, false},
		{"POST", "/ui/tools/servers/none/allow?tool=x&hash=y", 404, false},
		{"POST", "/ui/tools/servers/files/allow", 400, false},
		{"POST", "/ui/tools/workspaces/remove?key=none", 404, false},
		{"POST", "/ui/tools/workspaces/remove?key=agent/one&data=yes", 400, false},
		{"POST", "/ui/notes/delete?scope=global&path=none.md", 404, false},
		{"POST", "/ui/notes/revert?scope=global&version=7", 404, false},
		{"POST", "/ui/notes/revert?scope=global&version=x", 400, false},
		{"POST", "/ui/notes/save?scope=global&path=a.md", 400, false},
		{"POST", "/ui/notes/save?scope=global&path=../a.md&text=x", 400, false},
		{"GET", "/ui/agents/x/y/" + url.PathEscape(hostile[1]), 404, true},
		{"GET", "/ui/agents/" + unknown + "/history", 404, false},
		{"GET", "/ui/nope?by=script", 404, false},
		{"GET", "/ui/runs/" + unknown + "/events?after=0", 404, false},
		{"POST", "/ui/agents/" + unknown + "/stop", 404, false},
		{"POST", "/ui/agents/" + unknown + "/settings", 404, false},
		{"POST", "/ui/agents/" + unknown + "/drop", 400, false},
		{"POST", "/ui/runs/" + unknown + "/cancel", 404, false},
		{"POST", "/ui/questions/" + unknown, 404, false},
		{"DELETE", "/ui/agents/" + unknown, 404, false},
	} {
		form := url.Values(nil)
		if tt.method == "POST" {
			form = url.Values{"value": {"1"}}
		}
		accept := "*/*"
		if tt.page {
			accept = "text/html,*/*"
		}
		got := v.do(tt.method, tt.path, form, "Accept", accept)
		if got.code != tt.code {
			t.Errorf("%s %s = %d, want %d: %.300s", tt.method, tt.path, got.code, tt.code, got.body)
		}
		if tt.page {
			if !strings.Contains(got.body, `role="alert"`) || !strings.Contains(got.body, "<nav") || strings.Contains(got.body, hostile[1]) {
				t.Errorf("%s is not a page of ours: %.500s", tt.path, got.body)
			}
			continue
		}
		var e struct {
			Error struct{ Code, Message string }
		}
		if json.Unmarshal([]byte(got.body), &e) != nil || e.Error.Message == "" {
			t.Errorf("%s %s does not say why: %s", tt.method, tt.path, got.body)
		}
	}
}

// Whatever people, models and tools write is text on every page.
func TestHostileTexts(t *testing.T) {
	r := newRig(t)
	all := strings.Join(hostile, "\n")
	args, _ := json.Marshal(map[string]any{"zone": all, "x": hostile[1]})
	r.mind.plan("evil", both(all, "c<script>1", "current_time", string(args)), use("c2", "<script>window.hacked=1</script>", `not JSON <script>`),
		use("q1", "ask_user", `{"question":`+string(mustJSON(all))+`,"type":"select","options":["<script>window.hacked=1</script>","b"],"placeholder":"\"><script>"}`))
	r.start()
	r.post(main, claybot.AgentMessage{
		ID: "web/main/<script>window.hacked=1</script>", Type: claybot.MessageUser, Text: "evil " + all,
		From: claybot.Sender{UserID: "operator", Name: hostile[1]}, Context: claybot.MessageContext{Quote: all},
	})
	run := r.ran("web/main/<script>window.hacked=1</script>", claybot.RunAwaiting)
	odd := claybot.User("web", `<script>window.hacked=1</script>`, `"><script>window.hacked=1</script>`)
	r.mind.plan("long", llmtest.Say(strings.Repeat("<b>long</b> ", 9000)))
	r.post(odd, claybot.AgentMessage{ID: "odd", Type: claybot.MessageUser, Text: "long " + strings.Repeat("<script>", 12_000), From: claybot.Sender{UserID: "x"}})
	long := r.ran("odd", claybot.RunSucceeded)
	v := r.visitor()
	bad := regexp.MustCompile(`(?i)<script>|<img src=x|<svg/onload|<iframe|href="javascript|<b>long`)
	for _, path := range append([]string{
		"/ui/agents/" + string(r.agent(main)), "/ui/agents/" + string(r.agent(odd)), "/ui/runs/" + string(run.ID), "/ui/runs/" + string(long.ID),
		"/ui/runs/" + string(run.ID) + "/deliveries", "/ui/chats/questions?conversation=main",
		"/ui/why?q=" + string(run.ID), "/ui/why?q=" + url.QueryEscape(all), "/ui/agents?owner=" + url.QueryEscape(all), "/ui/runs?agent=" + url.QueryEscape(hostile[1]),
	}, allPages...) {
		page := v.page(path)
		if found := bad.FindString(page); found != "" {
			t.Errorf("%s contains %s", path, found)
		}
		if len(page) > 1_000_000 {
			t.Errorf("%s has %d bytes", path, len(page))
		}
	}
	for _, path := range []string{"/ui/agents/" + string(r.agent(main)), "/ui/runs/" + string(run.ID)} {
		if !strings.Contains(v.page(path), "&lt;script&gt;window.hacked=1&lt;/script&gt;") {
			t.Errorf("%s does not show what was written", path)
		}
	}
}

func mustJSON(s string) []byte {
	b, _ := json.Marshal(s) // strings always marshal
	return b
}

// A list shows one screenful and leads to the next, until the end.
func TestLaterRows(t *testing.T) {
	r := startRig(t)
	const n = 120
	for i := range n {
		d := claybot.User("web", "c"+strings.Repeat("i", i+1), "operator")
		id := claybot.MessageID("m" + strings.Repeat("i", i+1))
		r.post(d, claybot.AgentMessage{ID: id, Type: claybot.MessageUser, Text: "hello", From: claybot.Sender{UserID: "operator"}})
		r.ran(id, claybot.RunSucceeded)
	}
	v := r.visitor()
	next := regexp.MustCompile(`hx-get="([^"]+)"`)
	for _, list := range []struct{ path, row string }{{"/ui/agents", `<tr role="row" id="agent-[^"]+"`}, {"/ui/runs", `<tr role="row" id="run-[^"]+"`}} {
		seen := make(map[string]bool)
		sizes := []int{}
		for path := list.path; path != ""; {
			page := v.page(path)
			rows := regexp.MustCompile(list.row).FindAllString(page, -1)
			for _, row := range rows {
				if seen[row] {
					t.Errorf("%s shows %s twice", path, row)
				}
				seen[row] = true
			}
			sizes = append(sizes, len(rows))
			path = ""
			if m := next.FindStringSubmatch(page); m != nil {
				path = html.UnescapeString(m[1])
			}
		}
		if len(seen) != n || len(sizes) != 3 || sizes[0] != 50 {
			t.Errorf("%s shows %d in %v", list.path, len(seen), sizes)
		}
	}
}

// A token may see only, or act, or administer; pages show what it may do.
func TestScopes(t *testing.T) {
	r := startRig(t)
	run := r.ran(r.say("hello"), claybot.RunSucceeded)
	agent := "/ui/agents/" + string(r.agent(main))
	v := r.visitor()
	tokens := make(map[string]string)
	for _, scope := range []string{"read", "operate", "admin"} {
		got := v.send(http.MethodPost, "/tokens", "application/json", `{"name":"`+scope+`er","scope":"`+scope+`"}`)
		var made struct{ Token string }
		if err := json.Unmarshal([]byte(got.body), &made); err != nil || made.Token == "" {
			t.Fatalf("no token: %d %s", got.code, got.body)
		}
		tokens[scope] = made.Token
	}
	stranger := &visitor{r, &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	for _, tt := range []struct {
		method, path string
		read, act    int // what a reader and an operator get; an administrator may all
	}{
		{"GET", agent, 200, 200},
		{"GET", "/ui/runs/" + string(run.ID) + "/events?after=0", 200, 200},
		{"POST", agent + "/stop", 403, 204},
		{"POST", agent + "/reset", 403, 204},
		{"POST", "/ui/runs/" + string(run.ID) + "/cancel", 403, 204},
		{"POST", agent + "/settings", 403, 403},
		{"DELETE", agent, 403, 403},
	} {
		for scope, want := range map[string]int{"read": tt.read, "operate": tt.act} {
			if got := stranger.do(tt.method, tt.path, nil, "Authorization", "Bearer "+tokens[scope]); got.code != want {
				t.Errorf("%s %s with %s = %d, want %d: %s", tt.method, tt.path, scope, got.code, want, got.body)
			}
		}
		if got := stranger.do(tt.method, tt.path, nil); got.code != http.StatusUnauthorized && got.code != http.StatusSeeOther {
			t.Errorf("%s %s without a login = %d", tt.method, tt.path, got.code)
		}
	}
	buttons := map[string]int{"read": 0, "operate": 2, "admin": 3} // stop and reset; delete
	for scope, want := range buttons {
		page := stranger.do("GET", agent, nil, "Authorization", "Bearer "+tokens[scope]).body
		got := 0
		for _, id := range []string{"stop-agent", "reset-agent", "delete-agent"} {
			got += strings.Count(page, `id="`+id+`"`)
		}
		if got != want || strings.Contains(page, `id="save"`) != (scope == "admin") {
			t.Errorf("%s sees %d buttons, want %d", scope, got, want)
		}
	}
	if got := stranger.do("DELETE", agent, nil, "Authorization", "Bearer "+tokens["admin"]); got.code != http.StatusNoContent {
		t.Errorf("delete = %d: %s", got.code, got.body)
	}
}

// The owner answers questions to other people, too: once, and what fits.
func TestAnswerForSomebodyElse(t *testing.T) {
	r := newRig(t)
	r.mind.plan("colours", use("q1", "ask_user", `{"question":"Which?","type":"multiselect","options":["red, dark","green","blue"]}`), llmtest.Say("Noted."))
	r.start()
	if err := r.system.People.Allow(t.Context(), "telegram", "4711"); err != nil {
		t.Fatal(err)
	}
	ann := claybot.User("telegram", "4711", "4711")
	r.post(ann, claybot.AgentMessage{ID: "m1", Type: claybot.MessageUser, Text: "ask for colours", From: claybot.Sender{UserID: "4711"}})
	r.ran("m1", claybot.RunAwaiting)
	open, err := r.system.Questions.Answers.OpenQuestions(t.Context(), r.agent(ann))
	if err != nil || len(open) != 1 {
		t.Fatalf("%d questions, %v", len(open), err)
	}
	v := r.visitor()
	path := "/ui/questions/" + url.PathEscape(open[0].ID)
	for _, tt := range []struct {
		form url.Values
		code int
	}{
		{url.Values{"list": {"1"}}, http.StatusBadRequest},
		{url.Values{"list": {"1"}, "value": {"pink"}}, http.StatusBadRequest},
		{url.Values{"list": {"1"}, "value": {"red, dark", "blue"}}, http.StatusNoContent},
		{url.Values{"list": {"1"}, "value": {"green"}}, http.StatusConflict},
	} {
		if got := v.do(http.MethodPost, path, tt.form); got.code != tt.code {
			t.Errorf("%v = %d, want %d: %s", tt.form, got.code, tt.code, got.body)
		}
	}
	r.ran("m1", claybot.RunSucceeded)
	q, err := r.system.Questions.Answers.Question(t.Context(), open[0].ID)
	if err != nil || q.Answer == nil || string(q.Answer.Value) != `["red, dark","blue"]` || q.Answer.Via != claybot.ViaWeb || q.Answer.By != "operator" {
		t.Errorf("the answer is %+v, %v", q.Answer, err)
	}
}

// The stream of changes speaks at once, and again when something happens.
func TestLiveStream(t *testing.T) {
	r := startRig(t)
	v := r.visitor()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.srv.Addr()+"/ui/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := v.hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("the stream is %s", kind)
	}
	lines := bufio.NewScanner(resp.Body)
	changed := func() {
		for lines.Scan() {
			if lines.Text() == "event: changed" {
				return
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
	}
	changed()
	r.say("hello")
	changed()
	r.say("again")
	changed()
}

// Where nothing is, the page leads to the list of what there is.
func TestWaysOut(t *testing.T) {
	v := startRig(t).visitor()
	for path, want := range map[string]string{
		"/ui/runs/r404": `href="/ui/runs">All runs</a>`, "/ui/agents/a404": `href="/ui/agents">All agents</a>`, "/ui/nope": `href="/">Go to Chats</a>`,
	} {
		if got := v.do(http.MethodGet, path, nil, "Accept", "text/html"); got.code != http.StatusNotFound || !strings.Contains(got.body, want) {
			t.Errorf("%s = %d without %s", path, got.code, want)
		}
	}
}

// Conversations are named by their first words, to those who had them.
func TestChatTitles(t *testing.T) {
	r := startRig(t)
	long := claybot.User("web", "long", web.Operator)
	r.post(long, claybot.AgentMessage{ID: "web/long/1", Type: claybot.MessageUser, Text: "  first \u202e words, " + strings.Repeat("é", 100), From: claybot.Sender{UserID: web.Operator}})
	r.post(claybot.User("web", "theirs", "token:other"), claybot.AgentMessage{ID: "web/o/theirs/1", Type: claybot.MessageUser, Text: "secret", From: claybot.Sender{UserID: "token:other"}})
	r.ran("web/long/1", claybot.RunSucceeded)
	r.ran("web/o/theirs/1", claybot.RunSucceeded)
	r.ran(r.say("hello"), claybot.RunSucceeded)
	r.ran(r.say("again"), claybot.RunSucceeded)
	v := r.visitor()
	var got struct{ Titles map[string]string }
	page := v.page("/ui/chats/titles?conversation=main&conversation=long&conversation=theirs&conversation=none")
	if err := json.Unmarshal([]byte(page), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"main": "hello", "long": "first words, " + strings.Repeat("é", 47) + "…"}
	if !maps.Equal(got.Titles, want) {
		t.Errorf("the titles are %q, want %q", got.Titles, want)
	}
	if page := v.page("/ui/chats/titles"); !strings.Contains(page, `"titles":{}`) {
		t.Errorf("nothing asked for: %s", page)
	}
}

// A run of the demo model is free, and its page shows what was asked, with
// overrides of the direction of writing as what they are.
func TestRunPageShowsWhatWasAsked(t *testing.T) {
	r := startRig(t)
	run := r.ran(r.say("say \u202egnp.exe "+strings.Repeat("long ", 200)), claybot.RunSucceeded)
	v := r.visitor()
	page := v.page("/ui/runs/" + string(run.ID))
	r.contains(page, `id="asked"`, "say gnp.exe long", "…</blockquote>", "<b>free</b>")
	for _, path := range []string{"/ui/runs", "/ui/agents", "/ui/agents/" + string(r.agent(main))} {
		r.contains(v.page(path), "free")
	}
	r.contains(v.page("/ui/agents/"+string(r.agent(main))), "say [U+202E]gnp.exe")
	for _, path := range []string{"/ui/runs/" + string(run.ID), "/ui/runs", "/ui/why?q=" + string(run.ID), "/ui/agents/" + string(r.agent(main))} {
		if strings.Contains(v.page(path), "\u202e") {
			t.Errorf("%s turns the direction of writing", path)
		}
	}
}

// What is wrong with settings is said with the names of the fields.
func TestSettingsFaults(t *testing.T) {
	r := startRig(t)
	r.ran(r.say("hello"), claybot.RunSucceeded)
	v := r.visitor()
	path := "/ui/agents/" + string(r.agent(main)) + "/settings"
	for _, tt := range []struct {
		form   url.Values
		fields []string
		words  string
	}{
		{url.Values{"maxSteps": {"1001"}}, []string{"maxSteps"}, "within 1 and 1000"},
		{url.Values{"maxSteps": {"99999999999999999999"}, "debounceMs": {"-1"}}, []string{"debounceMs", "maxSteps"}, "within 1 and 1000"},
		{url.Values{"maxSteps": {"many"}, "ownTools": {"1"}}, []string{"maxSteps", "tools"}, "whole number"},
		{url.Values{"model": {"none"}, "tools": {"rm"}, "ownTools": {"1"}}, []string{"model", "tools"}, "configured models"},
	} {
		got := v.do(http.MethodPost, path, tt.form)
		var e struct {
			Error struct {
				Code, Message, Fix string
				Fields             map[string]string
			}
		}
		err := json.Unmarshal([]byte(got.body), &e)
		if got.code != http.StatusBadRequest || err != nil || !slices.Equal(slices.Sorted(maps.Keys(e.Error.Fields)), tt.fields) || !strings.Contains(e.Error.Message, tt.words) {
			t.Errorf("%v = %d %s", tt.form, got.code, got.body)
		}
	}
}
