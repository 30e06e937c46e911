package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	sqlite3 "modernc.org/sqlite/lib"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write schema.sql and blank.db.runs")

// TestSchema compares the file of a new store, and schema.sql, with what the migrations
// create.
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
		blank = runs(compose(t, script(want)))
		if err := os.WriteFile("blank.db.runs", blank, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := os.ReadFile("schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	if string(schema) != script(want) {
		t.Error("schema.sql differs from what the migrations create: run go test -run TestSchema ./storage/sqlite -update")
	}
	path := filepath.Join(t.TempDir(), "claybot.db")
	if err := prepareFile(path); err != nil {
		t.Fatal(err)
	}
	file := blankFile()
	for n := 1; n*pageSize <= len(file); n++ {
		if !sealed(uint32(n), file[(n-1)*pageSize:n*pageSize]) {
			t.Errorf("page %d has a wrong checksum", n)
		}
	}
	if string(blank) != string(runs(file)) || len(file)%pageSize != 0 {
		t.Errorf("%d bytes with runs stand for %d", len(blank), len(file))
	}
	fresh := openRawAt(t, path)
	if err := fresh.each("PRAGMA integrity_check", func(r row) error {
		if r[0] != "ok" {
			t.Error(r[0])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, fresh); !slices.Equal(got, want) {
		t.Errorf("a new file has %d things, the migrations create %d, or others: run go test -run TestSchema ./storage/sqlite -update", len(got), len(want))
	}
	if n, err := fresh.number("PRAGMA user_version"); err != nil || int(n) != len(migrations) {
		t.Errorf("version %d, %v; want %d", n, err, len(migrations))
	}
}

func openRaw(t *testing.T) *conn {
	t.Helper()
	return openRawAt(t, filepath.Join(t.TempDir(), "claybot.db"))
}

func openRawAt(t *testing.T, path string) *conn {
	t.Helper()
	c, err := connect(t.Context(), path, nil)
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

// compose returns the file that a script creates, with checksums.
func compose(t *testing.T, script string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "new.db")
	if err := os.WriteFile(path, emptyDatabase(), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := connect(t.Context(), path, writerPragmas)
	if err == nil {
		err = errors.Join(c.control("BEGIN"), c.control(script), c.control(fmt.Sprintf("PRAGMA user_version = %d", len(migrations))), c.control("COMMIT"), c.close())
	}
	file, readErr := os.ReadFile(path)
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	return file
}

// runs is the reverse of blankFile.
func runs(file []byte) (b []byte) {
	const shortest = 4 // of a run of zeros
	zeros := func(b []byte) int { return len(b) - len(bytes.TrimLeft(b, "\x00")) }
	for len(file) > 0 {
		n := zeros(file)
		size := 0
		for n+size < len(file) {
			if z := zeros(file[n+size:]); z >= shortest || n+size+z == len(file) {
				break
			}
			size++
		}
		b = binary.AppendUvarint(b, uint64(n))
		b = binary.AppendUvarint(b, uint64(size))
		b = append(b, file[n:n+size]...)
		file = file[n+size:]
	}
	return b
}

// emptyDatabase returns a database without tables whose pages have checksums.
func emptyDatabase() []byte {
	p := make([]byte, pageSize)
	copy(p, "SQLite format 3\x00")
	binary.BigEndian.PutUint16(p[16:], pageSize)
	p[18], p[19] = 2, 2 // WAL mode
	p[20] = reserved
	p[21], p[22], p[23] = 64, 32, 32 // fixed by the format
	binary.BigEndian.PutUint32(p[24:], 1)
	binary.BigEndian.PutUint32(p[28:], 1) // pages
	binary.BigEndian.PutUint32(p[44:], 4) // format of the schema
	binary.BigEndian.PutUint32(p[56:], 1) // UTF-8
	binary.BigEndian.PutUint32(p[92:], 1)
	binary.BigEndian.PutUint32(p[96:], sqlite3.SQLITE_VERSION_NUMBER)
	p[100] = 0x0d // empty leaf
	binary.BigEndian.PutUint16(p[105:], pageSize-reserved)
	seal(1, p)
	return p
}
