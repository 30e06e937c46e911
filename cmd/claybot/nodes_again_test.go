package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/web"
)

// A slowServer is an MCP server whose tries take a time, and fail, or not.
type slowServer struct {
	takes time.Duration
	fails bool

	mu     sync.Mutex
	status mcp.ServerStatus
	tries  int
	trying sync.WaitGroup
}

func (s *slowServer) Status() []mcp.ServerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []mcp.ServerStatus{{Name: "other", State: mcp.StateConnected}, s.status}
}

func (s *slowServer) set(state, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = mcp.ServerStatus{Name: "srv", State: state, Since: time.Now(), LastError: why}
}

// Retry begins a try a moment later, as a link that waits does.
func (s *slowServer) Retry(string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	s.trying.Go(func() {
		time.Sleep(time.Second)
		s.set(mcp.StateStarting, "")
		time.Sleep(s.takes)
		if s.fails {
			s.set(mcp.StateWaiting, "it failed again")
		} else {
			s.set(mcp.StateConnected, "")
		}
	})
	return nil
}

// A test has the result of the try that it asks for, and gives a server the time that its connection has.
func TestTried(t *testing.T) {
	for name, tc := range map[string]struct {
		server *slowServer
		from   string
		want   string // state and error
		tries  int
	}{
		"a slow server":              {&slowServer{takes: 30 * time.Second}, mcp.StateWaiting, mcp.StateConnected, 1},
		"one that fails again":       {&slowServer{takes: 30 * time.Second, fails: true}, mcp.StateWaiting, mcp.StateWaiting + " it failed again", 1},
		"one that fails at once":     {&slowServer{fails: true}, mcp.StateWaiting, mcp.StateWaiting + " it failed again", 1},
		"one that never comes":       {&slowServer{takes: time.Hour}, mcp.StateWaiting, "the server is not connected after 40s, and is still tried: claybot nodes shows how it does", 1},
		"one that works":             {new(slowServer), mcp.StateConnected, mcp.StateConnected, 0},
		"one that needs an operator": {new(slowServer), mcp.StateLogin, mcp.StateLogin + " before", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				why := ""
				if tc.from != mcp.StateConnected {
					why = "before"
				}
				tc.server.set(tc.from, why)
				began := time.Now()
				s, err := tried(t.Context(), tc.server, "srv")
				if took := time.Since(began); took >= nodeTimeout {
					t.Errorf("it took %s, and the command waits %s", took, nodeTimeout)
				}
				tc.server.trying.Wait()
				got := strings.TrimSpace(s.State + " " + s.LastError)
				if err != nil {
					got = err.Error()
				}
				tc.server.mu.Lock()
				defer tc.server.mu.Unlock()
				if got != tc.want || tc.server.tries != tc.tries {
					t.Errorf("%q after %d tries, want %q after %d", got, tc.server.tries, tc.want, tc.tries)
				}
			})
		})
	}
}

// A try that is under way when the test begins is the one that counts.
func TestTriedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(slowServer)
		s.set(mcp.StateStarting, "")
		go func() {
			time.Sleep(20 * time.Second)
			s.set(mcp.StateWaiting, "it failed")
		}()
		if got, err := tried(t.Context(), s, "srv"); err != nil || got.LastError != "it failed" || s.tries != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A failed test holds until the node works again.
func TestFailedTests(t *testing.T) {
	refused := &connectors.PermanentError{Err: errors.New("refused")}
	connector, relay := nodes.View{Key: nodes.Key{Kind: nodes.Connector, Name: "x"}}, nodes.View{Key: nodes.Key{Kind: nodes.Relay, Name: "x"}}
	before, after := time.Time{}, time.Now().Add(time.Hour)
	var all failedTests
	state := func(n nodes.View, worked time.Time) string {
		n.State = nodes.Running
		all.settle(&n, worked)
		return n.State
	}
	for _, step := range []struct {
		n      nodes.View
		err    error
		worked time.Time
		want   string
	}{
		{connector, refused, before, nodes.Failed},
		{connector, errors.New("nothing is known"), before, nodes.Failed},
		{connector, nil, before, nodes.Running},
		{connector, errors.New("nothing is known"), before, nodes.Running},
		{connector, refused, after, nodes.Running},
		{relay, errors.New("no answer"), before, nodes.Failed},
		{relay, nil, before, nodes.Running},
	} {
		all.note(step.n, step.err)
		if got := state(step.n, step.worked); got != step.want {
			t.Errorf("%s is %s after %v, want %s", step.n.Key, got, step.err, step.want)
		}
	}
	all.note(relay, errors.New("no answer"))
	stopped := relay
	stopped.State = nodes.Stopped
	if all.settle(&stopped, before); stopped.State != nodes.Stopped {
		t.Errorf("a stopped relay is %s", stopped.State)
	}
}

