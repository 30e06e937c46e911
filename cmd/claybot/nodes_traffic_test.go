package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/metrics"
)

// What agents do is kept while it goes on and for a moment after; a call without an end, and more agents than the map
// shows, are forgotten.
func TestTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		traffic := newTraffic(metrics.New(metrics.Config{}))
		event := func(agent string, kind claybot.EventType, data string) {
			traffic.Event(claybot.AgentID(agent), claybot.Event{Run: "r", Type: kind, Data: []byte(data)})
		}
		now := func() []string {
			all := traffic.now()["a"]
			slices.Sort(all)
			return all
		}
		event("a", claybot.EventRunStarted, `{}`)
		event("a", claybot.EventNodeStarted, `{"node":"model"}`)
		time.Sleep(time.Minute)
		if got := now(); !slices.Equal(got, []string{trafficModel}) {
			t.Errorf("a long call of the model: %q", got)
		}
		event("a", claybot.EventAssistantMessage, `{}`)
		event("a", claybot.EventToolCalled, `{"tool":"fetch_url"}`)
		if got := now(); !slices.Equal(got, []string{trafficModel, "fetch_url"}) {
			t.Errorf("a call of a tool: %q", got)
		}
		time.Sleep(trafficShown)
		event("a", claybot.EventRunFailed, `{}`)
		if got := now(); !slices.Equal(got, []string{trafficMessage, "fetch_url"}) {
			t.Errorf("the end of the run: %q", got)
		}
		time.Sleep(trafficShown)
		if got := now(); len(got) > 0 {
			t.Errorf("after it: %q", got)
		}
		event("a", claybot.EventToolCalled, `{"tool":"fetch_url"}`)
		time.Sleep(trafficLongest)
		if got := now(); len(got) > 0 {
			t.Errorf("a call without an end: %q", got)
		}
		for i := range trafficAgents + 5 {
			event(fmt.Sprint("agent", i), claybot.EventRunStarted, `{}`)
		}
		if got := len(traffic.now()); got != trafficAgents {
			t.Errorf("%d agents are kept", got)
		}
	})
}

// Of an agent with more tools than the map shows, and while more agents work than it shows, what is kept is bounded, and
// looked through once in a while, not at each event.
func TestTrafficBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		traffic := newTraffic(metrics.New(metrics.Config{}))
		event := func(agent string, kind claybot.EventType, tool string) {
			traffic.Event(claybot.AgentID(agent), claybot.Event{Run: "r", Type: kind, Data: fmt.Appendf(nil, `{"tool":%q}`, tool)})
		}
		for i := range trafficActs + 5 {
			event("a", claybot.EventToolSucceeded, fmt.Sprint("tool", i))
		}
		if got := len(traffic.acts["a"]); got != trafficActs {
			t.Errorf("%d acts of one agent are kept", got)
		}
		time.Sleep(trafficShown)
		event("a", claybot.EventToolCalled, "late")
		if got := traffic.now()["a"]; !slices.Equal(got, []string{"late"}) {
			t.Errorf("after a while: %q", got)
		}
		for i := range trafficAgents + 5 {
			event(fmt.Sprint("agent", i), claybot.EventToolCalled, "x")
		}
		began := traffic.pruned
		time.Sleep(trafficShown - time.Millisecond)
		event("one more", claybot.EventToolCalled, "x")
		if traffic.pruned != began {
			t.Error("all is looked through again at once")
		}
		time.Sleep(time.Millisecond)
		event("one more", claybot.EventToolCalled, "x")
		if traffic.pruned == began {
			t.Error("what has ended is never forgotten")
		}
	})
}

// keep shows all that happens for the rest of a test.
func (t *traffic) keep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.life = trafficLongest
}

// moved waits until all of the traffic has been observed, which may be after the reply.
func (h *harness) moved(want ...web.NodeLink) {
	h.t.Helper()
	tick := time.NewTicker(patientStep)
	defer tick.Stop()
	for end := time.After(patience); ; {
		all, err := nodeDesk{h.daemon}.NodeTraffic(h.ctx)
		if err == nil && slices.Equal(all, want) {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			h.t.Fatalf("got %v, %v", all, err)
		}
	}
}

// A message of a person shows on the line of its connector and on that to the model.
func TestNodeTraffic(t *testing.T) {
	h := startDaemon(t, "model: demo\n", nil)
	h.daemon.traffic.keep()
	h.say("hello")
	profile := nodes.Key{Kind: nodes.Profile, Name: "default"}
	h.moved(web.NodeLink{From: nodes.Key{Kind: nodes.Connector, Name: "terminal"}, To: profile}, web.NodeLink{From: profile, To: nodes.Key{Kind: nodes.Model, Name: "demo"}})
	of := claybot.User("terminal", "operator", "operator")
	for tool, want := range map[string][]nodes.Key{
		"fetch_url": {{Kind: nodes.Tools, Name: "web"}}, "memory_list": {{Kind: nodes.Tools, Name: "memory"}, notesNode}, "no_such_tool": nil,
	} {
		if got := (nodeDesk{h.daemon}).toolTraffic(of, tool); !slices.Equal(got, want) {
			t.Errorf("%s is of %v", tool, got)
		}
	}
}

