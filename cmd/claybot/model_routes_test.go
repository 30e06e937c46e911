package main

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// A routeRig is a daemon with two servers of models, A and B, each with a key of its own.
type routeRig struct {
	*harness
	a, b  *openaitest.Server
	agent claybot.AgentID
	aURL  string
	bURL  string
}

func newRouteRig(t *testing.T, file string) *routeRig {
	t.Helper()
	r := &routeRig{a: openaitest.New(openaitest.Config{}), b: openaitest.New(openaitest.Config{})}
	for _, x := range []struct {
		s  *openaitest.Server
		to *string
	}{{r.a, &r.aURL}, {r.b, &r.bURL}} {
		address, stop, err := x.s.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		*x.to = address
	}
	r.harness = startDaemon(t, r.file(file), routeKeys)
	r.say("hello")
	var all struct {
		Agents []struct {
			ID claybot.AgentID `json:"id"`
		} `json:"agents"`
	}
	if err := r.client.call(r.ctx, "GET", "/agents", nil, &all); err != nil || len(all.Agents) != 1 {
		t.Fatalf("agents %v, %v", all, err)
	}
	r.agent = all.Agents[0].ID
	return r
}

// routeKeys are the keys of A and B; that of A is the one of the environment.
var routeKeys = map[string]string{"OPENAI_API_KEY": "key-of-a", "KEY_B": "key-of-b"}

func (r *routeRig) file(s string) string {
	return strings.NewReplacer("$A", "base_url: '"+r.aURL+"'", "$B", "base_url: '"+r.bURL+"', key: env:KEY_B").Replace(s)
}

func (r *routeRig) path() string { return "/agents/" + string(r.agent) + "/settings" }

// choose sets the model of the agent.
func (r *routeRig) choose(model string) error {
	return r.client.call(r.ctx, "PATCH", r.path(), map[string]string{"model": model}, nil)
}

