package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/web"
)

type flowReplayCmd struct {
	ID      string   `arg:"" name:"run" help:"ID of the run, or its first characters."`
	From    string   `placeholder:"NODE" help:"Node with which the new run begins, with what the nodes before it put out the first time. Default: the first one."`
	Live    bool     `help:"Let the nodes work again, but for those that have acted: what they put out is used again."`
	Again   []string `placeholder:"NODE" help:"With --live: node whose call is made again, once it is approved, although it has acted. Repeatable."`
	AsBegun bool     `name:"as-begun" help:"Use the version of the workflow with which the run began. Default: the version in force."`
	Key     string   `placeholder:"KEY" help:"Idempotency key: the same key starts nothing new."`
	Detach  bool     `help:"Print the ID of the new run, and do not wait for it."`
}

// Run replays a run.
func (c flowReplayCmd) Run(e *env) error {
	if len(c.Again) > 0 && !c.Live {
		return usageError{errors.New("--again goes with --live: in a dry run, nothing acts")}
	}
	id, err := e.run(c.ID)
	if err != nil {
		return err
	}
	in := web.FlowReplay{From: c.From, Live: c.Live, Again: c.Again, AsBegun: c.AsBegun, Key: c.Key}
	out, err := ask[web.Accepted](e, "POST", at(runPath(id, "replay")), in)
	if err != nil {
		return err
	}
	if c.Detach {
		return e.text(string(out.Run) + "\n")
	}
	if err := e.follow(string(out.Run), 0, 0, false); err != nil {
		return err
	}
	return e.rehearsed(out.Run)
}

// rehearsed prints what a run would have done, or why it failed.
func (e *env) rehearsed(run claybot.RunID) error {
	path, err := runPath(string(run), "output")
	if err != nil {
		return err
	}
	var whole web.RunOutput
	records, err := pages(func(path string, out any) error { return e.call("GET", path, nil, out) }, path, func(p web.RunOutput) ([]claybot.Record, string) {
		whole = p
		return p.Messages, p.Next
	})
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, r := range records {
		if r.Type == claybot.RecordNode && r.Next != r.Name && strings.HasPrefix(r.Text, flow.Would) {
			fmt.Fprintf(&text, "%s: %s\n", r.Name, connectors.OneLine(r.Text, 2000))
		}
	}
	if err := e.text(text.String()); err != nil {
		return err
	}
	if whole.Error != nil {
		return fmt.Errorf("the run failed: %s: %s", whole.Error.Code, connectors.OneLine(whole.Error.Text, 1000))
	}
	return nil
}
