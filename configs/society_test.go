package configs

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

var brokenSociety = []fault{
	{"scope", "agents:\n  foreground_scope: everybody\n", []string{`2 agents.foreground_scope: "everybody" is not one of owner, all; using owner ?`}},
	{"scope as list", "agents:\n  foreground_scope: [all]\n", []string{"2 agents.foreground_scope: want a single value, found a list; ignored ?"}},
	{"scope as profile", "agents:\n  foreground_scope: {match: web}\n", []string{"2 agents.foreground_scope: want a single value, found a group of keys ?"}},
	{"scope mistyped", "agents:\n  foregroundScop: all\n", []string{"2 agents.foregroundScop: unknown key; ignored ?agents.foreground_scope"}},
	{"scope elsewhere", "foreground_scope: all\n", []string{"1 foreground_scope: unknown key; ignored ?agents.foreground_scope"}},
	{"scope twice", "agents:\n  foreground_scope: owner\n  foreground_scope: all\n", []string{"3 agents.foreground_scope: was given in line 2 already ?"}},
	{"people", "people: ann\n", []string{"1 people: want names of people with their ids, found a single value; ignored ?"}},
	{"people as list", "people: [telegram/1]\n", []string{"1 people: want names of people with their ids, found a list; ignored ?"}},
	{"person as group", "people:\n  ann: {telegram: 1}\n", []string{"2 people.ann: want a list, found a group of keys ?"}},
	{"one id, two names", "people:\n  ann: [telegram/1]\n  bob:\n    - web/operator\n    - telegram:1\n", []string{`5 people.bob: "telegram/1" belongs to "ann" already; ignored ?`}},
	{"id without connector", "people: {ann: [ann]}\n", []string{`1 people.ann: "ann" is not connector/id, for example telegram/123 or slack/U012ABC; ignored ?`}},
	{"id of an unknown connector", "people: {ann: [slak/U1]}\n", []string{`1 people.ann: "slak" is not a connector (telegram, slack, discord, web, terminal); ignored ?slack`}},
	{"name for a Telegram id", "people: {ann: [\"telegram/@ann\"]}\n", []string{`1 people.ann: "@ann" is not the Telegram id of a person ?`}},
	{"group for a person", "people: {ann: [telegram/-100]}\n", []string{`1 people.ann: "-100" is not the Telegram id of a person ?`}},
	{"channel for a person", "people: {ann: [slack/T1/C1]}\n", []string{`1 people.ann: "T1/C1" is not the Slack id of a person ?`}},
	{"id without a user", "people: {ann: [telegram/]}\n", []string{`1 people.ann: "" is not the Telegram id of a person ?`}},
	{"bad login", "people: {ann: [web/a b]}\n", []string{`1 people.ann: "a b" is not the name of a login ?`}},
	{"token for an id", "people: {ann: [\"telegram/" + canary + "\"]}\n", []string{"1 people.ann: a value that looks like a secret is not the Telegram id ?"}},
	{"id that is empty", "people:\n  ann:\n    -\n", []string{`3 people.ann: "" is not connector/id ?`}},
	{"depth", "subagents:\n  max_depth: 101\n", []string{`2 subagents.max_depth: "101" is not a whole number from 0 to 100; ignored ?`}},
	{"children", "subagents:\n  max_children: -1\n", []string{`2 subagents.max_children: "-1" is not a whole number from 0 to 10000; ignored ?`}},
	{"starts", "subagents:\n  max_starts_per_hour: many\n", []string{`2 subagents.max_starts_per_hour: "many" is not a whole number from 0 to 1000000; ignored ?`}},
	{"limit without end", "subagents:\n  max_starts_per_hour: 99999999999999999999\n", []string{`2 subagents.max_starts_per_hour: "99999999999999999999" is not ?`}},
	{"limit mistyped", "subagents:\n  maxDept: 1\n", []string{"2 subagents.maxDept: unknown key; ignored ?subagents.max_depth"}},
	{"subagents off", "subagents: off\n", []string{"1 subagents: want a group of keys (max_depth, max_children, max_starts_per_hour), found a single value; ignored ?"}},
}

