package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/client"
	"github.com/claybot/claybot/overview"
)

// A console is the socket of a running daemon.
type console struct{ *client.Client }

// openConsole reaches the daemon that works below dir; an error while there is
// none.
func openConsole(dir string) (*console, error) {
	c, err := client.Dial(filepath.Join(dir, "data"))
	if err != nil {
		return nil, err
	}
	return &console{c}, nil
}

// call sends a request without a body and decodes the JSON answer into out, if
// not nil.
func (c *console) call(ctx context.Context, method, path string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := c.Call(ctx, method, path, nil, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
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
