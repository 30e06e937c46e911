package agentsystem_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/overview"
)

// The node that works on a run is named as long as it does, by the other nodes as well.
func TestWorksOn(t *testing.T) {
	nodesInBubble(t, 2, nil, func(c *clusterRig) {
		time.Sleep(nodeTTL) // both know of each other
		c.mind.before = func(ctx context.Context, _ llm.Request) error { return rest(ctx, time.Minute) }
		c.nodes[0].say("ann", "hello")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		id := c.runOf("hello").Agent
		i := slices.IndexFunc(c.nodes, func(m *member) bool { return m.system.Working() == 1 })
		if i < 0 {
			c.Fatal("no node works on it")
		}
		worker := c.nodes[i].name
		for _, m := range c.nodes {
			got, err := m.system.Overview.WorksOn(c.Context(), id)
			if err != nil || got != worker {
				c.Errorf("%s says that %q works on it (%v), want %q", m.name, got, err, worker)
			}
			if told := nodeStep(c, m, "hello"); !strings.Contains(told, worker) {
				c.Errorf("why on %s: %q, want %q", m.name, told, worker)
			}
			if other, err := m.system.Overview.WorksOn(c.Context(), claybot.AgentID("nobody")); other != "" || err != nil {
				c.Errorf("of an agent that is none: %q, %v", other, err)
			}
		}
		c.wants(2*time.Minute, "ann", "re: hello")
		for _, m := range c.nodes {
			if got, err := m.system.Overview.WorksOn(c.Context(), id); got != "" || err != nil {
				c.Errorf("%s after the end: %q, %v", m.name, got, err)
			}
			if told := nodeStep(c, m, "hello"); told != "" {
				c.Errorf("why after the end: %q", told)
			}
		}
	})
}

// nodeStep is what the story of a message says of nodes.
func nodeStep(c *clusterRig, m *member, id string) string {
	c.Helper()
	stories, err := m.system.Overview.Why(c.Context(), id)
	if err != nil || len(stories) != 1 {
		c.Fatalf("why: %+v, %v", stories, err)
	}
	steps := stories[0].Steps
	i := slices.IndexFunc(steps, func(s overview.Step) bool { return s.What == "node" })
	if i < 0 {
		return ""
	}
	return steps[i].Text
}
