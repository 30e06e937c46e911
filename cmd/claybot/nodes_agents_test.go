package main

import (
	"slices"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
)

// The stop of a model concerns the agents that have chosen it by its name as well.
func TestModelNodesOf(t *testing.T) {
	c := configs.Default()
	c.Agents.Profiles = map[string]configs.Profile{
		"default": {Model: configs.Model{Name: "large", Fallback: []configs.Model{{Name: "spare"}}}},
		"small":   {Model: configs.Model{Name: "small", MaxTokens: 100}},
		"local":   {Model: configs.Model{Name: "own", BaseURL: "http://127.0.0.1:8080/v1"}},
	}
	for name, want := range map[string][]nodes.Key{
		"":      {{Kind: nodes.Model, Name: "large"}},
		"large": {{Kind: nodes.Model, Name: "large"}},
		"small": {{Kind: nodes.Model, Name: "small"}},
		"spare": nil,
		"other": nil,
	} {
		if got := modelNodesOf(&c, byName(&c, c.Agents.Profiles["default"].Model, name)); !slices.Equal(got, want) {
			t.Errorf("the model %q is %v, want %v", name, got, want)
		}
	}
	if got := modelNodesOf(&c, configs.Model{Name: "own"}); len(got) > 0 {
		t.Errorf("a model of another host is %v", got)
	}
}

// The status names each node that is stopped, also where the words about two are the same, and repeats no row.
func TestAdviceRows(t *testing.T) {
	rows := [][]string{{"relay log", "up to date: down"}, {"cron", "stopped by ann; start it: claybot nodes start cron"}}
	all := []overview.Finding{
		{What: "relay log", Text: "down", Next: "start it", Code: "x"},
		{What: "cron", Text: "stopped by ann", Next: "start it: claybot nodes start cron", Code: "x"},
		{What: "tools/web", Text: "stopped at noon", Next: "start it", Code: "x"},
		{What: "tools/files", Text: "stopped at noon"},
	}
	want := [][]string{{"relay log", "up to date: down"}, {"cron", "stopped by ann"}, {"", "→ relay log: start it [x]"}, {"", "→ cron: start it: claybot nodes start cron [x]"}, {"tools/web", "stopped at noon"}, {"", "→ tools/web: start it [x]"}, {"tools/files", "stopped at noon"}}
	if got := adviceRows(rows, all); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %q", got)
	}
}

// After a crash, the status counts in words that fit the number.
func TestStartRows(t *testing.T) {
	for want, x := range map[string]overview.StartStatus{
		"claybot crashed: it resumes 1 run at a time; 1 agent to be resumed":                    {Unclean: 1, AtOnce: 1, Waiting: 1},
		"claybot crashed 3 times in a row: it resumes 2 runs at a time; 0 agents to be resumed": {Unclean: 3, AtOnce: 2},
	} {
		rows := startRows(overview.Status{Start: &x})
		if got := rows[len(rows)-1][1]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
