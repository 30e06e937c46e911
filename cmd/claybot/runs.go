package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

type runsCmd struct {
	List   runsListCmd   `cmd:"" default:"withargs" eg:"runs --state FAILED" help:"List runs, newest first."`
	Show   runsShowCmd   `cmd:"" eg:"runs show RUN" help:"Show a run and its events."`
	Plan   runsPlanCmd   `cmd:"" eg:"runs plan RUN" help:"Show the plan of a run and its progress."`
	Output runsOutputCmd `cmd:"" eg:"runs output RUN" help:"Print the whole output of a run."`
	Tail   runsTailCmd   `cmd:"" eg:"runs tail RUN" help:"Follow a run until it ends."`
	Cancel runsCancelCmd `cmd:"" eg:"runs cancel RUN" help:"Cancel a run, or the message waiting under a reserved ID."`
}

type (
	runsListCmd struct {
		Agent string `placeholder:"ID" help:"ID of the agent. Default: all."`
		State string `placeholder:"STATE" values:"PENDING,RUNNING,AWAITING,SUCCEEDED,FAILED,CANCELED" help:"State to list: PENDING, RUNNING, AWAITING, SUCCEEDED, FAILED or CANCELED."`
		Limit int    `default:"20" help:"Maximum number of entries."`
		JSON  bool   `name:"json" help:"Print JSON."`
	}
	runsShowCmd struct {
		ID   string `arg:"" name:"run" help:"ID of the run."`
		JSON bool   `name:"json" help:"Print JSON lines, one event per line."`
	}
	runsPlanCmd struct {
		ID   string `arg:"" name:"run" help:"ID of the run, or its first characters."`
		JSON bool   `name:"json" help:"Print JSON."`
	}
	runsOutputCmd struct {
		ID   string `arg:"" name:"run" help:"ID of the run, or its first characters."`
		JSON bool   `name:"json" help:"Print JSON, with all messages of the run."`
	}
	runsTailCmd struct {
		ID   string `arg:"" name:"run" help:"ID of the run."`
		From int64  `default:"0" help:"Number of the event to start after."`
		JSON bool   `name:"json" help:"Print JSON lines, one event per line."`
	}
	runsCancelCmd struct {
		ID string `arg:"" name:"run" help:"ID of the run."`
	}
	undoCmd struct {
		ID string `arg:"" name:"run" help:"ID of the run, or its first characters."`
	}
)

// effects are the rows that show the side effects of a run.
func effects(v web.RunView) [][]string {
	rows := field("undoes", string(v.UndoOf))
	for _, u := range v.Undo {
		line := oneLine(u.Tool + ": " + u.What)
		if !u.Can {
			line += " (cannot be undone)"
		}
		rows = append(rows, []string{"did", line})
	}
	return rows
}

// feedback are the rows that show what people said of a run.
func feedback(v web.RunView) (rows [][]string) {
	for _, f := range v.Feedback {
		rows = append(rows, []string{"feedback", fmt.Sprintf("%s (%s) by %s, %s", oneLine(f.Emoji), f.Vote, oneLine(f.By), moments(f.At))})
	}
	return rows
}

// took is how long the run has lasted.
func took(v web.RunView) string {
	switch {
	case v.Started == 0:
		return "-"
	case v.Ended == 0:
		return time.Since(v.Started.Time()).Round(time.Second).String()
	}
	return v.Ended.Time().Sub(v.Started.Time()).Round(time.Millisecond).String()
}

// tokens is the token usage of a run.
func tokens(v web.RunView) string {
	u := v.Usage
	return soFar(v, fmt.Sprintf("%d in, %d out, in %s of the model", u.Input, u.Output, count(int(u.LLMCalls), "call")))
}

// soFar marks a value that grows until the run ends.
func soFar(v web.RunView, value string) string {
	if v.State.Ended() {
		return value
	}
	return value + ", so far"
}

// Run lists runs.
func (c runsListCmd) Run(e *env) error {
	r := to("/agents/runs").with(url.Values{"limit": {strconv.Itoa(c.Limit)}, "agent": {c.Agent}, "state": {strings.ToUpper(c.State)}})
	return show(e, c.JSON, r, func(out web.RunList) error {
		return e.list("RUN,STATE,STARTED,TOOK,AGENT,OUTPUT", "No such runs.\n", each(out.Runs, func(r web.RunView) []string {
			said := r.Output
			if r.Error != nil {
				said = r.Error.Code + ": " + r.Error.Text
			}
			return []string{string(r.ID), stateOf(r), moments(r.Started), took(r), string(r.Agent), oneLine(said)}
		}))
	})
}

// stateOf is the state of a run, with a mark for a dry one.
func stateOf(r web.RunView) string {
	if r.Dry {
		return string(r.State) + ", dry"
	}
	return string(r.State)
}

