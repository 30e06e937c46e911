package storagetest

import "testing"

// Figures compares the counters and other derived columns of a store on the tables
// of package relational with what they count. each calls f for every row of a query.
//
// It returns the error of each, so that the caller may pass over a store that is
// closed.
func Figures(t testing.TB, each func(q string, f func(row []any) error) error) error {
	t.Helper()
	return each(countedQuery, func(row []any) error {
		if row[1] != row[2] {
			t.Errorf("counter %v is %v, counted %v", row[0], row[2], row[1])
		}
		return nil
	})
}

// countedQuery is: name, what was counted, what is written down. It is in the part
// of SQL that the databases share.
const countedQuery = `WITH counted (name, n) AS (
		SELECT 'agents', CAST(count(*) AS bigint) FROM agents
		UNION ALL SELECT 'waiting', CAST(count(*) AS bigint) FROM messages WHERE run IS NULL AND skipped IS NULL
		UNION ALL SELECT 'agents.waiting', CAST(coalesce(sum(waiting), 0) AS bigint) FROM agents
		UNION ALL SELECT 'agents.busy', CAST(count(*) AS bigint) FROM agents WHERE busy = 1
		UNION ALL SELECT 'flows.open', CAST(coalesce(sum(CASE WHEN first_n > 0 THEN waiting ELSE 0 END + CASE WHEN run IS NOT NULL AND resume_at IS NULL THEN 1 ELSE 0 END), 0) AS bigint) FROM agents WHERE type = 'flow'
		UNION ALL SELECT 'flows.waiting', CAST(count(*) AS bigint) FROM agents WHERE type = 'flow' AND run IS NOT NULL AND resume_at IS NOT NULL
		UNION ALL SELECT 'questions.open', CAST(count(*) AS bigint) FROM questions WHERE open = 1
		UNION ALL SELECT 'run:' || state, CAST(count(*) AS bigint) FROM runs GROUP BY state
		UNION ALL SELECT 'send:' || state, CAST(count(*) AS bigint) FROM outbox GROUP BY state)
	SELECT name, n, CASE name
		WHEN 'agents.waiting' THEN (SELECT CAST(coalesce(sum(k.n), 0) AS bigint) FROM counters k WHERE k.name = 'waiting')
		WHEN 'agents.busy' THEN (SELECT CAST(count(*) AS bigint) FROM agents WHERE run IS NOT NULL OR first_n > 0)
		WHEN 'flows.open' THEN (SELECT CAST(coalesce(sum(k.n), 0) AS bigint) FROM counters k WHERE k.name LIKE 'flow/%/open/%')
		WHEN 'flows.waiting' THEN (SELECT CAST(coalesce(sum(k.n), 0) AS bigint) FROM counters k WHERE k.name LIKE 'flow/%/waiting/%')
		WHEN 'questions.open' THEN (SELECT CAST(count(*) AS bigint) FROM questions q JOIN runs r ON r.id = q.run AND r.state = 'AWAITING'
			WHERE r.awaiting LIKE '%"id":"' || q.id || '"%' AND NOT EXISTS (SELECT 1 FROM messages WHERE id = 'answer/' || q.id))
		ELSE (SELECT CAST(coalesce(sum(k.n), 0) AS bigint) FROM counters k WHERE k.name = counted.name) END FROM counted`
