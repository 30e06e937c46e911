package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// A MigrationPlan is what Migrate would do.
type MigrationPlan struct {
	Version int // of the schema; 0: there are no tables yet
	Known   int // the version of this program
	Pending []PendingMigration
	// Oldest is the version that a program must know to work with the schema after the
	// pending migrations.
	Oldest int
}

// A PendingMigration is a migration that is not complete.
type PendingMigration struct {
	Version     int
	Done, Steps int // an interrupted migration resumes after the steps that are done
}

// PlanMigration returns what Migrate would do and changes nothing. Its errors are those
// of Open.
func PlanMigration(ctx context.Context, cfg Config) (MigrationPlan, error) {
	db := newDB(cfg)
	pc, err := db.poolConfig()
	if err != nil {
		return MigrationPlan{}, explain(cfg.URL, err)
	}
	p := MigrationPlan{Known: len(db.cfg.migrations)}
	err = db.bounded(ctx, func(ctx context.Context) error {
		conn, err := pgx.ConnectConfig(ctx, pc.ConnConfig.Copy())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing to write
		s, err := survey(ctx, conn)
		if err == nil {
			err = s.check()
		}
		if err != nil {
			return err
		}
		return p.read(ctx, conn, db.cfg.migrations)
	})
	if err != nil {
		return MigrationPlan{}, explain(cfg.URL, err)
	}
	return p, nil
}

// read fills in the plan for a list of known migrations.
func (p *MigrationPlan) read(ctx context.Context, conn *pgx.Conn, list []migration) (err error) {
	if p.Version, p.Oldest, err = schemaVersion(ctx, conn); err != nil {
		return err
	}
	if err := checkKnown(p.Version, p.Oldest, len(list)); err != nil {
		return err
	}
	for n := p.Version + 1; n <= len(list); n++ {
		done, err := stepsDone(ctx, conn, n)
		if err != nil {
			return err
		}
		p.Pending = append(p.Pending, PendingMigration{Version: n, Done: done, Steps: len(list[n-1].steps())})
		p.Oldest = max(p.Oldest, list[n-1].oldest)
	}
	return nil
}
