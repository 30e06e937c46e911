package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// scriptServer is the one PostgreSQL of all scripts that have none of their own.
var scriptServer struct {
	sync.Mutex
	*postgrestest.Server
}

// endScriptServer ends it with the test.
func endScriptServer(t *testing.T) {
	t.Cleanup(func() {
		scriptServer.Lock()
		defer scriptServer.Unlock()
		if scriptServer.Server == nil {
			return
		}
		if err := scriptServer.Close(); err != nil {
			t.Error(err)
		}
		scriptServer.Server = nil
	})
}

// storageURL is the variable that scripts change.
const storageURL = "CLAYBOT_STORAGE_URL"

// postgresCommand gives a script a real PostgreSQL, whose users need a password:
//
//	postgres start                 an empty database; its URL is in CLAYBOT_STORAGE_URL, its programs are in POSTGRES_BIN
//	postgres start own             the same, on a server of its own
//	postgres with PART=VALUE...    changes the URL: user, password, host, database or a parameter
//	postgres role GRANT...         the URL of a new role with these rights alone
//	postgres limit N               how many connections the role of the URL may have
//	postgres sql SQL               runs SQL in the database, as the owner of the server
//	postgres load FILE             runs what pg_dump has written into FILE, which gzip made small
//	postgres standby               the URL of a copy that only reads
//	postgres stop|up|freeze|thaw   of a server of its own
func (r *rig) postgresCommand(ts *testscript.TestScript, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience) // a server is made
	defer cancel()
	if len(args) > 0 && args[0] == "start" {
		r.startPostgres(ctx, ts, len(args) == 2 && args[1] == "own")
		return
	}
	if r.postgres == nil {
		ts.Fatalf("there is no PostgreSQL; use: postgres start")
	}
	switch {
	case len(args) > 1 && args[0] == "with":
		changeURL(ts, args[1:])
	case len(args) > 0 && args[0] == "role":
		address, err := r.postgres.Role(ctx, ts.Getenv(storageURL), args[1:]...)
		ts.Check(err)
		ts.Setenv(storageURL, address)
	case len(args) == 2 && args[0] == "limit":
		u, err := url.Parse(ts.Getenv(storageURL))
		ts.Check(err)
		_, err = r.postgres.Query(ctx, "", "ALTER ROLE "+u.User.Username()+" CONNECTION LIMIT "+args[1])
		ts.Check(err)
	case len(args) == 2 && args[0] == "sql":
		_, err := r.postgres.Query(ctx, ts.Getenv(storageURL), args[1])
		ts.Check(err)
	case len(args) == 2 && args[0] == "load":
		_, err := r.postgres.Query(ctx, ts.Getenv(storageURL), dumped(ts, args[1]))
		ts.Check(err)
	case len(args) == 1 && args[0] == "standby":
		copied, err := r.postgres.Standby(ctx)
		ts.Check(err)
		ts.Check(copied.CatchUp(ctx))
		u, err := url.Parse(ts.Getenv(storageURL))
		ts.Check(err)
		ts.Setenv(storageURL, copied.URL(strings.TrimPrefix(u.Path, "/")))
	case len(args) == 1 && args[0] == "stop":
		ts.Check(r.postgres.Stop(ctx, postgrestest.Fast))
	case len(args) == 1 && args[0] == "up":
		ts.Check(r.postgres.Start(ctx))
	case len(args) == 1 && args[0] == "freeze":
		ts.Check(r.postgres.Freeze())
	case len(args) == 1 && args[0] == "thaw":
		ts.Check(r.postgres.Thaw())
	default:
		ts.Fatalf("usage: postgres start|with|role|limit|sql|load|standby|stop|up|freeze|thaw ...")
	}
}

func (r *rig) startPostgres(ctx context.Context, ts *testscript.TestScript, own bool) {
	var err error
	if own {
		r.postgres, err = postgrestest.Start(ctx, postgrestest.Config{Fast: true, Password: true})
	} else {
		scriptServer.Lock()
		defer scriptServer.Unlock()
		if scriptServer.Server == nil {
			scriptServer.Server, err = postgrestest.Start(ctx, postgrestest.Config{Fast: true, Password: true})
		}
		r.postgres = scriptServer.Server
	}
	switch {
	case errors.Is(err, postgrestest.ErrNotHere) && os.Getenv("CI") == "true":
		ts.Fatalf("with CI=true all tests run, and this one cannot: %v", err)
	case errors.Is(err, postgrestest.ErrNotHere):
		r.t.Skip("SKIPPED, PostgreSQL is not tested: " + err.Error())
	}
	ts.Check(err)
	server := r.postgres
	if own {
		r.stops = append(r.stops, func() { _ = server.Close() }) // its folder is looked for by the next one
	}
	address, err := server.Create(ctx)
	ts.Check(err)
	ts.Setenv(storageURL, address)
	ts.Setenv("POSTGRES_BIN", server.Bin())
	if !own {
		r.stops = append(r.stops, func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_ = server.Drop(ctx, address) // the server ends soon after
		})
	}
}

// changeURL changes parts of the URL of the storage.
func changeURL(ts *testscript.TestScript, parts []string) {
	u, err := url.Parse(ts.Getenv(storageURL))
	ts.Check(err)
	user := u.User.Username()
	password, _ := u.User.Password()
	query := u.Query()
	for _, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			ts.Fatalf("%q is not PART=VALUE", part)
		}
		switch name {
		case "user":
			user = value
		case "password":
			password = value
		case "host":
			u.Host = value
		case "database":
			u.Path = "/" + value
		default:
			query.Set(name, value)
		}
	}
	u.User, u.RawQuery = url.UserPassword(user, password), query.Encode()
	ts.Setenv(storageURL, u.String())
}
