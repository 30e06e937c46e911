package main

import (
	"fmt"

	"github.com/claybot/claybot/storage/postgres"
)

// A migrateCmd brings the schema of a shared database to this version, without a
// daemon.
type migrateCmd struct{}

// Run migrates and says from which version to which. It may be interrupted and run
// again, and run while daemons of the version before work.
func (migrateCmd) Run(e *env) error {
	conf, _, err := e.load()
	if err != nil {
		return err
	}
	if !conf.Storage.Shared() {
		_, err := fmt.Fprintln(e.out, "Nothing to do: claybot migrates a data directory when it starts.")
		return err
	}
	address := conf.Storage.URL.Value()
	if address == "" {
		return configError{fmt.Errorf("the storage URL is named (%s) and cannot be read: give it a value", conf.Storage.URL)}
	}
	ctx, stop := interruptible()
	defer stop()
	before, after, err := postgres.Migrate(ctx, postgres.Config{URL: address, Pooler: conf.Storage.Pooler, Log: newLog(e.err, conf)})
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
