package api_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A plan is the cron and the heartbeat of a test, used by one request at a time.
type plan struct {
	tasks    []connectors.Task
	problems []connectors.Problem
	asked    []string
	change   connectors.TaskChange
	fault    error
}

var (
	_ web.Tasks      = (*plan)(nil)
	_ web.Heartbeats = (*plan)(nil)
)

func (p *plan) ask(format string, args ...any) error {
	p.asked = append(p.asked, fmt.Sprintf(format, args...))
	return p.fault
}

func (p *plan) Tasks(context.Context) ([]connectors.Task, []connectors.Problem, error) {
	return slices.Clone(p.tasks), p.problems, nil
}

func (p *plan) Add(_ context.Context, s connectors.TaskSpec, dry bool) (connectors.Task, error) {
	if dry {
		return connectors.Task{Next: []time.Time{time.Unix(60, 0).UTC()}}, p.ask("preview %s", s.Schedule)
	}
	return connectors.Task{TaskSpec: s, Slug: "new", UID: "u9", Enabled: true}, p.ask("add %s %q", s.Name, s.Prompt)
}

func (p *plan) Change(_ context.Context, ref string, c connectors.TaskChange) (connectors.Task, error) {
	p.change = c
	return connectors.Task{UID: ref}, p.ask("change %s", ref)
}
func (p *plan) Remove(_ context.Context, ref string) error { return p.ask("remove %s", ref) }
func (p *plan) RunNow(_ context.Context, ref, key string) (connectors.Task, error) {
	if len(key) == 26 { // a fresh one
		key = "fresh"
	}
	return connectors.Task{UID: ref}, p.ask("run %s %s", ref, key)
}

func (p *plan) AddHeartbeat(_ context.Context, b connectors.HeartbeatTask) (connectors.HeartbeatTask, error) {
	b.ID = b.Title
	return b, p.ask("save %s %v", b.Title, b.Enabled)
}

func (p *plan) RemoveHeartbeat(_ context.Context, id string) error {
	return p.ask("remove heartbeat %s", id)
}

func (p *plan) Ledger(_ context.Context, ref string, limit int) ([]connectors.Firing, error) {
	return nil, p.ask("ledger %s %d", ref, limit)
}

func (p *plan) Heartbeats(context.Context) ([]connectors.HeartbeatTask, []connectors.Problem, error) {
	return []connectors.HeartbeatTask{{ID: "tidy", Title: "Tidy up", Enabled: true, Prompt: "tidy"}}, nil, nil
}

func (p *plan) RunHeartbeats(_ context.Context, key string, ids ...string) (int, error) {
	if len(key) == 26 {
		key = "fresh"
	}
	return len(ids), p.ask("run heartbeats %s %v", key, ids)
}

func withPlan(t *testing.T) (*plan, *rig) {
	t.Helper()
	p := &plan{tasks: []connectors.Task{
		{TaskSpec: connectors.TaskSpec{Name: "News", Schedule: "0 9 * * *", Prompt: "the news"}, Slug: "news", UID: "u1", Enabled: true},
		{TaskSpec: connectors.TaskSpec{Name: "Odd"}, Slug: "odd name", UID: "news"}, // its uid is another one's slug
	}, problems: []connectors.Problem{{File: "cron/bad/TASK.md", Line: 3, Text: "no such zone"}}}
	return p, start(t, func(r *rig) { r.tasks, r.heartbeats = p, p })
}

