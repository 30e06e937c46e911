package sqlite

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/claybot/claybot/storage"
)

// TestUpgradeV11 opens a file from before the unfinished runs of workflows were counted: the limits
// of a workflow were too high by those that it had.
func TestUpgradeV11(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	c, err := connect(t.Context(), path, writerPragmas)
	if err != nil {
		t.Fatal(err)
	}
	rows := `PRAGMA user_version = 11;
		INSERT INTO agents (id, key, descriptor, type, created_at, n, waiting, first_n, run, resume_at) VALUES
			('a1', 'k1', '{"type":"flow","uid":"1","name":"orders"}', 'flow', 1, 2, 2, 1, NULL, NULL),
			('a2', 'k2', '{"type":"flow","uid":"2","name":"orders"}', 'flow', 1, 1, 0, 0, 'r2', NULL),
			('a3', 'k3', '{"type":"flow","uid":"3","name":"orders (dry run)"}', 'flow', 1, 1, 0, 0, 'r3', 90),
			('a4', 'k4', '{"type":"flow","uid":"4","name":"order"}', 'flow', 1, 2, 1, 2, 'r4', 90),
			('a5', 'k5', '{"type":"flow","uid":"5","name":"orders"}', 'flow', 1, 1, 0, 0, NULL, NULL),
			('a6', 'k6', '{', 'flow', 1, 1, 0, 0, 'r6', 90),
			('a7', 'k7', '{"type":"cron","uid":"7","name":"orders"}', 'cron', 1, 1, 0, 0, 'r7', 90);
		INSERT INTO counters VALUES ('flow/orders/open/0', 1), ('flow/gone/open/3', 1);
		UPDATE counters SET n = 7 WHERE name = 'agents'`
	for _, script := range append(slices.Clone(migrations[:11]), rows) {
		if err := c.control(script); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to upgrade
		db := openAt(t, path)
		for name, want := range map[string]storage.FlowLoad{"orders": {Open: 3, Waiting: 1}, "order": {Open: 1, Waiting: 1}, "gone": {}} {
			if got, err := db.FlowLoad(t.Context(), name); err != nil || got != want {
				t.Errorf("%s has %+v, %v; want %+v", name, got, err, want)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
