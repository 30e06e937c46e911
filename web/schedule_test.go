package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
	_ connectors.Tasks = (*plan)(nil)
	_ connectors.Beats = (*plan)(nil)
)

func (p *plan) ask(format string, args ...any) error {
	p.asked = append(p.asked, fmt.Sprintf(format, args...))
	return p.fault
}

func (p *plan) Tasks(context.Context) ([]connectors.Task, []connectors.Problem, error) {
	return slices.Clone(p.tasks), p.problems, nil
}

func (p *plan) Preview(_ context.Context, s connectors.TaskSpec) ([]time.Time, error) {
	return []time.Time{time.Unix(60, 0).UTC()}, p.ask("preview %s", s.Schedule)
}

func (p *plan) Add(_ context.Context, s connectors.TaskSpec) (connectors.Task, error) {
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

func (p *plan) Memory(context.Context, string) (string, error)       { return "", nil }
func (p *plan) Remember(context.Context, string, string, bool) error { return nil }
func (p *plan) AddBeat(context.Context, connectors.Beat) (connectors.Beat, error) {
	return connectors.Beat{}, nil
}
func (p *plan) RemoveBeat(context.Context, string) error { return nil }

func (p *plan) Ledger(_ context.Context, ref string, limit int) ([]connectors.Firing, error) {
	return nil, p.ask("ledger %s %d", ref, limit)
}

func (p *plan) Beats(context.Context) ([]connectors.Beat, []connectors.Problem, error) {
	return []connectors.Beat{{ID: "tidy", Title: "Tidy up", Enabled: true, Prompt: "tidy"}}, nil, nil
}

func (p *plan) Beat(_ context.Context, key string, ids ...string) (int, error) {
	if len(key) == 26 {
		key = "fresh"
	}
	return len(ids), p.ask("beat %s %v", key, ids)
}

func withPlan(t *testing.T) (*plan, *world, *http.Client) {
	t.Helper()
	p := &plan{tasks: []connectors.Task{
		{TaskSpec: connectors.TaskSpec{Name: "News", Schedule: "0 9 * * *", Prompt: "the news"}, Slug: "news", UID: "u1", Enabled: true},
		{TaskSpec: connectors.TaskSpec{Name: "Odd"}, Slug: "odd name", UID: "news"}, // its uid is another one's slug
	}, problems: []connectors.Problem{{File: "cron/bad/TASK.md", Line: 3, Text: "no such zone"}}}
	w, _ := start(t, t.TempDir(), func(c *web.Config) { c.Tasks, c.Beats = p, p })
	return p, w, w.loggedIn(t)
}

func TestSchedule(t *testing.T) {
	p, w, b := withPlan(t)
	for _, tc := range []struct {
		method, path, body string
		code               int
		says, asks         string
	}{
		{"GET", "/cron", "", 200, `"problems":[{"file":"cron/bad/TASK.md","line":3,"text":"no such zone"}]`, ""},
		{"GET", "/cron", "", 200, `"slug":"news","uid":"u1","enabled":true,"next":[]`, ""},
		{"POST", "/cron", `{"name":"N","every":"2h","prompt":"p"}`, 200, `"slug":"new"`, `add N "p"`},
		{"POST", "/cron", `{"schedule":"@daily","prompt":"p","dry_run":true}`, 200, `{"next":["1970-01-01T00:01:00Z"]}`, "preview @daily"},
		{"POST", "/cron", `{"nmae":"N"}`, 400, "JSON object", ""},
		{"POST", "/cron", `{"name":"N"} {}`, 400, "JSON object", ""},
		{"POST", "/cron", ``, 400, "JSON object", ""},
		{"PATCH", "/cron/news", `{"enabled":false}`, 200, `"uid":"u1"`, "change u1"},
		{"PATCH", "/cron/u1", `{"retries":2}`, 200, "", "change u1"},
		{"PATCH", "/cron/odd%20name", `{"name":"x"}`, 200, "", "change news"},
		{"PATCH", "/cron/news", `{}`, 400, "nothing to change", ""},
		{"PATCH", "/cron/news", `{"owner":"x"}`, 400, "JSON object", ""},
		{"PATCH", "/cron/nope", `{"enabled":false}`, 404, "no such task", ""},
		{"DELETE", "/cron/news", "", 204, "", "remove u1"},
		{"DELETE", "/cron/nope", "", 404, "no such task", ""},
		{"POST", "/cron/news/run", "", 200, "", "run u1 fresh"},
		{"POST", "/cron/news/run?key=k-1_Z", "", 200, "", "run u1 k-1_Z"},
		{"POST", "/cron/news/run?key=", "", 400, "1 to 64", ""},
		{"POST", "/cron/news/run?key=a/b", "", 400, "1 to 64", ""},
		{"POST", "/cron/news/run?key=" + strings.Repeat("k", 65), "", 400, "1 to 64", ""},
		{"POST", "/cron/nope/run", "", 404, "no such task", ""},
		{"GET", "/cron/news/ledger", "", 200, `{"firings":[]}`, "ledger u1 20"},
		{"GET", "/cron/news/ledger?limit=3", "", 200, "", "ledger u1 3"},
		{"GET", "/cron/news/ledger?limit=9999", "", 200, "", "ledger u1 500"},
		{"GET", "/cron/news/ledger?limit=0", "", 400, "number from 1", ""},
		{"GET", "/cron/news/ledger?limit=x", "", 400, "number from 1", ""},
		{"GET", "/cron/nope/ledger", "", 404, "no such task", ""},
		{"GET", "/heartbeat", "", 200, `{"beats":[{"id":"tidy","title":"Tidy up","enabled":true,"prompt":"tidy"}],"problems":[]}`, ""},
		{"POST", "/heartbeat/run", `{}`, 200, `{"tasks":0}`, "beat fresh []"},
		{"POST", "/heartbeat/run?key=k", `{"ids":["a","b"]}`, 200, `{"tasks":2}`, "beat k [a b]"},
		{"POST", "/heartbeat/run", `{"ids":[""]}`, 400, "empty", ""},
		{"POST", "/heartbeat/run", `["a"]`, 400, "JSON object", ""},
		{"POST", "/heartbeat/run?key=%20", `{}`, 400, "1 to 64", ""},
	} {
		p.asked = nil
		got := do(t, b, tc.method, w.url(tc.path), tc.body)
		if asked := strings.Join(p.asked, ", "); got.code != tc.code || !strings.Contains(got.body, tc.says) || asked != tc.asks {
			t.Errorf("%s %s %s = %d %s, asked %q; want %d %s, asked %q", tc.method, tc.path, tc.body, got.code, got.body, asked, tc.code, tc.says, tc.asks)
		}
	}
}

// Each field of a change arrives as what it is, and no other with it.
func TestTaskChange(t *testing.T) {
	p, w, b := withPlan(t)
	if got := do(t, b, "PATCH", w.url("/cron/news"), `{"name":"n","description":"d","schedule":"s","every":"","at":"a","timezone":"z","prompt":"p","misfire":"m","route":"r","enabled":true,"once":false,"retries":0}`); got.code != 200 {
		t.Fatal(got)
	}
	c := p.change
	got := fmt.Sprint(*c.Name, *c.Description, *c.Schedule, *c.Every, *c.At, *c.Timezone, *c.Prompt, *c.Misfire, *c.Route, *c.Enabled, *c.Once, *c.Retries)
	if want := fmt.Sprint("n", "d", "s", "", "a", "z", "p", "m", "r", true, false, 0); got != want {
		t.Errorf("change %s, want %s", got, want)
	}
	if got := do(t, b, "PATCH", w.url("/cron/news"), `{"route":"none"}`); got.code != 200 {
		t.Fatal(got)
	}
	route := "none"
	if c := p.change; c.Route == nil || *c.Route != route || c.Enabled != nil || c.Name != nil {
		t.Errorf("change %+v", c)
	}
}

func TestScheduleErrorsAreSentences(t *testing.T) {
	p, w, b := withPlan(t)
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
		for _, r := range requests {
			var said struct{ Error struct{ Message string } }
			got := do(t, b, r[0], w.url(r[1]), r[2])
			decode(t, got.body, &said)
			if got.code != tc.code || said.Error.Message != tc.err.Error() {
				t.Errorf("%v with %v = %d %s", r, tc.err, got.code, got.body)
			}
		}
	}
}

func TestScheduleIsOff(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	b := w.loggedIn(t)
	for path, says := range map[string]string{
		"GET /cron": "Cron is off", "POST /cron": "Cron is off", "DELETE /cron/x": "Cron is off", "POST /cron/x/run": "Cron is off",
		"GET /heartbeat": "heartbeat is off", "POST /heartbeat/run": "heartbeat is off",
	} {
		method, path, _ := strings.Cut(path, " ")
		if got := do(t, b, method, w.url(path), ""); got.code != 404 || !strings.Contains(got.body, says) {
			t.Errorf("%s %s = %d %s", method, path, got.code, got.body)
		}
	}
}
