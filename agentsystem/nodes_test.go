package agentsystem_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// accounts is the contract under a name that its own method does not hide.
type accounts = storage.StatsReader

type waysideFigures struct {
	accounts
	*way
}

func (f waysideFigures) Stats(ctx context.Context) (storage.Stats, error) {
	if err := f.err(); err != nil {
		return storage.Stats{}, err
	}
	return f.accounts.Stats(ctx)
}

// Each node tells of all of them, and of what it claims; one that loses its way to
// the store says so within five seconds, with the figures that it had.
func TestNodeStatus(t *testing.T) {
	nodesInBubble(t, 2, nil, func(c *clusterRig) {
		first, second := c.nodes[0], c.nodes[1]
		first.say("ann", "hello")
		c.wants(5*time.Second, "ann", "re: hello")
		time.Sleep(nodeTTL) // both know of each other
		status := func(m *member) overview.Status {
			st, err := m.system.Overview.Status(c.Context())
			if err != nil {
				c.Fatal(err)
			}
			return st
		}
		for _, m := range c.nodes {
			st := status(m)
			if n := st.Node; n == nil || n.ID != m.members.Node() || n.Name != m.name || n.Nodes != 2 || !n.OK || n.Err != "" || st.Agents != 1 {
				c.Errorf("%s: %+v of %d agents", m.name, n, st.Agents)
			}
		}
		all, err := first.system.Overview.Members(c.Context())
		if err != nil || len(all) != 2 {
			c.Fatalf("nodes: %v %+v", err, all)
		}
		for _, n := range all {
			if n.State != storage.MemberLive || n.Version != "test" {
				c.Errorf("%+v", n)
			}
		}

		if st := status(second); len(st.Connectors) == 0 || st.Connectors[0].Held != "" {
			c.Errorf("nothing keeps the connectors back: %+v", st.Connectors)
		}
		read := claybot.Now()
		second.way.cut(true)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		st := status(second)
		if st.AsOf != read || st.Unknown {
			c.Errorf("without the store: figures as of %v, unknown %v; want %v", st.AsOf, st.Unknown, read)
		}
		for _, x := range st.Connectors {
			if (x.Held == "new messages wait at the platform until the database answers") != (x.State != connectors.StateStandby) {
				c.Errorf("without the store: %+v", x)
			}
		}
		if n := st.Node; n.OK || !strings.Contains(n.Err, "the database does not answer") || st.Agents != 1 || st.Runs[claybot.RunSucceeded] != 1 {
			c.Errorf("without the store: %+v, %+v", n, st)
		}
		if ok, words := second.system.Overview.Ready(); ok || !strings.Contains(words, "the database does not answer") {
			c.Errorf("ready %v: %s", ok, words)
		}
		if ok, words := first.system.Overview.Ready(); !ok {
			c.Errorf("the other one is not ready: %s", words)
		}
		time.Sleep(2 * nodeTTL)
		second.way.cut(false)
		time.Sleep(2 * nodeTTL)
		if st := status(second); !st.Node.OK || st.AsOf != 0 || st.Node.Nodes != 2 || slices.ContainsFunc(st.Connectors, func(x overview.ConnectorStatus) bool { return x.Held != "" }) {
			c.Errorf("afterwards: %+v of %+v", st.Node, st.Connectors)
		}
		if ok, words := second.system.Overview.Ready(); !ok {
			c.Errorf("not ready afterwards: %s", words)
		}
		// The node was lost and came back as another one; it is one process all the same.
		all, err = first.system.Overview.Members(c.Context())
		count := make(map[storage.MemberState]int)
		for _, n := range all {
			count[n.State]++
		}
		if err != nil || count[storage.MemberLive] != 2 || len(all) != 2 {
			c.Errorf("nodes: %v %+v", err, all)
		}
	})
}