// Run shows a run with the events so far.
func (c runsShowCmd) Run(e *env) error {
	v, err := ask[web.RunView](e, "GET", at(runPath(c.ID)), nil)
	if err != nil {
		return err
	}
	if !c.JSON {
		rows := [][]string{
			{"run", string(v.ID)},
			{"agent", string(v.Agent)},
			{"engine", cmp.Or(v.Engine, "-")},
			{"state", stateOf(v)},
		}
		rows = append(rows, field("node", v.Node)...) // empty once it has ended, waits, or without a cluster
		rows = append(rows, []string{"took", took(v)}, []string{"tokens", tokens(v)}, []string{"cost", soFar(v, cost(v.Usage))})
		rows = append(rows, effects(v)...)
		if err := e.table(append(rows, feedback(v)...)); err != nil {
			return err
		}
	}
	return e.follow(string(v.ID), 0, v.LastSeq, c.JSON)
}

// Run shows the plan of a run and its progress.
func (c runsPlanCmd) Run(e *env) error {
	id, err := e.run(c.ID)
	if err != nil {
		return err
	}
	return show(e, c.JSON, at(runPath(id, "plan")), func(out web.PlanView) error {
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

// Run prints what a run came to.
func (c runsOutputCmd) Run(e *env) error {
	id, err := e.run(c.ID)
	if err != nil {
		return err
	}
	path, err := runPath(id, "output")
	if err != nil {
		return err
	}
	if !c.JSON {
		out, err := ask[web.RunOutput](e, "GET", to(path+"?limit=1"), nil)
		if err != nil {
			return err
		}
		if out.Output == "" && out.Error != nil {
			return fmt.Errorf("the run failed: %s: %s", out.Error.Code, out.Error.Text)
		}
		return e.text(strings.TrimRight(out.Output, "\n") + "\n")
	}
	var whole web.RunOutput
	all, err := pages(func(path string, out any) error { return e.call("GET", path, nil, out) }, path, func(p web.RunOutput) ([]claybot.Record, string) {
		whole = p
		return p.Messages, p.Next
	})
	if err != nil {
		return err
	}
	whole.Messages = all
	return e.printJSON(whole)
}

// run resolves a run from the first characters of its ID, among the newest runs.
func (e *env) run(ref string) (string, error) {
	return resolve(ref, "run", "claybot runs", func() ([]string, error) {
		out, err := ask[web.RunList](e, "GET", to("/agents/runs?limit=500"), nil)
		ids := make([]string, len(out.Runs))
		for i, r := range out.Runs {
			ids[i] = string(r.ID)
		}
		return ids, err
	})
}

// Run follows a run.
func (c runsTailCmd) Run(e *env) error { return e.follow(c.ID, c.From, 0, c.JSON) }

// Run cancels a run.
func (c runsCancelCmd) Run(e *env) error {
	return reply(e, "DELETE", at(runPath(c.ID)), nil, func(v web.RunView) string {
		if v.State.Ended() {
			return fmt.Sprintf("Run %s has already ended: %s.\n", v.ID, v.State)
		}
		return fmt.Sprintf("Canceling run %s.\n", v.ID)
	})
}

// Run undoes the side effects of a run.
func (c undoCmd) Run(e *env) error {
	id, err := e.run(c.ID)
	if err != nil {
		return err
	}
	return reply(e, "POST", at(runPath(id, "undo")), nil, func(out web.Accepted) string {
		return fmt.Sprintf("Run %s undoes run %s. Follow it with: claybot runs tail %s\n", out.Run, id, out.Run)
	})
}

// follow prints the events of a run after a number, up to another one, or until the run
// ends if that is 0.
func (e *env) follow(run string, after, upTo int64, asJSON bool) error {
	path, err := runPath(run, "stream")
	if err != nil {
		return err
	}
	if after < 0 {
		return usageError{fmt.Errorf("invalid --from %d: must be 0 or more", after)}
	}
	if upTo > 0 && after >= upTo {
		return nil
	}
	c, err := e.connect()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := c.stream(ctx, path+"?fromSeq="+strconv.FormatInt(after, 10))
	if err != nil {
		return err
	}
	for ev := range events {
		if ev.ID == "" {
			continue // a text that is still growing
		}
		var x claybot.Event
		if err := json.Unmarshal(ev.Data, &x); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		line := string(ev.Data)
		if !asJSON {
			line = fmt.Sprintf("%4d  %s  %-17s %s", x.Seq, x.At.Time().Local().Format(time.TimeOnly), x.Type, oneLine(string(x.Data)))
		}
		if err := e.text(line + "\n"); err != nil {
			return err
		}
		if after = x.Seq; x.Type.Ends() || upTo > 0 && x.Seq >= upTo {
			return nil
		}
	}
	v, err := ask[web.RunView](e, "GET", at(runPath(run)), nil)
	if ctx.Err() != nil || err == nil && v.State.Ended() && after >= v.LastSeq {
		return nil // there are no more events
	}
	return errors.New("the daemon closed the stream; continue with --from and the number of the last event")
}
