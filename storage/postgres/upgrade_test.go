package postgres

import (
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// TestUpgradeV5 migrates a database from before the unfinished runs of workflows were counted: the
// limits of a workflow were too high by those that it had.
func TestUpgradeV5(t *testing.T) {
	address := postgrestest.Shared(t).Database(t)
	old := openWith(t, Config{URL: address, NoListen: true, migrations: migrations[:5]})
	execute(t, plainConn(t, address), `INSERT INTO agents (id, key, descriptor, type, created_at, n, waiting, first_n, run, resume_at) VALUES
			('a1', 'k1', '{"type":"flow","uid":"1","name":"orders"}', 'flow', 1, 2, 2, 1, NULL, NULL),
			('a2', 'k2', '{"type":"flow","uid":"2","name":"orders"}', 'flow', 1, 1, 0, 0, 'r2', NULL),
			('a3', 'k3', '{"type":"flow","uid":"3","name":"orders (dry run)"}', 'flow', 1, 1, 0, 0, 'r3', 90),
			('a4', 'k4', '{"type":"flow","uid":"4","name":"order"}', 'flow', 1, 2, 1, 2, 'r4', 90),
			('a5', 'k5', '{"type":"flow","uid":"5","name":"orders"}', 'flow', 1, 1, 0, 0, NULL, NULL),
			('a6', 'k6', '{', 'flow', 1, 1, 0, 0, 'r6', 90),
			('a7', 'k7', '{"type":"cron","uid":"7","name":"orders"}', 'cron', 1, 1, 0, 0, 'r7', 90);
		INSERT INTO counters VALUES ('flow/orders/open/0', 1), ('flow/gone/open/3', 1)`)
	for range 2 { // the second time there is nothing to migrate
		db := openWith(t, Config{URL: address, NoListen: true})
		for _, member := range []*DB{db, old} {
			for name, want := range map[string]storage.FlowLoad{"orders": {Open: 3, Waiting: 1}, "order": {Open: 1, Waiting: 1}, "gone": {}} {
				if got, err := member.FlowLoad(t.Context(), name); err != nil || got != want {
					t.Errorf("%s has %+v, %v; want %+v", name, got, err, want)
				}
			}
		}
	}
}
