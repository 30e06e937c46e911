package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/storage/files"
)

// stopTime bounds the wait for a daemon that was asked to stop: its runs get 30 s.
const stopTime = time.Minute

type stopCmd struct{}

// Run stops the daemon of the data directory, as Ctrl-C does, and waits until it has ended.
func (stopCmd) Run(e *env) error {
	c, _, err := e.load()
	if err != nil {
		return err
	}
	cl, err := dial(c.DataDir)
	if errors.Is(err, api.ErrNoDaemon) {
		return noAnswer(e, c.DataDir)
	} else if err != nil {
		return err
	}
	ctx, interrupted := interruptible()
	defer interrupted()
	if err := cl.call(ctx, "POST", "/stop", nil, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stopTime, errSlowEnd)
	defer cancel()
	for {
		_, holder, err := files.Look(c.DataDir)
		if err == nil && holder == "" {
			return e.text("The daemon has stopped.\n")
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errSlowEnd) {
				return fmt.Errorf("the daemon, %s, has not ended within %v; SIGKILL ends it at once, and its runs go on at the next start", holder, stopTime)
			}
			return interruptedError{}
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var errSlowEnd = errors.New("the daemon takes too long to end")

// noAnswer says that there is no daemon to stop, or that it does not answer.
func noAnswer(e *env, dir string) error {
	_, holder, err := files.Look(dir)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return unreached(dir, err)
	case holder != "":
		return fmt.Errorf("%s has the data directory %s, but does not answer; end it with a signal", holder, dir)
	}
	return e.text("No daemon is running on " + dir + "\n")
}

// stop ends the daemon, as a signal does. The answer comes before the end.
func (d *daemon) stop(w http.ResponseWriter, _ *http.Request) {
	select {
	case d.stopping <- struct{}{}:
	default: // it ends already
	}
	w.WriteHeader(http.StatusNoContent)
}
