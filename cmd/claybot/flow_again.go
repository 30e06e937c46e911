package main

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
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
	Again   []string `placeholder:"NODE" help:"With --live: node that acts again, once that is approved, although it has acted. Repeatable."`
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
	return e.outcome(out.Run, !c.Live)
}

// outcome prints what a dry run would have done. The error is why a run failed.
func (e *env) outcome(run claybot.RunID, dry bool) error {
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
		if dry && r.Type == claybot.RecordNode && r.Next != r.Name && strings.HasPrefix(r.Text, flow.Would) {
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

type flowUpgradeCmd struct {
	Waiting string `required:"" placeholder:"FLOW" help:"Name of the workflow whose waiting runs move to the version in force."`
	Yes     bool   `help:"Move them without asking."`
}

// Run moves waiting runs to the version in force.
func (c flowUpgradeCmd) Run(e *env) error {
	path := "/flows/" + url.PathEscape(c.Waiting) + "/upgrade"
	plan, err := ask[web.FlowUpgrade](e, "GET", to(path), nil)
	if err != nil {
		return err
	}
	if len(plan.Runs) == 0 {
		return e.text(fmt.Sprintf("No run of %s waits with an older version.\n", c.Waiting))
	}
	if err := e.text(upgradeText(plan)); err != nil {
		return err
	}
	if !slices.ContainsFunc(plan.Runs, func(w web.FlowWaiting) bool { return w.Why == "" }) {
		return errors.New("no run can be moved: wait until they have ended, cancel them, or bring their nodes back")
	}
	if !c.Yes {
		answer, err := e.choice(bufio.NewReader(e.in), "Move them? [Y/n] ", false)
		if err != nil || answer != "y" {
			return errors.Join(errGivenUp, err)
		}
	}
	done, err := ask[web.FlowUpgraded](e, "POST", to(path), web.FlowUpgradeRequest{Version: plan.Version})
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, w := range done.Kept {
		fmt.Fprintf(&text, "Run %s stays with version %s: %s.\n", w.Run, w.Version, w.Why)
	}
	fmt.Fprintf(&text, "Moved %s to version %s.\n", count(len(done.Moved), "run"), plan.Version)
	return e.text(text.String())
}

// upgradeText shows the difference of each version with waiting runs to the one in force, and the runs.
func upgradeText(plan web.FlowUpgrade) string {
	var text strings.Builder
	versions := make(map[string][]web.FlowWaiting)
	for _, w := range plan.Runs {
		versions[w.Version] = append(versions[w.Version], w)
	}
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		fmt.Fprintf(&text, "Version %s, to %s:\n", version, plan.Version)
		if old, known := plan.Texts[version]; known {
			text.WriteString(shownDiff([]byte(old), []byte(plan.Text)))
		} else {
			text.WriteString("The text of the version is not kept any more.\n")
		}
		for _, w := range versions[version] {
			if w.Why != "" {
				fmt.Fprintf(&text, "Run %s cannot be moved: %s.\n", w.Run, w.Why)
				continue
			}
			fmt.Fprintf(&text, "Run %s waits in the node %s.\n", w.Run, w.Node)
		}
	}
	return text.String()
}
