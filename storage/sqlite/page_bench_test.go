package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/storagetest"
)

// fill runs a script of statements that make rows.
func fill(b *testing.B, script ...string) *DB {
	b.Helper()
	db, err := Open(b.Context(), filepath.Join(b.TempDir(), "claybot.db"), Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	err = db.change(b.Context(), func(c *conn) error {
		for _, q := range script {
			if _, err := c.exec(q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return db
}

const count100000 = "WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 100000) "

// BenchmarkRunPage reads pages of 100,000 runs: of 1,000 agents, most of which
// ended well, one in a thousand badly, and 500 not at all.
func BenchmarkRunPage(b *testing.B) {
	db := fill(b, count100000+`INSERT INTO runs (id, agent, state, last_seq, started, ended)
		SELECT printf('r%09d', i), 'a' || (i % 1000),
			CASE WHEN i > 99500 THEN 'RUNNING' WHEN i % 1000 = 7 THEN 'FAILED' ELSE 'SUCCEEDED' END,
			3, i, CASE WHEN i > 99500 THEN 0 ELSE i + 1 END FROM k`)
	for name, q := range map[string]storage.RunQuery{
		"first":         {},
		"middle":        {Before: "r000050000"},
		"last":          {Before: "r000000050"},
		"agent":         {Agent: "a5", Before: "r000050000"},
		"succeeded":     {State: claybot.RunSucceeded},
		"failed":        {State: claybot.RunFailed},
		"running":       {State: claybot.RunRunning},
		"agent failed":  {Agent: "a7", State: claybot.RunFailed},
		"agent running": {Agent: "a700", State: claybot.RunRunning},
		"pending":       {State: claybot.RunPending},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if _, err := db.RunPage(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAgentPage reads pages of 10,000 agents, a tenth of them in the
// background, one in a hundred busy.
func BenchmarkAgentPage(b *testing.B) {
	db := fill(b, `WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 10000)
		INSERT INTO agents (id, key, descriptor, type, owner, parent, created_at, last_user_at, last_user_n, first_n, busy)
		SELECT printf('a%023d', i), i,
			'{"type":"' || iif(i % 10, 'user', 'cron') || '","connector":"telegram","userId":"' || i || '"}', iif(i % 10, 'user', 'cron'),
			'telegram/' || (i % 100), NULL, i, iif(i % 10, i, 0), iif(i % 10, i, 0), i % 100 = 1, i % 100 = 1 FROM k`)
	for name, q := range map[string]storage.AgentQuery{
		"first":     {},
		"middle":    {After: "a00000000000000000005001"},
		"users":     {Type: claybot.AgentUser, After: "a00000000000000000005001"},
		"cron":      {Type: claybot.AgentCron},
		"busy":      {Busy: true},
		"busy cron": {Busy: true, Type: claybot.AgentCron},
		"owner":     {Owner: "telegram/7"},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if _, err := db.AgentPage(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOutgoingPage reads pages of 100,000 outgoing messages, of which one
// in a thousand failed and one in ten thousand waits.
func BenchmarkOutgoingPage(b *testing.B) {
	body, crc := stored(b, claybot.Outgoing{ID: "o", Text: "Sunny, 21 degrees.", Part: 1, Parts: 1})
	db := fill(b, fmt.Sprintf(count100000+`INSERT INTO outbox (id, dest, state, open, at, body, crc)
		SELECT 'o' || i, 'd' || (i %% 100), CASE WHEN i %% 10000 = 1 THEN 'waiting' WHEN i %% 1000 = 7 THEN 'failed' ELSE 'sent' END,
			i %% 10000 = 1, i, '%s', %d FROM k`, body, crc))
	for name, q := range map[string]storage.OutgoingQuery{
		"first":       {},
		"middle":      {Before: 50_000},
		"open":        {Open: true},
		"waiting":     {State: claybot.SendWaiting},
		"failed":      {State: claybot.SendFailed},
		"sent":        {State: claybot.SendSent, Before: 50_000},
		"dest":        {Dest: "d5", Before: 50_000},
		"dest failed": {Dest: "d7", State: claybot.SendFailed},
		"dest open":   {Dest: "d7", Open: true},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if _, err := db.OutgoingPage(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEvents reads the 100,000 events of one run.
func BenchmarkEvents(b *testing.B) {
	db := fill(b, count100000+`INSERT INTO events (run, seq, v, type, at, data)
		SELECT 'r1', i, 1, 'ToolSucceeded', 1700000000000 + i, '{"callId":"call-' || i || '","tool":"clock","ms":12,"preview":"It is noon."}' FROM k`)
	b.ResetTimer()
	for range b.N {
		n := 0
		for _, err := range db.Events(b.Context(), "r1", 0) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 100_000 {
			b.Fatal(n)
		}
	}
}

// BenchmarkSpent sums up 1,000,000 rows: of 11,000 agents on 90 days.
func BenchmarkSpent(b *testing.B) {
	db := fill(b, `WITH RECURSIVE k (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k WHERE i < 999999)
		INSERT INTO spent (day, agent, owner, model, type, input, output, cached, cost, calls, tools, estimated, runs)
		SELECT date('2026-01-01', (i % 90) || ' days'), printf('a%023d', i / 90), 'telegram/' || (i / 90 % 100), 'model-' || (i % 4), 'user', 1200, 30, 100, 2500, 1, 1, 0, 1 FROM k`,
		`INSERT INTO spent_days SELECT day, model, type, sum(input), sum(output), sum(cached), sum(cost), sum(calls), sum(tools), max(estimated), sum(runs)
		FROM spent GROUP BY day, model, type`)
	for name, by := range map[string][]string{
		"all": nil, "day": {storage.ByDay}, "day and model": {storage.ByDay, storage.ByModel}, "model": {storage.ByModel}, "owner": {storage.ByOwner}, "agent": {storage.ByAgent},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if _, err := db.Spent(b.Context(), storage.SpentQuery{By: by, Limit: 100_000}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkManyAgents reads among 1,000,000 agents.
func BenchmarkManyAgents(b *testing.B) {
	count := fmt.Sprintf("WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < %d) ", storagetest.ManyAgents)
	db := fill(b, count+fmt.Sprintf(`INSERT INTO agents (id, key, descriptor, type, owner, parent, root, created_at, last_user_at, last_user_n)
		SELECT 'a' || i, iif(i > %[1]d, '["subagent","u' || i || '"]', '["user","telegram","C' || i || '","U' || i || '"]'),
			iif(i > %[1]d, '{"type":"subagent","uid":"u' || i || '","parent":"a1","owner":"telegram/U1"}',
				'{"type":"user","connector":"telegram","channelId":"C' || i || '","userId":"U' || i || '"}'),
			iif(i > %[1]d, 'subagent', 'user'), 'telegram/U' || iif(i > %[1]d, 1, i), iif(i > %[1]d, 'a1', NULL), iif(i > %[1]d, 'a1', NULL),
			i, iif(i > %[1]d, 0, i), iif(i > %[1]d, 0, i) FROM k`, storagetest.ManyAgents-100),
		count+"INSERT INTO runs (id, agent, state, last_seq, started, ended) SELECT 'r' || i, 'a' || i, 'SUCCEEDED', 3, i, i + 1 FROM k")
	storagetest.BenchAgents(b, db)
}
