package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Whatever node takes a message in, whichever runs it and sends the answer: each
// person gets each answer once and in order.
func TestNodesShareTheWork(t *testing.T) {
	nodesInBubble(t, 3, nil, func(c *clusterRig) {
		const people, messages = 6, 5
		for i := range messages {
			for p := range people {
				c.nodes[(i+p)%3].say(fmt.Sprint("p", p), fmt.Sprintf("m%d-%d", p, i))
			}
			time.Sleep(3 * time.Second) // so that each is a run of its own
		}
		for p := range people {
			var want []string
			for i := range messages {
				want = append(want, fmt.Sprintf("re: m%d-%d", p, i))
			}
			c.wants(10*time.Second, fmt.Sprint("p", p), want...)
		}
		if n := len(c.chat.sent()); n != people*messages {
			t.Errorf("%d sends of %d answers", n, people*messages)
		}
		for _, m := range c.nodes {
			st, err := m.system.Overview.Status(t.Context())
			if err != nil || st.Node == nil || st.Node.Nodes != 3 || st.Node.Name != m.name || st.Node.Err != "" {
				t.Errorf("status of %s: %+v, %v", m.name, st.Node, err)
			}
			if n := m.system.Working(); n != 0 {
				t.Errorf("%s works on %d agents", m.name, n)
			}
		}
	})
}

// A node that is killed loses nothing: another one goes on with its runs and its
// sends within a lease and two seconds.
func TestNodeKilled(t *testing.T) {
	nodesInBubble(t, 1, nil, func(c *clusterRig) {
		first := c.nodes[0]
		c.mind.before = func(ctx context.Context, _ llm.Request) error {
			if first.fuse.dead() {
				return nil
			}
			return rest(ctx, time.Hour)
		}
		first.say("ann", "hello")
		after(time.Second)
		second := c.start()
		first.kill()
		killed := time.Now()
		second.say("bob", "hi")
		c.wants(time.Second, "bob", "re: hi")
		c.wants(nodeTTL+2*time.Second, "ann", "re: hello")
		if d := time.Since(killed); d < 5*time.Second {
			t.Errorf("taken over after %v, while the first one had its lease", d)
		}
		after(time.Minute)
		c.wants(0, "ann", "re: hello")
		if second.members.Others() != 0 {
			t.Error("the dead one is still counted")
		}
	})
}

// If the membership of a node that is killed is ended before its lease, the others, which
// are notified, go on with its runs at once.
func TestNodeKilledAndEnded(t *testing.T) {
	nodesInBubble(t, 1, nil, func(c *clusterRig) {
		first, died := c.nodes[0], make(chan struct{})
		c.mind.before = func(context.Context, llm.Request) error {
			if first.fuse.dead() {
				return nil
			}
			<-died // a model call ends with its process
			return context.Canceled
		}
		first.say("ann", "hello")
		after(time.Second)
		second := c.start()
		id := first.members.Node()
		first.kill()
		close(died)
		synctest.Wait()
		i := slices.IndexFunc(second.members.Alive(), func(n storage.Member) bool { return n.ID == id })
		if ended, err := second.db.EndUnrenewed(t.Context(), id, second.members.Alive()[i].Seen); err != nil || !ended {
			t.Fatalf("its membership was not ended: %v", err)
		}
		second.system.Heard(storage.Notification{Due: true, Ended: []string{id}})
		c.wants(time.Second, "ann", "re: hello")
		if second.members.Others() != 0 {
			t.Error("the dead one is still counted")
		}
	})
}

// A node that ends in order gives up what it cannot finish soon, and the other
// one goes on at once: neither waits for a lease nor for the long grace.
func TestNodeStopped(t *testing.T) {
	nodesInBubble(t, 1, nil, func(c *clusterRig) {
		first := c.nodes[0]
		var mu sync.Mutex
		calls := 0
		c.mind.before = func(ctx context.Context, _ llm.Request) error {
			mu.Lock()
			calls++
			n := calls
			mu.Unlock()
			if n == 1 {
				return rest(ctx, time.Hour)
			}
			return nil
		}
		first.say("ann", "hello")
		after(time.Second)
		c.start()
		time.Sleep(4 * time.Second) // they know of each other
		began := time.Now()
		first.stop()
		if d := time.Since(began); d > 6*time.Second {
			t.Errorf("the end took %v", d)
		}
		c.wants(3*time.Second, "ann", "re: hello")
		run := c.runOf("hello")
		if run.Attempts > 1 {
			t.Errorf("the shutdown counts as %d attempts", run.Attempts)
		}
	})
}

