package dashboard_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/connectors/heartbeat"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/web"
)

// A phone is a platform with strangers, whose line can be dead.
type phone struct {
	connectors.Pulse
	mu   sync.Mutex
	dead error
	sent []claybot.Outgoing
}

func (p *phone) Name() string { return "phone" }

func (p *phone) Run(ctx context.Context, _ connectors.Handler) error {
	p.OK()
	<-ctx.Done()
	return context.Cause(ctx)
}

func (p *phone) Send(_ context.Context, o claybot.Outgoing) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead != nil {
		return "", p.dead
	}
	p.sent = append(p.sent, o)
	return fmt.Sprintf("ring-%d", len(p.sent)), nil
}

func (p *phone) Split(text string) []string { return []string{text} }

// cut makes the line dead, or with nil alive again.
func (p *phone) cut(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = err
}

func (p *phone) heard() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.sent {
		all = append(all, o.Text)
	}
	return all
}

// An office is a rig with a schedule and a phone.
type office struct {
	*rig
	phone *phone
}

const reportTask = `---
uid: kaaaaaaaaaaaaaaaaaaaaaaa
name: Morning <b>report</b>
schedule: "0 9 * * 1-5"
timezone: Europe/Berlin
---
Say report.
`

// startOffice starts a rig with one task, one heartbeat task and one file that cannot be
// read.
func startOffice(t *testing.T) *office {
	t.Helper()
	o := &office{rig: newRig(t), phone: new(phone)}
	for name, text := range map[string]string{
		"cron/report/TASK.md": reportTask, "cron/broken/TASK.md": "---\nuid: kbbbbbbbbbbbbbbbbbbbbbbb\nname: Broken\nschedule: \"99 99 * * *\"\n---\nx\n",
		"heartbeat/water.md": "---\ntitle: Water the plants\nevery: 12h\nenabled: false\n---\nSay water.\n",
	} {
		path := filepath.Join(o.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	// The stores are open when the desk is asked for, and nothing runs yet.
	o.rig.desk = func(*web.Backend) {
		tasks := cron.New(cron.Config{Dir: filepath.Join(o.dir, "cron"), Tree: storage.MirrorFolder(files.OpenTree(files.TreeConfig{Dir: filepath.Join(o.dir, "cron"), Layout: cron.Layout, Marks: o.db})), Claims: o.db, Node: func() string { return "alone" }, Ledger: o.db, Index: o.db})
		heartbeats := heartbeat.New(heartbeat.Config{Dir: filepath.Join(o.dir, "heartbeat"), Tree: storage.MirrorFolder(files.OpenTree(files.TreeConfig{Dir: filepath.Join(o.dir, "heartbeat"), Layout: heartbeat.Layout, Marks: o.db})), Claims: o.db, Node: func() string { return "alone" }, Receipts: o.db, Place: o.system.People.Foreground})
		o.tasks, o.heartbeats, o.also = tasks, heartbeats, []connectors.Connector{o.phone, tasks, heartbeats}
	}
	o.start()
	o.eventually("the tasks and the heartbeats are read", func() bool {
		_, _, err := o.tasks.Tasks(t.Context())
		_, _, err2 := o.heartbeats.Heartbeats(t.Context())
		return err == nil && err2 == nil
	})
	return o
}

// act does something on a page and returns the words that it is told with.
func (v *visitor) act(method, path string, form url.Values) string {
	v.Helper()
	got := v.do(method, path, form)
	if got.code != http.StatusNoContent {
		v.Fatalf("%s %s = %d: %s", method, path, got.code, got.body)
	}
	var note struct{ Toast string }
	if err := json.Unmarshal([]byte(got.head.Get("HX-Trigger")), &note); err != nil || note.Toast == "" {
		v.Fatalf("%s %s says %q: %v", method, path, got.head.Get("HX-Trigger"), err)
	}
	return note.Toast
}

// refuses wants an action to be refused with this status and these words.
func (v *visitor) refuses(method, path string, form url.Values, code int, words string) {
	v.Helper()
	if form == nil {
		form = url.Values{}
	}
	got := v.do(method, path, form)
	var e struct{ Error struct{ Message, Fix string } }
	err := json.Unmarshal([]byte(got.body), &e)
	if got.code != code || err != nil || !strings.Contains(e.Error.Message+" "+e.Error.Fix, words) {
		v.Errorf("%s %s = %d %s, want %d with %q", method, path, got.code, got.body, code, words)
	}
}

func (r *rig) contains(page string, wants ...string) {
	r.Helper()
	for _, want := range wants {
		if !strings.Contains(page, want) {
			_, content, _ := strings.Cut(page, "<main")
			r.Errorf("the page does not have %q:\n%s", want, cmp.Or(content, page))
		}
	}
}

// word cuts the first match of what stands between two strings.
func word(page, before, after string) string {
	_, rest, _ := strings.Cut(page, before)
	found, _, _ := strings.Cut(rest, after)
	return found
}

// The page of an agent says who reads its conversation, and what it can read there.
func TestAgentPagePrivacy(t *testing.T) {
	o := startOffice(t)
	o.ran(o.call("hello"), claybot.RunSucceeded)
	id := o.agent(ann)
	if err := o.system.Profiles.ApproveAlways(o.Context(), id, "memory_list("+hostile[0]+")", "phone/ann"); err != nil {
		t.Fatal(err)
	}
	page := o.visitor().page("/ui/agents/" + string(id))
	o.contains(page, "Read by phone/ann.", "this conversation, with the files", "Approved permanently", "memory_list(")
	if strings.Contains(page, hostile[0]) {
		t.Error("a rule is HTML")
	}
}

// Reminders of all agents are listed with the next one first.
func TestSchedulePageReminders(t *testing.T) {
	o := startOffice(t)
	o.ran(o.call("hello"), claybot.RunSucceeded)
	id := o.agent(ann)
	for i, note := range []string{"later", "sooner " + hostile[0]} {
		err := o.db.AddReminder(o.Context(), storage.Reminder{
			ID: note[:5], Agent: id, Note: note, Due: claybot.At(time.Now().Add(time.Duration(9-i) * time.Hour)),
		}, 9)
		if err != nil {
			t.Fatal(err)
		}
	}
	page := o.visitor().page("/ui/schedule")
	o.contains(page, "sooner "+html.EscapeString(hostile[0])[:8], "later", "/ui/agents/"+string(id))
	if strings.Index(page, "sooner") > strings.Index(page, "later") {
		t.Error("the later reminder stands first")
	}
	if strings.Contains(page, hostile[0]) {
		t.Error("a note is HTML")
	}
}

func TestSchedulePage(t *testing.T) {
	o := startOffice(t)
	v := o.visitor()
	page := v.page("/ui/schedule")
	o.contains(page, "Morning &lt;b&gt;report&lt;/b&gt;", "0 9 * * 1-5", "Europe/Berlin", "Water the plants",
		"1 file cannot be read", "cron/broken/TASK.md", "never", "No reminders.")
	if strings.Contains(page, "<b>report</b>") {
		t.Error("the name of a task is HTML")
	}
	const task = "/ui/schedule/tasks/kaaaaaaaaaaaaaaaaaaaaaaa"
	one := v.page(task)
	o.contains(one, "Never run.", "Say report.", "09:00 CE", `value="0 9 * * 1-5"`)
	if n := strings.Count(word(one, `class="instants"`, "</ol>"), "<li>"); n != 5 {
		t.Errorf("%d coming times, want 5", n)
	}

	// Two presses on one page are one run.
	run := "/ui/schedule/tasks/" + word(page, `hx-post="/ui/schedule/tasks/`, `"`)
	for range 2 {
		if got := v.act(http.MethodPost, run, url.Values{}); got != "“Morning <b>report</b>” runs now." {
			t.Errorf("run now says %q", got)
		}
	}
	o.eventually("the task has run", func() bool { return strings.Contains(v.page(task+"/state"), "succeeded") })
	one = v.page(task)
	if n := strings.Count(one, `id="f-manual/`); n != 1 {
		t.Errorf("two presses made %d runs", n)
	}
	o.contains(one, "manual", `href="/ui/runs/`)
	fresh := "/ui/schedule/tasks/" + word(v.page("/ui/schedule"), `hx-post="/ui/schedule/tasks/`, `"`)
	if fresh == run {
		t.Error("the button has the key of the run before")
	}
	v.act(http.MethodPost, fresh, url.Values{})
	o.eventually("the second run is in the ledger", func() bool { return strings.Count(v.page(task), `id="f-manual/`) == 2 })
	if got := v.page(task + "/state?rows=1"); !strings.Contains(got, "Show older") || strings.Count(got, `id="f-manual/`) != 1 {
		t.Errorf("one row of two:\n%s", got)
	}

	v.act(http.MethodPost, task+"/switch?to=off", url.Values{})
	o.contains(v.page("/ui/schedule/list"), "Turned off; it runs only manually.", "Turn on")
	v.act(http.MethodPost, task+"/switch?to=on", url.Values{})
	o.contains(v.page("/ui/schedule/list"), "Turn off")
}

func TestEditTask(t *testing.T) {
	o := startOffice(t)
	v := o.visitor()
	const task = "/ui/schedule/tasks/kaaaaaaaaaaaaaaaaaaaaaaa"
	form := func(pairs ...string) url.Values {
		f := url.Values{"name": {"Morning <b>report</b>"}, "prompt": {"Say report."}, "kind": {"schedule"}, "when": {"0 9 * * 1-5"}, "timezone": {"Europe/Berlin"}, "retries": {"0"}}
		for i := 0; i+1 < len(pairs); i += 2 {
			f.Set(pairs[i], pairs[i+1])
		}
		return f
	}
	if got := v.act(http.MethodPost, task, form()); got != "Nothing changed." {
		t.Errorf("the form as it was says %q", got)
	}
	v.act(http.MethodPost, task, form("kind", "every", "when", "90m", "prompt", "Say </textarea><script>x</script>\r\nsecond line"))
	page := v.page(task)
	o.contains(page, "every 90m", "Say &lt;/textarea&gt;&lt;script&gt;x&lt;/script&gt;\nsecond line")
	if strings.Contains(page, "<script>x") {
		t.Error("a prompt is a script")
	}
	v.refuses(http.MethodPost, task, form("when", "99 99 * * *"), http.StatusBadRequest, "")
	v.refuses(http.MethodPost, task, form("when", ""), http.StatusBadRequest, "Enter when the task runs.")
	v.refuses(http.MethodPost, task, form("kind", "sometimes"), http.StatusBadRequest, "Choose how the task repeats.")
	v.refuses(http.MethodPost, task, form("retries", "many"), http.StatusBadRequest, "whole number")
	v.refuses(http.MethodPost, task, form("timezone", "Moon/Base"), http.StatusBadRequest, "Moon/Base")
	v.refuses(http.MethodPost, "/ui/schedule/tasks/unknown", form(), http.StatusNotFound, "No such task.")
	if got := v.do(http.MethodGet, "/ui/schedule/tasks/unknown", nil); got.code != http.StatusNotFound || !strings.Contains(got.body, "No such task.") {
		t.Errorf("a page of no task = %d %s", got.code, got.body)
	}
	if got := v.do(http.MethodGet, "/ui/schedule/tasks/broken", nil); got.code != http.StatusNotFound || !strings.Contains(got.body, "cannot be read") {
		t.Errorf("the page of a broken task = %d %s", got.code, got.body)
	}

	next := v.do(http.MethodPost, "/ui/schedule/preview", form("kind", "schedule", "when", "30 7 * * *"))
	if next.code != http.StatusOK || strings.Count(next.body, "<li>") != 5 || !strings.Contains(next.body, "07:30 CE") {
		t.Errorf("preview = %d %s", next.code, next.body)
	}
	v.refuses(http.MethodPost, "/ui/schedule/preview", form("when", "x"), http.StatusBadRequest, "")

	o.contains(v.page("/ui/schedule/new"), "New task", `name="prompt"`)
	made := v.do(http.MethodPost, "/ui/schedule/tasks", form("name", "Evening", "kind", "every", "when", "3h", "once", "on"))
	where := made.head.Get("HX-Redirect")
	if made.code != http.StatusNoContent || !strings.HasPrefix(where, "/ui/schedule/tasks/") {
		t.Fatalf("a new task = %d %q %s", made.code, where, made.body)
	}
	o.contains(v.page(where), "Evening", "every 3h")
	v.act(http.MethodDelete, where, nil)
	if got := v.page("/ui/schedule/list"); strings.Contains(got, "Evening") {
		t.Error("the removed task is still there")
	}
}

func TestHeartbeatButtons(t *testing.T) {
	o := startOffice(t)
	v := o.visitor()
	o.ran(o.say("hello"), claybot.RunSucceeded) // whose place the heartbeat answers at
	page := v.page("/ui/schedule")
	run := "/ui/schedule/beats/" + word(page, `hx-post="/ui/schedule/beats/`, `"`)
	if got := v.act(http.MethodPost, run, url.Values{}); got != "“Water the plants” runs now." {
		t.Errorf("run now says %q", got)
	}
	v.act(http.MethodPost, run, url.Values{})
	o.eventually("the heartbeat task has run", func() bool {
		all, err := o.system.Overview.RunPage(o.Context(), storage.RunQuery{})
		return err == nil && len(all) == 2 && all[0].State.Ended()
	})
	o.contains(v.page("/ui/schedule/list"), "Turned off; it runs only manually.")
	v.act(http.MethodPost, "/ui/schedule/beats/water/switch?to=on", url.Values{})
	o.contains(v.page("/ui/schedule/list"), "Turn Water the plants off")
	v.act(http.MethodPost, "/ui/schedule/beats/water/switch?to=off", url.Values{})
	o.contains(v.page("/ui/schedule/list"), "Turn Water the plants on")
	v.refuses(http.MethodPost, "/ui/schedule/beats/nothing/run", nil, http.StatusNotFound, "")
}

func TestScheduleOff(t *testing.T) {
	r := startRig(t)
	v := r.visitor()
	r.contains(v.page("/ui/schedule"), "Tasks are off", "The heartbeat is off")
	for _, path := range []string{"/ui/schedule/new", "/ui/schedule/tasks/x"} {
		if got := v.do(http.MethodGet, path, nil); got.code != http.StatusNotFound || !strings.Contains(got.body, "Tasks are off.") {
			t.Errorf("GET %s = %d", path, got.code)
		}
	}
	v.refuses(http.MethodPost, "/ui/schedule/tasks", url.Values{"kind": {"every"}, "when": {"1h"}}, http.StatusNotFound, "Tasks are off.")
	v.refuses(http.MethodPost, "/ui/schedule/beats/x/run", nil, http.StatusNotFound, "The heartbeat is off.")
}

// failing is a model that refuses.
var failing = llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Text: "the model refuses"}}

