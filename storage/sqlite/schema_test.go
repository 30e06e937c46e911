package sqlite

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write schema.sql")

// TestSchema compares a file that schema.sql created with one that the migrations created.
func TestSchema(t *testing.T) {
	migrated := openRaw(t)
	if err := migrated.apply(0); err != nil {
		t.Fatal(err)
	}
	want := dump(t, migrated)
	if *update {
		if err := os.WriteFile("schema.sql", []byte(script(want)), 0o644); err != nil {
			t.Fatal(err)
		}
		schema = script(want)
	}
	if schema != script(want) {
		t.Error("schema.sql differs from what the migrations create: run go test -run TestSchema ./storage/sqlite -update")
	}
	fresh := openRaw(t)
	if err := migrate(fresh); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, fresh); !slices.Equal(got, want) {
		t.Errorf("schema.sql creates %d things, the migrations %d, or others", len(got), len(want))
	}
	if n, err := fresh.number("PRAGMA user_version"); err != nil || int(n) != len(migrations) {
		t.Errorf("version %d, %v; want %d", n, err, len(migrations))
	}
}

func openRaw(t *testing.T) *conn {
	t.Helper()
	c, err := connect(t.Context(), filepath.Join(t.TempDir(), "claybot.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// dump returns the statements that create the tables and all that belongs to them, in the
// order in which they were created, an INSERT for each row, and the id of the file.
func dump(t *testing.T, c *conn) []string {
	t.Helper()
	id, err := c.number("PRAGMA application_id")
	all, tables := []string{fmt.Sprintf("PRAGMA application_id = %d", id)}, []string{}
	err = errors.Join(err, c.each("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid", func(r row) error {
		name := r[1].(string)
		if strings.HasPrefix(name, "memories_words_") || strings.HasPrefix(name, "sqlite_") {
			return nil // SQLite creates it
		}
		if r[0] == "table" && name != "memories_words" {
			tables = append(tables, name)
		}
		all = append(all, r[2].(string))
		return nil
	}))
	for _, name := range tables {
		var columns []string
		err = errors.Join(err, c.each("SELECT 'quote(' || name || ')' FROM pragma_table_info('"+name+"')", func(r row) error {
			columns = append(columns, r[0].(string))
			return nil
		}))
		q := fmt.Sprintf("SELECT %s FROM %s ORDER BY 1", strings.Join(columns, " || ', ' || "), name)
		err = errors.Join(err, c.each(q, func(r row) error {
			all = append(all, fmt.Sprintf("INSERT INTO %s VALUES (%s)", name, r[0]))
			return nil
		}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func script(statements []string) string {
	return "-- Generated from the migrations; see TestSchema.\n" + strings.Join(statements, ";\n") + ";\n"
}
