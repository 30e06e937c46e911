package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot/lazyregexp"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// A migration upgrades the schema by one version. Never edit a released one:
// databases of every version exist.
//
// It is one transaction, unless lines that begin with "-- step" divide it into steps.
// Each step is a transaction of its own and runs once, even if a later step is
// interrupted, so each must leave a schema that works with the binaries of the version
// before as well. A step after "-- step concurrently" is one statement without a
// transaction, such as CREATE INDEX CONCURRENTLY: it is repeated after an
// interruption and must allow for that.
type migration struct {
	sql string
	// oldest is the schema version of the oldest binary that works with the schema after
	// the migration. A migration that only adds keeps that of its predecessor.
	oldest int
}

// migrations are numbered from 1. Raise oldest only for a change that breaks old
// binaries: it ends the rolling upgrade.
var migrations = []migration{
	{read(1), 1},
	{read(2), 1},
	{read(3), 1},
	{read(4), 1},
	{read(5), 1},
	{read(6), 1},
}

func read(n int) string {
	b, err := migrationFiles.ReadFile("migrations/" + strconv.Itoa(n) + ".sql")
	if err != nil {
		panic(err) // the files are embedded
	}
	return string(b)
}

// migrationLock is the advisory lock of the migrating process: "claybot" in ASCII.
// stepLock is that of one step.
const (
	migrationLock = 0x636c6179626f74
	stepLock      = migrationLock + 1
)

// A step is a part of a migration.
type step struct {
	sql          string
	concurrently bool // without a transaction
}

// stepLine divides a migration into steps.
var stepLine = lazyregexp.New(`(?m)^-- step( concurrently)?\b.*$`)

// steps returns the parts of a migration in order; there is at least one.
func (m migration) steps() []step {
	var all []step
	add := func(sql string, concurrently bool) {
		if strings.TrimSpace(sql) != "" {
			all = append(all, step{sql, concurrently})
		}
	}
	begin, concurrently := 0, false
	for _, at := range stepLine.FindAllStringSubmatchIndex(m.sql, -1) {
		add(m.sql[begin:at[0]], concurrently)
		begin, concurrently = at[1], at[2] >= 0
	}
	add(m.sql[begin:], concurrently)
	if len(all) == 0 {
		all = []step{{}}
	}
	return all
}

// errNewer: a later claybot has changed the schema.
var errNewer = errors.New("the schema is newer than this claybot")

// schemaVersion returns the version of the schema, 0 for an empty database, and the
// version of the oldest binary that can work with it.
func schemaVersion(ctx context.Context, conn *pgx.Conn) (version, oldest int, err error) {
	var there bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('schema_versions') IS NOT NULL").Scan(&there); err != nil || !there {
		return 0, 0, err
	}
	err = conn.QueryRow(ctx, "SELECT coalesce(max(version), 0), coalesce(max(oldest), 0) FROM schema_versions").Scan(&version, &oldest)
	return version, oldest, err
}

func checkVersion(version, oldest int) error { return checkKnown(version, oldest, len(migrations)) }

// checkKnown is checkVersion for a given number of known migrations.
func checkKnown(version, oldest, known int) error {
	if oldest > known {
		return fmt.Errorf("%w: it is version %d and needs a claybot that knows version %d, this one knows %d", errNewer, version, oldest, known)
	}
	return nil
}