// The last node gives its runs the whole grace.
func TestLastNodeStopped(t *testing.T) {
	nodesInBubble(t, 1, nil, func(c *clusterRig) {
		c.mind.before = func(ctx context.Context, _ llm.Request) error { return rest(ctx, 20*time.Second) }
		c.nodes[0].say("ann", "hello")
		after(time.Second)
		c.nodes[0].stop()
		if got := c.chat.seen(); !slices.Equal(got, []string{"re: hello"}) {
			t.Errorf("people see %q", got)
		}
	})
}

func (c *clusterRig) runOf(id claybot.MessageID) claybot.Run {
	c.Helper()
	rec, err := c.index.Receipt(c.Context(), id)
	if err != nil || rec.Run == nil {
		c.Fatalf("receipt of %s: %+v, %v", id, rec, err)
	}
	return *rec.Run
}

// A destination that another node sends to is left to it, and what this one has
// for it comes after, in order.
func TestDestinationOfAnotherNode(t *testing.T) {
	nodesInBubble(t, 2, nil, func(c *clusterRig) {
		a, b := c.nodes[0], c.nodes[1]
		a.say("ann", "start")
		c.wants(time.Second, "ann", "re: start")
		agent, err := c.index.IndexedAgent(t.Context(), claybot.User("chat", "dm-ann", "ann"))
		if err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		var once sync.Once
		c.chat.judge = func(claybot.Outgoing) verdict {
			once.Do(func() { c.chat.mu.Unlock(); <-release; c.chat.mu.Lock() })
			return verdict{}
		}
		say := func(m *member, text string) {
			if err := m.system.Tell(t.Context(), agent, func(texts.Voice) string { return text }); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		say(a, "one")
		for i := range 5 {
			say([]*member{b, a}[i%2], fmt.Sprint("more ", i))
		}
		time.Sleep(time.Minute) // the claim holds until the lease ends
		synctest.Wait()
		if n := len(c.chat.sent()); n != 2 {
			t.Errorf("%d sends, want the first one and one under way", n)
		}
		close(release)
		c.wants(4*time.Second, "ann", "re: start", "one", "more 0", "more 1", "more 2", "more 3", "more 4")
	})
}

// A process that was stopped between the record of an attempt and the send does
// not send: by its clock it is a node no more. Another one does, once.
func TestFrozenBeforeASend(t *testing.T) {
	nodesInBubble(t, 1, nil, func(c *clusterRig) {
		first := c.nodes[0]
		first.way.attempted = func() {
			first.way.cut(true)
			time.Sleep(2 * nodeTTL)
			first.way.cut(false)
			first.way.mu.Lock()
			first.way.attempted = nil
			first.way.mu.Unlock()
		}
		first.say("ann", "hello")
		after(time.Second)
		second := c.start()
		c.wants(3*nodeTTL, "ann", "re: hello")
		after(5 * time.Minute)
		c.wants(0, "ann", "re: hello")
		if n := len(c.chat.sent()); n != 1 {
			t.Errorf("sent %d times", n)
		}
		if first.members.Node() == "" || len(second.members.Alive()) != 2 {
			t.Error("the first one has not come back")
		}
	})
}

// A send whose end could not be recorded, because the store was away for longer
// than a lease lasts, is not made again: the process that made it knows how it
// ended, also under its next id.
func TestStoreAwayDuringASend(t *testing.T) {
	for name, v := range map[string]verdict{"sent": {}, "not sent": failing} {
		t.Run(name, func(t *testing.T) {
			prepare := func(c *clusterRig) { // nothing could be looked up
				c.line = func(_ *member, l *line) connectors.Connector { return l }
			}
			nodesInBubble(t, 1, prepare, func(c *clusterRig) {
				m := c.nodes[0]
				before := m.members.Node()
				var once sync.Once
				c.chat.judge = func(claybot.Outgoing) (said verdict) {
					once.Do(func() {
						m.way.cut(true)
						said = v
					})
					return said
				}
				m.say("ann", "hello")
				after(time.Minute)
				if ready, why := m.system.Overview.Ready(); ready || why == "" {
					t.Error("ready without a store")
				}
				m.way.cut(false)
				c.wants(time.Minute, "ann", "re: hello")
				after(5 * time.Minute)
				c.wants(0, "ann", "re: hello")
				want := 1
				if v.err != nil {
					want = 2
				}
				if n := len(c.chat.sent()); n != want {
					t.Errorf("sent %d times, want %d", n, want)
				}
				if m.members.Node() == before {
					t.Error("the id came back")
				}
				if ready, why := m.system.Overview.Ready(); !ready {
					t.Error(why)
				}
			})
		})
	}
}

// A node without the connector, or with one that fails, leaves its destinations
// to others.
func TestConnectorElsewhere(t *testing.T) {
	prepare := func(c *clusterRig) {
		c.line = func(m *member, l *line) connectors.Connector {
			if m.name == "node1" {
				l.name = "another"
			}
			if m.name == "node2" {
				l.run = func(ctx context.Context, _ connectors.Handler) error {
					l.Fail("no way to the platform")
					<-ctx.Done()
					return context.Cause(ctx)
				}
			}
			return l
		}
	}
	nodesInBubble(t, 2, prepare, func(c *clusterRig) {
		c.nodes[0].say("ann", "hello")
		after(5 * time.Second)
		if got := c.chat.seen(); len(got) > 0 {
			t.Errorf("people see %q", got)
		}
		c.start()
		c.wants(3*time.Second, "ann", "re: hello")
		c.nodes[2].kill()
		c.nodes[0].say("bob", "hi")
		c.wants(nodeTTL+15*time.Second, "bob", "re: hi") // when no node has a better one
	})
}

// A polling line is one that only one node may run.
type pollingLine struct {
	*line
	polls *polls
}

type polls struct {
	mu       sync.Mutex
	now, max int
	names    []string
}

func (p pollingLine) Exclusive() string     { return "chat/bot" }
func (p pollingLine) Standby(holder string) { p.line.Pulse.Standby(holder) }

func (p *polls) line(m *member, l *line) connectors.Connector {
	l.run = func(ctx context.Context, _ connectors.Handler) error {
		p.mu.Lock()
		p.now++
		p.max = max(p.max, p.now)
		p.names = append(p.names, m.name)
		p.mu.Unlock()
		l.OK()
		<-ctx.Done()
		p.mu.Lock()
		p.now--
		p.mu.Unlock()
		return context.Cause(ctx)
	}
	return pollingLine{l, p}
}

func (p *polls) list() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.names)
}

