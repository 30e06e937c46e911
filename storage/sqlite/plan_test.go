package sqlite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// plans returns how SQLite will run a query.
func plans(t *testing.T, db *DB, l listing) (steps []string) {
	t.Helper()
	err := db.read(t.Context(), func(c *conn) error {
		return c.each("EXPLAIN QUERY PLAN "+l.query, func(r row) error { steps = append(steps, r.str(3)); return nil }, l.args...)
	})
	if err != nil {
		t.Fatalf("%s: %v", l.query, err)
	}
	return steps
}

// slow reports a plan that reads a whole table, or sorts.
func slow(steps []string) bool {
	for _, s := range steps {
		if strings.HasPrefix(s, "SCAN") && !strings.Contains(s, "VIRTUAL TABLE") || strings.Contains(s, "TEMP B-TREE") {
			return true
		}
	}
	return false
}

// TestListPlans: whatever is filtered by, a page is read from an index in the
// order of the list.
func TestListPlans(t *testing.T) {
	db := openFresh(t)
	check := func(what string, l listing) {
		t.Helper()
		if steps := plans(t, db, l); len(steps) == 0 || slow(steps) {
			t.Errorf("%s: %q", what, steps)
		}
	}
	for _, kind := range []claybot.AgentType{"", claybot.AgentUser, claybot.AgentCron} {
		for _, owner := range []string{"", "telegram/1"} {
			for _, parent := range []claybot.AgentID{"", "p"} {
				for _, busy := range []bool{false, true} {
					q := storage.AgentQuery{Type: kind, Owner: owner, Parent: parent, Busy: busy}
					check(fmt.Sprintf("agents %+v", q), agentListing(q, firstPlace, 50))
				}
			}
		}
	}
	for _, agent := range []claybot.AgentID{"", "a"} {
		for _, state := range []claybot.RunState{"", claybot.RunSucceeded, claybot.RunFailed, claybot.RunCanceled, claybot.RunRunning, claybot.RunAwaiting} {
			q := storage.RunQuery{Agent: agent, State: state, Before: "r"}
			l := runListing(q, 50)
			if strings.Contains(l.query, "one_unfinished_run") {
				continue // one row of each agent at most: few enough to sort
			}
			check(fmt.Sprintf("runs %+v", q), l)
		}
		check("reserved ids of "+string(agent), pendingListing(storage.RunQuery{Agent: agent}, 50))
	}
	for _, dest := range []string{"", "d"} {
		for _, state := range []claybot.SendState{"", claybot.SendWaiting, claybot.SendAttempted, claybot.SendSent, claybot.SendAmbiguous, claybot.SendFailed} {
			for _, open := range []bool{false, true} {
				q := storage.OutgoingQuery{Dest: dest, State: state, Open: open}
				check(fmt.Sprintf("outgoing %+v", q), outgoingListing(q, 50))
			}
		}
	}
	check("open questions", questionListing("", 50))
	check("open questions of an agent", questionListing("a", 50))
	check("backlog", listing{backlogQuery, []any{"web", 50}})
	check("events", listing{eventsQuery, []any{"r", 0, 50}})
	check("latencies", listing{latenciesQuery, []any{dayOf(0), lastDay}})
	for _, by := range [][]string{nil, {storage.ByDay}, {storage.ByDay, storage.ByModel}, {storage.ByDay, storage.ByModel, storage.ByType}} {
		q, err := spentSQL(storage.SpentQuery{By: by})
		if err != nil {
			t.Fatal(err)
		}
		l := listing{q, []any{"", lastDay, 50}}
		check(fmt.Sprintf("spent by %v", by), l)
		if steps := fmt.Sprint(plans(t, db, l)); !strings.Contains(steps, "spent_days") {
			t.Errorf("spent by %v reads the rows of agents: %s", by, steps)
		}
	}
	if q := "SELECT * FROM runs ORDER BY ended"; !slow(plans(t, db, listing{query: q})) {
		t.Errorf("the check itself does not see that %q is slow", q)
	}
}
