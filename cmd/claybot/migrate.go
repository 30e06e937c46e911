package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/storage/sqlite"
)

// A migrateCmd brings the schema of a shared database to this version, without a
// daemon.
type migrateCmd struct {
	Check bool `help:"Show which migrations are pending and change nothing; exit with 0 if there are none, else with 1."`
}

// Errors of --check, with exit code 1.
var (
	errPending      = errors.New("migrations are pending; run claybot migrate")
	errPendingLocal = errors.New("migrations are pending; the next start of this claybot runs them")
)

// Run migrates and says from which version to which. It may be interrupted and run
// again, and run while daemons of the version before work.
func (m migrateCmd) Run(e *env) error {
	conf, _, err := e.load()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	if !conf.Storage.Shared() {
		if m.Check {
			return checkDirectory(ctx, e.out, conf.DataDir)
		}
		_, err := fmt.Fprintln(e.out, "Nothing to do: claybot migrates a data directory when it starts.")
		return err
	}
	address := conf.Storage.URL.Value()
	if address == "" {
		return configError{fmt.Errorf("the storage URL is named (%s) and cannot be read: give it a value", conf.Storage.URL)}
	}
	cfg := postgres.Config{URL: address, Pooler: conf.Storage.Pooler, Log: newLog(e.err, conf)}
	if m.Check {
		plan, err := postgres.PlanMigration(ctx, cfg)
		if err != nil {
			return databaseError(err)
		}
		return printPlan(e.out, plan)
	}
	before, after, err := postgres.Migrate(ctx, cfg)
	if err != nil {
		return databaseError(err)
	}
	if before == after {
		_, err = fmt.Fprintf(e.out, "The schema is already version %d.\n", after)
	} else {
		_, err = fmt.Fprintf(e.out, "Migrated the schema from version %d to %d.\n", before, after)
	}
	return err
}

// printPlan shows a plan and returns errPending unless there is nothing to do.
func printPlan(w io.Writer, p postgres.MigrationPlan) error {
	if err := printVersions(w, p.Version, p.Known); err != nil {
		return err
	}
	if len(p.Pending) == 0 {
		return printNone(w)
	}
	for _, m := range p.Pending {
		steps := "1 step"
		switch {
		case m.Done > 0:
			steps = fmt.Sprintf("%d of %d steps done", m.Done, m.Steps)
		case m.Steps > 1:
			steps = fmt.Sprintf("%d steps", m.Steps)
		}
		if _, err := fmt.Fprintf(w, "Pending: migration %d (%s)\n", m.Version, steps); err != nil {
			return err
		}
	}
	if p.Version > 0 && p.Oldest > p.Version {
		_, err := fmt.Fprintf(w, "Members that know only version %d cannot work with the new schema: stop them first.\n", p.Version)
		if err != nil {
			return err
		}
	}
	return errPending
}

// checkDirectory does for the database of a data directory what printPlan does for a
// shared one. A daemon may use it.
func checkDirectory(ctx context.Context, w io.Writer, dir string) error {
	_, holder, err := files.Look(dir)
	if err != nil {
		return unreached(dir, err)
	}
	version, known, err := sqlite.SchemaVersion(ctx, filepath.Join(dir, "claybot.db"), holder == "")
	switch {
	case errors.Is(err, fs.ErrNotExist): // the next start creates it
	case errors.Is(err, storage.ErrDamaged):
		return damagedError(dir, err)
	case err != nil:
		return err
	case version > known:
		return configError{fmt.Errorf("the schema is newer than this claybot: it is version %d and this claybot knows %d; start that version of claybot or a later one; nothing was changed", version, known)}
	}
	if err := printVersions(w, version, known); err != nil {
		return err
	}
	if version == known {
		return printNone(w)
	}
	for n := version + 1; n <= known; n++ {
		if _, err := fmt.Fprintf(w, "Pending: migration %d (1 step)\n", n); err != nil {
			return err
		}
	}
	return errPendingLocal
}

func printVersions(w io.Writer, version, known int) error {
	schema := fmt.Sprintf("The schema is version %d", version)
	if version == 0 {
		schema = "There are no tables yet"
	}
	_, err := fmt.Fprintf(w, "%s; this claybot knows version %d.\n", schema, known)
	return err
}

func printNone(w io.Writer) error {
	_, err := fmt.Fprintln(w, "No migrations are pending.")
	return err
}
