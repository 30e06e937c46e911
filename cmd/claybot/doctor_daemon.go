package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/web"
)

// daemon asks the daemon that runs on the data directory, if one does, for what it alone knows, and
// shows it in the words of claybot status.
func (d *doctor) daemon(ctx context.Context) bool {
	if d.holder == "" {
		return true
	}
	st, err := d.status(ctx)
	switch {
	case errors.Is(err, web.ErrNoDaemon):
		return d.ok("the process that uses the data directory takes no commands; it is no daemon, or it starts or ends just now")
	case err != nil:
		return d.warn("daemon-silent", "it does not answer: "+err.Error(), "see its log; claybot healthcheck asks it again")
	}
	before := len(d.all)
	for _, row := range slices.Concat(field("unwell", st.Unwell), faultRows(st)) {
		if row[0] != "dead route" || d.config.Storage.Shared() { // else the check of routes lists them
			d.of(cmp.Or(map[string]string{"unwell": "daemon-unwell", "dead route": "route-dead"}[row[0]], "agent-unusable"), row[0], postgres.LevelWarning, row[1])
		}
	}
	for _, x := range st.Connectors {
		switch {
		case x.Held != "" || !x.Well() && x.Err != "":
			d.of("connector-failing", x.Name, postgres.LevelProblem, connectorLine(x))
		case x.Refused != nil:
			d.of("webhook-refused", x.Name, postgres.LevelWarning, connectorLine(x))
		}
	}
	for _, x := range st.Sinks {
		if x.Error != "" {
			d.of("sink-failing", "sink "+x.Name, postgres.LevelWarning, sinkLine(x))
		}
	}
	for _, what := range slices.Sorted(maps.Keys(st.Checks)) {
		if x := st.Checks[what]; x.Problem {
			d.of("check-failing", "check "+what, postgres.LevelProblem, checkLine(x))
		}
	}
	for _, x := range st.Servers {
		if x.Err != "" {
			d.of("mcp-failing", "MCP server "+x.Name, postgres.LevelWarning, serverLine(x))
		}
	}
	if st.Model.Err != "" {
		d.of("model-failing", "model", postgres.LevelWarning, modelLine(st.Model))
	}
	if len(d.all) == before {
		d.ok("it answers, and its connectors work")
	}
	return true
}

// of records what the daemon says of one of its parts.
func (d *doctor) of(code, part, level, line string) {
	checking := d.what
	d.what = checking + ": " + part
	d.say(code, level, line, "")
	d.what = checking
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
