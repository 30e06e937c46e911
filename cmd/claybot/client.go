package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/web"
)

// A client talks to the running daemon over its socket.
type client struct {
	http *http.Client
	base string
}

// dial connects to the daemon of a data directory.
func dial(dir string) (*client, error) {
	c, base, err := web.Dial(dir)
	if err != nil {
		return nil, unreached(dir, err)
	}
	return &client{c, base}, nil
}

// connect connects to the daemon that the flags and the environment select.
func (e *env) connect() (*client, error) {
	c, _, err := e.load()
	if err != nil {
		return e.connectAnyway(err)
	}
	cl, err := dial(c.DataDir)
	if errors.Is(err, web.ErrNoDaemon) {
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
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if out != nil {
		req.Header.Set("Prefer", "return=representation")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("call the daemon: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return fmt.Errorf("read the daemon's response: %w", err)
	}
	if resp.StatusCode >= 300 {
		return &refusal{resp.StatusCode, words(resp.StatusCode, b)}
	}
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if raw, ok := out.(*rawAnswer); ok {
		*raw = b
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("read the daemon's response: %w", err)
	}
	return nil
}

// A rawAnswer is an answer that is not JSON.
type rawAnswer []byte

// A refusal is a failure that the daemon reports, in its words.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// asCommands replaces the API paths in a hint by the commands for them.
var asCommands = strings.NewReplacer(
	"GET /agents/runs/", "claybot runs show ", "GET /agents/runs", "claybot runs", "GET /questions/", "claybot questions show ",
	"GET /questions", "claybot questions", "GET /graphs", "claybot graph show", "GET /agents", "claybot agents", "GET /cron", "claybot cron",
	"GET /outbox", "claybot outbox", "GET /heartbeat", "claybot heartbeat", "GET /tokens", "claybot token",
)

// words returns the message of a failure.
func words(status int, body []byte) string {
	var e web.Failure
	if json.Unmarshal(body, &e) == nil && e.Error.Message != "" {
		all := []string{e.Error.Message}
		for _, name := range slices.Sorted(maps.Keys(e.Error.Fields)) {
			all = append(all, name+": "+e.Error.Fields[name])
		}
		return plain(strings.TrimSpace(strings.Join(append(all, asCommands.Replace(e.Error.Fix)), " ")))
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n"); line != "" && !strings.HasPrefix(line, "<") {
		return plain(oneLine(line))
	}
	return fmt.Sprintf("the daemon answered %d %s", status, http.StatusText(status))
}

// An event is one Server-Sent Event.
type event struct {
	id, name string
	data     []byte
}

// decode reads the JSON data of an event; ok is false if it is something else.
func decode[T any](data []byte) (v T, ok bool) {
	ok = json.Unmarshal(data, &v) == nil
	return v, ok
}

// stream opens an event stream. The channel is closed when it ends.
func (c *client) stream(ctx context.Context, path string) (<-chan event, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	resp, err := c.http.Do(req) //nolint:bodyclose // closed by the reader below
	if err != nil {
		return nil, fmt.Errorf("call the daemon: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16)) // without a body there is the status
		return nil, &refusal{resp.StatusCode, words(resp.StatusCode, b)}
	}
	events := make(chan event)
	go func() { // ends with ctx or the stream, whichever is first
		defer close(events)
		defer resp.Body.Close()
		readEvents(ctx, resp.Body, events)
	}()
	return events, nil
}

// readEvents reads the events of the daemon, whose frames have one line per field.
func readEvents(ctx context.Context, r io.Reader, events chan<- event) {
	var ev event
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			ev.id = value
		case "event":
			ev.name = value
		case "data":
			ev.data = []byte(value)
		case "":
			if ev.name != "" {
				select {
				case events <- ev:
				case <-ctx.Done():
					return
				}
			}
			ev = event{}
		}
	}
}
