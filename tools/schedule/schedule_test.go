package schedule_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/schedule"
)

func TestEffects(t *testing.T) {
	want := map[string]tools.Effect{
		"cron_add": tools.Once, "cron_list": tools.ReadOnly, "cron_update": tools.Idempotent, "cron_delete": tools.Idempotent,
		"cron_run": tools.Idempotent, "cron_read_memory": tools.ReadOnly, "cron_write_memory": tools.Once,
		"heartbeat_add": tools.Once, "heartbeat_list": tools.ReadOnly, "heartbeat_run": tools.Idempotent, "heartbeat_remove": tools.Idempotent,
		"cron_restore_memory": tools.Idempotent,
	}
	got := map[string]tools.Effect{}
	for _, tool := range append(schedule.Tools(new(tasks), new(heartbeats), nil), schedule.MemoryTools(new(tasks))...) {
		got[tool.Spec().Name] = tool.Spec().Effect
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, n := range []struct{ got, want int }{
		{len(schedule.Tools(nil, nil, nil)), 0},
		{len(schedule.Tools(new(tasks), nil, nil)), 5},
		{len(schedule.Tools(nil, new(heartbeats), nil)), 4},
	} {
		if n.got != n.want {
			t.Errorf("%d tools, want %d", n.got, n.want)
		}
	}
}

func TestCronAdd(t *testing.T) {
	type spec = connectors.TaskSpec
	tests := []struct {
		args  string
		asked []any
		want  string
	}{
		{
			`{"name":" Report ","prompt":"write it\nwell","schedule":" 0 9 * * 1-5 ","timezone":"Europe/Berlin"}`,
			[]any{"add", spec{Name: "Report", Prompt: "write it\nwell", Schedule: "0 9 * * 1-5", Timezone: "Europe/Berlin", Owner: "slack/U1", Limited: true, Route: "slack/T1/C1"}},
			"Created task made; its output goes to slack/T1/C1.\nNext runs:\n- Sat 2026-03-28 09:00:00 +01:00 (Europe/Berlin)\n- Mon 2026-03-30",
		},
		{
			`{"name":"a","prompt":"b","every":"30m","misfire":"run_once","once":true,"retries":10,"description":"c","route":"none","dry_run":true}`,
			[]any{"preview", spec{Name: "a", Prompt: "b", Every: "30m", Misfire: "run_once", Once: true, Retries: 10, Description: "c", Owner: "slack/U1", Limited: true, Route: "none"}},
			"Nothing is saved. The task \"a\" would run like this; its output stays in its history.\nNext runs:\n- Sat 2026-03-28",
		},
		{
			`{"name":"a","prompt":"b","at":"2026-12-24T18:00:00+01:00","route":"slack/T1/C1"}`,
			[]any{"add", spec{Name: "a", Prompt: "b", At: "2026-12-24T18:00:00+01:00", Owner: "slack/U1", Limited: true, Route: "slack/T1/C1"}},
			"Created task",
		},
	}
	for _, tt := range tests {
		w := newWorld()
		got, err := w.call(t, ann(), "cron_add", tt.args)
		if err != nil || !strings.HasPrefix(got, tt.want) && tt.want != "Created task" {
			t.Errorf("%s: %q, %v; want %q", tt.args, got, err, tt.want)
		}
		if !reflect.DeepEqual(w.tasks.asked, tt.asked) {
			t.Errorf("%s asks\n%+v, want\n%+v", tt.args, w.tasks.asked, tt.asked)
		}
		w.tasks.err = errors.New("field schedule: 31 February never comes")
		if got, err := w.call(t, ann(), "cron_add", tt.args); !errors.Is(err, w.tasks.err) {
			t.Errorf("%s with an error: %q, %v", tt.args, got, err)
		}
	}
}

func TestCronAddRefused(t *testing.T) {
	long := strings.Repeat("x", 40_000)
	tests := []struct{ args, want string }{
		{`{"prompt":"a","every":"1h"}`, `missing properties: ["name"]`},
		{`{"name":"","prompt":"a","every":"1h"}`, "field name: must not be empty"},
		{`{"name":"a\nuid: x","prompt":"a","every":"1h"}`, "field name: must be one line"},
		{`{"name":"` + long[:101] + `","prompt":"a","every":"1h"}`, "field name: 101 bytes"},
		{`{"name":"a","prompt":" ","every":"1h"}`, "field prompt: must not be empty"},
		{`{"name":"a","prompt":"` + long + `","every":"1h"}`, "field prompt: 40000 bytes"},
		{`{"name":"a","prompt":"a"}`, "fields schedule, every and at: 0 are given, want exactly one"},
		{`{"name":"a","prompt":"a","schedule":" ","every":""}`, "0 are given"},
		{`{"name":"a","prompt":"a","schedule":"0 9 * * *","every":"1h"}`, "2 are given"},
		{`{"name":"a","prompt":"a","every":"1h\ngate: rm"}`, "field every: must be one line"},
		{`{"name":"a","prompt":"a","every":"1h","timezone":"UTC\nx"}`, "field timezone: must be one line"},
		{`{"name":"a","prompt":"a","every":"1h","misfire":"` + long[:201] + `"}`, "field misfire: 201 bytes"},
		{`{"name":"a","prompt":"a","every":"1h","description":"` + long[:3000] + `"}`, "field description: 3000 bytes"},
		{`{"name":"a","prompt":"a","every":"1h","retries":11}`, "field retries: 11, want 0 to 10"},
		{`{"name":"a","prompt":"a","every":"1h","retries":-1}`, "field retries: -1"},
		{`{"name":"a","prompt":"a","every":"1h","gate":"rm -rf"}`, "gate"},
		{`{"name":"a","prompt":"a","every":"1h","owner":"slack/U2"}`, "owner"},
	}
	for _, tt := range tests {
		w := newWorld()
		got, err := w.call(t, ann(), "cron_add", tt.args)
		if err == nil || !strings.Contains(err.Error(), tt.want) || w.tasks.asked != nil {
			t.Errorf("%.150s: %q, %v, asks %v; want %q", tt.args, got, err, w.tasks.asked, tt.want)
		}
	}
}

// A task writes into the chat of its maker, to agents below it, or nowhere.
func TestRoutes(t *testing.T) {
	child := envOf(claybot.Agent{ID: childID, Descriptor: claybot.Descriptor{Type: claybot.AgentSubagent, UID: "x", Parent: annID, Owner: "slack/U1"}})
	quiet := envOf(claybot.Agent{ID: annID, Descriptor: claybot.User("telegram", "-100", "4711")}) // no user has written yet
	tests := []struct {
		env                tools.Env
		route, want, wrong string
	}{
		{ann(), "", "slack/T1/C1", ""},
		{ann(), " slack/T1/C1 ", "slack/T1/C1", ""},
		{ann(), "none", "none", ""},
		{ann(), "agent:" + annID, "agent:" + annID, ""},
		{ann(), "agent:" + childID, "agent:" + childID, ""},
		{ann(), "agent:" + grandID, "agent:" + grandID, ""},
		{ann(), "agent:" + foreign, "", "is neither you nor one of your subagents"},
		{ann(), "agent:" + circleID, "", "is neither you"},
		{ann(), "agent:", "", "is neither you"},
		{ann(), "agent: " + childID, "", "is neither you"},
		{ann(), "slack/T1/C2", "", `field route: "slack/T1/C2" is not this chat; want slack/T1/C1, none or agent:` + annID},
		{ann(), "slack/T1/C1/17.1", "", "is not this chat"},
		{ann(), "telegram/4712", "", "is not this chat"},
		{ann(), "None", "", "is not this chat"},
		{quiet, "", "telegram/-100", ""},
		{quiet, "telegram/4711", "", "is not this chat"},
		{child, "", "none", ""},
		{child, "agent:" + grandID, "agent:" + grandID, ""},
		{child, "agent:" + annID, "", "is neither you"},
		{child, "slack/T1/C1", "", `is not yours; want none or agent:` + childID},
	}
	for _, tt := range tests {
		for tool, at := range map[string]int{"cron_add": 1, "cron_update": 2} {
			w := newWorld()
			w.tasks.all = []connectors.Task{{TaskSpec: connectors.TaskSpec{Owner: tt.env.Agent.Descriptor.OwnerID()}, Slug: "s", UID: "u"}}
			args := fmt.Sprintf(`{"name":"a","prompt":"b","every":"1h","route":%q}`, tt.route)
			if tool == "cron_update" {
				args = fmt.Sprintf(`{"task":"s","route":%q}`, tt.route)
			}
			got, err := w.call(t, tt.env, tool, args)
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) || w.tasks.asked != nil {
					t.Errorf("%s of %s to %q: %q, %v; want %q", tool, tt.env.Agent.ID, tt.route, got, err, tt.wrong)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s of %s to %q: %v", tool, tt.env.Agent.ID, tt.route, err)
				continue
			}
			if asked := fmt.Sprintf("%+v", w.tasks.asked[at]); !strings.Contains(asked, "Route:"+tt.want) {
				t.Errorf("%s of %s to %q asks %s, want %s", tool, tt.env.Agent.ID, tt.route, asked, tt.want)
			}
		}
	}
	w := newWorld()
	w.family.err = errors.New("the store is busy")
	if _, err := w.call(t, ann(), "cron_add", `{"name":"a","prompt":"b","every":"1h","route":"agent:`+childID+`"}`); !errors.Is(err, w.family.err) {
		t.Errorf("got %v", err)
	}
}