var ann = claybot.User("phone", "dm-ann", "ann")

// call lets Ann in and posts a message of hers.
func (o *office) call(text string) claybot.MessageID {
	o.Helper()
	if err := o.system.People.Allow(o.Context(), "phone", "ann"); err != nil {
		o.Fatal(err)
	}
	id := claybot.MessageID("phone/" + string(claybot.NewID()))
	o.post(ann, claybot.AgentMessage{ID: id, Type: claybot.MessageUser, Text: text, FirstHand: true, From: claybot.Sender{UserID: "ann", Name: "Ann"}})
	return id
}

func TestDeliveriesPage(t *testing.T) {
	o := startOffice(t)
	v := o.visitor()
	o.contains(v.page("/ui/deliveries"), "Nothing sent yet.")
	o.phone.cut(&connectors.PermanentError{Err: errors.New("the line is <dead>")})
	id := o.call("hello")
	// The notice that it failed is a message of its own, which comes a moment later.
	o.eventually("the reply and the notice about it failed", func() bool {
		return strings.Count(v.page("/ui/deliveries/list?show=failed"), "/ui/deliveries/retry?id=") == 2
	})
	page := v.page("/ui/deliveries?show=failed")
	o.contains(page, "the line is &lt;dead&gt;", "phone · dm-ann", "Send again", `href="/ui/why?q=`, `href="/ui/runs/`)
	failed := word(page[strings.LastIndex(page, "/ui/deliveries/retry?id="):], "id=", `"`) // the reply: it is the older one
	o.contains(v.page("/ui/deliveries"), `href="/ui/deliveries?show=failed"`)
	if got := v.page("/ui/deliveries/list?show=sent&connector=phone&channel=dm-ann"); !strings.Contains(got, "No matching messages.") {
		t.Errorf("sent to Ann:\n%s", got)
	}
	// Until the line works, sending again fails again.
	o.phone.cut(nil)
	v.act(http.MethodPost, "/ui/deliveries/retry?id="+failed, url.Values{})
	o.eventually("the reply was sent", func() bool {
		return strings.Contains(v.page("/ui/deliveries/list?connector=phone&channel=dm-ann"), "ring-1")
	})
	o.contains(v.page("/ui/why?q="+url.QueryEscape(string(id))), "answered", "ring-1")
	v.refuses(http.MethodPost, "/ui/deliveries/retry?id="+failed, nil, http.StatusConflict, "Not possible any more")
	v.refuses(http.MethodPost, "/ui/deliveries/drop?id="+failed, nil, http.StatusConflict, "Not possible any more")
	v.refuses(http.MethodPost, "/ui/deliveries/retry?id=nothing", nil, http.StatusNotFound, "")

	o.phone.cut(errors.New("busy")) // tried again later
	o.call("once more")
	o.eventually("a reply waits", func() bool {
		return strings.Contains(v.page("/ui/deliveries/list?show=open"), "waiting to retry")
	})
	o.eventually("the waiting one can be given up", func() bool { // not while it is tried
		waiting := word(v.page("/ui/deliveries/list?show=open"), "/ui/deliveries/drop?id=", `"`)
		return waiting != "" && v.do(http.MethodPost, "/ui/deliveries/drop?id="+waiting, url.Values{}).code == http.StatusNoContent
	})
	o.contains(v.page("/ui/deliveries/list?show=failed"), "Send again")
}

