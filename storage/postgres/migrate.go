package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// A migration brings the schema from one version to the next. A released one is
// never edited: databases of every version exist.
type migration struct {
	sql string
	// oldest is the schema version of the oldest binary that can work with what
	// the migration leaves behind. A migration that only adds keeps that of the
	// one before.
	oldest int
}

// migrations are numbered from 1. Raise oldest only for a change that old binaries
// cannot bear: it ends the rolling upgrade.
var migrations = []migration{
	{read(1), 1},
	{read(2), 1},
}

func read(n int) string {
	b, err := migrationFiles.ReadFile("migrations/" + strconv.Itoa(n) + ".sql")
	if err != nil {
		panic(err) // they are a part of the program
	}
	return string(b)
}

// migrationLock is the advisory lock under which one process migrates: "claybot"
// in ASCII.
const migrationLock = 0x636c6179626f74

// errNewer: a later claybot has changed the schema.
var errNewer = errors.New("the schema is newer than this claybot")

// migrate brings the schema to the present version, in one transaction. Processes
// that start together wait for each other.
func migrate(ctx context.Context, conn *pgx.Conn) error {
	version, oldest, err := schemaVersion(ctx, conn)
	if err != nil {
		return err
	}
	if err := checkVersion(version, oldest); err != nil || version >= len(migrations) {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after Commit it does nothing
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
		return err
	}
	if version, oldest, err = schemaVersion(ctx, conn); err != nil { // somebody else may have been first
		return err
	}
	if err := checkVersion(version, oldest); err != nil || version >= len(migrations) {
		return err
	}
	for n := version + 1; n <= len(migrations); n++ {
		m := migrations[n-1]
		if _, err := tx.Exec(ctx, m.sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("migration %d: %w", n, err)
		}
		if _, err := tx.Exec(ctx, "INSERT INTO schema_versions (version, oldest) VALUES ($1, $2)", n, m.oldest); err != nil {
			return fmt.Errorf("migration %d: %w", n, err)
		}
	}
	return tx.Commit(ctx)
}

// schemaVersion is the version of the schema, 0 for none yet, and that of the
// oldest binary which can work with it.
func schemaVersion(ctx context.Context, conn *pgx.Conn) (version, oldest int, err error) {
	var there bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('schema_versions') IS NOT NULL").Scan(&there); err != nil || !there {
		return 0, 0, err
	}
	err = conn.QueryRow(ctx, "SELECT coalesce(max(version), 0), coalesce(max(oldest), 0) FROM schema_versions").Scan(&version, &oldest)
	return version, oldest, err
}

func checkVersion(version, oldest int) error {
	if oldest > len(migrations) {
		return fmt.Errorf("%w: it is version %d and needs a claybot that knows version %d, this one knows %d", errNewer, version, oldest, len(migrations))
	}
	return nil
}
