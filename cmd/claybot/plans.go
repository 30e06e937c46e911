package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/claybot/claybot/web"
)

type undoCmd struct {
	ID string `arg:"" name:"run" help:"ID of the run, or its first characters."`
}

// Run takes back what a run did.
func (c undoCmd) Run(e *env) error {
	id, err := e.run(c.ID)
	if err != nil {
		return err
	}
	out, err := ask[web.Accepted](e, "POST", at(runPath(id, "undo")), nil)
	if err != nil {
		return err
	}
	return e.text(fmt.Sprintf("Run %s undoes run %s. Follow it with: claybot runs tail %s\n", out.Run, id, out.Run))
}

// run resolves the id of a run from its first characters, among the newest ones when it
// is shortened.
func (e *env) run(ref string) (string, error) {
	if err := checkRef(ref, "claybot runs"); err != nil {
		return "", err
	}
	out, err := ask[web.RunList](e, "GET", to("/agents/runs?limit=500"), nil)
	if err != nil {
		return "", err
	}
	ids := make([]string, len(out.Runs))
	for i, r := range out.Runs {
		ids[i] = string(r.ID)
	}
	return unfold(ref, ids, "run")
}

type runsPlanCmd struct {
	ID   string `arg:"" name:"run" help:"ID of the run, or its first characters."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run shows the plan of a run and how far it is.
func (c runsPlanCmd) Run(e *env) error {
	id, err := e.run(c.ID)
	if err != nil {
		return err
	}
	path, err := runPath(id, "plan")
	if err != nil {
		return err
	}
	return show(e, c.JSON, to(path), func(out web.PlanView) error {
		if len(out.Steps) == 0 {
			return e.text("That run has no plan.\n")
		}
		rows := [][]string{{"STEP", "STATUS", "TRIES", "RISK", "TOOL", "WHAT", ""}}
		for _, s := range out.Steps {
			note := s.Error
			if s.Question != "" {
				note = "approve or deny " + s.Question
			}
			rows = append(rows, []string{s.ID, s.Status, fmt.Sprint(s.Attempts), cmp.Or(s.Risk, "-"), s.Tool, oneLine(s.What), oneLine(note)})
		}
		if err := e.table(rows); err != nil {
			return err
		}
		for _, line := range [][2]string{{"Changes", out.Diff}, {"Mode", out.Mode}, {"At", out.Graph.Current}, {"Failed", out.Error}} {
			if line[1] != "" {
				if err := e.text(line[0] + ": " + strings.TrimSpace(line[1]) + "\n"); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
