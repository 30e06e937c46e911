package main

import (
	"context"
	"errors"

	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/overview"
)

// daemon asks the daemon that runs on the data directory, if one does, for what it alone knows, and
// shows it in the words of claybot status.
func (d *doctor) daemon(ctx context.Context) bool {
	if d.holder == "" {
		return true
	}
	st, err := d.status(ctx)
	switch {
	case errors.Is(err, api.ErrNoDaemon):
		return d.ok("the process that uses the data directory takes no commands; it is no daemon, or it starts or ends just now")
	case err != nil:
		return d.warn("daemon-silent", "it does not answer: "+err.Error(), "see its log; claybot healthcheck asks it again")
	}
	before := len(d.all)
	for _, f := range st.Findings {
		if f.What == "configuration" || f.Code == "mcp-program-missing" || f.Code == "skills-missing" || f.Code == "route-dead" && !d.config.Storage.Shared() {
			continue // another check says so
		}
		checking := d.what
		d.what = checking + ": " + f.What
		d.say(f.Code, f.Level, f.Text, f.Next)
		d.what = checking
	}
	if len(d.all) == before {
		d.ok("it answers, and its connectors work")
	}
	return true
}

// status returns what the daemon says of itself.
func (d *doctor) status(ctx context.Context) (st overview.Status, err error) {
	c, err := dial(d.config.DataDir)
	if err != nil {
		return st, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return st, c.call(ctx, "GET", "/status", nil, &st)
}
