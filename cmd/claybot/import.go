package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/connectors/heartbeat"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/tools/documents"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/web"
)

type importCmd struct {
	Data     importDataCmd     `cmd:"" name:"directory" default:"withargs" eg:"import backup" help:"Import a data directory of claybot into the configured store, which must be empty."`
	OpenClaw importOpenClawCmd `cmd:"" name:"openclaw" eg:"import openclaw\nimport openclaw --apply" help:"Show what claybot would import from OpenClaw; with --apply, import it."`
	Picoclaw importPicoclawCmd `cmd:"" name:"picoclaw" eg:"import picoclaw\nimport picoclaw --apply" help:"Show what claybot would import from picoclaw; with --apply, import it."`
}

type importDataCmd struct {
	Dir string `arg:"" help:"Data directory that no daemon uses, such as one created by claybot export."`
}

// Run copies a data directory into the configured store, which is empty.
func (c importDataCmd) Run(e *env) error {
	conf, _, err := e.load()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	if err := apart(c.Dir, conf); err != nil {
		return err
	}
	from, err := openDirectory(ctx, c.Dir)
	if err != nil {
		return err
	}
	defer from.close()
	to, err := createTarget(ctx, conf)
	if err != nil {
		return err
	}
	defer to.close()
	if err := e.carry(ctx, from, to); err != nil {
		if conf.Storage.Shared() {
			return fmt.Errorf("import: %w; nothing was stored, import again", err)
		}
		return fmt.Errorf("import: %w; %s is incomplete: remove it and import again", err, conf.DataDir)
	}
	_, err = fmt.Fprintf(e.out, "Imported %s into the configured store. Start it with: claybot serve. Do not start %s again: two installations must not share a bot.\n", c.Dir, c.Dir)
	return err
}

// createTarget opens the configured store, which must be empty, to be written.
func createTarget(ctx context.Context, conf configs.Config) (*carrier, error) {
	if !conf.Storage.Shared() {
		return createDirectory(ctx, conf.DataDir)
	}
	pc, err := databaseConfig(ctx, conf)
	if err != nil {
		return nil, err
	}
	a, err := postgres.CreateArchive(ctx, pc)
	if err != nil {
		return nil, databaseError(err)
	}
	return &carrier{Portable: a, finish: a.Commit, close: func() { _ = a.Close(ctx) }}, nil // it was committed, or is discarded
}

// openDirectory opens a data directory for reading, in the state after a start of the
// daemon: migrated, without leases, with interrupted sends marked as ambiguous.
func openDirectory(ctx context.Context, dir string) (_ *carrier, err error) {
	path := filepath.Join(dir, "claybot.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, usageError{fmt.Errorf("%s is not a claybot data directory: it has no claybot.db", dir)}
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Close() // err says what matters
		}
	}()
	if err := recovered(ctx, dir); err != nil {
		return nil, err
	}
	db, err := sqlite.OpenArchive(ctx, path)
	if err != nil {
		return nil, err
	}
	a, err := files.OpenArchive(archiveOf(dir, db))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &carrier{Portable: a, close: func() {
		_ = db.Close() // nothing was written
		_ = lock.Close()
	}}, nil
}

// recovered opens and closes the stores of a data directory as a daemon does.
func recovered(ctx context.Context, dir string) error {
	db, err := openDatabase(ctx, dir, sqlite.Config{})
	if err != nil {
		return err
	}
	agents, err := files.Open(files.Config{Dir: dir, Index: db})
	if err == nil {
		err = agents.Close()
	}
	return errors.Join(err, db.Close())
}

// createDirectory creates a data directory for writing.
func createDirectory(ctx context.Context, dir string) (_ *carrier, err error) {
	dir = filepath.Clean(dir)
	lock, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	release := func() { _ = lock.Close() } // nothing is written to it
	defer func() {
		if err != nil {
			release()
		}
	}()
	if err := files.Prepare(dir); err != nil {
		return nil, unfit(err)
	}
	db, err := sqlite.CreateArchive(ctx, filepath.Join(dir, "claybot.db"))
	if err != nil {
		return nil, err
	}
	a, err := files.OpenArchive(archiveOf(dir, db))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	open := true
	shut := func() error {
		if !open {
			return nil
		}
		open = false
		return db.Close()
	}
	return &carrier{
		Portable: a,
		finish: func(ctx context.Context) error {
			err := shut()
			if err == nil {
				err = recovered(ctx, dir) // to release the leases
			}
			if err == nil {
				err = files.Finish(dir)
			}
			return err
		},
		close: func() {
			_ = shut() // finish has closed it, or it is not used
			release()
		},
	}, nil
}

// archiveOf says where a data directory has the files that are a tree in a cluster.
func archiveOf(dir string, db *sqlite.Archive) files.ArchiveConfig {
	names := web.Names()
	names["access/revoked.json"] = "revoked.json"
	names[callbacksFolder+"/"+callbacksSecret+".json"] = filepath.Join(callbacksFolder, callbacksSecret+".json") // the other files there are the operator's
	return files.ArchiveConfig{
		Dir: dir, Tables: db,
		Documents: documents.Copier{},
		Folders:   []string{"cron", "heartbeat", "skills", mcp.Folder, slack.Folder},
		Names:     names,
		Kept:      []storage.MarkFiles{cron.Layout.Kept, heartbeat.Layout.Kept},
	}
}