// asked requires that only the named models were asked since the last time, each as
// server/model/key.
func (r *routeRig) asked(seen *[2]int, want ...string) {
	r.t.Helper()
	var got []string
	for i, s := range []*openaitest.Server{r.a, r.b} {
		all := s.Requests()
		for _, q := range all[seen[i]:] {
			got = append(got, "AB"[i:i+1]+" "+q.Model+" "+strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer "))
		}
		seen[i] = len(all)
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		r.t.Errorf("asked %q, want %q", got, want)
	}
}

const (
	twoRoutes = "model: {name: gpt-5, $A}\nagents: {private: {match: [telegram], model: {name: llama, $B}}}\n"
	ambiguous = "model: {name: gpt-5, $A}\nagents: {private: {match: [telegram], model: {name: llama, $B}}, other: {match: [slack], model: llama}}\n"
)

// An agent with a model of its own asks the server that is configured for that model,
// with its key; no other server reads the conversation.
func TestOwnModelKeepsItsRoute(t *testing.T) {
	r := newRouteRig(t, twoRoutes)
	var seen [2]int
	r.asked(&seen, "A gpt-5 key-of-a")
	if got := r.get(r.path()); !strings.Contains(got, `"models":["gpt-5","llama"]`) {
		t.Errorf("settings: %s", got)
	}
	if err := r.choose("llama"); err != nil {
		t.Fatal(err)
	}
	if got := r.say("between us"); !strings.Contains(got, "echo: between us") {
		t.Errorf("the reply is %q", got)
	}
	r.asked(&seen, "B llama key-of-b")

	// Two profiles that configure the name differently: it is offered no more, and
	// the agent that has it is refused.
	r.reload(r.file(ambiguous), routeKeys)
	if got := r.say("and now"); !strings.Contains(got, "The model is not configured correctly") || !strings.Contains(got, `"llama" is configured differently in the profiles other, private`) {
		t.Errorf("the reply is %q", got)
	}
	r.asked(&seen)
	if got := r.get(r.path()); !strings.Contains(got, `"models":["gpt-5"]`) {
		t.Errorf("settings: %s", got)
	}
	var refused *refusal
	if err := r.choose("llama"); !errors.As(err, &refused) || refused.status != 400 {
		t.Errorf("choosing it: %v", err)
	}

	// A name that is configured nowhere stays at the server of the profile.
	r.reload(r.file("model: {name: gpt-5, $A}\n"), routeKeys)
	r.say("at home")
	r.asked(&seen, "A llama key-of-a")
}

// A name of another provider is never asked for with the key of this one.
func TestOwnModelOfAnotherProvider(t *testing.T) {
	r := newRouteRig(t, "model: {name: gpt-5, $A}\nagents: {s: {match: [slack], model: {name: claude-sonnet-4-5, provider: anthropic, $B}}}\n")
	var seen [2]int
	r.asked(&seen, "A gpt-5 key-of-a")
	if err := r.choose("claude-sonnet-4-5"); err != nil {
		t.Fatal(err)
	}
	a := claybot.Agent{ID: r.agent, Descriptor: claybot.User("terminal", "operator", "operator")}
	if m := r.daemon.models.model(a); m.API() != "anthropic" || m.BaseURL != r.bURL || m.Key.Value() != "key-of-b" {
		t.Errorf("it is asked as %s at %s", m.API(), m.BaseURL)
	}
	r.say("hello again") // B speaks another API
	r.asked(&seen)
}

// The model of a subagent is reached as configured too, no matter who has chosen its name.
func TestSubagentModelKeepsItsRoute(t *testing.T) {
	r := newRouteRig(t, twoRoutes)
	var seen [2]int
	r.asked(&seen, "A gpt-5 key-of-a")
	r.a.Script(openaitest.Reply{Calls: []claybot.ToolCall{{Name: "spawn_and_wait", Args: `{"tasks":[{"task":"look","model":"llama"}]}`}}})
	r.b.Script(openaitest.Reply{Text: "seen"})
	r.say("ask a subagent")
	r.asked(&seen, "A gpt-5 key-of-a", "A gpt-5 key-of-a", "B llama key-of-b")

	r.reload(r.file(ambiguous), routeKeys)
	r.a.Script(openaitest.Reply{Calls: []claybot.ToolCall{{Name: "spawn_and_wait", Args: `{"tasks":[{"task":"look","model":"llama"}]}`}}})
	r.say("ask again")
	r.asked(&seen, "A gpt-5 key-of-a", "A gpt-5 key-of-a")
}

// A model that the configuration no longer has is forgotten, with its key, also if an agent chose it by its name;
// what is still configured keeps what claybot knows of it.
func TestRemovedModelsAreForgotten(t *testing.T) {
	r := newRouteRig(t, twoRoutes)
	if err := r.choose("llama"); err != nil {
		t.Fatal(err)
	}
	r.say("between us")
	kept := func() map[string]*watched {
		m := r.daemon.models
		m.mu.Lock()
		defer m.mu.Unlock()
		return maps.Clone(m.all)
	}
	before := kept()
	if len(before) != 2 {
		t.Fatalf("%d models", len(before))
	}
	r.reload(r.file("language: en\n"+twoRoutes), routeKeys)
	if after := kept(); !maps.Equal(before, after) {
		t.Errorf("a reload that changes no model: %v became %v", before, after)
	}
	for range 3 {
		r.reload(r.file("model: {name: gpt-5, $A}\n"), routeKeys)
		if after := kept(); len(after) != 1 {
			t.Errorf("%d models, want that of the profile alone", len(after))
		}
		r.reload(r.file(twoRoutes), routeKeys)
	}

	// Subagents may be given any name: what no profile has is forgotten before it is too much.
	c := r.daemon.config.Load()
	for n := range maxChoices {
		r.daemon.models.of(byName(c, c.Model, fmt.Sprintf("any-%d", n)))
	}
	if n := len(kept()); n > maxChoices {
		t.Errorf("%d models in memory", n)
	}
	if after := kept(); after[fingerprint(c.Model)] != before[fingerprint(c.Model)] {
		t.Error("the model of the profile was forgotten")
	}
}
