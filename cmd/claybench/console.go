package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/web"
)

// A console is the socket of a running daemon.
type console struct {
	http *http.Client
	base string
}

// openConsole reaches the daemon that works below dir; an error while there is
// none.
func openConsole(dir string) (*console, error) {
	c, base, err := web.Dial(filepath.Join(dir, "data"))
	if err != nil {
		return nil, err
	}
	return &console{c, base}, nil
}

func (c *console) close() { c.http.CloseIdleConnections() }

// call sends a request without a body and decodes the JSON answer into out, if
// not nil. Any status other than success is an error that contains the response.
func (c *console) call(ctx context.Context, method, path string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: status %d: %s", method, path, resp.StatusCode, b)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// quiet reports whether the daemon has nothing to do: no message waits, no run
// is unfinished, everything was sent. The text changes when something happens.
func (c *console) quiet(ctx context.Context) (quiet bool, figures string, err error) {
	var s overview.Status
	if err := c.call(ctx, http.MethodGet, "/status", &s); err != nil {
		return false, "", err
	}
	open := s.Inbox.Waiting
	for state, n := range s.Runs {
		if !state.Ended() {
			open += n
		}
	}
	for _, state := range []claybot.SendState{claybot.SendWaiting, claybot.SendAttempted, claybot.SendAmbiguous} {
		open += s.Outbox[state]
	}
	// Figures that were read before the store went away tell nothing about this moment.
	return open == 0 && !s.Unknown && s.AsOf == 0, fmt.Sprint(s.Agents, " agents, ", s.Inbox.Waiting, " messages wait, runs ", s.Runs, ", outbox ", s.Outbox), nil
}