// Of a restarted model it is not known that it failed, nor that it works; see llm.TestRefresh.
func TestRenewedModel(t *testing.T) {
	c := configs.Default()
	c.Model = configs.Model{Name: "m", BaseURL: "http://127.0.0.1:1/v1"}
	m := &models{config: newSettings(c, slog.New(slog.DiscardHandler)), log: slog.New(slog.DiscardHandler)}
	w := m.of(c.Model)
	w.tested(errors.New("it is down"))
	if got := m.problem(c.Model); got != "it is down" {
		t.Errorf("%q", got)
	}
	m.renew(c.Model)
	m.renew(c.Model) // once more
	if got := m.problem(c.Model); got != "" || m.of(c.Model) != w || !w.ok.IsZero() {
		t.Errorf("after a restart: %q, %v", got, w.ok)
	}
	desk := nodeDesk{&daemon{models: m, stores: &stores{orders: new(nodes.Orders)}}}
	state := func() string { n := desk.modelNode("m", c.Model); return n.State + " " + n.Text + " " + n.Next }
	if got := state(); got != "waiting restarted, and not asked since; it failed before: it is down ask it now: claybot nodes test model/m" {
		t.Errorf("after a restart: %q", got)
	}
	w.tested(errors.New("still down"))
	if got := state(); got != "failed still down " {
		t.Errorf("after another test: %q", got)
	}
	m.renew(c.Model)
	w.tested(nil)
	if got := state(); got != "running  " {
		t.Errorf("once it answers: %q", got)
	}
}

// The list of nodes and the status have the same word for an MCP server, and one that is tried again has failed until it
// is connected.
func TestServerState(t *testing.T) {
	for _, x := range []struct{ state, err, want string }{
		{mcp.StateStarting, "", nodes.Waiting}, {mcp.StateStarting, "it did not answer", nodes.Failed}, {mcp.StateWaiting, "it did not answer", nodes.Failed}, {mcp.StateRefused, "no url", nodes.Off},
	} {
		if got := serverState(x.state, x.err); got != x.want {
			t.Errorf("%s %q is %s, want %s", x.state, x.err, got, x.want)
		}
		if got := serverLine(overview.ServerStatus{State: x.state, Err: x.err}); got != join(": ", x.want, x.err) {
			t.Errorf("the status says %q, the node is %s", got, x.want)
		}
	}
}

// A call that nodes do not have names those that they have, whether there is such a node or not.
func TestUnknownCall(t *testing.T) {
	for _, name := range []string{"telegram", "none"} {
		_, err := nodeDesk{}.CallNode(context.Background(), nodes.Key{Kind: nodes.Connector, Name: name}, "frobnicate", "test")
		if no, ok := errors.AsType[web.Refusal](err); !ok || no.Error() != `nodes have no call "frobnicate"; the calls are start, stop, restart, test` {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, kind := range []string{nodes.Profile, nodes.Agent, nodes.Tools, nodes.Memory, nodes.Skills} {
		n := nodes.View{Key: nodes.Key{Kind: kind, Name: "x"}, Can: []string{nodes.Start, nodes.Stop}}
		if got := cannot(n, nodes.Restart); !strings.Contains(got, "x has nothing to restart: ") || !slices.ContainsFunc([]string{"claybot nodes", "claybot agents"}, func(s string) bool { return strings.Contains(got, s) }) {
			t.Errorf("%s: %s", kind, got)
		}
	}
}