// The list is read a page at a time, without a gap and without a repeat.
func TestDeliveryPages(t *testing.T) {
	r := startRig(t)
	v := r.visitor()
	var all []claybot.Outgoing
	for i := range 120 {
		all = append(all, claybot.Outgoing{ID: fmt.Sprintf("o%03d", i), Kind: claybot.OutgoingNotice, Route: claybot.Route{Connector: "nowhere", ChannelID: "c"}, Text: fmt.Sprintf("text %03d", i), Part: 1, Parts: 1, At: claybot.Now()})
	}
	if _, err := r.db.Enqueue(r.Context(), all...); err != nil {
		t.Fatal(err)
	}
	path, seen := "/ui/deliveries?connector=nowhere&channel=c", 0
	for path != "" {
		page := v.page(path)
		for i := 119 - seen; i >= 0 && strings.Contains(page, fmt.Sprintf("text %03d", i)); i-- {
			seen++
		}
		path = ""
		if before, _, ok := strings.Cut(page, `">Older`); ok {
			path = strings.ReplaceAll(before[strings.LastIndex(before, `href="`)+len(`href="`):], "&amp;", "&")
		}
	}
	if seen != 120 {
		t.Errorf("the pages show %d messages in order, want 120", seen)
	}
}

func TestUsagePage(t *testing.T) {
	o := startRig(t)
	v := o.visitor()
	o.contains(v.page("/ui/usage"), "Loading", `data-live="/ui/usage/now?by=model&amp;days=30"`)
	o.contains(v.page("/ui/usage/now"), "No usage in this period.")
	o.ran(o.say("hello"), claybot.RunSucceeded) // the demo model costs nothing
	o.contains(v.page("/ui/usage/top?days=7"), "<b>free</b>", "<b>1</b><span>runs")
	v.page("/ui/usage/now?days=7") // the days that are over are known from now on
	page := v.page("/ui/usage?days=7&by=model")
	o.contains(page, ">free</td>", `aria-current="true">7 days`, "/usage?by=day%2Cagent%2Cowner%2Cchannel%2Cmodel%2Ctype&amp;format=csv")
	if strings.Contains(page, "$0.00") {
		t.Error("tokens without a price are shown as free")
	}
	for _, by := range []string{"agent", "owner", "type", "nonsense"} {
		o.contains(v.page("/ui/usage/now?by="+by), "Breakdown")
	}
	o.contains(v.page("/ui/usage?by=agent"), "By day", `href="/ui/agents/`+string(o.agent(main)))
	var data struct {
		Days      []string
		Input     []int64
		Unpriced  []int64
		Runs      []int64
		Durations []struct{ What string }
	}
	if err := json.Unmarshal([]byte(v.page("/ui/usage/data?days=7")), &data); err != nil {
		t.Fatal(err)
	}
	if len(data.Days) != 7 || len(data.Input) != 7 {
		t.Fatalf("data %+v", data)
	}
	// The test may run over midnight.
	if data.Runs[6]+data.Runs[5] != 1 || data.Input[6]+data.Input[5] == 0 || data.Unpriced[6]+data.Unpriced[5] != 0 || len(data.Durations) == 0 || data.Durations[0].What != storage.LatencyRun {
		t.Errorf("data %+v", data)
	}
	csv := v.do(http.MethodGet, strings.ReplaceAll(word(page, `push" href="`, `"`), "&amp;", "&"), nil)
	if csv.code != http.StatusOK || !strings.Contains(csv.body, string(o.agent(main))) {
		t.Errorf("the file for spreadsheets = %d %s", csv.code, csv.body)
	}
}

