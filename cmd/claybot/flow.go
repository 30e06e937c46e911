package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

type flowCmd struct {
	List  flowListCmd  `cmd:"" default:"withargs" eg:"flow" help:"List the workflows of the running daemon."`
	Check flowCheckCmd `cmd:"" eg:"flow check\nflow check flows/refund.yaml" help:"Check the files of workflows; exit with 3 if one has a fault. Needs no running daemon, but knows the tools only from one."`
	Test  flowTestCmd  `cmd:"" eg:"flow test\nflow test refund --crash" help:"Play the test cases of workflows, without a model, a tool or a chat. Needs no running daemon."`
	Show  flowShowCmd  `cmd:"" eg:"flow show refund" help:"Print a workflow as a Mermaid flowchart. Needs no running daemon."`
	Run   flowRunCmd   `cmd:"" eg:"flow run news\nflow run refund --text 'Refund 1001'\nflow run refund --dry" help:"Start a workflow, and follow its run."`

	Upgrade flowUpgradeCmd `cmd:"" eg:"flow upgrade --waiting refund" help:"Move waiting runs to the version of their workflow in force, after showing what is different."`

	Replay flowReplayCmd `cmd:"" eg:"flow replay RUN\nflow replay RUN --from pay --live" help:"Run a workflow again with the results of a run, and follow it: as a dry run, in which nothing acts, or live."`
}

type (
	flowListCmd struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	flowCheckCmd struct {
		Files []string `arg:"" optional:"" name:"file" help:"Files to check. Default: all in the folder flows beside the configuration file."`
	}
	flowShowCmd struct {
		Name string `arg:"" name:"flow" help:"Name of the workflow."`
	}
	flowRunCmd struct {
		Name    string `arg:"" name:"flow" help:"Name of the workflow."`
		Text    string `placeholder:"TEXT" help:"What templates read as trigger.text."`
		Payload string `placeholder:"FILE" help:"JSON file that templates read as trigger.payload; - for standard input."`
		Trigger string `placeholder:"NAME" help:"Trigger that it stands for. Default: the first one."`
		Key     string `placeholder:"KEY" help:"Idempotency key: the same key starts nothing new."`
		Dry     bool   `help:"Call nothing that acts, ask no person and send nothing; print what the run would do."`
		Detach  bool   `help:"Print the ID of the run, and do not wait for it."`
	}
)

// Run lists the flows.
func (c flowListCmd) Run(e *env) error {
	return show(e, c.JSON, to("/flows"), func(out web.FlowList) error {
		rows := each(out.Flows, func(f web.FlowView) []string {
			what := make([]string, len(f.Triggers))
			for i, t := range f.Triggers {
				what[i] = t.What
			}
			return []string{f.Name, f.Version, strings.Join(what, "; "), fmt.Sprint(f.Nodes), oneLine(f.Description)}
		})
		if err := e.list("FLOW,VERSION,STARTS WITH,NODES,DESCRIPTION", "No workflows. They are files in the folder flows beside the configuration file.\n", rows); err != nil {
			return err
		}
		for _, f := range out.Faults {
			fmt.Fprintf(e.err, "not in force: %s\n", fileFault{f.File, flows.Fault{Line: f.Line, Key: f.Key, Text: f.Text, Near: f.Near}})
		}
		return nil
	})
}

// Run prints the faults of the files.
func (c flowCheckCmd) Run(e *env) error {
	dir, files, named, err := c.read(e)
	if err != nil {
		return err
	}
	faults, online, err := e.flowFaults(dir, files)
	if err != nil {
		return err
	}
	faults = slices.DeleteFunc(faults, func(f fileFault) bool { return !slices.Contains(named, filepath.Base(f.File)) })
	var text strings.Builder
	for _, f := range faults {
		text.WriteString(f.String() + "\n")
	}
	for _, name := range named {
		for _, x := range openLayout(dir, strings.TrimSuffix(name, ".yaml"), nodeNames(string(files[name]))).hints {
			fmt.Fprintf(e.err, "warning: %s\n", x)
		}
	}
	if len(faults) > 0 {
		if err := e.text(text.String()); err != nil {
			return err
		}
		return configError{errors.New(count(len(faults), "fault") + " in " + count(len(named), "workflow"))}
	}
	note := ""
	if !online {
		note = " No daemon is running, so tools and models were not checked."
	}
	return e.text(count(len(named), "workflow") + " without a fault." + note + "\n")
}

