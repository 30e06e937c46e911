package sqlite

import (
	_ "embed" // the migrations
	"errors"
	"fmt"
)

//go:embed migrations/1.sql
var migration1 string

//go:embed migrations/2.sql
var migration2 string

//go:embed migrations/3.sql
var migration3 string

//go:embed migrations/4.sql
var migration4 string

//go:embed migrations/5.sql
var migration5 string

// migrations turn an empty file into the present schema, one version each. The
// version of a file is how many of them it has seen. A released migration is
// never edited: files of every version exist.
var migrations = []string{migration1, migration2, migration3, migration4, migration5}

// errNewer: a later claybot wrote the file.
var errNewer = errors.New("written by a newer claybot")

// migrate brings the file to the present version, in one transaction.
func migrate(c *conn) (err error) {
	var version int
	if _, err := c.first("PRAGMA user_version", func(r row) error { version = int(r.int(0)); return nil }); err != nil {
		return err
	}
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
			_ = c.control("ROLLBACK") // err says why
		}
	}()
	for i, m := range migrations[version:] {
		if err := c.control(m); err != nil {
			return fmt.Errorf("migration %d: %w", version+i+1, err)
		}
	}
	if err := c.control(fmt.Sprintf("PRAGMA user_version = %d", len(migrations))); err != nil {
		return err
	}
	return c.control("COMMIT")
}