func TestAccessPage(t *testing.T) {
	o := startOffice(t)
	v := o.visitor()
	o.contains(v.page("/ui/access"), "No pending requests.", "No users were approved here.", "API tokens", "Log out everywhere")
	stranger := func(user, name string) string {
		o.post(claybot.User("phone", "dm-"+user, user), claybot.AgentMessage{ID: claybot.MessageID("m-" + user), Type: claybot.MessageUser, Text: "let me in", From: claybot.Sender{UserID: user, Name: name}})
		var code string
		o.eventually("a code for "+user, func() bool {
			all, err := o.system.People.Pairings(o.Context())
			for _, p := range all {
				if p.UserID == user {
					code = p.Code
				}
			}
			return err == nil && code != ""
		})
		return code
	}
	eve, bob := stranger("eve", `<img src=x onerror="window.hacked=1">`), stranger("bob", "Bob")
	page := v.page("/ui/access/people")
	o.contains(page, eve, bob, "unverified", "&lt;img src=x", "dm-bob")
	for _, scope := range []string{"read", "operate"} { // codes are for those who decide
		seen := v.send(http.MethodPost, "/tokens", "application/json", `{"name":"`+scope+`er","scope":"`+scope+`"}`).body
		other := &visitor{o.rig, &http.Client{}}
		got := other.do(http.MethodGet, "/ui/access", nil, "Authorization", "Bearer "+word(seen, `"token":"`, `"`))
		if got.code != http.StatusOK || strings.Contains(got.body, eve) || strings.Contains(got.body, bob) || strings.Contains(got.body, "phone:bob") || !strings.Contains(got.body, "dm-bob") {
			t.Errorf("with the scope %s: %d %s", scope, got.code, got.body)
		}
	}
	if strings.Contains(page, "<img") {
		t.Error("the name of a stranger is HTML")
	}
	if got := v.act(http.MethodPost, "/ui/access/approve?code="+strings.ToLower(bob), url.Values{}); got != "Bob is approved and was notified." {
		t.Errorf("approve says %q", got)
	}
	v.act(http.MethodPost, "/ui/access/deny", url.Values{"code": {eve}})
	v.refuses(http.MethodPost, "/ui/access/approve?code="+eve, nil, http.StatusNotFound, "No such code")
	page = v.page("/ui/access/people")
	o.contains(page, "No pending requests.", "<code>bob</code>", ">Bob<")
	o.contains(v.page("/ui/access"), "<code>phone:bob</code>", "<code>web:operator</code>", `<td data-label="Role">owner</td>`, "approved")
	o.eventually("Bob was told", func() bool {
		return strings.Contains(strings.Join(o.phone.heard(), "\n"), "Your access is approved.")
	})
	v.act(http.MethodPost, "/ui/access/allow", url.Values{"connector": {" phone "}, "subject": {"group-1"}})
	o.contains(v.page("/ui/access/people"), "group-1")
	v.refuses(http.MethodPost, "/ui/access/allow", url.Values{"connector": {"phone"}}, http.StatusBadRequest, "Enter a connector and an ID.")
	v.act(http.MethodPost, "/ui/access/revoke?connector=phone&subject=bob", url.Values{})
	v.refuses(http.MethodPost, "/ui/access/revoke?connector=phone&subject=bob", nil, http.StatusNotFound, "No user or channel with that ID")
	if got := v.page("/ui/access/people"); strings.Contains(got, "<code>bob</code>") {
		t.Error("Bob is still let in")
	}
}