func TestSociety(t *testing.T) {
	c, warnings := load(t, `
people:
  ann: [telegram/4711, slack/T2/U1, "slack:U1", "web:operator", telegram:4711]
  bob: terminal/bob
subagents: {max_depth: 0, max_children: 10000, max_starts_per_hour: 1000000}
agents: {foreground_scope: all}
`, nil)
	if len(warnings) != 0 {
		t.Errorf("warnings: %v", warnings)
	}
	want := map[string][]string{"ann": {"telegram/4711", "slack/T2/U1", "slack/U1", "web/operator"}, "bob": {"terminal/bob"}}
	if !reflect.DeepEqual(c.Access.People, want) {
		t.Errorf("people %v, want %v", c.Access.People, want)
	}
	if got := (Subagents{MaxDepth: 0, MaxChildren: 10_000, MaxStartsPerHour: 1_000_000}); c.Agents.Subagents != got {
		t.Errorf("subagents %+v, want %+v", c.Agents.Subagents, got)
	}
	if c.Agents.Scope != ScopeAll || len(c.Agents.Profiles) != 1 {
		t.Errorf("scope %q, profiles %v", c.Agents.Scope, slices.Collect(maps.Keys(c.Agents.Profiles)))
	}
}

// The ids of people are those that agents have as owners.
func TestIdentities(t *testing.T) {
	c, _ := load(t, "people: {ann: [telegram/4711, slack/U1], bob: [slack/T2/U1]}\n", nil)
	ann := []string{"telegram/4711", "slack/U1"}
	for _, tt := range []struct {
		of   claybot.Descriptor
		want []string
	}{
		{claybot.User("telegram", "-100", "4711"), ann},
		{claybot.User("slack", "T1/D1", "U1"), ann},
		{claybot.User("slack", "T1/D1", "T2/U1"), []string{"slack/T2/U1"}},
		{claybot.User("telegram", "1", "1"), []string{"telegram/1"}},
		{claybot.Descriptor{Type: claybot.AgentCron, Owner: "slack/U1"}, ann},
		{claybot.Descriptor{Type: claybot.AgentHeartbeat}, []string{""}}, // not nil, which might mean everybody
	} {
		if got := c.Identities(tt.of.OwnerID()); !slices.Equal(got, tt.want) {
			t.Errorf("identities of %q = %q, want %q", tt.of.OwnerID(), got, tt.want)
		}
	}
	c.Identities("slack/U1")[0] = "slack/U9"
	if got := c.Identities("slack/U1"); !slices.Equal(got, ann) {
		t.Errorf("a caller changed the configuration: %q", got)
	}
	if got := new(Config).Identities("web/operator"); !slices.Equal(got, []string{"web/operator"}) {
		t.Errorf("without people: %q", got)
	}
}

const taskUID = "k3v9q2m7x1c8b4n6t5r0w2zp"

