package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/web"
)

type heartbeatCmd struct {
	List heartbeatListCmd `cmd:"" default:"withargs" eg:"heartbeat" help:"List heartbeat tasks."`
	Run  heartbeatRunCmd  `cmd:"" eg:"heartbeat run" help:"Run heartbeat tasks now."`
}

type (
	heartbeatListCmd struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	heartbeatRunCmd struct {
		IDs []string `arg:"" optional:"" name:"id" help:"IDs of the tasks. Default: all."`
	}
)

// Run lists the tasks of the heartbeat.
func (c heartbeatListCmd) Run(e *env) error {
	return show(e, c.JSON, to("/heartbeat"), func(out web.HeartbeatList) error {
		err := e.list("ID,TITLE,EVERY,HOURS,NEXT,LAST", "The heartbeat has no tasks.\n", each(out.Heartbeats, func(b connectors.HeartbeatTask) []string {
			next, last := "-", "never"
			switch {
			case !b.Enabled:
				next = "off"
			case b.Stopped != "":
				next = "paused: " + oneLine(b.Stopped)
			case !b.Next.IsZero():
				next = moment(b.Next)
			}
			if !b.LastRun.IsZero() {
				last = moment(b.LastRun)
			}
			return []string{b.ID, oneLine(b.Title), cmp.Or(b.Every, "default"), cmp.Or(b.ActiveHours, "-"), next, last}
		}))
		return errors.Join(err, e.problems(out.Problems))
	})
}

// Run runs tasks of the heartbeat.
func (c heartbeatRunCmd) Run(e *env) error {
	return reply(e, "POST", to("/heartbeat/run?key="+rand.Text()), web.HeartbeatRequest{IDs: c.IDs}, func(out web.HeartbeatResult) string {
		if out.Tasks == 0 {
			return "No tasks to run.\n"
		}
		return fmt.Sprintf("The heartbeat runs %s now.\n", count(out.Tasks, "task"))
	})
}
