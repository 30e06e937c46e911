package agentsystem_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
)

// Members share the parking table: what one has parked goes before what another one
// takes in, and is taken in by the others when it is gone, in order and once, after one
// notice.
func TestMembersShareParking(t *testing.T) {
	t.Parallel()
	f := &agentFault{call: "AgentFor", err: errAccess}
	nodesInBubble(t, 2, func(c *clusterRig) { c.decorate = f.stores }, func(c *clusterRig) {
		a, b := c.nodes[0], c.nodes[1]
		f.on.Store(true)
		say := func(m *member, ids ...claybot.MessageID) {
			for _, id := range ids {
				if err := m.system.Post(c.Context(), carol, msg(string(id), string(id))); err != nil {
					c.Fatal(err)
				}
			}
		}
		say(a, "m1", "m2")
		say(b, "m2", "m3") // one of them is a redelivery
		b.say("ann", "hello")
		after(10 * time.Second)
		f.on.Store(false)
		say(b, "m4") // behind the others, although its agent can be used now
		f.on.Store(true)
		a.kill()
		after(nodeTTL + 20*time.Second)
		f.on.Store(false)
		after(45 * time.Second)
		var took []claybot.MessageID
		for _, id := range []claybot.MessageID{"m1", "m2", "m3", "m4"} {
			run := c.runOf(id)
			if run.State != claybot.RunSucceeded {
				c.Errorf("the run of %s is %s", id, run.State)
			}
			if !slices.Contains(took, run.Messages[0]) { // several may share a run
				took = append(took, run.Messages...)
			}
		}
		if !slices.Equal(took, []claybot.MessageID{"m1", "m2", "m3", "m4"}) {
			c.Errorf("runs took %q", took)
		}
		notices := 0
		for _, text := range c.chat.seen(carol.ChannelID) {
			if strings.Contains(text, "has to wait") {
				notices++
			}
		}
		if notices != 1 {
			c.Errorf("%d notices", notices)
		}
		if !slices.Contains(c.chat.seen("dm-ann"), "re: hello") {
			c.Errorf("another person sees %q", c.chat.seen("dm-ann"))
		}
	})
}