// While renewals arrive, figures that fail are told as the last that were read, or as
// not known.
func TestStatusWithoutFigures(t *testing.T) {
	nodesInBubble(t, 1, nil, func(c *clusterRig) {
		m := c.nodes[0]
		m.say("ann", "hello")
		c.wants(5*time.Second, "ann", "re: hello")
		lame := &way{fuse: m.fuse}
		cfg := m.cfg
		cfg.Counts = waysideFigures{m.db, lame}
		s := agentsystem.New(cfg)
		lame.cut(true)
		if st, err := s.Overview.Status(c.Context()); err != nil || st.Node.OK || !strings.Contains(st.Node.Err, "not known yet") || !st.Unknown || st.AsOf != 0 {
			c.Errorf("without figures: %v %+v", err, st)
		}
		gone, cancel := context.WithCancel(c.Context())
		cancel()
		if _, err := s.Overview.Status(gone); err == nil {
			c.Error("a status for a caller that is gone")
		}
		lame.cut(false)
		if st, err := s.Overview.Status(c.Context()); err != nil || !st.Node.OK || st.Agents != 1 || st.Unknown || st.AsOf != 0 {
			c.Errorf("with figures: %v %+v", err, st.Node)
		}
		lame.cut(true)
		if st, err := s.Overview.Status(c.Context()); err != nil || st.Node.OK || !strings.Contains(st.Node.Err, "did not give its figures") || st.Agents != 1 || st.AsOf == 0 || st.Unknown {
			c.Errorf("with old figures: %v %+v", err, st)
		}
	})
}

// A node that was not asked before its database froze reports everything but metrics. A node
// that stands by does not say which node has the connection: that is unknown.
func TestFirstStatusWithoutStore(t *testing.T) {
	prepare := func(c *clusterRig) { c.line = new(polls).line }
	nodesInBubble(t, 2, prepare, func(c *clusterRig) {
		after(5 * time.Second)
		for i, m := range c.nodes {
			m.way.cut(true)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			st, err := m.system.Overview.Status(c.Context())
			if err != nil {
				c.Fatalf("%s: %v", m.name, err)
			}
			if !st.Unknown || st.AsOf != 0 || st.Node == nil || st.Node.OK || st.Node.Err == "" || len(st.Connectors) != 1 {
				c.Fatalf("%s: %+v", m.name, st)
			}
			x, standby := st.Connectors[0], i == 1
			if (x.State == connectors.StateStandby) != standby || (x.Held == "") != standby || standby && !strings.HasPrefix(x.Err, "the node that has the connection is unknown") {
				c.Errorf("%s: %+v", m.name, x)
			}
			m.way.cut(false)
			time.Sleep(2 * nodeTTL)
		}
	})
}

// A lease that ends while its agent is worked on is counted.
func TestLeasesLostAreCounted(t *testing.T) {
	nodesInBubble(t, 1, nil, func(c *clusterRig) {
		m := c.nodes[0]
		var away atomic.Bool
		away.Store(true)
		c.mind.before = func(ctx context.Context, _ llm.Request) error {
			if !away.Load() {
				return nil
			}
			return rest(ctx, time.Hour)
		}
		m.say("ann", "hello")
		after(time.Second)
		m.way.cut(true)
		after(2 * nodeTTL)
		away.Store(false)
		m.way.cut(false)
		c.wants(2*nodeTTL, "ann", "re: hello")
		if n := m.system.Worker.LeasesLost(); n != 1 || m.members.Lost() != 1 {
			c.Errorf("%d leases and %d memberships lost, want 1 each", n, m.members.Lost())
		}
	})
}

// A process that has its store for itself is the only node.
func TestAloneAsNode(t *testing.T) {
	s := agentsystem.New(agentsystem.Config{
		Members: cluster.Alone(storage.Member{ID: "a/1", Name: "a", Version: "v"}), Limits: agentsystem.Limits{MaxRuns: 7},
		PeopleSettings: agentsystem.PeopleSettings{Admission: func() people.Access { return people.Access{} }},
	})
	all, err := s.Overview.Members(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%v %+v", err, all)
	}
	if n := all[0]; n.ID != "a/1" || n.Name != "a" || n.Version != "v" || n.State != storage.MemberLive || n.MaxRuns != 7 || n.Started == 0 || n.Seen != 0 {
		t.Errorf("%+v", n)
	}
}