// read reads the files of the folder, and which of them to check: those that are named, or all.
func (c flowCheckCmd) read(e *env) (dir string, files map[string][]byte, named []string, err error) {
	conf, _, err := e.load()
	if err != nil {
		return "", nil, nil, err
	}
	if len(c.Files) == 0 {
		dir = flowsDir(&conf)
		files, err = readFlows(dir)
		if err == nil && len(files) == 0 {
			err = fmt.Errorf("no workflows in %s", dir)
		}
		return dir, files, slices.Sorted(maps.Keys(files)), err
	}
	dir = filepath.Dir(c.Files[0])
	if files, err = besideFlow(dir); err != nil {
		return "", nil, nil, err
	}
	for _, path := range c.Files {
		if strings.HasSuffix(path, flows.LayoutEnding) {
			continue // it is checked with its workflow
		}
		if filepath.Dir(path) != dir {
			return "", nil, nil, usageError{errors.New("name files of one folder")}
		}
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			return "", nil, nil, err
		}
		named = append(named, filepath.Base(path))
	}
	return dir, files, named, nil
}

// besideFlow reads the flows of a folder that one of its files may start.
func besideFlow(dir string) (files map[string][]byte, err error) {
	if files, err = readFlows(dir); err != nil || files == nil {
		return make(map[string][]byte), err
	}
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return filepath.Ext(name) != ".yaml" })
	return files, nil
}

// oneFlow reads a flow of a folder, and the faults of its file.
func oneFlow(dir, name string, text []byte, world flows.World) (f *flows.Flow, faults []fileFault, err error) {
	files, err := besideFlow(dir)
	if err != nil {
		return nil, nil, err
	}
	files[name+".yaml"] = text
	all, faults := checkFlows(dir, files, world)
	f = all[name]
	return f, slices.DeleteFunc(faults, func(x fileFault) bool { return f == nil || x.File != f.File }), nil
}

// flowFaults checks files, by the daemon if one runs.
func (e *env) flowFaults(dir string, files map[string][]byte) (faults []fileFault, online bool, err error) {
	c, _, err := e.load()
	if err != nil {
		return nil, false, err
	}
	if _, err := dial(c.DataDir); errors.Is(err, api.ErrNoDaemon) {
		world := offlineWorld(&c)
		world.Unpriced = unpricedIn(&c)
		_, faults = checkFlows(dir, files, world)
		return faults, false, nil
	}
	in := web.FlowFiles{Files: make(map[string]string)}
	for name, text := range files {
		in.Files[name] = string(text)
	}
	out, err := ask[web.FlowFaults](e, "POST", to("/flows/check"), in)
	for _, f := range out.Faults {
		faults = append(faults, fileFault{filepath.Join(dir, f.File), flows.Fault{Line: f.Line, Key: f.Key, Text: f.Text, Near: f.Near}})
	}
	return faults, true, err
}

// Run prints the graph of a flow from its file.
func (c flowShowCmd) Run(e *env) error {
	conf, _, err := e.load()
	if err != nil {
		return err
	}
	dir := flowsDir(&conf)
	text, err := os.ReadFile(filepath.Join(dir, c.Name+".yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no workflow %.64q in %s", c.Name, dir)
	}
	if err != nil {
		return err
	}
	f, faults, err := oneFlow(dir, c.Name, text, offlineWorld(&conf))
	if err != nil {
		return err
	}
	if f != nil && len(f.Nodes) > 0 {
		return e.text(runs.Shape{Name: f.Name, Start: f.Start, Edges: f.Names()}.Mermaid())
	}
	return errors.New(faults[0].String())
}

// Run starts a flow.
func (c flowRunCmd) Run(e *env) error {
	in := web.FlowStart{Text: c.Text, Trigger: c.Trigger, Key: c.Key, Dry: c.Dry}
	if c.Payload != "" {
		read := func() ([]byte, error) { return os.ReadFile(c.Payload) }
		if c.Payload == "-" {
			read = func() ([]byte, error) { return io.ReadAll(e.in) }
		}
		text, err := read()
		if err != nil {
			return err
		}
		if !json.Valid(text) {
			return usageError{fmt.Errorf("%s is no JSON", c.Payload)}
		}
		in.Payload = text
	}
	out, err := ask[web.Accepted](e, "POST", to("/flows/"+url.PathEscape(c.Name)+"/runs"), in)
	if err != nil {
		return err
	}
	if c.Detach {
		return e.text(string(out.Run) + "\n")
	}
	if err := e.follow(string(out.Run), 0, 0, false); err != nil {
		return err
	}
	return e.outcome(out.Run, c.Dry)
}