func TestHealthPage(t *testing.T) {
	o := startOffice(t)
	v := o.visitor()
	o.eventually("the tasks were read", func() bool { return strings.Contains(v.page("/ui/health/now"), "partly working") })
	o.contains(v.page("/ui/health"), "No model is configured.", "phone", "cron", "partly working", "1 task file has a problem", "heartbeat", "/healthz", "/readyz", "/metrics", "test")
	o.phone.Stop(errors.New("The number <is> not in service; buy another."))
	o.contains(v.page("/ui/health/now"), "1 connector is off and needs action.", "The number &lt;is&gt; not in service; buy another.", "off, needs action")
	o.phone.Fail("Nobody picks up.")
	o.contains(v.page("/ui/health/now"), "has failed and retries")
}

func TestWhyPage(t *testing.T) {
	o := startOffice(t)
	v := o.visitor()
	id := o.call("what <b>happened</b>?")
	run := o.ran(id, claybot.RunSucceeded)
	o.eventually("the reply was sent", func() bool { return len(o.phone.heard()) == 1 })
	var receipt claybot.Outgoing
	o.eventually("the receipt is stored", func() bool {
		all, err := o.system.Overview.OutgoingPage(o.Context(), storage.OutgoingQuery{State: claybot.SendSent})
		if err != nil || len(all) != 1 {
			return false
		}
		receipt = all[0]
		return true
	})
	for _, ref := range []string{string(id), string(run.ID), receipt.ID, " " + string(id) + "\n"} {
		page := v.page("/ui/why?q=" + url.QueryEscape(ref))
		o.contains(page, "Message from Ann", "what &lt;b&gt;happened&lt;/b&gt;?", "It was answered", "received", "stored", "ring-1", "/ui/runs/"+string(run.ID), "/ui/agents/"+string(run.Agent))
	}
	o.contains(v.page("/ui/why"), "What to paste")
	for _, ref := range []string{"nothing", `"><script>window.hacked=1</script>`, strings.Repeat("x", 5000), "%", "_", "'; DROP TABLE messages", "\x00"} {
		page := v.page("/ui/why?q=" + url.QueryEscape(ref))
		o.contains(page, "Nothing found for", "What to paste")
		if strings.Contains(page, "<script>window") {
			t.Error("what was asked is a script")
		}
	}
	o.mind.plan("fail me", failing)
	broken := o.call("fail me")
	o.ran(broken, claybot.RunFailed)
	o.contains(v.page("/ui/why?q="+url.QueryEscape(string(broken))), "failed")
}