func TestSchedule(t *testing.T) {
	p, r := withPlan(t)
	for _, tc := range []struct {
		method, path, body string
		code               int
		says, asks         string
	}{
		{"GET", "/cron", "", 200, `"problems":[{"file":"cron/bad/TASK.md","line":3,"text":"no such zone"}]`, ""},
		{"GET", "/cron", "", 200, `"slug":"news","uid":"u1","enabled":true,"next":[]`, ""},
		{"POST", "/cron", `{"name":"N","every":"2h","prompt":"p"}`, 201, `"slug":"new"`, `add N "p"`},
		{"POST", "/cron", `{"schedule":"@daily","prompt":"p","dry_run":true}`, 200, `{"next":["1970-01-01T00:01:00Z"]}`, "preview @daily"},
		{"POST", "/cron", `{"nmae":"N"}`, 400, "nmae", ""},
		{"POST", "/cron", `{"name":"N"} {}`, 400, "JSON object", ""},
		{"POST", "/cron", ``, 400, "is empty", ""},
		{"PATCH", "/cron/news", `{"enabled":false}`, 200, `"uid":"u1"`, "change u1"},
		{"PATCH", "/cron/u1", `{"retries":2}`, 200, "", "change u1"},
		{"PATCH", "/cron/odd%20name", `{"name":"x"}`, 200, "", "change news"},
		{"PATCH", "/cron/news", `{}`, 400, "Nothing to change", ""},
		{"PATCH", "/cron/news", `{"owner":"x"}`, 400, "owner", ""},
		{"PATCH", "/cron/nope", `{"enabled":false}`, 404, "No such task", ""},
		{"DELETE", "/cron/news", "", 204, "", "remove u1"},
		{"DELETE", "/cron/nope", "", 404, "No such task", ""},
		{"POST", "/cron/news/run", "", 202, "", "run u1 fresh"},
		{"POST", "/cron/news/run?key=k-1_Z", "", 202, "", "run u1 k-1_Z"},
		{"POST", "/cron/news/run?key=", "", 400, "1 to 64", ""},
		{"POST", "/cron/news/run?key=a/b", "", 400, "1 to 64", ""},
		{"POST", "/cron/news/run?key=" + strings.Repeat("k", 65), "", 400, "1 to 64", ""},
		{"POST", "/cron/nope/run", "", 404, "No such task", ""},
		{"GET", "/cron/news/ledger", "", 200, `{"firings":[]}`, "ledger u1 20"},
		{"GET", "/cron/news/ledger?limit=3", "", 200, "", "ledger u1 3"},
		{"GET", "/cron/news/ledger?limit=9999", "", 200, "", "ledger u1 500"},
		{"GET", "/cron/news/ledger?limit=0", "", 400, "number from 1", ""},
		{"GET", "/cron/news/ledger?limit=x", "", 400, "number from 1", ""},
		{"GET", "/cron/nope/ledger", "", 404, "No such task", ""},
		{"GET", "/cron/news", "", 200, `"uid":"u1"`, ""},
		{"GET", "/cron/u1", "", 200, `"slug":"news"`, ""},
		{"GET", "/cron/nope", "", 404, "GET /cron lists all tasks", ""},
		{"GET", "/cron?all=1", "", 400, "This path has no parameters", ""},
		{"GET", "/heartbeat/tidy", "", 200, `"title":"Tidy up"`, ""},
		{"GET", "/heartbeat/nope", "", 404, "GET /heartbeat lists all tasks", ""},
		{"POST", "/heartbeat", `{"title":"T","prompt":"p"}`, 201, `"id":"T"`, "save T true"},
		{"POST", "/heartbeat", `{"title":"T","prompt":"p","enabled":false}`, 201, "", "save T false"},
		{"POST", "/heartbeat", `{"title":"T","gate":"sh"}`, 400, "gate", ""},
		{"DELETE", "/heartbeat/tidy", "", 204, "", "remove heartbeat tidy"},
		{"GET", "/heartbeat", "", 200, `{"beats":[{"id":"tidy","title":"Tidy up","enabled":true,"prompt":"tidy"}],"problems":[]}`, ""},
		{"POST", "/heartbeat/run", `{}`, 202, `{"ran":0,"tasks":0}`, "run heartbeats fresh []"},
		{"POST", "/heartbeat/run?key=k", `{"ids":["a","b"]}`, 202, `{"ran":2,"tasks":2}`, "run heartbeats k [a b]"},
		{"POST", "/heartbeat/run", `{"ids":[""]}`, 400, "empty", ""},
		{"POST", "/heartbeat/run", `["a"]`, 400, "JSON object", ""},
		{"POST", "/heartbeat/run?key=%20", `{}`, 400, "1 to 64", ""},
	} {
		p.asked = nil
		got := r.do(tc.method, tc.path, tc.body)
		if asked := strings.Join(p.asked, ", "); got.code != tc.code || !strings.Contains(got.body, tc.says) || asked != tc.asks {
			t.Errorf("%s %s %s = %d %s, asked %q; want %d %s, asked %q", tc.method, tc.path, tc.body, got.code, got.body, asked, tc.code, tc.says, tc.asks)
		}
	}
}

// Each field of a change arrives as what it is, and no other with it.
func TestTaskChange(t *testing.T) {
	p, r := withPlan(t)
	if got := r.do("PATCH", "/cron/news", `{"name":"n","description":"d","schedule":"s","every":"","at":"a","timezone":"z","prompt":"p","misfire":"m","route":"r","enabled":true,"once":false,"retries":0}`); got.code != 200 {
		t.Fatal(got)
	}
	c := p.change
	got := fmt.Sprint(*c.Name, *c.Description, *c.Schedule, *c.Every, *c.At, *c.Timezone, *c.Prompt, *c.Misfire, *c.Route, *c.Enabled, *c.Once, *c.Retries)
	if want := fmt.Sprint("n", "d", "s", "", "a", "z", "p", "m", "r", true, false, 0); got != want {
		t.Errorf("change %s, want %s", got, want)
	}
	if got := r.do("PATCH", "/cron/news", `{"route":"none"}`); got.code != 200 {
		t.Fatal(got)
	}
	route := "none"
	if c := p.change; c.Route == nil || *c.Route != route || c.Enabled != nil || c.Name != nil {
		t.Errorf("change %+v", c)
	}
}

