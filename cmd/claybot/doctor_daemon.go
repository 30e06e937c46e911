package main

import (
	"context"
	"errors"
	"slices"
	"strings"

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
	d.unused = !d.config.Keyed() && slices.ContainsFunc(st.Findings, func(f overview.Finding) bool {
		return strings.HasPrefix(f.What, "configuration") && (f.Code == "config-missing" || f.Code == "config-refused")
	})
	for _, f := range st.Findings {
		if f.Code == "route-dead" && !d.config.Storage.Shared() || measured(f, st) {
			continue // another check names the routes, or measures the space
		}
		d.what = ofDaemon + f.What
		d.say(f.Code, f.Level, f.Text, f.Next)
	}
	d.what = "daemon"
	if len(d.all) == before {
		d.ok("it answers, and its connectors work")
	}
	return true
}

// measured reports whether a finding of the daemon is about the free space.
func measured(f overview.Finding, st overview.Status) bool {
	if f.What != "disk" || st.Disk == nil {
		return false
	}
	code, _, _ := spaceOf(*st.Disk, "")
	return f.Code == code
}

// ofDaemon begins the names of findings of the daemon.
const ofDaemon = "daemon: "

// once leaves out what the daemon says of a cause that a check of the doctor has found as well. Where both are about
// the same part, the next step is that of the daemon, which its status has.
func (d *doctor) once() {
	all := slices.Clone(d.all)
	same := func(own, f finding) bool {
		part := f.What == ofDaemon+own.What || strings.HasPrefix(f.What, ofDaemon+"check ") // a check has the code of its part
		return own.Code == f.Code && own.What != "configuration" && part
	}
	for i, own := range d.all {
		if n := slices.IndexFunc(all, func(f finding) bool { return same(own, f) }); n >= 0 {
			d.all[i].Next = all[n].Next
		}
	}
	d.all = slices.DeleteFunc(d.all, func(f finding) bool {
		return strings.HasPrefix(f.What, ofDaemon) && slices.ContainsFunc(all, func(own finding) bool {
			if strings.HasPrefix(own.What, ofDaemon) {
				return false
			}
			return same(own, f) || own.Code == f.Code && strings.Contains(f.Text, strings.TrimPrefix(own.Text, own.What+": "))
		})
	})
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
