package postgres

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// notCopied are tables and columns that a copy has no use for, with the reason.
var notCopied = map[string]string{
	"schema_versions": "of the copy itself",
	"nodes":           "processes that run",
	"claims":          "what processes that run have",
	"tree_clock":      "counts anew",
	"tree.version":    "counts anew",
	"chunks":          "carried as files",
	"attachments":     "carried as files",
	"agents.records":  "counted from the records",
	"memories.words":  "made of the text",
	"sums":            "copied as the rows that it adds to",
	"counters_now":    "a view",
	"spent_now":       "a view",
	"spent_days_now":  "a view",
	"latencies_now":   "a view",
}

// Each table and column of the schema is copied, or it is known why not.
func TestArchiveIsComplete(t *testing.T) {
	db := openWith(t, Config{URL: schemaOf(t, postgrestest.Shared(t).Database(t)), NoListen: true})
	rows, err := db.pool.Query(t.Context(), "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		seen++
		if notCopied[table] != "" || notCopied[table+"."+column] != "" {
			continue
		}
		i := slices.IndexFunc(storage.Tables(), func(t storage.Table) bool { return t.Name == table })
		if i < 0 || !slices.Contains(storage.Tables()[i].Columns, column) {
			t.Errorf("%s.%s is not copied: add it to storage.Tables, or say here why not", table, column)
		}
	}
	if err := rows.Err(); err != nil || seen < 200 {
		t.Errorf("%d columns, %v", seen, err)
	}
}

// Every text comes back as it was, also one that is not UTF-8.
func FuzzStorableBytes(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00", "\x01", "\x010", "\x01xff", "\xff", "a\xc3\x01x\x80", "\U0010ffff\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		stored := storable(s)
		if !utf8.ValidString(stored) || strings.Contains(stored, "\x00") {
			t.Errorf("%q is stored as %q", s, stored)
		}
		if got := restored(stored); got != s {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}
