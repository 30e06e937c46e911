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
	Copy   string `arg:"" optional:"" help:"Backup copy to restore. Default: the newest verified one in the data directory."`
	Accept bool   `help:"Restore nothing: accept the database as another program, such as sqlite3, has written it, if SQLite finds nothing wrong with it."`
}

// Run replaces the database of the data directory by a copy. The directories of agents stay
// as they are.
func (c restoreCmd) Run(e *env) error {
	if c.Accept && c.Copy != "" {
		return usageError{errors.New("--accept takes no copy: it is about the database of the data directory")}
	}
	conf, _, err := e.load()
	if err != nil {
		return err
	}
	if conf.Storage.Shared() {
		return usageError{errors.New("restore works on a data directory; for the database of a cluster, see docs/scaling.md")}
	}
	ctx, stop := interruptible()
	defer stop()
	dir := conf.DataDir
	if there, _, _ := files.Look(dir); !there {
		return usageError{fmt.Errorf("data directory %s does not exist", dir)}
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	kept := filepath.Join(dir, "quarantine", "claybot.db-"+time.Now().UTC().Format(copyTime))
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, "claybot.db")
	if c.Accept {
		return c.accept(ctx, e, path, kept)
	}
	from, err := c.choose(ctx, e, dir)
	if err != nil {
		return err
	}
	made, err := madeAt(from)
	if err != nil {
		return err
	}
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
	_, err = fmt.Fprintf(e.out, `Restored %s, the state of %s. The old database is now %s.
Ended the unfinished work of that time: %s (%d of them parked), %s, %s, %s; claybot outbox retry sends a message again.
Scheduled runs up to now are skipped; claybot cron lists the tasks.
%s
Start claybot now. It notifies users whose conversations continued after that state.
`, from, made.UTC().Format("2006-01-02 15:04:05 UTC"), kept,
		count(ended.Messages+ended.Parked, "message"), ended.Parked, count(ended.Runs, "run"), count(ended.Sends, "outgoing message"), count(ended.Reminders, "reminder"), again)
	return err
}

// accept gives the pages of the database checksums again, and keeps the file as it was.
func (c restoreCmd) accept(ctx context.Context, e *env, path, kept string) error {
	sealed := kept + ".accepted"
	defer func() { _ = os.Remove(sealed) }() // it was copied, or is not needed
	wrong, pages, err := sqlite.Reseal(ctx, path, sealed)
	switch {
	case errors.Is(err, storage.ErrDamaged):
		return fmt.Errorf("%w; run claybot restore without --accept", err)
	case err != nil:
		return fmt.Errorf("%w; nothing was changed, run it again", err)
	case wrong == 0:
		return e.text(fmt.Sprintf("All %s of the database have the right checksum; nothing was changed.\n", count(pages, "page")))
	}
	err = sqlite.Restore(ctx, sealed, path, kept, func(fresh string) error {
		db, err := sqlite.Open(ctx, fresh, sqlite.Config{})
		if err != nil {
			return err
		}
		return db.Close()
	})
	if err != nil {
		return fmt.Errorf("restore: %w; run it again", err)
	}
	return e.text(fmt.Sprintf(`Accepted the database as it is: %d of its %s had another checksum than claybot writes. The old file is now %s.
Start claybot now.
`, wrong, count(pages, "page"), kept))
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
	return "", fmt.Errorf("no undamaged copy in %s; name one, or replace the data directory by a backup", filepath.Join(dir, copiesDir))
}

// madeAt is when a copy was made, by its name or by the time of the file.
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

// prepareRestored turns a copy at path into the database of a data directory: it ends the
// copy's unfinished work and advances its mark beyond the boot record.
func prepareRestored(ctx context.Context, dir, path string, made time.Time) (ended storage.Ended, again withdrawn, m storage.StoreMark, err error) {
	db, err := sqlite.Open(ctx, path, sqlite.Config{})
	if err != nil {
		return ended, again, m, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if ended, again, err = endRestored(ctx, dir, db, made); err != nil {
		return ended, again, m, err
	}
	b, _ := files.ReadBoot(dir) // an unreadable one counts as none
	m, err = grow(ctx, db, b.Store)
	return ended, again, m, err
}

// endRestored ends the unfinished work of the state that the database of dir went back to,
// withdraws what was revoked since, and leaves a note for the next start and for the
// sources. If made is zero, the state is unknown.
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
	if err == nil && again.any() { // otherwise an interrupted call may have done it
		err = db.SetCheckpoint(ctx, markWithdrawn, again.String())
	}
	return ended, again, err
}