// A workflow that a message has started shows between its connector and its profile.
func TestNodeTrafficOfFlow(t *testing.T) {
	h, _ := shelved(t, strings.Replace(savedFlow, "start:", "triggers:\n  desk: {on: terminal}\nstart:", 1))
	h.daemon.traffic.keep()
	if said := h.say("hello"); !strings.Contains(said, "hello") {
		t.Fatalf("the workflow says %q", said)
	}
	flow := nodes.Key{Kind: nodes.Flow, Name: "hello"}
	h.moved(web.NodeLink{From: nodes.Key{Kind: nodes.Connector, Name: "terminal"}, To: flow}, web.NodeLink{From: flow, To: nodes.Key{Kind: nodes.Profile, Name: "default"}})
}

// The log of a node has its lines, the newest first and each once, without secrets, whatever names it; the log itself
// stays as it is.
func TestNodeLog(t *testing.T) {
	var out bytes.Buffer
	c := configs.Default()
	c.Log.Format, c.Model.Key = "json", configs.NewSecret("env:KEY", "FAKE-secret-value")
	log := newLog(&out, c)
	team := log.With("connector", "team")
	for i := range 3 {
		team.Warn("poll failed", "err", fmt.Errorf("the platform says FAKE-secret-value"), "wait", time.Duration(i))
	}
	team.With("message", "m").Info("message taken", "server", "guild")
	log.Debug("not logged", "connector", "team")
	log.Info("no node", "agent", "a", "node", "nothing")
	log.Warn("failed to connect", "server", "files", "err", "refused")
	log.Info("node stopped", "node", "connector/team", "by", "ann")
	log.Info("next run", "connector", "cron")
	desk := nodeDesk{&daemon{log: log}}
	for name, want := range map[string][]string{
		"connector/team": {"info node stopped by ann 1", "info message taken 1", "warn poll failed: the platform says [env:KEY] 3"},
		"mcp/files":      {"warn failed to connect: refused 1"}, "schedule/cron": {"info next run 1"}, "mcp/guild": nil,
	} {
		kind, name, _ := strings.Cut(name, "/")
		all, err := desk.NodeLog(t.Context(), nodes.Key{Kind: kind, Name: name})
		var got []string
		for _, l := range all {
			got = append(got, fmt.Sprint(l.Level, " ", l.Text, " ", l.Times))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s/%s: %q, %v", kind, name, got, err)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 8 || strings.Contains(out.String(), "FAKE") {
		t.Errorf("the log has %d lines: %s", n, out.String())
	}
	for i := range nodeLines + 5 {
		team.Info("a line", "err", fmt.Sprint(i))
	}
	l := log.Handler().(*lateHandler).nodes
	if n := len(l.of(nodes.Key{Kind: nodes.Connector, Name: "team"})); n != nodeLines {
		t.Errorf("%d lines of a node are kept", n)
	}
}

// What fails of a model is in the log of its node, also where a route of it has another name.
func TestNodeLogOfModel(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"no such account"}}`, http.StatusForbidden)
	}))
	defer server.Close()
	c := configs.Default()
	main, rest := configs.Model{Name: "gpt-test", BaseURL: server.URL}, configs.Model{Name: "gpt-rest", BaseURL: server.URL}
	main.Fallback = []configs.Model{rest}
	c.Model = main
	for name, p := range c.Agents.Profiles {
		p.Model = main
		c.Agents.Profiles[name] = p
	}
	log := newLog(new(bytes.Buffer), c)
	m := &models{config: newSettings(c, log), log: log}
	if _, err := newModel(main, nil, m.logOf(main)).Chat(t.Context(), llm.Request{}); err == nil {
		t.Fatal("the model answers")
	}
	all, err := nodeDesk{&daemon{log: log}}.NodeLog(t.Context(), nodes.Key{Kind: nodes.Model, Name: "gpt-test"})
	if err != nil || len(all) == 0 || !strings.HasPrefix(all[0].Text, "model call failed: ") || !strings.Contains(all[0].Text, "no such account") {
		t.Errorf("the node has %v, %v", all, err)
	}
}

// A node that has had no line for the longest time makes room for a new one. No text is made of what names no node.
func TestNodeLogBounds(t *testing.T) {
	l := &nodeLog{lines: make(map[nodes.Key][]web.NodeLine)}
	key := func(i int) nodes.Key { return nodes.Key{Kind: nodes.Flow, Name: fmt.Sprint(i)} }
	begin := time.Unix(1, 0)
	for i := range nodeLogs {
		l.add(key(i), web.NodeLine{At: begin.Add(time.Duration(i)), Text: "a line"})
	}
	l.add(key(0), web.NodeLine{At: begin.Add(time.Hour), Text: "another"})
	l.add(key(nodeLogs), web.NodeLine{At: begin.Add(time.Hour), Text: "a line"})
	if len(l.lines) != nodeLogs || l.of(key(0)) == nil || l.of(key(1)) != nil || l.of(key(nodeLogs)) == nil {
		t.Errorf("%d nodes have lines", len(l.lines))
	}
	if _, is := nodeOfAttr(slog.Any("state", unsaid{t})); is {
		t.Error("a state names a node")
	}
}

// An unsaid is a value of the log of which nothing should make a text.
type unsaid struct{ t *testing.T }

// String implements fmt.Stringer.
func (u unsaid) String() string {
	u.t.Error("a text is made of what names no node")
	return "x"
}
