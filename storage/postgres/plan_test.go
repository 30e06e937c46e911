package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// A plan says what a migration would do, and changes nothing.
func TestPlanMigration(t *testing.T) {
	all := len(migrations)
	every := func(from, to int) (list []PendingMigration) {
		for n := from; n <= to; n++ {
			list = append(list, PendingMigration{Version: n, Steps: len(migrations[n-1].steps())})
		}
		return list
	}
	breaking := slices.Concat(migrations, []migration{{"SELECT 1", all + 1}})
	for name, test := range map[string]struct {
		list    []migration // that have run
		sql     string
		cfg     Config
		want    MigrationPlan
		refused bool
	}{
		"no tables":         {want: MigrationPlan{Known: all, Oldest: migrations[all-1].oldest, Pending: every(1, all)}},
		"version 1":         {list: migrations[:1], want: MigrationPlan{Version: 1, Known: all, Oldest: migrations[all-1].oldest, Pending: every(2, all)}},
		"up to date":        {list: migrations, want: MigrationPlan{Version: all, Known: all, Oldest: migrations[all-1].oldest}},
		"newer, compatible": {list: next("SELECT 1"), want: MigrationPlan{Version: all + 1, Known: all, Oldest: 1}},
		"newer":             {list: breaking, refused: true},
		"interrupted": {
			list: migrations, cfg: Config{migrations: next(stepped)},
			sql:  fmt.Sprintf("CREATE TABLE schema_steps (version INTEGER, step INTEGER); INSERT INTO schema_steps VALUES (%d, 1), (%d, 2)", all+1, all+1),
			want: MigrationPlan{Version: all, Known: all + 1, Oldest: 1, Pending: []PendingMigration{{Version: all + 1, Done: 2, Steps: 3}}},
		},
		"breaking": {
			list: migrations, cfg: Config{migrations: breaking},
			want: MigrationPlan{Version: all, Known: all + 1, Oldest: all + 1, Pending: []PendingMigration{{Version: all + 1, Steps: 1}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := schemaOf(t, postgrestest.Shared(t).Database(t))
			if test.list != nil {
				if _, _, err := Migrate(t.Context(), Config{URL: address, migrations: test.list}); err != nil {
					t.Fatal(err)
				}
			}
			conn := plainConn(t, address)
			if test.sql != "" {
				execute(t, conn, test.sql)
			}
			test.cfg.URL = address
			for range 2 { // the first one changed nothing
				got, err := PlanMigration(t.Context(), test.cfg)
				if setup := (*SetupError)(nil); test.refused && (!errors.As(err, &setup) || !strings.Contains(setup.Problem, "newer than this claybot")) || !test.refused && err != nil {
					t.Fatalf("error %v", err)
				}
				if fmt.Sprint(got) != fmt.Sprint(test.want) {
					t.Errorf("got %+v, want %+v", got, test.want)
				}
			}
		})
	}
}
