package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

type runsCmd struct {
	List   runsListCmd   `cmd:"" default:"withargs" help:"List runs, newest first."`
	Show   runsShowCmd   `cmd:"" help:"Show a run and its events."`
	Plan   runsPlanCmd   `cmd:"" help:"Show the plan of a run and its progress."`
	Tail   runsTailCmd   `cmd:"" help:"Follow a run until it ends."`
	Cancel runsCancelCmd `cmd:"" help:"Cancel a run, or the message waiting under a reserved ID."`
}

type (
	runsListCmd struct {
		Agent string `placeholder:"ID" help:"ID of the agent. Default: all."`
		State string `placeholder:"STATE" help:"State to list: PENDING, RUNNING, AWAITING, SUCCEEDED, FAILED or CANCELED."`
		Limit int    `default:"20" help:"Maximum number of entries."`
		JSON  bool   `name:"json" help:"Print JSON."`
	}
	runsShowCmd struct {
		ID   string `arg:"" name:"run" help:"ID of the run."`
		JSON bool   `name:"json" help:"Print JSON lines, one event per line."`
	}
	runsTailCmd struct {
		ID   string `arg:"" name:"run" help:"ID of the run."`
		From int64  `default:"0" help:"Number of the event to start after."`
		JSON bool   `name:"json" help:"Print JSON lines, one event per line."`
	}
	runsCancelCmd struct {
		ID string `arg:"" name:"run" help:"ID of the run."`
	}
)

// effects are the rows that say what a run did and what it took back.
func effects(v web.RunView) (rows [][]string) {
	if v.UndoOf != "" {
		rows = append(rows, []string{"undoes", string(v.UndoOf)})
	}
	for _, u := range v.Undo {
		line := oneLine(u.Tool + ": " + u.What)
		if !u.Can {
			line += " (nothing takes it back)"
		}
		rows = append(rows, []string{"did", line})
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

// tokens is what the run read and wrote.
func tokens(v web.RunView) string {
	u := v.Usage
	return soFar(v, fmt.Sprintf("%d in, %d out, in %s of the model", u.Input, u.Output, count(int(u.LLMCalls), "call")))
}

// soFar marks a figure that grows until the run ends.
func soFar(v web.RunView, figure string) string {
	if v.State.Ended() {
		return figure
	}
	return figure + ", so far"
}

// runPath is the path of a run of the daemon.
func runPath(id string, more ...string) (string, error) {
	if id == "" || id == "." || id == ".." { // in a path they mean something else
		return "", usageError{fmt.Errorf("invalid run ID %q; claybot runs lists them", id)}
	}
	return "/" + strings.Join(append([]string{"agents", "runs", url.PathEscape(id)}, more...), "/"), nil
}

// Run lists runs.
func (c runsListCmd) Run(e *env) error {
	q := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	if c.Agent != "" {
		q.Set("agent", c.Agent)
	}
	if c.State != "" {
		q.Set("state", strings.ToUpper(c.State))
	}
	return show(e, c.JSON, to("/agents/runs?"+q.Encode()), func(out web.RunList) error {
		rows := [][]string{{"RUN", "STATE", "STARTED", "TOOK", "AGENT", "OUTPUT"}}
		for _, r := range out.Runs {
			started, said := "-", oneLine(r.Output)
			if r.Started != 0 {
				started = moment(r.Started.Time())
			}
			if r.Error != nil {
				said = oneLine(r.Error.Code + ": " + r.Error.Text)
			}
			rows = append(rows, []string{string(r.ID), string(r.State), started, took(r), string(r.Agent), said})
		}
		return e.list(rows, "There is no such run.\n")
	})
}

// Run shows a run with its events, as far as they have come.
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
			{"state", string(v.State)},
			{"node", v.Node},
			{"took", took(v)},
			{"tokens", tokens(v)},
			{"cost", soFar(v, cost(v.Usage))},
		}
		if v.Node == "" { // it has ended, it waits, or there is only one
			rows = slices.DeleteFunc(rows, func(r []string) bool { return r[0] == "node" })
		}
		if err := e.table(append(rows, effects(v)...)); err != nil {
			return err
		}
	}
	return e.follow(string(v.ID), 0, v.LastSeq, c.JSON)
}

// Run follows a run.
func (c runsTailCmd) Run(e *env) error {
	return e.follow(c.ID, c.From, 0, c.JSON)
}

// Run cancels a run.
func (c runsCancelCmd) Run(e *env) error {
	v, err := ask[web.RunView](e, "DELETE", at(runPath(c.ID)), nil)
	if err != nil {
		return err
	}
	if v.State.Ended() {
		return e.text(fmt.Sprintf("Run %s has ended already: %s.\n", v.ID, v.State))
	}
	return e.text(fmt.Sprintf("Canceling run %s.\n", v.ID))
}

// follow prints the events of a run after a seq, up to another one, or until
// the run ends when that is 0.
func (e *env) follow(run string, after, upTo int64, asJSON bool) error {
	path, err := runPath(run, "stream")
	if err != nil {
		return err
	}
	if after < 0 {
		return usageError{errors.New("--from must be 0 or more")}
	}
	if upTo > 0 && after >= upTo {
		return nil
	}
	c, err := e.connect()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := c.stream(ctx, path+"?fromSeq="+strconv.FormatInt(after, 10))
	if err != nil {
		return err
	}
	for ev := range events {
		if ev.id == "" {
			continue // a text that is still growing
		}
		var x claybot.Event
		if err := json.Unmarshal(ev.data, &x); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		line := string(ev.data)
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
	var v web.RunView
	if path, err = runPath(run); err != nil {
		return err
	}
	if err := e.ask("GET", path, nil, &v); err == nil && v.State.Ended() && after >= v.LastSeq {
		return nil // there was nothing to tell
	}
	if ctx.Err() == nil {
		return errors.New("the daemon ended the stream; go on with --from and the number of the last event")
	}
	return nil
}

// cost is what something cost; a model without a price has none that is known.
func cost(u claybot.Usage) string {
	if u.CostMicroUSD == 0 && u.Input+u.Output > 0 {
		return "no price known"
	}
	if u.Unpriced > 0 {
		return spentText(storage.Spent{Usage: u})
	}
	return dollars(u.CostMicroUSD)
}

// dollars shows millionths of a dollar.
func dollars(micro int64) string { return fmt.Sprintf("$%.4f", float64(micro)/1e6) }
