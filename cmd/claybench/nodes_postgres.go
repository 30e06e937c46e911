package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// A database is a PostgreSQL server of the rig's own, and the one database in it
// that all nodes share.
type database struct {
	*postgrestest.Server
	url string // as its owner
}

// provable has a database remember when each row was written.
const provable = "track_commit_timestamp"

// openDatabase starts a server with the settings of production: each commit is
// synced. More settings are those that are to be on.
func openDatabase(ctx context.Context, on []string, nodes ...string) (db *database, err error) {
	settings := map[string]string{"shared_buffers": "256MB"}
	for _, name := range on {
		settings[name] = "on"
	}
	s, err := postgrestest.Start(ctx, postgrestest.Config{Settings: settings})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.Close() // the first error is the one to tell
		}
	}()
	address, err := s.Create(ctx)
	if err != nil {
		return nil, err
	}
	db = &database{s, address}
	return db, db.admit(ctx, nodes)
}

// admit gives each node a role of its own that acts as the owner of the tables, so
// that the database can tell who wrote what. Roles are those of the server.
func (db *database) admit(ctx context.Context, nodes []string) error {
	for _, n := range nodes {
		q := fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s' IN ROLE %s; ALTER ROLE %[1]s SET role = %[3]s", nodeRole(n), postgrestest.Password, postgrestest.User)
		if _, err := db.query(ctx, q); err != nil {
			return fmt.Errorf("make the role of node %s: %w", n, err)
		}
	}
	return nil
}

func nodeRole(node string) string { return "node_" + node }

// through is where a node finds the database, by way of another address.
func (db *database) through(addr, node string) string {
	u, err := url.Parse(db.url)
	if err != nil {
		panic(err) // it was made by Create
	}
	u.User, u.Host = url.UserPassword(nodeRole(node), postgrestest.Password), addr
	return u.String()
}

// local is where a node on the machine of the server finds it: by its socket.
func (db *database) local(node string) string {
	u, err := url.Parse(db.url)
	if err != nil {
		panic(err) // it was made by Create
	}
	q := u.Query()
	q.Set("host", db.Sockets())
	q.Set("port", u.Port())
	u.User, u.Host, u.RawQuery = url.UserPassword(nodeRole(node), postgrestest.Password), "", q.Encode()
	return u.String()
}

// query runs statements and returns the rows of the last one as texts.
func (db *database) query(ctx context.Context, sql string) ([][]string, error) {
	return db.Query(ctx, db.url, sql)
}

// count runs a query that yields one number.
func (db *database) count(ctx context.Context, sql string) (int64, error) {
	rows, err := db.query(ctx, sql)
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return 0, fmt.Errorf("%d rows instead of one number from %.100s", len(rows), strings.TrimSpace(sql))
	}
	return strconv.ParseInt(rows[0][0], 10, 64)
}
