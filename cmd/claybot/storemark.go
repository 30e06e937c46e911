package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
)

// markStore is the mark of the database that has its storage.StoreMark, as JSON.
const markStore = "store"

// An expectation is what the boot record of a data directory says about its database.
type expectation struct {
	dir  string
	was  storage.StoreMark
	lost string // why the database lost something, as far as its files show it
}

// expect compares the files of a database with the boot record before they are opened. A
// directory without a record, from an older version or a copy, expects nothing. If
// something was lost, expect moves the record ahead of the database, so that the next start
// reaches the same result if this one is interrupted.
func expect(dir, path string) (*expectation, error) {
	b, _ := files.ReadBoot(dir) // OpenBoots reports an unreadable one; here it counts as none
	e := &expectation{dir: dir, was: b.Store}
	blank, err := sqlite.Blank(path)
	if err != nil {
		return nil, err
	}
	logged, err := sqlite.HasLog(path)
	if err != nil {
		return nil, err
	}
	next := e.was
	switch {
	case blank && (e.was.ID != "" || hasAgents(dir)):
		e.lost = "it is missing or empty; claybot creates a new one from the directories of the agents. Waiting messages, runs, logins and tokens are lost"
	case e.was.Log && !logged:
		// No proof by itself: a process that ended with an error closed the database cleanly,
		// perhaps without a record of that. The marks decide, in settle.
		return e, nil
	case e.was.Log: // this process removes the log when it closes the database
		next.Log = false
		_ = files.MarkStore(dir, next) // a full disk does not prevent a start
		return e, nil
	default:
		return e, nil
	}
	next.ID, next.N, next.Log = cmp.Or(next.ID, rand.Text()), next.N+1, false
	return e, files.MarkStore(dir, next)
}

// settle compares the database with the boot record. If the database was lost, replaced or
// rolled back, settle does what claybot restore does: it ends unfinished work, and leaves a
// note for the next start of the daemon.
func (e *expectation) settle(ctx context.Context, db *sqlite.DB, log *slog.Logger) error {
	found, err := storeMark(ctx, db)
	if err != nil {
		return err
	}
	why := e.lost
	switch {
	case why != "" && found.ID == e.was.ID && found.N > e.was.N: // a restore has finished since
		return nil
	case why != "":
	case e.was.ID == "":
		return nil
	case found.ID != e.was.ID:
		why = "it is a different database than before"
	case found.N < e.was.N:
		why = "it is an older state of the database"
	default:
		return nil
	}
	var made time.Time // zero: unknown
	if found.ID == e.was.ID {
		made = found.At.Time()
	}
	ended, again, err := endRestored(ctx, e.dir, db, made)
	if err == nil {
		_, err = advance(ctx, e.dir, db)
	}
	if err != nil {
		return fmt.Errorf("settle a database that was rolled back: %w", err)
	}
	if log != nil {
		log.Error("claybot.db changed since claybot stopped; unfinished work of that state was ended and users are notified", "reason", why,
			"messages", ended.Messages+ended.Parked, "runs", ended.Runs, "sends", ended.Sends, "reminders", ended.Reminders, "approvals", again.String(),
			"next", "if this was not intended, stop claybot and run: claybot restore --data-dir "+e.dir)
	}
	return nil
}

// storeMark reads the mark of a database; zero if it has none.
func storeMark(ctx context.Context, db *sqlite.DB) (m storage.StoreMark, err error) {
	text, err := db.Checkpoint(ctx, markStore)
	if err != nil || text == "" {
		return m, err
	}
	if json.Unmarshal([]byte(text), &m) != nil { // another program wrote it
		return storage.StoreMark{}, nil
	}
	return m, nil
}

// grow advances the mark of a database beyond that of a record. The record follows.
func grow(ctx context.Context, db *sqlite.DB, record storage.StoreMark) (storage.StoreMark, error) {
	m, err := storeMark(ctx, db)
	if err != nil {
		return m, err
	}
	m = storage.StoreMark{ID: cmp.Or(record.ID, m.ID), N: max(m.N, record.N) + 1, At: claybot.Now()}
	if m.ID == "" {
		m.ID = rand.Text()
	}
	text, err := json.Marshal(m)
	if err == nil {
		err = db.SetCheckpoint(ctx, markStore, string(text))
	}
	return m, err
}

// advance advances the marks of a database and of the boot record of its directory.
func advance(ctx context.Context, dir string, db *sqlite.DB) (storage.StoreMark, error) {
	b, _ := files.ReadBoot(dir) // see expect
	m, err := grow(ctx, db, b.Store)
	if err != nil {
		return m, err
	}
	return m, files.MarkStore(dir, m)
}

// begin records the start of this process in its boot record.
func (k *keeper) begin(ctx context.Context, boots *files.Boots) {
	if k == nil {
		return
	}
	k.boots = boots
	k.mark(ctx, true)
}

// mark advances the marks while the daemon works; working says that it continues. If that
// fails, a later loss may go unnoticed, but nothing is wrong.
func (k *keeper) mark(ctx context.Context, working bool) {
	if k.boots == nil {
		return
	}
	k.marking.Lock() // a slow call could put the database behind the record
	defer k.marking.Unlock()
	m, err := grow(ctx, k.db, k.boots.Store())
	if err != nil {
		m = k.boots.Store()
	}
	m.Log = working && (err == nil || m.Log)
	if merr := k.boots.Update(true, func(b *storage.Boot) { b.Store = m }); err == nil {
		err = merr
	}
	if err != nil {
		k.log.Warn("failed to record the database state; the next start may not detect that it was lost or rolled back", "err", err)
	}
}

// markCommits advances the marks if there were commits since its last call, so that a start
// recognizes an older state of the database after this process was killed.
func (k *keeper) markCommits(ctx context.Context) {
	if k.db.Commits() == k.marked {
		return
	}
	before := k.db.Commits()
	k.mark(ctx, true)
	k.marked = before + 1 // the mark itself is one; a concurrent one counts next time
}

// markTime bounds the last mark at shutdown.
const markTime = 5 * time.Second

// Close records a clean shutdown of the database.
func (k *keeper) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), markTime)
	defer cancel()
	k.mark(ctx, false)
	return nil
}

// hasAgents reports whether a data directory has agents.
func hasAgents(dir string) bool {
	entries, err := os.ReadDir(filepath.Join(dir, "agents"))
	return err == nil && slices.ContainsFunc(entries, fs.DirEntry.IsDir)
}
