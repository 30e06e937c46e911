package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

// row is an agent of a test, made at its time.
func row(id, parent string, made claybot.Time) web.AgentView {
	a := web.AgentView{ID: claybot.AgentID(id), Type: claybot.AgentSubagent, Parent: claybot.AgentID(parent), CreatedAt: made, State: "idle"}
	if parent == "" {
		a.Type = claybot.AgentUser
	}
	return a
}

func TestTree(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []web.AgentView
		want string
	}{
		"no agents": {nil, ""},
		"no parent": {[]web.AgentView{row("b", "", 2), row("a", "", 1)}, "b\na\n"},
		"children, oldest first": {
			[]web.AgentView{row("c2", "a", 3), row("a", "", 1), row("c1", "a", 2), row("b", "", 9)},
			"a\n├ c1\n└ c2\nb\n",
		},
		"children of one moment": {[]web.AgentView{row("z", "a", 1), row("a", "", 1), row("y", "a", 1)}, "a\n├ y\n└ z\n"},
		"deep": {
			[]web.AgentView{row("a", "", 1), row("b", "a", 2), row("c", "b", 3), row("d", "c", 4), row("e", "a", 5), row("f", "e", 6), row("g", "b", 7)},
			"a\n├ b\n│ ├ c\n│ │ └ d\n│ └ g\n└ e\n  └ f\n",
		},
		"the parent is gone":     {[]web.AgentView{row("c", "gone", 1), row("d", "c", 2)}, "c\n└ d\n"},
		"its own parent":         {[]web.AgentView{row("a", "a", 1), row("b", "a", 2)}, "a\n└ b\n"},
		"a circle":               {[]web.AgentView{row("a", "b", 1), row("b", "c", 2), row("c", "a", 3), row("d", "c", 4)}, "a\n└ c\n  ├ b\n  └ d\n"},
		"listed twice":           {[]web.AgentView{row("a", "", 1), row("b", "a", 2), row("b", "a", 2), row("a", "", 1)}, "a\n└ b\n"},
		"the last, listed twice": {[]web.AgentView{row("a", "", 1), row("b", "a", 2), row("c", "a", 3), row("c", "a", 3)}, "a\n├ b\n└ c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, b := range tree(tc.in) {
				fmt.Fprintf(&got, "%s%s\n", b.lines, b.ID)
			}
			if got.String() != tc.want {
				t.Errorf("the tree is\n%swant\n%s", got.String(), tc.want)
			}
		})
	}
}

// FuzzTree: whatever names whom its parent, each agent is shown once.
func FuzzTree(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0, 0})
	f.Add([]byte{1, 2, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, parents []byte) {
		parents = parents[:min(len(parents), 60)]
		agents := make([]web.AgentView, len(parents))
		for i, p := range parents {
			agents[i] = row(fmt.Sprint(i), fmt.Sprint(p), claybot.Time(p%3))
		}
		seen := make(map[claybot.AgentID]bool)
		for _, b := range tree(agents) {
			if seen[b.ID] {
				t.Errorf("%s is shown twice", b.ID)
			}
			seen[b.ID] = true
		}
		if len(seen) != len(agents) {
			t.Errorf("%d of %d agents are shown", len(seen), len(agents))
		}
		stay, left := awake(agents, 1)
		if len(stay)+left != len(agents) {
			t.Errorf("%d stay and %d are left out of %d", len(stay), left, len(agents))
		}
	})
}

func TestAwake(t *testing.T) {
	busy := func(a web.AgentView, state string, waiting int) web.AgentView {
		a.State, a.Waiting = state, waiting
		return a
	}
	cron := row("cron", "", 1)
	cron.Type = claybot.AgentCron
	stay, left := awake([]web.AgentView{
		row("user", "", 1), cron,
		row("old", "user", 9), row("new", "user", 10),
		row("above", "user", 1), row("between", "above", 1), busy(row("works", "between", 1), "RUNNING", 0),
		busy(row("waits", "gone", 1), "waiting", 1),
		row("x", "y", 1), row("y", "x", 1), // in a circle
	}, 10)
	var got []string
	for _, a := range stay {
		got = append(got, string(a.ID))
	}
	if want := "user cron new above between works waits"; strings.Join(got, " ") != want || left != 3 {
		t.Errorf("%v stay, %d are left out; want %s", got, left, want)
	}
}

