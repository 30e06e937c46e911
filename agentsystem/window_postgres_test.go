package agentsystem_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// TestTypedElsewherePostgres: over PostgreSQL, a page on one member shows within a second what a
// person writes, edits and deletes on another one, and the run and the reply, without any hints.
func TestTypedElsewherePostgres(t *testing.T) {
	p := new(page)
	nodesInBubble(t, 2, func(c *clusterRig) {
		c.line = func(m *member, l *line) connectors.Connector {
			if m.name == "node1" {
				return p
			}
			return l
		}
	}, func(c *clusterRig) {
		here, there := c.nodes[0].system, c.nodes[1].system
		if err := here.Opened(c.Context(), ann); err != nil {
			c.Fatal(err)
		}
		shows := func(m claybot.AgentMessage, want string) {
			c.Helper()
			if err := there.Post(c.Context(), ann, m); err != nil {
				c.Fatal(err)
			}
			time.Sleep(1200 * time.Millisecond)
			p.mu.Lock()
			defer p.mu.Unlock()
			if !slices.Contains(p.typed, want) {
				c.Errorf("after %s the page shows %q", m.ID, p.typed)
			}
		}
		shows(msg("m1", "hello"), "hello")
		shows(claybot.AgentMessage{ID: "m1/edit/1", Type: claybot.MessageEdit, Amends: "m1", Text: "good day", From: msg("", "").From, At: claybot.Now()}, "edit m1 good day")
		shows(claybot.AgentMessage{ID: "m1/deleted", Type: claybot.MessageDelete, Amends: "m1", From: msg("", "").From, At: claybot.Now()}, "delete m1 ")
		shows(msg("m2", "bye"), "bye")
		time.Sleep(1200 * time.Millisecond)
		p.mu.Lock()
		defer p.mu.Unlock()
		if !slices.ContainsFunc(p.seen, func(e string) bool { return strings.HasSuffix(e, " RunFinished") }) {
			c.Errorf("the page shows the runs as %q", p.seen)
		}
	})
}
