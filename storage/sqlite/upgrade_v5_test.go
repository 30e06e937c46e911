package sqlite

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// TestUpgradeV5 opens a file from before money was limited: what was spent is
// found by the place where it was, and calls without a price are no longer free.
func TestUpgradeV5(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	c, err := connect(t.Context(), path, writerPragmas)
	if err != nil {
		t.Fatal(err)
	}
	rows := `PRAGMA user_version = 5;
		INSERT INTO agents (id, key, descriptor, type, owner, root, created_at, last_user_at, last_user_n, n, waiting, first_n, first_at, last_at, due_at, wake_at, run, resume_at) VALUES
			('a1', 'k1', '{"type":"user","connector":"tg","channelId":"1","userId":"U1"}', 'user', 'tg/U1', NULL, 1, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL),
			('a2', 'k2', '{"type":"subagent","uid":"x","parent":"a1","root":"a1"}', 'subagent', 'tg/U1', 'a1', 1, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL),
			('a3', 'k3', '{', 'user', 'tg/U3', NULL, 1, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL),
			('a4', 'k4', '{"type":"cron","uid":"y"}', 'cron', '', NULL, 1, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL);
		UPDATE counters SET n = 4 WHERE name = 'agents';
		INSERT INTO spent VALUES
			('2026-01-01', 'a1', 'tg/U1', 'big', 'user', 10, 2, 1, 500, 2, 0, 0, 1),
			('2026-01-01', 'a2', 'tg/U1', 'big', 'subagent', 10, 2, 0, 500, 2, 0, 0, 1),
			('2026-01-01', 'a3', 'tg/U3', 'odd', 'user', 10, 2, 0, 0, 3, 0, 0, 1),
			('2026-01-01', 'a4', '', 'demo', 'cron', 10, 2, 0, 0, 4, 0, 0, 1),
			('2026-01-01', 'gone', '', '', 'user', 0, 0, 0, 0, 0, 0, 0, 1);
		INSERT INTO spent_days VALUES ('2026-01-01', 'odd', 'user', 10, 2, 0, 0, 3, 0, 0, 1), ('2026-01-01', 'demo', 'cron', 10, 2, 0, 0, 4, 0, 0, 1)`
	for _, script := range append(slices.Clone(migrations[:5]), rows) {
		if err := c.control(script); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	db := openAt(t, path)
	got, err := db.Spent(t.Context(), storage.SpentQuery{By: []string{storage.ByConnector, storage.ByChannel, storage.ByModel}})
	want := []storage.Spent{
		{Model: "demo", Usage: claybot.Usage{Input: 10, Output: 2, LLMCalls: 4}},
		{Model: "odd", Usage: claybot.Usage{Input: 10, Output: 2, LLMCalls: 3, Unpriced: 3}},
		{Connector: "tg", Channel: "tg:1", Model: "big", Usage: claybot.Usage{Input: 20, Output: 4, CachedInput: 1, CostMicroUSD: 1000, LLMCalls: 4}},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	got, err = db.Spent(t.Context(), storage.SpentQuery{By: []string{storage.ByModel}})
	if err != nil || len(got) != 2 || got[0].Usage.Unpriced != 0 || got[1].Usage.Unpriced != 3 {
		t.Errorf("by day %+v, %v", got, err)
	}
	if list, err := db.Budgets(t.Context(), 9); err != nil || len(list) != 0 {
		t.Errorf("budgets %+v, %v", list, err)
	}
}
