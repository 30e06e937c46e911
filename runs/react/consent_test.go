package react_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/tools"
)

// edited is a yes with other arguments.
func edited(by, args string) claybot.Answer {
	a := yes()
	a.By, a.Args = by, args
	return a
}

// A call runs with the arguments that a person gave it, and the model is told.
func TestEditedCallRuns(t *testing.T) {
	for _, tt := range []struct{ name, args, want string }{
		{"edited", `{"word":"3"}`, "1 a true A person approved this call with other arguments than yours. What ran was: {\"word\":\"3\"}\n\npay 3"},
		{"does not fit any more", `{"word":3}`, "1 a false not approved: a person edited the arguments, and they do not fit any more: invalid arguments: field word"},
		{"no object", `[]`, "1 a false not approved: a person edited the arguments, and they do not fit any more: the arguments must be a JSON object"},
	} {
		var c counter
		j := newJournal("go")
		l := asking(llmtest.NewScript(llmtest.Use(call("a", "pay", "5"), call("b", "look", "")), llmtest.Say("done")), c.set(t), "p*")
		until(t, j.run(t, l))
		j.say("approve/a", edited("telegram/1", tt.args))
		if err := j.run(t, l); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(j.lines(), "\n"); !strings.Contains(got, tt.want) || !strings.Contains(got, "1 b true look") {
			t.Errorf("%s:\n%s", tt.name, got)
		}
	}
}

// A quorum is of different people, who approve the same action in the same place.
func TestQuorum(t *testing.T) {
	people := func(id string) []string {
		if id == "slack/ann" || id == "telegram/1" {
			return []string{"slack/ann", "telegram/1"}
		}
		return nil
	}
	type said struct {
		round string
		a     claybot.Answer
	}
	by := func(id string) claybot.Answer { a := yes(); a.By = id; return a }
	no := claybot.Answer{Value: []byte("false"), By: "slack/bob", Reason: "too much"}
	first, second, third := "approve/a", "approve/a/2", "approve/a/3"
	for _, tt := range []struct {
		name string
		say  []said
		want string
		by   string // who has approved it, as the last question says
	}{
		{"two", []said{{first, by("slack/ann")}, {second, by("slack/bob")}}, "true pay 5", "slack/ann"},
		{"one person with two ids", []said{{first, by("slack/ann")}, {second, by("telegram/1")}, {third, by("slack/bob")}}, "true pay 5", "slack/ann"},
		{"one who may not", []said{{first, by("slack/eve")}}, "false not approved: who approved it may not do so any more", ""},
		{"the second says no", []said{{first, by("slack/ann")}, {second, no}}, "false not approved: too much", "slack/ann"},
		{"an edit is approved by the other", []said{{first, edited("slack/ann", `{"word":"3"}`)}, {second, by("slack/bob")}}, "\n\npay 3", "slack/ann"},
		{"an edit voids what was said before", []said{{first, by("slack/ann")}, {second, edited("slack/bob", `{"word":"3"}`)}, {third, by("slack/ann")}}, "\n\npay 3", "slack/bob"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c counter
			j := newJournal("go")
			l := asking(llmtest.NewScript(llmtest.Use(call("a", "pay", "5")), llmtest.Say("done")), c.set(t))
			l.People = people
			l.Approve = func(claybot.Agent) react.Rules {
				return react.Rules{Ask: []string{"pay"}, Quorum: 2, Approvers: []string{"slack/ann", "telegram/1", "slack/bob"}}
			}
			var last *claybot.Question
			for _, s := range tt.say {
				if got := until(t, j.run(t, l)); string(got) != "answer/"+s.round {
					t.Fatalf("waits for %s, want %s", got, s.round)
				}
				q := j.last().Question
				if last = q; !q.Once || len(c.runs) > 0 || len(q.Approvers) == 0 || q.Need != 2 {
					t.Fatalf("ran %v, asks %+v", c.runs, q)
				}
				j.say(s.round, s.a)
			}
			if err := j.run(t, l); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(j.lines(), "\n"); !strings.Contains(got, tt.want) {
				t.Errorf("got\n%s", got)
			}
			if got := strings.Join(last.ApprovedBy, " "); got != tt.by {
				t.Errorf("the last question says that %q approved it, want %q", got, tt.by)
			}
		})
	}
}

