package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// oldestServer is the oldest server that is supported: MERGE-free SQL of 12 and
// later would do, 13 is the oldest that is tested by anybody.
const oldestServer = 13

// createDatabase makes a database for claybot on every server: one whose locale has
// another encoding takes UTF8 only with a locale that has none. Tables have an order of
// their own.
const createDatabase = "CREATE DATABASE <name> OWNER <role> ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"

// A surveyed server is what a connection has found out about it.
type surveyed struct {
	version           int // 150004 is 15.4
	name              string
	standby, readOnly bool
	encoding          string
	synchronousCommit string
	fsync             bool
	fullPageWrites    bool
	maxConnections    int
	schema            string // in which tables are made; empty: there is none
}

func survey(ctx context.Context, conn *pgx.Conn) (s surveyed, err error) {
	err = conn.QueryRow(ctx, `SELECT CAST(current_setting('server_version_num') AS INTEGER), current_setting('server_version'), pg_is_in_recovery(),
		current_setting('transaction_read_only') = 'on', current_setting('server_encoding'), current_setting('synchronous_commit'),
		current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on', CAST(current_setting('max_connections') AS INTEGER),
		coalesce(current_schema(), '')`).
		Scan(&s.version, &s.name, &s.standby, &s.readOnly, &s.encoding, &s.synchronousCommit, &s.fsync, &s.fullPageWrites, &s.maxConnections, &s.schema)
	return s, err
}

// check says why claybot cannot work with the server.
func (s surveyed) check() error {
	switch {
	case s.version < oldestServer*10000:
		return &SetupError{
			Problem: fmt.Sprintf("the server is PostgreSQL %s", s.name),
			Next:    fmt.Sprintf("claybot needs %d or later: upgrade it, or use another one", oldestServer),
		}
	case s.standby:
		return &SetupError{Problem: "the server is a standby that only reads", Next: "let the URL name the primary, for example with target_session_attrs=read-write"}
	case s.readOnly:
		return &SetupError{Problem: "the database only reads", Next: "set default_transaction_read_only to off for the role and the database of the URL"}
	case s.encoding != "UTF8":
		return &SetupError{
			Problem: "the database's encoding is " + s.encoding + ", and claybot needs UTF8",
			Next:    "an encoding cannot be changed: make another database with: " + createDatabase + ", and name that one in the storage URL",
		}
	case s.schema == "":
		return &SetupError{Problem: "no schema of the search path exists that the role may use", Next: "create one, or GRANT USAGE, CREATE on it to the role, or name another one by ?search_path= in the URL"}
	}
	return nil
}

// checkRights looks whether the role may read and write each table of a schema. Their
// sequences need no right of their own.
func checkRights(ctx context.Context, conn *pgx.Conn, schema string) error {
	var table, right string
	err := conn.QueryRow(ctx, `SELECT t.relname, p.name FROM pg_class t CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) p (name)
		WHERE t.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND (t.relkind IN ('r', 'p') OR t.relkind = 'v' AND p.name = 'SELECT')
		AND NOT has_table_privilege(t.oid, p.name) ORDER BY 1, 2 LIMIT 1`, schema).Scan(&table, &right)
	if err == pgx.ErrNoRows { //nolint:errorlint // pgx returns it as it is
		return nil
	}
	if err != nil {
		return err
	}
	return &SetupError{
		Problem: fmt.Sprintf("the role of the storage URL may not %s in the table %s", right, table),
		Next:    "let the owner of the tables run: GRANT ALL ON ALL TABLES IN SCHEMA " + pgx.Identifier{schema}.Sanitize() + " TO <role>",
	}
}
