package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
)

// proofTables are what the database itself notes of the nodes: each change of who
// holds an agent or has a claim, and each write of an event or to the outbox with
// who held its agent or its destination at that moment. That it is done by triggers makes it part of the transaction of each
// write, and no code of the daemon has a say in it. session_user is the role of
// the node that is connected, whatever it acts as.
const proofTables = `
CREATE SCHEMA rig;
CREATE TABLE rig.holds (agent text, token bigint, node text, who text, xid xid8, at timestamptz);
CREATE TABLE rig.writes (kind text, agent text, run text, seq bigint, type text, token bigint, node text, who text, xid xid8, at timestamptz);
CREATE INDEX ON rig.holds (agent, token);

CREATE FUNCTION rig.held() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO rig.holds VALUES (NEW.id, NEW.token, nullif(NEW.node, ''), session_user, pg_current_xact_id(), clock_timestamp());
	RETURN NULL;
END $$;
CREATE TRIGGER rig_held AFTER UPDATE ON %[1]s.agents FOR EACH ROW
	WHEN (OLD.token IS DISTINCT FROM NEW.token OR OLD.node IS DISTINCT FROM NEW.node) EXECUTE FUNCTION rig.held();

CREATE FUNCTION rig.wrote() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO rig.writes SELECT 'event', a.id, NEW.run, NEW.seq, NEW.type, a.token, nullif(a.node, ''), session_user, pg_current_xact_id(), clock_timestamp()
		FROM %[1]s.runs r JOIN %[1]s.agents a ON a.id = r.agent WHERE r.id = NEW.run;
	RETURN NULL;
END $$;
CREATE TRIGGER rig_wrote AFTER INSERT ON %[1]s.events FOR EACH ROW EXECUTE FUNCTION rig.wrote();

CREATE FUNCTION rig.claimed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO rig.holds VALUES (NEW.name, NEW.token, nullif(NEW.node, ''), session_user, pg_current_xact_id(), clock_timestamp());
	RETURN NULL;
END $$;
CREATE TRIGGER rig_claimed AFTER INSERT OR UPDATE ON %[1]s.claims FOR EACH ROW EXECUTE FUNCTION rig.claimed();

CREATE FUNCTION rig.sent() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO rig.writes SELECT 'send', 'out/' || NEW.dest, NEW.id, NULL, NEW.state, c.token, nullif(c.node, ''), session_user, pg_current_xact_id(), clock_timestamp()
		FROM (SELECT) AS one LEFT JOIN %[1]s.claims c ON c.name = 'out/' || NEW.dest;
	RETURN NULL;
END $$;
CREATE TRIGGER rig_sent AFTER UPDATE ON %[1]s.outbox FOR EACH ROW
	WHEN (NEW.state IN ('attempted', 'sent') AND OLD.state <> NEW.state) EXECUTE FUNCTION rig.sent();
`

// proofRecords is the same for records of histories, where %[2]s is their table.
const proofRecords = `
CREATE FUNCTION rig.recorded() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO rig.writes SELECT 'record', a.id, NULL, NULL, NULL, a.token, nullif(a.node, ''), session_user, pg_current_xact_id(), clock_timestamp()
		FROM %[1]s.agents a WHERE a.id = NEW.agent AND a.token > 0;
	RETURN NULL;
END $$;
CREATE TRIGGER rig_recorded AFTER INSERT ON %[1]s.%[2]s FOR EACH ROW EXECUTE FUNCTION rig.recorded();
`

// recordTables are what the table of records may be called.
var recordTables = []string{"records", "history", "histories"}

// watchWrites installs the triggers into the tables of a database, which a node
// has made.
func watchWrites(ctx context.Context, db *database) error {
	rows, err := db.query(ctx, `SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`)
	if err != nil {
		return err
	}
	schema, records := "", ""
	for _, r := range rows {
		if r[1] == "events" {
			schema = r[0]
		}
		if slices.Contains(recordTables, r[1]) {
			records = r[1]
		}
	}
	if schema == "" || records == "" {
		return fmt.Errorf("the database has no table of events or of records: %v", rows)
	}
	_, err = db.query(ctx, fmt.Sprintf(proofTables, schema)+fmt.Sprintf(proofRecords, schema, records))
	return err
}

// A doubt is a question to the database whose answer, a number, is to be zero.
type doubt struct {
	what, sql string
}

// doubts are the writes that the store must not have accepted.
//
// The holder of an agent is the node that its row names. A write is stale
// when another node held its agent at that moment, when no node did and the write
// did not end the hold itself, or when it was committed after the next holder was.
// The last one needs no lock to be right: it goes by the clock of the commits.
func doubts(schema string) []doubt {
	const holders = `WITH holders AS (SELECT node, who FROM rig.holds WHERE node IS NOT NULL GROUP BY node, who) `
	// A message that never ran leaves a run behind that only says so.
	const fenced = ` (w.type IS DISTINCT FROM 'RunCanceled' OR w.seq > 1) `
	return []doubt{
		{"holders with two names", holders + `SELECT count(*) FROM (SELECT node FROM holders GROUP BY node HAVING count(*) > 1) AS x`},
		{"writes by others than the holder", holders + `SELECT count(*) FROM rig.writes w WHERE w.node IS NOT NULL AND` + fenced +
			`AND NOT EXISTS (SELECT 1 FROM holders h WHERE h.node = w.node AND h.who = w.who)`},
		{"writes without a holder", `SELECT count(*) FROM rig.writes w WHERE w.node IS NULL AND` + fenced +
			`AND NOT EXISTS (SELECT 1 FROM rig.holds h WHERE h.agent = w.agent AND h.xid = w.xid)`},
		{"writes after the next holder", `SELECT count(*) FROM rig.writes w JOIN rig.holds h ON h.agent = w.agent AND h.token = w.token + 1 AND h.node IS NOT NULL
			WHERE` + fenced + `AND pg_xact_commit_timestamp(h.xid::xid) < pg_xact_commit_timestamp(w.xid::xid)`},
		{"tokens that went down", `SELECT count(*) FROM (SELECT token - lag(token) OVER (PARTITION BY agent ORDER BY pg_xact_commit_timestamp(xid::xid), token) AS step FROM rig.holds) AS x WHERE step < 0`},
		{"events with gaps", `SELECT count(*) FROM (SELECT run FROM ` + schema + `.events GROUP BY run HAVING min(seq) <> 1 OR max(seq) <> count(*)) AS x`},
	}
}