// Too few people can never approve anything, and the words say why.
func TestQuorumOfTooFew(t *testing.T) {
	for want, rules := range map[string]react.Rules{
		"this rule names a quorum but no approvers: set approvers":                    {Quorum: 2},
		"it needs the approvals of 2 different people, and 1 may give one":            {Quorum: 2, Approvers: []string{"slack/bob"}},
		"what the configuration says about approvals cannot be used, so nothing can ": {Quorum: tools.NoQuorum},
		"what the configuration says about approvals cannot be used, ":                {Quorum: tools.NoQuorum, Approvers: []string{"slack/ann", "slack/bob"}},
	} {
		rules.Ask = []string{"pay"}
		var c counter
		j := newJournal("go")
		l := asking(llmtest.NewScript(llmtest.Use(call("a", "pay", "5")), llmtest.Say("done")), c.set(t))
		l.Approve = func(claybot.Agent) react.Rules { return rules }
		if err := j.run(t, l); err != nil {
			t.Fatalf("%+v: %v", rules, err)
		}
		if got := strings.Join(j.lines(), "\n"); !strings.Contains(got, "not approved: "+want) || len(c.runs) > 0 {
			t.Errorf("%+v: got\n%s", rules, got)
		}
	}
}

// What was approved in one place does not run in another one.
func TestApprovalIsBoundToThePlace(t *testing.T) {
	for place, runs := range map[string]bool{"docker, no network": true, "local": false} {
		var c counter
		j := newJournal("go")
		l := asking(llmtest.NewScript(llmtest.Use(call("a", "pay", "5")), llmtest.Say("done")), c.set(t), "pay")
		l.Place = func(claybot.Agent) string { return "docker, no network" }
		until(t, j.run(t, l))
		l.Place = func(claybot.Agent) string { return place }
		j.say("approve/a", yes())
		if err := j.run(t, l); err != nil {
			t.Fatal(err)
		}
		if (c.runs["a"] == 1) != runs {
			t.Errorf("%s: ran %v", place, c.runs)
		}
	}
}

