package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// renewalsUntilKnown is after how many renewals a node knows at the latest what another
// one has named.
const renewalsUntilKnown = lookForSinks + 1

// renewals renews the lease of a node so often that it knows what others have named.
func (c *crew) renewals(i int) {
	c.Helper()
	for range renewalsUntilKnown {
		if _, err := c.dbs[i].RenewMember(c.Context(), storage.Member{ID: c.node(i), Name: c.node(i)}, time.Hour); err != nil {
			c.Fatal(err)
		}
	}
}

// names names the sinks of a node.
func (c *crew) names(i int, names ...string) {
	c.Helper()
	if err := c.dbs[i].Sinks(c.Context(), true, names...); err != nil {
		c.Fatal(err)
	}
}

// begins begins a run on a node.
func (c *crew) begins(i int, channel string) claybot.RunID {
	c.Helper()
	db, id := c.dbs[i], agentAt(c.T, c.dbs[i], channel)
	m := note("m-" + channel)
	if _, err := db.Post(c.Context(), storage.Posting{To: id, Message: m}); err != nil {
		c.Fatal(err)
	}
	acquired, _, err := db.Acquire(c.Context(), c.node(i), time.Hour, 1, 1)
	if err != nil || len(acquired) != 1 || acquired[0].Lease.Agent != id {
		c.Fatal(acquired, err)
	}
	run, err := db.Begin(c.Context(), acquired[0].Lease, claybot.RunID("r-"+channel), []claybot.MessageID{m.ID}, storage.Beginning{})
	if err != nil {
		c.Fatal(err)
	}
	return run.ID
}

// owes compares of which runs a sink is to be told, as each node sees it.
func (c *crew) owes(sink string, runs ...claybot.RunID) {
	c.Helper()
	for i, db := range c.dbs {
		list, err := db.Backlog(c.Context(), sink, 100)
		if err != nil {
			c.Fatal(err)
		}
		var got []claybot.RunID
		for _, u := range list {
			if u.After != 0 {
				c.Errorf("sink %s is told of %s after %d only", sink, u.Run, u.After)
			}
			got = append(got, u.Run)
		}
		slices.Sort(got)
		if !slices.Equal(got, runs) {
			c.Errorf("node %d: sink %s is to be told of %v, want %v", i, sink, got, runs)
		}
	}
}

// A sink that one node names gets the events that another one commits some
// renewals later, also when that one has other sinks, or none.
func TestSinkOfAnotherNode(t *testing.T) {
	c := newCrew(t, postgrestest.Shared(t).Database(t), 3)
	c.names(1, "audit")
	c.renewals(0)
	first := c.begins(0, "C1")
	c.owes("audit", first)

	// Naming its own does not take those of others away, while they are there.
	c.names(0, "bus")
	for i := range c.dbs {
		c.renewals(i)
	}
	var all []claybot.RunID
	for i, channel := range []string{"C2", "C3", "C4"} {
		all = append(all, c.begins(i, channel))
	}
	c.owes("bus", all...)
	c.owes("audit", append([]claybot.RunID{first}, all...)...)

	// One of two others leaves: who is left may still have it.
	if err := c.dbs[2].Leave(t.Context(), c.node(2)); err != nil {
		t.Fatal(err)
	}
	c.names(0, "bus")
	c.owes("audit", append([]claybot.RunID{first}, all...)...)

	// A node that is alone names all that there are.
	if err := c.dbs[1].Leave(t.Context(), c.node(1)); err != nil {
		t.Fatal(err)
	}
	c.names(0, "bus")
	last := c.begins(0, "C5")
	c.owes("bus", append(all, last)...)
	c.owes("audit")
}