// No agent sees or touches the tasks of another owner; an agent without an owner sees
// all.
func TestOwners(t *testing.T) {
	task := func(slug, owner string) connectors.Task {
		return connectors.Task{TaskSpec: connectors.TaskSpec{Name: slug, Every: "1h", Owner: owner}, Slug: slug, UID: "uid-" + slug, Enabled: true}
	}
	free := envOf(claybot.Agent{ID: foreign, Descriptor: claybot.Descriptor{Type: claybot.AgentHeartbeat}})
	tests := []struct {
		env  tools.Env
		sees string
	}{
		{ann(), "mine"},
		{free, "mine theirs free"},
	}
	for _, tt := range tests {
		w := newWorld()
		w.tasks.all = []connectors.Task{task("mine", "slack/U1"), task("theirs", "slack/U2"), task("free", "")}
		w.tasks.problems = []connectors.Problem{{File: "x/TASK.md", Line: 3, Text: "no uid"}}
		list, err := w.call(t, tt.env, "cron_list", `{}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(list, "problem in x/TASK.md, line 3: no uid"); got != (tt.env.Agent.ID == foreign) {
			t.Errorf("problems are shown: %v", got)
		}
		for _, slug := range []string{"mine", "theirs", "free", "unknown", "../mine", " "} {
			seen := strings.Contains(" "+tt.sees+" ", " "+slug+" ") && slug != " "
			if got := strings.Contains(list, slug+": "); got != seen && slug != " " {
				t.Errorf("%s sees %s: %v", tt.env.Agent.ID, slug, got)
			}
			for _, ref := range []string{slug, "uid-" + slug} {
				for tool, more := range map[string]string{"cron_update": `,"enabled":false`, "cron_delete": "", "cron_run": ""} {
					w.tasks.asked = nil
					_, err := w.call(t, tt.env, tool, fmt.Sprintf(`{"task":%q%s}`, ref, more))
					if (err == nil) != seen || (w.tasks.asked != nil) != seen {
						t.Errorf("%s: %s %s: %v, asks %v", tt.env.Agent.ID, tool, ref, err, w.tasks.asked)
					}
					if seen && w.tasks.asked[1] != "uid-"+slug {
						t.Errorf("%s %s asks %v", tool, ref, w.tasks.asked)
					}
				}
			}
		}
	}
}

// Where others read as well, an agent neither sees nor changes the tasks of its owner that
// answer elsewhere.
func TestTasksOfAPlace(t *testing.T) {
	w := newWorld()
	for slug, route := range map[string]string{"direct": "slack/T1/D1", "here": "slack/T1/C1", "mine": "agent:" + annID, "nowhere": "none", "other": "slack/T1/C2"} {
		w.tasks.all = append(w.tasks.all, connectors.Task{TaskSpec: connectors.TaskSpec{Name: slug, Every: "1h", Owner: "slack/U1", Limited: true, Route: route}, Slug: slug, UID: "uid-" + slug, Enabled: true})
	}
	for place, sees := range map[string]string{"": " direct here mine nowhere other ", "slack/T1/C1": " here mine "} {
		w.family.place = place
		list, err := w.call(t, ann(), "cron_list", `{}`)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range w.tasks.all {
			want := strings.Contains(sees, " "+task.Slug+" ")
			if got := strings.Contains(list, task.Slug+": "); got != want {
				t.Errorf("in %q: sees %s: %v", place, task.Slug, got)
			}
			w.tasks.asked = nil
			if _, err := w.call(t, ann(), "cron_run", `{"task":"`+task.Slug+`"}`); (err == nil) != want || (w.tasks.asked != nil) != want {
				t.Errorf("in %q: runs %s: %v", place, task.Slug, err)
			}
		}
	}
}

func TestCronUpdate(t *testing.T) {
	tests := []struct{ args, asked, wrong string }{
		{`"enabled":false`, "map[Enabled:false]", ""},
		{`"name":" b ","prompt":"c","retries":0,"once":true`, "map[Name:b Once:true Prompt:c Retries:0]", ""},
		{`"schedule":"@daily"`, "map[At: Every: Schedule:@daily]", ""},
		{`"at":"2026-12-24T18:00:00+01:00"`, "map[At:2026-12-24T18:00:00+01:00 Every: Schedule:]", ""},
		{`"timezone":"","misfire":"","description":""`, "map[Description: Misfire: Timezone:]", ""},
		{`"route":""`, "map[Route:slack/T1/C1]", ""},
		{`"name":null,"enabled":true`, "map[Enabled:true]", ""},
		{`"name":null`, "", "nothing to change"},
		{`"name":""`, "", "field name: must not be empty"},
		{`"name":"a\nb"`, "", "field name: must be one line"},
		{`"prompt":" "`, "", "field prompt: must not be empty"},
		{`"schedule":""`, "", "field schedule: must not be empty"},
		{`"schedule":"@daily","every":"1h"`, "", "fields schedule, every and at: 2 are given, want one at most"},
		{`"retries":11`, "", "field retries: 11"},
		{`"owner":"slack/U2"`, "", "owner"},
	}
	for _, tt := range tests {
		w := newWorld()
		w.tasks.all = []connectors.Task{{TaskSpec: connectors.TaskSpec{Owner: "slack/U1"}, Slug: "s", UID: "u"}}
		got, err := w.call(t, ann(), "cron_update", `{"task":"s",`+tt.args+`}`)
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) || w.tasks.asked != nil {
				t.Errorf("%s: %q, %v; want %q", tt.args, got, err, tt.wrong)
			}
			continue
		}
		if want := []any{"change", "u", tt.asked}; err != nil || !reflect.DeepEqual(w.tasks.asked, want) {
			t.Errorf("%s: %v, asks %v, want %v", tt.args, err, w.tasks.asked, want)
		}
		if !strings.HasPrefix(got, "The task is changed.\nchanged: ") || !strings.Contains(got, "Next runs:") {
			t.Errorf("%s: %q", tt.args, got)
		}
	}
}

func TestCronListWords(t *testing.T) {
	w := newWorld()
	if got, err := w.call(t, ann(), "cron_list", `{}`); got != "There are no tasks." || err != nil {
		t.Errorf("none: %q, %v", got, err)
	}
	day := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w.tasks.all = []connectors.Task{
		{
			TaskSpec: connectors.TaskSpec{Name: "Report", Schedule: "0 9 * * *", Timezone: "Europe/Berlin", Prompt: "write\nit", Owner: "slack/U1", Limited: true, Route: "slack/T1/C1"},
			Slug:     "report", Enabled: true, Next: next(), Last: &connectors.Firing{Planned: day, State: "skipped", Reason: "overlap"},
		},
		{TaskSpec: connectors.TaskSpec{Name: "b", Every: "1h", Owner: "slack/U1"}, Slug: "b", Enabled: true, Paused: "the route is dead"},
		{TaskSpec: connectors.TaskSpec{Name: "c", At: "2026-12-24T18:00:00Z", Owner: "slack/U1", Limited: true, Route: "none"}, Slug: "c"},
	}
	want := `report: Report
schedule: 0 9 * * * (Europe/Berlin)
state: enabled
its output goes to slack/T1/C1
prompt: write it
Next runs:
- Sat 2026-03-28 09:00:00 +01:00 (Europe/Berlin)
- Mon 2026-03-30 09:00:00 +01:00 (Europe/Berlin)
last: planned Fri 2026-01-02 03:04:05 +00:00 (UTC), skipped (overlap)

b: b
every: 1h
state: paused, the route is dead
its output stays in its history
prompt: 
No further runs.

c: c
at: 2026-12-24T18:00:00Z
state: disabled
its output stays in its history
prompt: 
No further runs.`
	if got, err := w.call(t, ann(), "cron_list", `{}`); got != want || err != nil {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	for range 1000 {
		w.tasks.all = append(w.tasks.all, connectors.Task{TaskSpec: connectors.TaskSpec{Name: "x", Prompt: strings.Repeat("é", 20_000), Owner: "slack/U1"}, Next: next()})
	}
	got, _ := w.call(t, ann(), "cron_list", `{}`)
	if len(got) > 32<<10 || !strings.HasSuffix(got, " more left out for length]") {
		t.Errorf("%d bytes, …%q", len(got), got[len(got)-50:])
	}
}

func TestCronRunAndDelete(t *testing.T) {
	w := newWorld()
	w.tasks.all = []connectors.Task{{TaskSpec: connectors.TaskSpec{Owner: "slack/U1"}, Slug: "s", UID: "u"}}
	got, err := w.call(t, ann(), "cron_run", `{"task":" s "}`)
	if want := []any{"run", "u", "run1/call1"}; err != nil || !reflect.DeepEqual(w.tasks.asked, want) || got != "Task ran runs now; its output stays in its history." {
		t.Errorf("%q, %v, asks %v", got, err, w.tasks.asked)
	}
	got, err = w.call(t, ann(), "cron_delete", `{"task":"s"}`)
	if want := []any{"remove", "u"}; err != nil || !reflect.DeepEqual(w.tasks.asked, want) || got != "Task s is deleted." {
		t.Errorf("%q, %v, asks %v", got, err, w.tasks.asked)
	}
	w.tasks.err = errors.New("the disk is full")
	for _, tool := range []string{"cron_run", "cron_delete"} {
		if _, err := w.call(t, ann(), tool, `{"task":"s"}`); !errors.Is(err, w.tasks.err) {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

func TestMemory(t *testing.T) {
	cron := envOf(claybot.Agent{ID: childID, Descriptor: claybot.Descriptor{Type: claybot.AgentCron, UID: "uid1"}})
	tests := []struct {
		env        tools.Env
		tool, args string
		asked      []any
		want       string
		ok         bool
	}{
		{cron, "cron_read_memory", `{}`, []any{"memory", "uid1"}, "noted", true},
		{cron, "cron_write_memory", `{"text":" a "}`, []any{"remember", "uid1", "a", false}, "the memory is replaced", true},
		{cron, "cron_write_memory", `{"text":"","mode":"replace"}`, []any{"remember", "uid1", "", false}, "the memory is replaced", true},
		{cron, "cron_write_memory", `{"text":"a","mode":"append"}`, []any{"remember", "uid1", "a", true}, "added to the memory", true},
		{cron, "cron_write_memory", `{"text":" ","mode":"append"}`, nil, "field text: must not be empty", false},
		{cron, "cron_write_memory", `{"text":"a","mode":"prepend"}`, nil, `field mode: "prepend", want replace or append`, false},
		{cron, "cron_write_memory", `{"text":"` + strings.Repeat("x", 16<<10+1) + `"}`, nil, "field text: 16385 bytes, the limit is 16384", false},
		{cron, "cron_read_memory", `{"task":"other"}`, nil, "task", false},
		{ann(), "cron_read_memory", `{}`, nil, "only the agent of a task has its memory", false},
		{ann(), "cron_write_memory", `{"text":"a"}`, nil, "only the agent of a task has its memory", false},
		{envOf(claybot.Agent{Descriptor: claybot.Descriptor{Type: claybot.AgentSubagent, UID: "uid1"}}), "cron_read_memory", `{}`, nil, "only the agent", false},
		{envOf(claybot.Agent{Descriptor: claybot.Descriptor{Type: claybot.AgentCron}}), "cron_read_memory", `{}`, nil, "only the agent", false},
	}
	for _, tt := range tests {
		w := newWorld()
		w.tasks.memory = "noted"
		got, err := w.call(t, tt.env, tt.tool, tt.args)
		if err != nil {
			got = err.Error()
		}
		if (err == nil) != tt.ok || !strings.Contains(got, tt.want) || !reflect.DeepEqual(w.tasks.asked, tt.asked) {
			t.Errorf("%s %.100s: %v, %q, asks %v; want %q, %v", tt.tool, tt.args, err, got, w.tasks.asked, tt.want, tt.asked)
		}
	}
	if got, err := newWorld().call(t, cron, "cron_read_memory", `{}`); got != "No memory" || err != nil {
		t.Errorf("an empty memory: %q, %v", got, err)
	}
}

func TestHeartbeat(t *testing.T) {
	type heartbeatTask = connectors.HeartbeatTask
	tests := []struct {
		tool, args string
		asked      []any
		want       string
		ok         bool
	}{
		{"heartbeat_add", `{"title":" Look ","prompt":"look\nround"}`, []any{"add", heartbeatTask{Title: "Look", Prompt: "look\nround", Enabled: true}}, "The heartbeat has this task now.\n: Look\nprompt: look round", true},
		{
			"heartbeat_add", `{"title":"a","prompt":"b","id":"known","every":"1h","active_hours":"08:00-22:00","enabled":false}`,
			[]any{"add", heartbeatTask{ID: "known", Title: "a", Prompt: "b", Every: "1h", ActiveHours: "08:00-22:00", Gate: "./check.sh"}},
			"state: disabled", true,
		},
		{"heartbeat_add", `{"title":"a","prompt":"b","gate":"rm"}`, nil, "gate", false},
		{"heartbeat_add", `{"title":"","prompt":"b"}`, nil, "field title: must not be empty", false},
		{"heartbeat_add", `{"title":"a\nwhen: rm","prompt":"b"}`, nil, "field title: must be one line", false},
		{"heartbeat_add", `{"title":"a","prompt":" "}`, nil, "field prompt: must not be empty", false},
		{"heartbeat_add", `{"title":"a","prompt":"b","every":"1h\nwhen: rm"}`, nil, "field every: must be one line", false},
		{"heartbeat_add", `{"title":"a","prompt":"b","id":"` + strings.Repeat("x", 201) + `"}`, nil, "field id: 201 bytes", false},
		{"heartbeat_run", `{}`, []any{"run", "run1/call1", "[]"}, "0 tasks run now", true},
		{"heartbeat_run", `{"ids":["a"]}`, []any{"run", "run1/call1", "[a]"}, "1 task runs now", true},
		{"heartbeat_run", `{"ids":["a"," b"]}`, []any{"run", "run1/call1", "[a b]"}, "2 tasks run now", true},
		{"heartbeat_run", `{"ids":["a",""]}`, nil, "field ids[1]: must not be empty", false},
		{"heartbeat_run", `{"ids":["a"` + strings.Repeat(`,"a"`, 100) + `]}`, nil, "field ids: 101 entries", false},
		{"heartbeat_remove", `{"id":"known"}`, []any{"remove", "known"}, "task known of the heartbeat is removed", true},
		{"heartbeat_remove", `{"id":""}`, nil, "field id: must not be empty", false},
	}
	for _, tt := range tests {
		w := newWorld()
		w.heartbeats.all = []heartbeatTask{{ID: "known", Title: "k", Gate: "./check.sh"}}
		got, err := w.call(t, ann(), tt.tool, tt.args)
		if err != nil {
			got = err.Error()
		}
		if (err == nil) != tt.ok || !strings.Contains(got, tt.want) || !reflect.DeepEqual(w.heartbeats.asked, tt.asked) {
			t.Errorf("%s %.100s: %v, %q, asks %+v; want %q, %+v", tt.tool, tt.args, err, got, w.heartbeats.asked, tt.want, tt.asked)
		}
		if w.heartbeats.err = errors.New("no"); tt.ok {
			if _, err := w.call(t, ann(), tt.tool, tt.args); !errors.Is(err, w.heartbeats.err) {
				t.Errorf("%s with an error: %v", tt.tool, err)
			}
		}
	}
}

func TestHeartbeatList(t *testing.T) {
	w := newWorld()
	if got, err := w.call(t, ann(), "heartbeat_list", `{}`); got != "The heartbeat has no tasks." || err != nil {
		t.Errorf("none: %q, %v", got, err)
	}
	day := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w.heartbeats.all = []connectors.HeartbeatTask{{ID: "a", Title: "A", Every: "1h", ActiveHours: "08:00-22:00", Enabled: true, Prompt: "p", LastRun: day, Next: day.Add(time.Hour), Stopped: "no user has written"}}
	w.heartbeats.problems = []connectors.Problem{{File: "b.md", Text: "empty"}}
	want := `problem in b.md: empty

a: A
every: 1h
active hours: 08:00-22:00
state: the heartbeat is paused, no user has written
last: Fri 2026-01-02 03:04:05 +00:00 (UTC)
next: Fri 2026-01-02 04:04:05 +00:00 (UTC)
prompt: p`
	if got, err := w.call(t, ann(), "heartbeat_list", `{}`); got != want || err != nil {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}