// reach has a tool that reads a page, one that sends, one that acts later, and one
// that changes rights; env is that of the last call.
func reach(t *testing.T, env *tools.Env) *tools.Set {
	t.Helper()
	tool := func(name string, class tools.Class, listed bool) tools.Tool {
		spec := tools.Spec{Tool: llm.Tool{Name: name, Description: name}, Effect: tools.Idempotent, Class: class}
		spec.Listed = func(tools.Env, json.RawMessage) bool { return listed }
		return tools.New(spec, func(_ context.Context, e tools.Env, _ word) (tools.Result, error) {
			*env = e
			return tools.Result{Text: name, Untrusted: name == "page"}, nil
		})
	}
	s, err := tools.NewSet(tool("page", tools.Outward, true), tool("send", tools.Outward, false),
		tool("later", tools.Schedule, false), tool("grant", tools.Authority, false), tool("host", tools.Host, false))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Who has read a page asks before he acts later, and changes no rights.
func TestTaint(t *testing.T) {
	for _, tt := range []struct {
		tool    string
		tainted bool
		want    string // asks, or the beginning of the result
	}{
		{"page", false, "true"},
		{"later", false, "true"},
		{"send", false, "asks"},
		{"grant", false, "asks"},
		{"host", false, "false not approved: the tool reaches the machine"},
		{"page", true, "true"},
		{"later", true, "asks"},
		{"send", true, "asks"},
		{"grant", true, "false not approved: this conversation holds untrusted content"},
		{"host", true, "false not approved"},
	} {
		for _, nobody := range []bool{false, true} {
			var env tools.Env
			j := newJournal("go")
			j.nobody = nobody
			replies := []llmtest.Reply{llmtest.Use(call("b", tt.tool, "")), llmtest.Say("done")}
			if tt.tainted {
				replies = append([]llmtest.Reply{llmtest.Use(call("a", "page", ""))}, replies...)
			}
			err := j.run(t, loop(llmtest.NewScript(replies...), reach(t, &env)))
			want := tt.want
			if want == "asks" && nobody {
				want = "false not approved: no person can be asked"
			}
			if want == "asks" {
				if got := until(t, err); got != "answer/approve/b" {
					t.Errorf("%+v: waits for %s", tt, got)
				}
				continue
			}
			if got := strings.Join(j.lines(), "\n"); err != nil || !strings.Contains(got, " b "+want) {
				t.Errorf("%+v, without a person %v: %v\n%s", tt, nobody, err, got)
			}
			if want == "true" && env.Tainted != tt.tainted {
				t.Errorf("%+v: the tool is told %v", tt, env.Tainted)
			}
		}
	}
}

// A dry agent asks no person and starts nothing.
func TestDryRun(t *testing.T) {
	var c counter
	j := newJournal("go")
	l := asking(llmtest.NewScript(llmtest.Use(call("a", "pay", "5"), call("b", "look", "x")), llmtest.Say("done")), c.set(t), "*")
	l.Dry = func(claybot.Agent) bool { return true }
	if err := j.run(t, l); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(j.lines(), "\n")
	if !strings.Contains(got, `1 a true dry run: pay was not called. It would have been called with {"word":"5"}`) || !strings.Contains(got, "1 b true look x") {
		t.Errorf("got\n%s", got)
	}
	if _, started := j.started["a"]; started || len(j.asked()) > 0 {
		t.Errorf("started %v, asked %v", j.started, j.asked())
	}
}

// The owners of what a call discloses approve it one after another. What the agent says
// about it is for the one whose conversation that is: the next one cannot read it.
func TestOwnersInTurn(t *testing.T) {
	disclosing := func(owners ...string) *tools.Set {
		s, err := tools.NewSet(tools.New(tools.Spec{
			Tool: llm.Tool{Name: "pass", Description: "pass"}, Effect: tools.Idempotent,
			Discloses: func(context.Context, tools.Env, json.RawMessage) *tools.Disclosure {
				return &tools.Disclosure{Owners: owners, Text: "all will know"}
			},
		}, func(_ context.Context, _ tools.Env, in word) (tools.Result, error) {
			return tools.Result{Text: "passed " + in.Word}, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	reply := llmtest.Use(call("a", "pass", "5"))
	reply.Text = "CANARY of the conversation."
	const mine = "telegram/7"
	for name, tt := range map[string]struct {
		owners []string
		asked  []string // one after another
		told   []bool   // what the agent says
	}{
		"mine and another's": {[]string{mine, "slack/bob"}, []string{mine, "slack/bob"}, []bool{true, false}},
		"another's alone":    {[]string{"slack/bob"}, []string{"slack/bob"}, []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJournal("go")
			j.of = claybot.User("telegram", "7", "7")
			l := asking(llmtest.NewScript(reply, llmtest.Say("done")), disclosing(tt.owners...))
			for i, who := range tt.asked {
				round := "approve/a"
				if i > 0 {
					round = "approve/a/2"
				}
				if got := until(t, j.run(t, l)); string(got) != "answer/"+round {
					t.Fatalf("waits for %s, want %s", got, round)
				}
				q := j.last().Question
				if !slices.Equal(q.Approvers, []string{who}) || q.Need > 1 && i != len(q.ApprovedBy) || strings.Contains(q.Text, "CANARY") != tt.told[i] {
					t.Fatalf("asks %+v", q)
				}
				a := yes()
				a.By = who
				j.say(round, a)
			}
			if err := j.run(t, l); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(j.lines(), "\n"); !strings.Contains(got, "true passed 5") {
				t.Errorf("got\n%s", got)
			}
		})
	}
}