// waitFor waits until the n-th poller has begun and says how long that took.
func (p *polls) waitFor(n int) time.Duration {
	began := time.Now()
	for len(p.list()) < n && time.Since(began) < time.Minute {
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
	return time.Since(began)
}

// One node polls. The others say that they stand by and for whom, and count as
// well; one of them takes over when it ends, is killed, or is cut off.
func TestOneNodePolls(t *testing.T) {
	p := new(polls)
	nodesInBubble(t, 3, func(c *clusterRig) { c.line = p.line }, func(c *clusterRig) {
		after(5 * time.Second)
		if got := p.list(); !slices.Equal(got, []string{"node1"}) {
			t.Fatalf("polled by %v", got)
		}
		for _, m := range c.nodes[1:] {
			h := m.line.Health()
			if h.State != connectors.StateStandby || !h.Settled() || !h.Well() || h.Err != "node node1 has the connection; this one takes over when it ends" {
				t.Errorf("%s: %+v", m.name, h)
			}
			if ready, why := m.system.Overview.Ready(); !ready {
				t.Error(why)
			}
		}
		c.nodes[2].say("ann", "hello") // all of them send
		c.wants(time.Second, "ann", "re: hello")

		c.nodes[0].stop()
		if d := p.waitFor(2); d > 2100*time.Millisecond {
			t.Errorf("handed over after %v", d)
		}
		holder := c.holder(p)
		holder.kill()
		if d := p.waitFor(3); d > nodeTTL+2*time.Second || d < 5*time.Second {
			t.Errorf("taken over after %v", d)
		}
		last := c.holder(p)
		c.start()
		after(5 * time.Second)
		last.way.cut(true)
		if d := p.waitFor(4); d > nodeTTL+2*time.Second || d < 5*time.Second {
			t.Errorf("taken over after %v", d)
		}
		last.way.cut(false)
		after(10 * time.Second)
		if h := last.line.Health(); h.State != connectors.StateStandby {
			t.Errorf("cut off and back: %+v", h)
		}
		if p.max != 1 || len(p.list()) != 4 {
			t.Errorf("%d polls at the same time; all: %v", p.max, p.list())
		}
	})
}

// A node that stands by for a member that is no longer live is not ready, until it has the
// connection and the first success.
func TestReadyWhileNoLiveNodePolls(t *testing.T) {
	p := new(polls)
	nodesInBubble(t, 1, func(c *clusterRig) { c.line = p.line }, func(c *clusterRig) {
		first := c.nodes[0]
		time.Sleep(1200 * time.Millisecond) // so that the second one does not renew as the term of the first one ends
		second := c.start()
		after(3 * time.Second)
		if ready, why := second.system.Overview.Ready(); !ready || second.line.Health().State != connectors.StateStandby {
			t.Fatalf("while the first one polls: %v %s %+v", ready, why, second.line.Health())
		}
		first.kill()
		vacant := 0
		for began := time.Now(); len(p.list()) < 2 && time.Since(began) < time.Minute; after(50 * time.Millisecond) {
			ready, why := second.system.Overview.Ready()
			standby := second.line.Health().State == connectors.StateStandby
			if expired := len(second.members.Alive()) == 1; standby && ready == expired {
				t.Errorf("%v after the kill: ready %v: %s; the first one has expired: %v", time.Since(began), ready, why, expired)
			}
			if !ready && strings.Contains(why, "no live node has the connection") {
				vacant++
			}
		}
		if ready, why := second.system.Overview.Ready(); vacant == 0 || !ready || len(p.list()) != 2 {
			t.Errorf("%d times without a live node; after the takeover by %v: %v %s", vacant, p.list(), ready, why)
		}
		// One that had the connection before is ready again with its next success.
		second.line.Standby("")
		second.line.Start()
		if ready, _ := second.system.Overview.Ready(); ready {
			t.Error("ready before the first success")
		}
		second.line.OK()
		if ready, why := second.system.Overview.Ready(); !ready {
			t.Error(why)
		}
	})
}

// A node on which a connector has stopped, as its token was revoked, is ready once the connector
// works on another one, with the new token, and only as long. It does not try its own again.
func TestStoppedOnOneNode(t *testing.T) {
	p := new(polls)
	var renewed atomic.Bool // nodes that start from here on have the new token
	var refused atomic.Int64
	prepare := func(c *clusterRig) {
		c.line = func(m *member, l *line) connectors.Connector {
			x := p.line(m, l)
			works, valid := l.run, renewed.Load()
			l.run = func(ctx context.Context, h connectors.Handler) error {
				if valid {
					return works(ctx, h)
				}
				refused.Add(1)
				err := &connectors.PermanentError{Err: errors.New("the token is refused (401)")}
				l.Stop(err)
				return err
			}
			return x
		}
	}
	nodesInBubble(t, 2, prepare, func(c *clusterRig) {
		stopped := func(when string, want bool) {
			for _, m := range c.nodes[:2] {
				ready, why := m.system.Overview.Ready()
				if ready != want || !want && !strings.Contains(why, "connector chat: off: the token is refused (401)") || m.line.Health().State != connectors.StateStopped {
					t.Errorf("%s, %s: ready %v: %s, %+v", when, m.name, ready, why, m.line.Health())
				}
			}
		}
		after(10 * time.Minute)
		stopped("with the old token", false)
		renewed.Store(true)
		third := c.start()
		after(30 * time.Second)
		stopped("before it has worked for long elsewhere", false)
		after(time.Minute)
		stopped("while it works elsewhere", true)
		if ready, why := third.system.Overview.Ready(); !ready {
			t.Errorf("%s is not ready: %s", third.name, why)
		}
		third.kill()
		after(nodeTTL + 5*time.Second)
		stopped("when it works nowhere", false)
		if n := refused.Load(); n != 2 {
			t.Errorf("the old token was tried %d times, want once by each node", n)
		}
	})
}

// holder is the node that polls.
func (c *clusterRig) holder(p *polls) *member {
	c.Helper()
	names := p.list()
	i := slices.IndexFunc(c.nodes, func(m *member) bool { return m.name == names[len(names)-1] })
	return c.nodes[i]
}

// Reminders come once although every node looks for them, and also when the node
// that kept the time is gone.
func TestRemindersOfNodes(t *testing.T) {
	nodesInBubble(t, 3, nil, func(c *clusterRig) {
		c.nodes[0].say("ann", "hello")
		c.wants(time.Second, "ann", "re: hello")
		agent, err := c.index.IndexedAgent(t.Context(), claybot.User("chat", "dm-ann", "ann"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			err := c.index.AddReminder(t.Context(), storage.Reminder{
				ID: fmt.Sprint("r", i), Agent: agent, Note: "note", Due: claybot.At(time.Now().Add(time.Duration(i+1) * time.Minute)),
			}, 10)
			if err != nil {
				t.Fatal(err)
			}
		}
		c.nodes[0].kill()
		after(5 * time.Minute)
		for i := range 3 {
			rec, err := c.index.Receipt(t.Context(), claybot.MessageID(fmt.Sprint("reminder/r", i)))
			if err != nil || rec.Run == nil || rec.Run.State != claybot.RunSucceeded {
				t.Errorf("reminder %d: %+v, %v", i, rec.Run, err)
			}
		}
	})
}

// With hints no node waits for the next look: neither for the connection of a node
// that ends nor for a destination that it had.
func TestHintsAreHeard(t *testing.T) {
	p := new(polls)
	prepare := func(c *clusterRig) { c.line, c.hints = p.line, true }
	nodesInBubble(t, 2, prepare, func(c *clusterRig) {
		after(5 * time.Second)
		a, b := c.nodes[0], c.nodes[1]
		a.stop()
		if d := p.waitFor(2); d > 100*time.Millisecond {
			t.Errorf("handed over after %v", d)
		}
		b.system.Heard(storage.Notification{}) // some may have been lost
		b.system.Heard(storage.Notification{
			Member: "x", Due: true, Dests: []string{"", "chat", "chat\x00dm-ann", "no\x00where"}, Freed: []string{"", "out/", "chat/bot", storage.DestClaim("chat\x00dm-ann")},
			Sent: []string{"\x00"}, Cancel: []storage.CancelRequest{{}, {Agent: "a", Run: "r"}}, Runs: []claybot.RunID{""},
		})
		b.say("ann", "hello")
		c.wants(time.Second, "ann", "re: hello")
	})
}

// A node that cannot send says so, and one that can does it at once.
func TestHandedOn(t *testing.T) {
	prepare := func(c *clusterRig) {
		c.hints = true
		c.line = func(m *member, l *line) connectors.Connector {
			if m.name == "node1" {
				l.name = "another"
			}
			return findingLine{l}
		}
	}
	nodesInBubble(t, 2, prepare, func(c *clusterRig) {
		after(5 * time.Second)
		c.nodes[1].way.cut(true) // it takes no work
		c.nodes[0].say("ann", "hello")
		synctest.Wait()
		c.nodes[1].way.cut(false)
		c.wants(4*time.Second, "ann", "re: hello")
	})
}