func TestScheduleErrorsAreSentences(t *testing.T) {
	p, r := withPlan(t)
	requests := [][3]string{
		{"POST", "/cron", `{"name":"N"}`},
		{"POST", "/cron", `{"dry_run":true}`},
		{"PATCH", "/cron/news", `{"name":"N"}`},
		{"DELETE", "/cron/news", ""},
		{"POST", "/cron/news/run", ""},
		{"GET", "/cron/news/ledger", ""},
		{"POST", "/heartbeat/run", "{}"},
	}
	for _, tc := range []struct {
		err  error
		code int
	}{
		{errors.New("schedule: the hour 25 does not exist"), 400},
		{fmt.Errorf("the task is gone: %w", storage.ErrNotFound), 404},
	} {
		p.fault = tc.err
		for _, x := range requests {
			var said struct{ Error struct{ Message string } }
			got := r.do(x[0], x[1], x[2])
			r.read(got.body, &said)
			if got.code != tc.code || said.Error.Message != tc.err.Error() {
				t.Errorf("%v with %v = %d %s", x, tc.err, got.code, got.body)
			}
		}
	}
}

func TestScheduleIsOff(t *testing.T) {
	r := start(t, func(r *rig) { r.bare = true })
	for path, says := range map[string]string{
		"GET /cron": "Cron is off", "POST /cron": "Cron is off", "DELETE /cron/x": "Cron is off", "POST /cron/x/run": "Cron is off",
		"GET /heartbeat": "heartbeat is off", "POST /heartbeat/run": "heartbeat is off",
	} {
		method, path, _ := strings.Cut(path, " ")
		if got := r.do(method, path, ""); got.code != 404 || !strings.Contains(got.body, says) {
			t.Errorf("%s %s = %d %s", method, path, got.code, got.body)
		}
	}
}

// The same over real files: what the API writes is what it reads, and fires.
func TestRealSchedule(t *testing.T) {
	r := start(t)
	r.until("cron is ready", func() bool { return r.do("GET", "/cron", "").code == 200 })
	var preview struct{ Next []time.Time }
	r.ask("POST", "/cron", `{"name":"News","schedule":"0 9 * * *","prompt":"the news","dry_run":true}`, 200, &preview)
	if len(preview.Next) != 5 {
		t.Errorf("preview %v", preview.Next)
	}
	var task struct{ UID, Slug string }
	// It is not to come due by itself before it is turned off, whenever this runs.
	r.ask("POST", "/cron", `{"name":"News","schedule":"0 9 29 2 *","prompt":"the news","route":"none"}`, 201, &task)
	r.ask("PATCH", "/cron/"+task.Slug, `{"enabled":false}`, 200, nil)
	r.ask("GET", "/cron/"+task.UID, "", 200, nil)
	r.ask("POST", "/cron/"+task.UID+"/run?key=once", "", 202, nil)
	r.ask("POST", "/cron/"+task.UID+"/run?key=once", "", 202, nil)
	var ledger struct{ Firings []struct{ State, Run string } }
	r.until("it ran", func() bool {
		r.ask("GET", "/cron/"+task.UID+"/ledger", "", 200, &ledger)
		return len(ledger.Firings) > 0 && ledger.Firings[0].State == "SUCCEEDED"
	})
	if len(ledger.Firings) != 1 {
		t.Errorf("a repeated call fired %d times", len(ledger.Firings))
	}
	r.ask("GET", "/agents/runs/"+ledger.Firings[0].Run, "", 200, nil)
	r.refused("POST", "/cron", `{"name":"Bad","schedule":"0 25 * * *","prompt":"p"}`, 400, "refused", "")
	r.ask("DELETE", "/cron/"+task.UID, "", 204, nil)
	r.refused("GET", "/cron/"+task.UID, "", 404, "not_found", "No such task")

	var added struct{ ID string }
	r.ask("POST", "/heartbeat", `{"title":"Tidy up","prompt":"tidy"}`, 201, &added)
	r.ask("GET", "/heartbeat/"+added.ID, "", 200, nil)
	r.ask("GET", "/heartbeat", "", 200, nil)
	r.ask("DELETE", "/heartbeat/"+added.ID, "", 204, nil)
	r.refused("DELETE", "/heartbeat/"+added.ID, "", 404, "not_found", "")
}
