package sqlite

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// schema creates in an empty file what the migrations create, in a quarter of their time.
// A test compares the two, and writes it anew with -update.
//
//go:embed schema.sql
var schema string

// migrations upgrade an empty file to the present schema, one version each, in the order
// of the numbers in their names. The version of a file is the number of applied
// migrations. Never edit a released one: files of every version exist.
var migrations = readMigrations()

func readMigrations() []string {
	entries, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		panic(err) // the files are embedded
	}
	byNumber := make(map[int]string, len(entries))
	for _, e := range entries {
		n, err := strconv.Atoi(strings.TrimSuffix(e.Name(), ".sql"))
		if err != nil {
			panic(err)
		}
		b, err := migrationFiles.ReadFile("migrations/" + e.Name())
		if err != nil {
			panic(err)
		}
		byNumber[n] = string(b)
	}
	all := make([]string, 0, len(byNumber))
	for _, n := range slices.Sorted(maps.Keys(byNumber)) {
		all = append(all, byNumber[n])
	}
	return all
}

// errNewer: a later claybot wrote the file.
var errNewer = errors.New("written by a newer claybot")

// migrate upgrades the file to the present version, in one transaction.
func migrate(c *conn) (err error) {
	at, err := c.number("PRAGMA user_version")
	if err != nil {
		return err
	}
	version := int(at)
	if version > len(migrations) {
		return fmt.Errorf("%w: its schema is version %d and this claybot knows %d; start that version or a later one",
			errNewer, version, len(migrations))
	}
	if version == len(migrations) {
		return nil
	}
	if err := c.control("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = c.control("ROLLBACK") // return err instead
		}
	}()
	if version == 0 {
		if err := c.control(schema); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
	} else if err := c.apply(version); err != nil {
		return err
	}
	if err := c.control(fmt.Sprintf("PRAGMA user_version = %d", len(migrations))); err != nil {
		return err
	}
	return c.control("COMMIT")
}

// apply executes the migrations after version.
func (c *conn) apply(version int) error {
	for i, m := range migrations[version:] {
		if err := c.control(m); err != nil {
			return fmt.Errorf("migration %d: %w", version+i+1, err)
		}
	}
	return nil
}