// twice are the messages that two runs had, or one run two times.
func twice(schema string) doubt {
	return doubt{"messages in two runs", `SELECT count(*) FROM (SELECT m FROM ` + schema + `.events e,
		jsonb_array_elements_text(CASE jsonb_typeof(e.data::text::jsonb -> 'messages') WHEN 'array' THEN e.data::text::jsonb -> 'messages' ELSE '[]' END) AS m
		WHERE e.type IN ('RunStarted', 'RunResumed', 'MessagesInjected') GROUP BY m HAVING count(*) > 1) AS x`}
}

// A trace is a change of who holds an agent, or an event of an agent.
type trace struct {
	agent string
	event claybot.EventType // empty for a change of the holder
	node  string            // that holds the agent; empty for no node
	who   string            // wrote it
	at    time.Time
}

// traces are all changes of holders and all events, oldest first for each agent.
func traces(ctx context.Context, db *database) (map[string][]trace, error) {
	rows, err := db.query(ctx, `SELECT agent, '' AS type, coalesce(node, ''), who, (extract(epoch FROM at) * 1000000)::bigint AS t FROM rig.holds
		UNION ALL SELECT agent, type, coalesce(node, ''), who, (extract(epoch FROM at) * 1000000)::bigint AS t FROM rig.writes WHERE kind = 'event'
		ORDER BY agent, t`)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]trace)
	for _, r := range rows {
		t, err := strconv.ParseInt(r[4], 10, 64)
		if err != nil {
			return nil, err
		}
		all[r[0]] = append(all[r[0]], trace{r[0], claybot.EventType(r[1]), r[2], r[3], time.UnixMicro(t)})
	}
	return all, nil
}

// A resumption is how long the run of an agent lay before another node went on.
type resumption struct {
	agent string
	took  time.Duration
}

// takeovers are the times from a moment, at which a node was struck, until the runs
// that it was at went on elsewhere: to the first event of each. The end of an agent
// that was between two runs is not counted.
func takeovers(all map[string][]trace, b *blow) (took []resumption) {
	for agent, list := range all {
		i, _ := slices.BinarySearchFunc(list, b.at, func(x trace, at time.Time) int { return x.at.Compare(at) })
		if d, ok := takeover(list[:i], list[i:], nodeRole(b.node), b.at); ok {
			took = append(took, resumption{agent, d})
		}
	}
	return took
}

// takeover is how long after a moment an agent's run had its next event, when it had
// a run at that moment that who worked on.
func takeover(before, after []trace, who string, at time.Time) (time.Duration, bool) {
	held, open, known := false, false, false
	for i := len(before) - 1; i >= 0 && !(held && known); i-- {
		x := before[i]
		switch {
		case x.event == "" && !held:
			if x.node == "" || x.who != who {
				return 0, false
			}
			held = true
		case x.event != "" && !known:
			open, known = !x.event.Ends() && x.event != claybot.EventAwaitingInput, true
		}
	}
	if !held || !open {
		return 0, false
	}
	for _, x := range after {
		if x.event != "" {
			return x.at.Sub(at), true
		}
	}
	return 0, false
}

// story tells what happened to an agent from shortly before a blow until others went
// on with its run.
func (r resumption) story(list []trace, b *blow) string {
	var parts []string
	for _, x := range list {
		at := x.at.Sub(b.at)
		if at < -2*time.Second || at > r.took+time.Second || len(parts) == 40 {
			continue
		}
		what := string(x.event)
		if what == "" {
			what = "held by " + cmp.Or(x.node, "no node")
		}
		parts = append(parts, fmt.Sprintf("%+.2f %s (%s)", at.Seconds(), what, x.who))
	}
	return fmt.Sprintf("agent %s lay for %.2f s after the %v of node %s at %s: %s",
		r.agent, r.took.Seconds(), b.fault, b.node, b.at.UTC().Format(time.TimeOnly), strings.Join(parts, ", "))
}

// ask puts doubts to the database and tells which of them are true.
func ask(ctx context.Context, db *database, all []doubt) (found int64, stories []string, err error) {
	for _, d := range all {
		n, err := db.count(ctx, d.sql)
		if err != nil {
			return 0, nil, errors.Join(fmt.Errorf("ask for %s", d.what), err)
		}
		if n > 0 {
			stories = append(stories, fmt.Sprintf("%s: %d", d.what, n))
		}
		found += n
	}
	return found, stories, nil
}

// schemaOf is where the tables of the daemon are.
func schemaOf(ctx context.Context, db *database) (string, error) {
	rows, err := db.query(ctx, `SELECT schemaname FROM pg_tables WHERE tablename = 'events' AND schemaname <> 'rig'`)
	if err != nil {
		return "", err
	}
	if len(rows) != 1 {
		return "", fmt.Errorf("%d tables of events", len(rows))
	}
	return strings.TrimSpace(rows[0][0]), nil
}