// Agents in the background have profiles by what they are, never by a place.
func TestBackgroundProfiles(t *testing.T) {
	c, warnings := load(t, `
agents:
  tasks: {match: [cron, web]}
  report: {match: "cron:`+taskUID+`"}
  beats: {match: heartbeat}
`, nil)
	if len(warnings) != 0 {
		t.Errorf("warnings: %v", warnings)
	}
	for _, tt := range []struct {
		name string
		of   claybot.Descriptor
		want string
	}{
		{"a task", claybot.Descriptor{Type: claybot.AgentCron, UID: "a" + taskUID[1:]}, "tasks"},
		{"the task", claybot.Descriptor{Type: claybot.AgentCron, UID: taskUID}, "report"},
		{"the heartbeat", claybot.Descriptor{Type: claybot.AgentHeartbeat}, "beats"},
		{"a person", claybot.User("web", "a", "b"), "tasks"},
		{"another person", claybot.User("terminal", "a", "b"), DefaultProfile},
		{"a subagent", claybot.Descriptor{Type: claybot.AgentSubagent, UID: taskUID, Profile: "report"}, "report"},
		{"a subagent whose profile is gone", claybot.Descriptor{Type: claybot.AgentSubagent, Profile: "gone"}, DefaultProfile},
		{"a subagent without one", claybot.Descriptor{Type: claybot.AgentSubagent, Connector: "web"}, DefaultProfile},
		{"a profile named by another connector", claybot.Descriptor{Type: claybot.AgentUser, Connector: "telegram", Profile: "report"}, DefaultProfile},
	} {
		if got := c.Profile(tt.of).Name; got != tt.want {
			t.Errorf("%s has profile %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Only the heartbeat's own profile gives it a memory.
func TestMemoryOfTheHeartbeat(t *testing.T) {
	for _, tt := range []struct {
		name, agents string
		want         bool
	}{
		{"no profile", "{}", false},
		{"default says on", "{default: {memory: on}}", false},
		{"inherited", "{default: {memory: on}, beats: {match: heartbeat}}", false},
		{"said", "{beats: {match: heartbeat, memory: on}}", true},
		{"said over the default", "{default: {memory: off}, beats: {match: [web, heartbeat], memory: on}}", true},
		{"said off", "{beats: {match: heartbeat, memory: off}}", false},
		{"mistyped", "{beats: {match: heartbeat, memory: yess}}", false},
		{"another profile says on", "{beats: {match: heartbeat}, work: {match: web, memory: on}}", false},
		{"the match was taken", "{beats: {match: heartbeat}, late: {match: heartbeat, memory: on}}", false},
	} {
		c, _ := load(t, "agents: "+tt.agents+"\n", nil)
		if got := c.Profile(claybot.Descriptor{Type: claybot.AgentHeartbeat}).Memory; got != tt.want {
			t.Errorf("%s: memory %v, want %v", tt.name, got, tt.want)
		}
		if on := !strings.Contains(tt.agents, "default: {memory: off}"); c.Profile(claybot.User("telegram", "1", "1")).Memory != on {
			t.Errorf("%s: the memory of people is %v", tt.name, !on)
		}
	}
	if new(Config).Profile(claybot.Descriptor{Type: claybot.AgentHeartbeat}).Memory {
		t.Error("the heartbeat of a zero Config has a memory")
	}
}

// A window belongs to a model, wherever the keys stand.
func TestContextWindow(t *testing.T) {
	c, warnings := load(t, `
agents:
  same: {match: web}
  other: {match: slack, model: big}
  own: {match: telegram, context_window: 2048, model: {name: small}}
  usual: {match: terminal, context_window: 0}
  default: {context_window: 32000, model: local}
`, nil)
	if len(warnings) != 0 {
		t.Errorf("warnings: %v", warnings)
	}
	for name, want := range map[string]int64{DefaultProfile: 32_000, "same": 32_000, "other": 0, "own": 2048, "usual": 0} {
		if got := c.Agents.Profiles[name].ContextWindow; got != want {
			t.Errorf("%s has a window of %d, want %d", name, got, want)
		}
	}
}

// checkSociety reports settings that break their rules.
func checkSociety(t *testing.T, c Config) {
	t.Helper()
	if c.Agents.Scope != ScopeOwner && c.Agents.Scope != ScopeAll {
		t.Errorf("scope %q", c.Agents.Scope)
	}
	if s := c.Agents.Subagents; min(s.MaxDepth, s.MaxChildren, s.MaxStartsPerHour) < 0 || s.MaxDepth > 100 || s.MaxChildren > 10_000 || s.MaxStartsPerHour > 1_000_000 {
		t.Errorf("subagents %+v", s)
	}
	seen := make(map[string]bool)
	for name, ids := range c.Access.People {
		for _, id := range ids {
			if again, err := parseOwner(nil, id); err != nil || again != id || seen[id] {
				t.Errorf("%q has %q: %v, seen %v", name, id, err, seen[id])
			}
			seen[id] = true
		}
	}
}
