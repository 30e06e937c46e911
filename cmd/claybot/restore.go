package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
)

type restoreCmd struct {
	Copy string `arg:"" optional:"" help:"Backup copy to restore. Default: the newest verified one in the data directory."`
}

// Run puts a copy of the database in the place of the one in the data directory. Agents'
// directories stay as they are.
func (c restoreCmd) Run(e *env) error {
	conf, _, err := e.load()
	if err != nil {
		return err
	}
	if conf.Storage.Shared() {
		return usageError{errors.New("restore is for a data directory; for a database that nodes share, see docs/scaling.md")}
	}
	ctx, stop := interruptible()
	defer stop()
	dir := conf.DataDir
	if there, _, _ := files.Look(dir); !there {
		return usageError{fmt.Errorf("there is no data directory %s", dir)}
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	from, err := c.choose(ctx, e, dir)
	if err != nil {
		return err
	}
	made, err := madeAt(from)
	if err != nil {
		return err
	}
	kept := filepath.Join(dir, "quarantine", "claybot.db-"+time.Now().UTC().Format(copyTime))
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, "claybot.db")
	var ended storage.Ended
	var again withdrawn
	var mark storage.StoreMark
	err = sqlite.Restore(ctx, from, path, kept, func(fresh string) (err error) {
		ended, again, mark, err = prepareRestored(ctx, dir, fresh, made)
		return err
	})
	if err == nil {
		err = files.MarkStore(dir, mark)
	}
	if err != nil {
		return fmt.Errorf("restore: %w; run it again", err)
	}
	_, err = fmt.Fprintf(e.out, `%s is in place: the state of %s. What was there is %s.
Unfinished work of that time has ended: %s (%d of them parked), %s, %s, %s; claybot outbox retry sends a message again.
Planned times of tasks up to now do not run; claybot cron shows them.
%s
People whose conversations went on since then are told at the next start. Start claybot now.
`, from, made.UTC().Format("2006-01-02 15:04:05 UTC"), kept,
		count(ended.Messages+ended.Parked, "message"), ended.Parked, count(ended.Runs, "run"), count(ended.Sends, "outgoing message"), count(ended.Reminders, "reminder"), again)
	return err
}

// choose returns the copy to restore.
func (c restoreCmd) choose(ctx context.Context, e *env, dir string) (string, error) {
	if c.Copy != "" {
		return c.Copy, sqlite.Verify(ctx, c.Copy)
	}
	all, err := copies(filepath.Join(dir, copiesDir))
	if err != nil {
		return "", err
	}
	for _, path := range all {
		err := sqlite.Verify(ctx, path)
		if err == nil {
			return path, nil
		}
		fmt.Fprintf(e.err, "claybot: skipped a copy: %v\n", err)
	}
	return "", fmt.Errorf("there is no copy in %s that is whole; name one, or put a backup of the data directory in its place", filepath.Join(dir, copiesDir))
}

// madeAt is when a copy was made, by its name or else by the file.
func madeAt(path string) (time.Time, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), copyPrefix), ".db")
	if at, err := time.Parse(copyTime, name); err == nil {
		return at, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// prepareRestored makes a copy at path the database of a data directory: what was
// unfinished when it was made has ended, and it is ahead of the boot record.
func prepareRestored(ctx context.Context, dir, path string, made time.Time) (ended storage.Ended, again withdrawn, m storage.StoreMark, err error) {
	db, err := sqlite.Open(ctx, path, sqlite.Config{})
	if err != nil {
		return ended, again, m, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if ended, again, err = endRestored(ctx, dir, db, made); err != nil {
		return ended, again, m, err
	}
	b, _ := files.ReadBoot(dir) // one that cannot be read counts as none
	m, err = grow(ctx, db, b.Store)
	return ended, again, m, err
}

// endRestored ends what was unfinished at the state that the database of dir went back
// to, withdraws what was revoked since, and leaves word for the next start and for the
// sources. The zero time: that state is not known.
func endRestored(ctx context.Context, dir string, db *sqlite.DB, made time.Time) (ended storage.Ended, again withdrawn, err error) {
	err = db.SetCheckpoint(ctx, markRestored, made.UTC().Format(copyTime))
	if err == nil {
		err = db.SetCheckpoint(ctx, connectors.MarkRestored, time.Now().UTC().Format(time.RFC3339))
	}
	if err == nil {
		ended, err = db.EndRestored(ctx)
	}
	if err == nil {
		again, err = withdraw(ctx, dir, db, true)
	}
	if err == nil && again.any() { // else it may have been done by a call that was cut short
		err = db.SetCheckpoint(ctx, markWithdrawn, again.String())
	}
	return ended, again, err
}
