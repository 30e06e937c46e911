package main

import (
	"cmp"
	"crypto/rand"
	"fmt"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/web"
)

type heartbeatCmd struct {
	List heartbeatListCmd `cmd:"" default:"withargs" help:"List heartbeat tasks."`
	Run  heartbeatRunCmd  `cmd:"" help:"Run heartbeat tasks now."`
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
	return show(e, c.JSON, to("/heartbeat"), func(out web.BeatList) error {
		if len(out.Beats) == 0 {
			if err := e.text("The heartbeat has no tasks.\n"); err != nil {
				return err
			}
		} else if err := e.table(beatTable(out.Beats)); err != nil {
			return err
		}
		return e.problems(out.Problems)
	})
}

func beatTable(all []connectors.Beat) [][]string {
	rows := [][]string{{"ID", "TITLE", "EVERY", "HOURS", "NEXT", "LAST"}}
	for _, b := range all {
		next := "-"
		switch {
		case !b.Enabled:
			next = "off"
		case b.Stopped != "":
			next = "rests: " + oneLine(b.Stopped)
		case !b.Next.IsZero():
			next = moment(b.Next)
		}
		last := "never"
		if !b.LastRun.IsZero() {
			last = moment(b.LastRun)
		}
		rows = append(rows, []string{b.ID, oneLine(b.Title), cmp.Or(b.Every, "default"), cmp.Or(b.ActiveHours, "-"), next, last})
	}
	return rows
}

// Run runs tasks of the heartbeat.
func (c heartbeatRunCmd) Run(e *env) error {
	var out web.BeatDone
	err := e.ask("POST", "/heartbeat/run?key="+rand.Text(), web.BeatRequest{IDs: c.IDs}, &out)
	if err != nil {
		return err
	}
	if out.Tasks == 0 {
		return e.text("No tasks to run.\n")
	}
	return e.text(fmt.Sprintf("The heartbeat runs %s now.\n", count(out.Tasks, "task")))
}
