package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/configs"
)

// A client talks to the running daemon over its socket, and reports its refusals as people read them.
type client struct{ *api.Client }

// dial connects to the daemon of a data directory.
func dial(dir string) (*client, error) {
	c, err := api.Dial(dir)
	if err != nil {
		return nil, unreached(dir, err)
	}
	return &client{c}, nil
}

// connect connects to the daemon that the flags and the environment select.
func (e *env) connect() (*client, error) {
	c, _, err := e.load()
	if err != nil {
		return e.connectAnyway(err)
	}
	cl, err := dial(c.DataDir)
	if errors.Is(err, api.ErrNoDaemon) {
		return nil, fmt.Errorf("no daemon is running on %s; start one with: claybot serve", c.DataDir)
	}
	return cl, err
}

// connectAnyway connects to the daemon of the data directory that a flag or the environment
// names if the configuration cannot be read. If only the name of the file is wrong, the
// daemon may run with -c, on the default directory.
func (e *env) connectAnyway(unread error) (*client, error) {
	fromEnv, _ := e.lookup("CLAYBOT_DATA_DIR")
	dir := cmp.Or(e.DataDir, fromEnv)
	if dir == "" && errors.Is(unread, configs.ErrMisnamed) {
		dir = configs.Default().DataDir
	}
	var bad configError
	if dir == "" || !errors.As(unread, &bad) {
		return nil, unread
	}
	cl, err := dial(dir)
	if err != nil {
		return nil, unread
	}
	fmt.Fprintf(e.err, "claybot: warning: %v; calling the daemon that runs on %s\n", unread, dir)
	return cl, nil
}

// call sends a request with a JSON body, if any, and decodes the JSON answer into out, if
// not nil. A failure is an error in the daemon's words.
func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	return refused(c.Call(ctx, method, path, in, out))
}

// stream opens an event stream. The channel is closed when it ends.
func (c *client) stream(ctx context.Context, path string) (<-chan api.Frame, error) {
	events, err := c.Stream(ctx, path)
	return events, refused(err)
}

// A refusal is a failure that the daemon reports, in its words.
type refusal struct {
	status int
	code   string // for programs; may be empty
	text   string
}

func (r *refusal) Error() string { return r.text }

// refused returns err, or its refusal.
func refused(err error) error {
	e, ok := errors.AsType[*api.Error](err)
	if !ok {
		return err
	}
	said := *e
	said.Fix = asCommands.Replace(e.Fix)
	if e.Code == "" { // a page, or a line of a proxy
		said.Message = oneLine(e.Message)
	}
	return &refusal{e.Status, e.Code, plain(said.Error())}
}

// asCommands replaces the API paths in a hint by the commands for them, and drops what only paths need.
var asCommands = strings.NewReplacer(
	"GET /agents/runs/", "claybot runs show ", "GET /agents/runs", "claybot runs", "GET /questions/", "claybot questions show ",
	"GET /questions", "claybot questions", "GET /graphs", "claybot graph show", "GET /agents", "claybot agents", "GET /cron", "claybot cron",
	"GET /outbox", "claybot outbox", "GET /heartbeat", "claybot heartbeat", "GET /tokens", "claybot token", "GET /flows", "claybot flow",
	"GET /pairing", "claybot pair list", "GET /workspaces", "claybot workspaces", "GET /parked", "claybot parked", "GET /servers", "claybot mcp list",
	"GET /skills", "claybot skills", "GET /notes", "claybot notes", "GET /rules", "claybot rules", "GET /budgets", "claybot budgets",
	"GET /nodes", "claybot nodes", "GET /config/history", "claybot config history", "GET /config", "claybot config show",
	" In a path, escape the slashes of an id as %2F.", "", " In a path, escape the slashes of a key as %2F.", "",
)

// decode reads the JSON data of a frame; ok is false if it is something else.
func decode[T any](data []byte) (v T, ok bool) {
	ok = json.Unmarshal(data, &v) == nil
	return v, ok
}
