package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot/storage"
)

var _ storage.Portable = (*Archive)(nil)

// An Archive copies a whole database as rows. It works in one transaction: reads see
// one snapshot, and loaded rows become visible together at Commit or not at all. No
// member can join until it is closed. It is not safe for concurrent use.
type Archive struct {
	conn    *pgx.Conn
	cfg     Config
	missing []string // files whose bytes were not found
}

// lockPatience is how long an Archive waits for a member that is just joining.
const lockPatience = "10s"

// ErrInUse reports that a member uses the database.
var ErrInUse = errors.New("the database is in use")

// OpenArchive opens a database for reading. Its errors are *SetupErrors: ErrInUse if
// a member is alive and live is not set.
func OpenArchive(ctx context.Context, cfg Config, live bool) (*Archive, error) {
	a, err := openArchive(ctx, cfg)
	if err != nil {
		return nil, err
	}
	err = a.begin(ctx, "REPEATABLE READ", !live)
	if err == nil && !live {
		err = a.unused(ctx)
	}
	if err != nil {
		return nil, explain(cfg.URL, errors.Join(err, a.Close(ctx)))
	}
	return a, nil
}

// CreateArchive opens a database for loading and creates missing tables. Its errors
// are *SetupErrors, for example when the database is not empty.
func CreateArchive(ctx context.Context, cfg Config) (*Archive, error) {
	a, err := openArchive(ctx, cfg)
	if err != nil {
		return nil, err
	}
	err = a.begin(ctx, "READ COMMITTED", true)
	if err == nil {
		err = a.unused(ctx)
	}
	if err == nil {
		err = a.empty(ctx)
	}
	if err != nil {
		return nil, explain(cfg.URL, errors.Join(err, a.Close(ctx)))
	}
	return a, nil
}

func openArchive(ctx context.Context, cfg Config) (*Archive, error) {
	db := newDB(cfg)
	cfg = db.cfg
	pc, err := db.poolConfig()
	if err != nil {
		return nil, explain(cfg.URL, err)
	}
	if _, err := db.prepare(ctx, pc.ConnConfig); err != nil {
		return nil, explain(cfg.URL, err)
	}
	open, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	conn, err := pgx.ConnectConfig(open, pc.ConnConfig)
	if err != nil {
		return nil, explain(cfg.URL, err)
	}
	version, _, err := schemaVersion(open, conn)
	if err == nil && version > len(migrations) { // it may have tables that this version does not know
		err = &SetupError{
			Problem: fmt.Sprintf("its tables are version %d, and this claybot knows all of version %d", version, len(migrations)),
			Next:    "copy with the version of claybot that the nodes have",
		}
	}
	if err != nil {
		return nil, explain(cfg.URL, errors.Join(err, conn.Close(context.WithoutCancel(ctx))))
	}
	return &Archive{conn: conn, cfg: cfg}, nil
}