func TestAgentTable(t *testing.T) {
	at := time.Date(2027, 1, 31, 9, 0, 0, 0, time.Local)
	user := row("u", "", claybot.At(at))
	user.Descriptor, user.LastUserAt, user.State, user.Waiting = claybot.User("slack", "T1/C1", "U1"), claybot.At(at), "AWAITING", 2
	direct := row("d", "", claybot.At(at))
	direct.Descriptor, direct.State, direct.Waiting = claybot.User("telegram", "7", "7"), "waiting", 3
	child := row("c", "u", claybot.At(at))
	child.Name, child.State = "find\n\tout", "RUNNING"
	nameless := row("n", "c", 0)
	var got []string
	for _, r := range agentTable(tree([]web.AgentView{user, direct, child, nameless})) {
		got = append(got, strings.Join(r, " | "))
	}
	want := []string{
		"AGENT | KIND | WHO/NAME | STATE | LAST MESSAGE",
		"u | user | slack:T1/C1 U1 | AWAITING, waiting 2 | 2027-01-31 09:00:00",
		"└ c | subagent | find out | RUNNING | created 2027-01-31 09:00:00",
		"  └ n | subagent | - | idle | never",
		"d | user | telegram:7 | waiting 3 | never",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the table is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const agentA, agentB = "aaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbb"

func TestAgentsCommands(t *testing.T) {
	d := openDesk(t, map[string]string{
		"GET /agents": `{"agents":[{"id":"` + agentA + `","type":"user","descriptor":{"type":"user","connector":"web","channelId":"main","userId":"operator"},"state":"idle"},` +
			`{"id":"` + agentB + `","type":"subagent","parent":"` + agentA + `","name":"old\u001b[31m","state":"idle","createdAt":1}]}`,
		"POST /agents/" + agentA + "/stop":     `{"stopped":2}`,
		"POST /agents/" + agentB + "/stop":     `{"stopped":0}`,
		"POST /agents/" + agentA + "/reset":    "",
		"DELETE /agents/" + agentA:             "",
		"GET /agents/" + agentA + "/reminders": `{"reminders":[{"id":"r1","at":86400000,"note":"drink\ntea","scheduled":1000}]}`,
		"GET /agents/" + agentB + "/reminders": `{"reminders":[]}`,
	})
	d.deals(t, []deal{
		{args: "agents", asks: "GET /agents?after=&limit=500", says: "1 more subagent finished"},
		{args: "agents|--all", asks: "GET /agents?after=&limit=500", says: "└ " + agentB + "  subagent  old[31m"},
		{args: "agents|list|--all", asks: "GET /agents?after=&limit=500", says: agentA + "    user      web:main operator  idle   never"},
		{args: "agents|stop|" + agentA, asks: "POST /agents/" + agentA + "/stop", says: "Stopping 2 runs"},
		{args: "agents|stop|" + agentB, asks: "POST /agents/" + agentB + "/stop", says: "No runs to stop"},
		{args: "agents|reset|" + agentA, asks: "POST /agents/" + agentA + "/reset", says: "Started a new conversation"},
		{args: "agents|reset|" + agentB, code: 1, asks: "POST /agents/" + agentB + "/reset", warns: "claybot: There is no such thing."},
		{args: "agents|delete|" + agentA, code: 2, warns: "--yes"},
		{args: "agents|delete|" + agentA + "|--yes", asks: "DELETE /agents/" + agentA, says: "deleted"},
		{args: "agents|stop|../" + agentA, code: 2, warns: "only a-z and 0-9"},
		{args: "agents|delete|--yes|x", code: 2, warns: "24 to 32 characters"},
		{args: "agents|stop", code: 2, warns: "expected"},
		{args: "agents|nonsense", code: 2, warns: "unexpected argument nonsense"},
		{args: "reminders|" + agentA, asks: "GET /agents/" + agentA + "/reminders", says: "r1        drink tea"},
		{args: "reminders|" + agentB, asks: "GET /agents/" + agentB + "/reminders", says: "no reminders"},
		{args: "reminders|x", code: 2, warns: "24 to 32"},
	})
	d.wantJSON(t, agentB, "agents", "--json")
	d.wantJSON(t, `"note": "drink\ntea"`, "reminders", agentA, "--json")
}

func TestInboxCommands(t *testing.T) {
	d := openDesk(t, map[string]string{
		"GET /agents/" + agentA + "/inbox": `{"waiting":[{"id":"telegram/1/7","type":"user","from":{"userId":"7","name":"Ann"},"text":"hello\nthere","at":1000},` +
			`{"id":"remind/1","type":"system","kind":"reminder","from":{"name":""},"text":"tea","at":2000,"silent":true}],` +
			`"run":{"id":"r1","state":"AWAITING","started":1000,"awaiting":{"answers":["a","b"],"until":60000}}}`,
		"GET /agents/" + agentB + "/inbox":    `{"waiting":[]}`,
		"DELETE /agents/" + agentA + "/inbox": `{"dropped":["telegram/1/7","remind/1"]}`,
		"DELETE /agents/" + agentB + "/inbox": `{"dropped":[]}`,
	})
	d.deals(t, []deal{
		{args: "inbox|" + agentA, asks: "GET /agents/" + agentA + "/inbox", says: "Run r1, AWAITING since " + moment(time.UnixMilli(1000)) + ", awaiting 2 answers until " + moment(time.UnixMilli(60000)) + "."},
		{args: "inbox|" + agentA, asks: "GET /agents/" + agentA + "/inbox", says: "user              Ann   telegram/1/7  hello there"},
		{args: "inbox|show|" + agentA, asks: "GET /agents/" + agentA + "/inbox", says: "reminder, silent  -     remind/1      tea"},
		{args: "inbox|" + agentB, asks: "GET /agents/" + agentB + "/inbox", says: "No unfinished run.\nNo waiting messages.\n"},
		{args: "inbox|drop|" + agentA, asks: "DELETE /agents/" + agentA + "/inbox", says: "dropped telegram/1/7\ndropped remind/1\n"},
		{args: "inbox|drop|" + agentA + "|telegram/1/7|a&b", asks: "DELETE /agents/" + agentA + "/inbox?message=telegram%2F1%2F7&message=a%26b", says: "dropped"},
		{args: "inbox|drop|" + agentB + "|x", asks: "DELETE /agents/" + agentB + "/inbox?message=x", says: "Nothing dropped"},
		{args: "inbox|drop|" + agentA + "|", code: 2, warns: "the message ID is empty"},
		{args: "inbox|drop", code: 2, warns: "expected"},
		{args: "inbox", code: 2, warns: "expected"},
		{args: "inbox|nonsense", code: 2, warns: "24 to 32"},
	})
	d.wantJSON(t, `"silent": true`, "inbox", agentA, "--json")
}
