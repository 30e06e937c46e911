package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// URL is where a database is reached over TCP by the owner of the server; "" is
// the database postgres.
func (s *Server) URL(database string) string { return s.urlFor(User, Password, database) }

func (s *Server) urlFor(user, password, database string) string {
	if database == "" {
		database = "postgres"
	}
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password), Host: s.addr(),
		Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// databaseOf is the name of the database in an URL; a name is one already.
func databaseOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return address
	}
	return strings.TrimPrefix(u.Path, "/")
}

// Query runs statements in a database, named by its name or URL, and returns the
// rows of the last one as texts; NULL is empty. It goes through the Unix socket as
// the owner, so it works whatever the network and passwords are, and a proxy is not
// in between. A default of read-only transactions does not hold for it.
func (s *Server) Query(ctx context.Context, database, sql string) ([][]string, error) {
	if database = databaseOf(database); database == "" {
		database = "postgres"
	}
	conn, err := pgconn.Connect(ctx, fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable application_name=postgrestest options='-c default_transaction_read_only=off'",
		quote(s.Sockets()), s.port, User, quote(database)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing is under way on it
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return nil, nil
	}
	var rows [][]string
	for _, row := range results[len(results)-1].Rows {
		var texts []string
		for _, cell := range row {
			texts = append(texts, string(cell))
		}
		rows = append(rows, texts)
	}
	return rows, nil
}

// quote is a value of a connection string.
func quote(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

// Create makes an empty database and returns its URL; Drop removes it.
func (s *Server) Create(ctx context.Context) (string, error) {
	name := s.name("test")
	if _, err := s.Query(ctx, "", "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return "", fmt.Errorf("create a database: %w", err)
	}
	return s.URL(name), nil
}

// Drop removes a database, named by its name or URL, and ends its connections.
func (s *Server) Drop(ctx context.Context, database string) error {
	for {
		_, err := s.Query(ctx, "", "DROP DATABASE IF EXISTS "+databaseOf(database)+" WITH (FORCE)")
		if err == nil {
			return nil
		}
		// The server waits five seconds for connections that it has ended, which on a
		// busy machine may not be enough.
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "55006" || ctx.Err() != nil {
			return fmt.Errorf("drop a database: %w", err)
		}
	}
}

// Terminate ends connections as an operator does (pg_terminate_backend) and tells how
// many: those of clients for which the condition on pg_stat_activity holds, such as
// "datname = 'test_1'"; "" is all. Those of this package are left alone.
func (s *Server) Terminate(ctx context.Context, where string) (int, error) {
	if where == "" {
		where = "true"
	}
	rows, err := s.Query(ctx, "", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND application_name <> 'postgrestest' AND (`+where+`)`)
	if err != nil {
		return 0, fmt.Errorf("terminate connections: %w", err)
	}
	ended := 0
	for _, row := range rows {
		if row[0] == "t" {
			ended++
		}
	}
	return ended, nil
}

// Role makes a user that may log in to a database and has no other right than what
// is granted, each as it stands between GRANT and TO: "SELECT ON ALL TABLES IN
// SCHEMA public". It returns the URL by which this user reaches the database.
func (s *Server) Role(ctx context.Context, database string, grants ...string) (string, error) {
	database = databaseOf(database)
	name := s.name("role")
	statements := []string{
		fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, Password),
		// Before PostgreSQL 15 every role had this one.
		"REVOKE CREATE ON SCHEMA public FROM PUBLIC",
	}
	for _, g := range grants {
		statements = append(statements, "GRANT "+g+" TO "+name)
	}
	if _, err := s.Query(ctx, database, strings.Join(statements, ";")); err != nil {
		return "", fmt.Errorf("create a role: %w", err)
	}
	return s.urlFor(name, Password, database), nil
}
