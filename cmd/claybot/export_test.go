package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// odd are texts that a store may stumble over.
var odd = sync.OnceValue(func() []string {
	return []string{
		"plain", "", "NUL \x00 and \x01 and \x010", "lines \u2028\u2029\r\n\t", "not UTF-8 \xff\xfe\xc3", `quote ' " \ \x41 \N`, "🙂 ü é \U0010ffff",
		strings.Repeat("long ", 1<<18), "\x01x41 \x01xff", "{\"a\": 1}",
	}
})

// roomy are columns that are in no index.
var roomy = []string{"body", "text", "data", "draft", "outcome", "awaiting", "value", "cause", "error", "note", "context", "problem"}

// A made store has rows in all tables, with odd values in all columns.
type made struct {
	t      *testing.T
	types  map[string]map[string]column
	agents []string
	gone   string
}

type column struct {
	text, null bool
}

func newMade(t *testing.T) *made {
	m := &made{t: t, types: make(map[string]map[string]column), gone: string(claybot.NewID())}
	for range 4 {
		m.agents = append(m.agents, string(claybot.NewID()))
	}
	dir := filepath.Join(t.TempDir(), "schema")
	shape, err := createDirectory(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	shape.close()
	db, err := sql.Open("sqlite", filepath.Join(dir, "claybot.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range storage.Tables() {
		m.types[table.Name] = columnsOf(t, db, table.Name)
	}
	return m
}

// columnsOf lists the columns of a table of SQLite.
func columnsOf(t *testing.T, db *sql.DB, table string) map[string]column {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT name, type, "notnull" = 0 AND pk = 0 FROM pragma_table_info(?)`, table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns := make(map[string]column)
	for rows.Next() {
		var name, kind string
		var c column
		if err := rows.Scan(&name, &kind, &c.null); err != nil {
			t.Fatal(err)
		}
		c.text = kind == "TEXT"
		columns[name] = c
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return columns
}

func (m *made) Remarks() []string { return nil }

func (m *made) Load(context.Context, storage.Table, iter.Seq2[storage.Row, error]) error {
	return errors.New("it is made already")
}

func (m *made) LoadFile(context.Context, storage.PortableFile) error {
	return errors.New("it is made already")
}

// Rows yields ten rows of each table.
func (m *made) Rows(_ context.Context, t storage.Table) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		for _, r := range m.rows(t) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (m *made) rows(t storage.Table) (all []storage.Row) {
	switch t.Name {
	case storage.TableQuarantine:
		return []storage.Row{{m.gone, int64(1700000000123), `{"type":"user","connector":"telegram","channelId":"gone"}`, `{"createdAt":5,"engine":"react"}`}}
	case storage.TableRecords:
		for _, id := range append(slices.Clone(m.agents), m.gone) {
			all = append(all, records(m.t, id)...)
		}
		return all
	case storage.TableResults:
		for i, text := range odd() {
			all = append(all, storage.Row{m.agents[i%len(m.agents)], fmt.Sprintf("call-%d.txt", i), text})
		}
		return all
	case storage.TableTree:
		return m.tree()
	case storage.TableSequences:
		return []storage.Row{{"memory_versions", int64(4711)}, {"outbox", int64(99999)}}
	}
	for i, text := range odd() {
		if t.Name == storage.TableAgents && i >= len(m.agents) {
			break
		}
		all = append(all, m.row(t, i, text))
	}
	if t.Name == storage.TableDocuments {
		for i, text := range odd() {
			all = append(all, storage.Row{"agent/" + m.agents[0] + "/store", fmt.Sprintf("folder/a/%d ü.txt", i), text, int64(len(text)), int64(1700000000000 + i)})
		}
		all = append(all, storage.Row{"agent/" + m.agents[0] + "/store", "tainted/a/3 ü.txt", "", int64(0), int64(1700000000077)},
			storage.Row{"agent/" + m.agents[1] + "/store", "tainted/only-a-document", "", int64(0), int64(1700000000078)})
	}
	return all
}

// row is a row of odd values that are different in each row.
func (m *made) row(t storage.Table, i int, of string) storage.Row {
	r := make(storage.Row, 0, len(t.Columns))
	for k, name := range t.Columns {
		c, known := m.types[t.Name][name]
		text := of
		c.text = c.text && name != "rowid"
		switch {
		case t.Name == storage.TableAgents && name == "id":
			r = append(r, m.agents[i])
		case t.Name == storage.TableAgents && name == "descriptor":
			r = append(r, fmt.Sprintf(`{"type":"user","connector":"telegram","channelId":"%d"}`, i))
		case t.Name == storage.TableAgents && name == "usage":
			r = append(r, fmt.Sprintf(`{"calls":%d}`, i))
		case t.Name == storage.TableAgents && name == "state":
			r = append(r, []any{`{"createdAt":1700000000000,"engine":"react","unknown":{"b":1,"a":[2]}}`, nil, "damaged {", `{"z":1,"createdAt":2}`}[i])
		case t.Name == storage.TableAgents && name == "node" || name == "wake_at":
			r = append(r, nil) // or it would be a lease
		case t.Name == "outbox" && (name == "open" || name == "state"):
			r = append(r, map[string]any{"open": int64(0), "state": "sent"}[name])
		case i%3 == 1 && c.null && known:
			r = append(r, nil)
		case c.text:
			if !slices.Contains(roomy, name) {
				text = text[:min(len(text), 99)] // PostgreSQL has no index of more than some kilobytes
			}
			r = append(r, fmt.Sprintf("%s %d %s", text, i, name))
		default:
			r = append(r, int64(i*1000+k+1))
		}
	}
	return r
}

// records are lines of all kinds.
func records(t *testing.T, agent string) (all []storage.Row) {
	var n int64
	add := func(body string, wrong int64) {
		n++
		all = append(all, storage.Row{agent, n, body, checksum(body) ^ wrong})
	}
	add(`{"type":"start","v":1,"at":"2026-01-02T03:04:05.678Z"}`, 0)
	for _, text := range []string{"hello", "\u2028 and \u0000", strings.Repeat("x", 1<<20)} {
		b, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		add(fmt.Sprintf(`{"type":"user_message","text":%s}`, b), 0)
	}
	add(`{"type":"user_message","text":"damaged"}`, 1)
	add(`{"type":"user_message"`, 1)
	add("two\nlines}", 77)
	add("garbage \x00\xff", 0xffffffff)
	return all
}

func checksum(body string) int64 {
	return int64(crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)))
}

func (m *made) tree() (all []storage.Row) {
	uid := string(claybot.NewID())
	for path, body := range map[string]string{
		"cron/morning/TASK.md":                     "---\nuid: " + uid + "\nschedule: '0 8 * * *'\n---\nSay good morning.\n",
		"cron/morning/facts.json":                  `{"anchor":17,"epoch":3,"paused":"it failed","since":1700000000,"timing":"abc","uid":"` + uid + `"}`,
		"cron/replaced/TASK.md":                    "---\nuid: " + string(claybot.NewID()) + "\nschedule: '0 8 * * *'\n---\nNew.\n",
		"cron/.done/old-1700000000/TASK.md":        "---\nuid: x\n---\n",
		"cron/damaged/facts.json":                  `{"since":`,
		"heartbeat/water.md":                       "every: 1h\n",
		"heartbeat/state.json":                     `{"tick":5,"tasks":{"water":{"last":6}}}`,
		"skills/greet/SKILL.md":                    "---\nname: greet\n---\nHi \x00\xff",
		"mcp/files.json":                           `{"access_token":"not-a-real-token"}`,
		"flows/callbacks.json":                     `"not-a-real-secret"`,
		"web/token":                                "not-a-real-token\n",
		"web/tokens.json":                          `{"v":1}`,
		"skills/greet/files/empty":                 "",
		"skills/" + strings.Repeat("d/", 20) + "ü": "deep",
	} {
		all = append(all, storage.Row{path, []byte(body), int64(1700000001000)})
	}
	return all
}

// Files yields files of all sizes.
func (m *made) Files(context.Context, string) iter.Seq2[storage.PortableFile, error] {
	return func(yield func(storage.PortableFile, error) bool) {
		for i, size := range []int{0, 1, 1 << 20, 1<<20 + 1, 3<<20 - 7} {
			id := fmt.Sprintf("filefilefilefilefilefi%02d", i)
			f := storage.PortableFile{
				Agent: append(slices.Clone(m.agents), m.gone)[i], ID: id, Reference: fmt.Sprintf(`{"id":%q,"size":%d}`, id, size),
				Open: func(context.Context) (io.ReadCloser, error) {
					return io.NopCloser(bytes.NewReader(bytes.Repeat([]byte{0, 255, byte(i)}, size/3+1)[:size])), nil
				},
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}

// sums copies a store and returns what was compared, and the remarks.
func sums(t *testing.T, from, to storage.Portable) []storage.Copied {
	t.Helper()
	var all []storage.Copied
	if err := storage.Copy(t.Context(), from, to, func(c storage.Copied) { all = append(all, c) }); err != nil {
		t.Fatal(err)
	}
	return all
}

func shared(address string) configs.Config {
	var c configs.Config
	c.Storage.URL = configs.NewSecret("CLAYBOT_STORAGE_URL", address)
	return c
}

// All that a directory has goes to PostgreSQL and back: rows by their sums, files byte
// by byte.
func TestCarry(t *testing.T) {
	ctx := t.Context()
	server := postgrestest.Shared(t)
	dirs := []string{filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")}
	source := newMade(t)
	var first []storage.Copied
	var from storage.Portable = source
	for i, dir := range dirs {
		to, err := createDirectory(ctx, dir)
		if err != nil {
			t.Fatal(err)
		}
		got := sums(t, from, to)
		if i == 0 {
			first = got
		}
		compareSums(t, got, first)
		if err := to.finish(ctx); err != nil {
			t.Fatal(err)
		}
		to.close()
		checkPrivate(t, dir)
		if i > 0 {
			break
		}
		address := server.Database(t)
		read, err := openDirectory(ctx, dir)
		if err != nil {
			t.Fatal(err)
		}
		defer read.close()
		database, err := createTarget(ctx, shared(address))
		if err != nil {
			t.Fatal(err)
		}
		compareSums(t, sums(t, read, database), first)
		if err := database.finish(ctx); err != nil {
			t.Fatal(err)
		}
		database.close()
		again, err := openSource(ctx, shared(address), false)
		if err != nil {
			t.Fatal(err)
		}
		defer again.close()
		from = again
	}
	sameFiles(t, dirs[0], dirs[1])
	for _, c := range first {
		if c.Rows == 0 {
			t.Errorf("no row of %s was copied", c.Table)
		}
		if c.Table == storage.TableRecords && c.Broken != int64(4*5) {
			t.Errorf("%d damaged records reported, want 20", c.Broken)
		}
	}
}

func compareSums(t *testing.T, got, want []storage.Copied) {
	t.Helper()
	for i := range want {
		if got[i].Table != want[i].Table || got[i].Rows != want[i].Rows || got[i].Sum != want[i].Sum {
			t.Errorf("%s has %d rows with %s, want %d with %s", got[i].Table, got[i].Rows, got[i].Sum, want[i].Rows, want[i].Sum)
		}
	}
}

func checkPrivate(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// sameFiles compares two directories but for their databases.
func sameFiles(t *testing.T, a, b string) {
	t.Helper()
	count := 0
	for _, dirs := range [][2]string{{a, b}, {b, a}} {
		err := filepath.WalkDir(dirs[0], func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), "claybot.") {
				return err
			}
			count++
			rel, err := filepath.Rel(dirs[0], path)
			if err != nil {
				return err
			}
			one, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			two, err := os.ReadFile(filepath.Join(dirs[1], rel))
			if err != nil || !bytes.Equal(one, two) {
				t.Errorf("%s differs: %v", rel, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if count < 50 {
		t.Errorf("only %d files compared", count)
	}
}

// What was imported is no lease of anybody, and a database that is in use, or is not
// empty, or a directory, is refused.
func TestCarryRefuses(t *testing.T) {
	ctx := t.Context()
	address := postgrestest.Shared(t).Database(t)
	db, err := postgres.Open(ctx, postgres.Config{URL: address, NoListen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	node := storage.Member{ID: "n/1/x", Name: "left"}
	if _, err := db.RenewMember(ctx, node, 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := createTarget(ctx, shared(address)); err == nil || exitCode(err) != exitLocked || !strings.Contains(err.Error(), `"left" uses the database; stop all nodes`) {
		t.Errorf("with a node that lives: %v", err)
	}
	if _, err := openSource(ctx, shared(address), false); exitCode(err) != exitLocked || strings.Contains(err.Error(), "data directory") {
		t.Errorf("with a node that lives: %v", err)
	}
	one, err := openSource(ctx, shared(address), true)
	if err != nil {
		t.Fatalf("one agent of nodes that live: %v", err)
	}
	if err := files.WriteAgent(ctx, t.TempDir(), one, string(claybot.NewID())); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("an agent that is not there: %v", err)
	}
	one.close()
	if err := db.Leave(ctx, node.ID); err != nil {
		t.Fatal(err)
	}
	if err := db.SetCheckpoint(ctx, "installation", "x"); err != nil { // as a node that was only started
		t.Fatal(err)
	}
	to, err := createTarget(ctx, shared(address))
	if err != nil {
		t.Fatal(err)
	}
	renewal, cancel := context.WithCancel(ctx)
	joined := make(chan error, 1)
	go func() {
		_, err := db.RenewMember(renewal, storage.Member{ID: "n/2/x", Name: "next"}, 1000)
		joined <- err
	}()
	to.close() // as if it were interrupted: nothing is stored, and nodes may join
	if err := <-joined; err != nil {
		t.Errorf("a node that waits for an import: %v", err)
	}
	cancel()
	if err := db.Leave(ctx, "n/2/x"); err != nil {
		t.Fatal(err)
	}
	if v, err := db.Checkpoint(ctx, "installation"); err != nil || v != "x" {
		t.Errorf("after an import that was not finished the mark is %q, %v", v, err)
	}
	if _, err := db.Grant(ctx, storage.Grant{Connector: "telegram", Subject: "1001", Name: "Ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := createTarget(ctx, shared(address)); exitCode(err) != exitConfig || !strings.Contains(fmt.Sprint(err), "not empty") {
		t.Errorf("a database with a grant: %v", err)
	}
}

// A directory that is half a copy is used by no command.
func TestUnfinishedDirectory(t *testing.T) {
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "half")
	to, err := createDirectory(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.Lock(dir); !errors.Is(err, files.ErrUnfinished) {
		t.Errorf("a directory that is being written: %v", err)
	}
	to.close()
	if _, err := openDirectory(ctx, dir); !errors.Is(err, files.ErrUnfinished) {
		t.Errorf("half a copy as a source: %v", err)
	}
	if _, err := createDirectory(ctx, dir); !errors.Is(err, files.ErrUnfinished) {
		t.Errorf("half a copy as a target: %v", err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(full, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := createDirectory(ctx, full); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a directory with a file: %v", err)
	}
	if _, err := openDirectory(ctx, full); exitCode(err) != exitUsage {
		t.Errorf("a directory that is not a data directory: %v", err)
	}
}

// A copy that is not the same is noticed.
func TestCarryDiffers(t *testing.T) {
	source := newMade(t)
	to, err := createDirectory(t.Context(), filepath.Join(t.TempDir(), "copy"))
	if err != nil {
		t.Fatal(err)
	}
	defer to.close()
	err = storage.Copy(t.Context(), source, forgetful{to}, func(storage.Copied) {})
	if !errors.Is(err, storage.ErrDiffers) || !strings.Contains(err.Error(), "events") {
		t.Errorf("a copy that lost an event: %v", err)
	}
}

// forgetful loses a row.
type forgetful struct{ storage.Portable }

func (f forgetful) Load(ctx context.Context, t storage.Table, rows iter.Seq2[storage.Row, error]) error {
	if t.Name != "events" {
		return f.Portable.Load(ctx, t, rows)
	}
	return f.Portable.Load(ctx, t, func(yield func(storage.Row, error) bool) {
		n := 0
		for r, err := range rows {
			if n++; n != 2 && !yield(r, err) {
				return
			}
		}
	})
}