// begin begins the transaction. With alone, no member can renew before it ends.
func (a *Archive) begin(ctx context.Context, isolation string, alone bool) error {
	statements := []string{
		"BEGIN ISOLATION LEVEL " + isolation,
		"SET LOCAL idle_in_transaction_session_timeout = 0", "SET LOCAL statement_timeout = 0", "SET LOCAL lock_timeout = '" + lockPatience + "'",
	}
	if alone {
		statements = append(statements, "LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE")
	}
	for _, q := range statements {
		if _, err := a.conn.Exec(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// unused returns ErrInUse if a member is alive.
func (a *Archive) unused(ctx context.Context) error {
	var name string
	err := a.conn.QueryRow(ctx, `SELECT name FROM nodes WHERE until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) ORDER BY name LIMIT 1`).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return &SetupError{
		Problem: fmt.Sprintf("the node %.100q uses the database", name),
		Next:    "stop all nodes and try again; one that was killed counts for some seconds more", Err: ErrInUse,
	}
}

// technical are the tables that a member may write merely by starting.
var technical = []string{storage.TableCheckpoints, "sinks", "counters", "latencies", "workspaces"}

// empty refuses a database that has content and deletes the rows that a member writes
// merely by starting.
func (a *Archive) empty(ctx context.Context) error {
	for _, t := range storage.Tables() {
		if t.Name == storage.TableSequences {
			continue
		}
		if slices.Contains(technical, t.Name) {
			if _, err := a.conn.Exec(ctx, "DELETE FROM "+t.Name); err != nil {
				return err
			}
			continue
		}
		var found bool
		q := "SELECT EXISTS (SELECT 1 FROM " + t.Name + ")"
		if t.Name == storage.TableTree {
			q = "SELECT EXISTS (SELECT 1 FROM tree WHERE body IS NOT NULL)"
		}
		if err := a.conn.QueryRow(ctx, q).Scan(&found); err != nil {
			return err
		}
		if found {
			return &SetupError{
				Problem: "the database is not empty: something is in the table " + t.Name,
				Next:    "name an empty one, made with: " + createDatabase,
			}
		}
	}
	for _, q := range []string{"DELETE FROM tree" /* what was removed long ago */, "DELETE FROM sums"} {
		if _, err := a.conn.Exec(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// Remarks implements storage.Portable.
func (a *Archive) Remarks() []string { return a.missing }

// Commit makes the loaded rows durable.
func (a *Archive) Commit(ctx context.Context) error {
	tag, err := a.conn.Exec(ctx, "COMMIT")
	if err == nil && tag.String() != "COMMIT" {
		err = fmt.Errorf("the transaction ended with %s", tag)
	}
	if err != nil {
		return explain(a.cfg.URL, err)
	}
	return nil
}

// Close closes the connection and rolls back an uncommitted transaction.
func (a *Archive) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), idleInTransaction)
	defer cancel()
	return a.conn.Close(ctx)
}

// ofSomebody selects rows of existing and quarantined agents. The next pruning
// deletes all others.
const ofSomebody = " WHERE agent IN (SELECT id FROM agents UNION ALL SELECT agent FROM quarantine)"

// selection returns the query for the rows of a table.
func selection(t storage.Table) string {
	columns := `"` + strings.Join(t.Columns, `", "`) + `"`
	switch {
	case t.Name == storage.TableSequences:
		return `SELECT name, last FROM (VALUES
			('memory_versions', pg_sequence_last_value(pg_get_serial_sequence('memory_versions', 'version')::regclass)),
			('outbox', pg_sequence_last_value(pg_get_serial_sequence('outbox', 'n')::regclass))) s (name, last) WHERE last IS NOT NULL`
	case t.Name == storage.TableRecords:
		return "SELECT " + columns + " FROM records" + ofSomebody + " ORDER BY agent, n"
	case t.Name == storage.TableResults:
		return "SELECT " + columns + " FROM results" + ofSomebody
	case t.Name == storage.TableTree: // turns at servers and codes of login links are for minutes
		return "SELECT " + columns + " FROM tree WHERE body IS NOT NULL AND path <> 'web/codes.json' AND path NOT LIKE 'mcp/%.turn' ORDER BY path"
	case len(t.Sums) == 0:
		return "SELECT " + columns + " FROM " + t.Name
	}
	var list []string
	key := 0
	for _, c := range t.Columns {
		switch {
		case !slices.Contains(t.Sums, c):
			list = append(list, c)
			key++
		case slices.Contains([]string{"estimated", "type", "connector", "channel"}, c): // the same, or any
			list = append(list, "max("+c+")")
		default:
			list = append(list, "CAST(sum("+c+") AS BIGINT)")
		}
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM " + t.Name + "_now GROUP BY " + strings.Join(t.Columns[:key], ", ")
}

// only returns the query for the rows of one agent.
func only(t storage.Table) string {
	column, order := "agent", ""
	switch t.Name {
	case storage.TableAgents:
		column = "id"
	case storage.TableRecords:
		order = " ORDER BY n"
	}
	return `SELECT "` + strings.Join(t.Columns, `", "`) + `" FROM ` + t.Name + " WHERE " + column + " = $1" + order
}

// Rows implements storage.Portable.
func (a *Archive) Rows(ctx context.Context, t storage.Table) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		q, args := selection(t), []any(nil)
		if t.Agent != "" {
			q, args = only(t), []any{t.Agent}
		}
		rows, err := a.conn.Query(ctx, q, args...)
		if err != nil {
			yield(nil, classify(err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			values, err := rows.Values()
			for i := range values {
				if err == nil {
					values[i], err = plain(values[i])
				}
			}
			if !yield(values, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, classify(err))
		}
	}
}
