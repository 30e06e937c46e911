package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var _ web.FlowEditor = flowDesk{}

// diffContext is how many equal lines a difference has around lines that differ.
const diffContext = 3

// flowFile opens the file of a flow, which may be missing.
func (d flowDesk) flowFile(name string) (*configFile, error) {
	if !flows.IsName(name) {
		return nil, storage.ErrNotFound
	}
	f, err := openConfigFile(filepath.Join(flowsDir(d.config.Load()), name+".yaml"))
	if err != nil {
		return nil, flowProblem(err)
	}
	return f, nil
}

// versionOf is the version of the text of a file of a flow; empty for none.
func (f *configFile) versionOf() string {
	if f.text == nil {
		return ""
	}
	return flows.HashOf(string(f.text))
}

// flowProblem returns an error of a change in words for its caller.
func flowProblem(err error) error {
	var system syscall.Errno
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &web.Problem{Status: http.StatusServiceUnavailable, Code: "busy", Wait: 1, Message: "Another process is changing the file of the workflow."}
	case errors.Is(err, configs.ErrByHand):
		return &web.Problem{Status: http.StatusConflict, Code: "refused", Message: sentenceOf(err), Fix: "Change the text of the file instead."}
	case errors.As(err, &system), errors.Is(err, errIrregular):
		return &web.Problem{Status: http.StatusConflict, Code: "refused", Message: sentenceOf(err), Fix: "Let claybot read and write the folder of workflows, or change the file by hand: claybot reads it again by itself."}
	}
	return err
}

// FlowFile implements web.FlowEditor.
func (d flowDesk) FlowFile(ctx context.Context, name, version string) (out web.FlowFile, err error) {
	f, err := d.flowFile(name)
	if err != nil {
		return out, err
	}
	out = web.FlowFile{Flow: name, File: f.path, Version: f.versionOf(), Text: string(f.text)}
	out.Layout = openLayout(flowsDir(d.config.Load()), name, nodeNames(out.Text)).view()
	if version != "" && version != out.Version {
		old, err := d.library.version(ctx, name, version)
		if err != nil {
			return out, fmt.Errorf("%w: version %.64q of the flow %.64q: %w", storage.ErrNotFound, version, name, err)
		}
		out.Version, out.Text = version, old.Text
	} else if f.text == nil {
		return out, storage.ErrNotFound
	}
	return out, nil
}

// ProposeFlow implements web.FlowEditor.
func (d flowDesk) ProposeFlow(ctx context.Context, name string, c web.FlowChange) (out web.FlowProposal, err error) {
	f, err := d.flowFile(name)
	if err != nil {
		return out, err
	}
	out, _, err = d.propose(ctx, f, name, c)
	return out, err
}

// SaveFlow implements web.FlowEditor.
func (d flowDesk) SaveFlow(ctx context.Context, name string, c web.FlowChange, by string) (out web.FlowProposal, err error) {
	d.library.saving.Lock() // files are checked together
	defer d.library.saving.Unlock()
	f, err := d.flowFile(name)
	if err != nil {
		return out, err
	}
	out, places, err := d.propose(ctx, f, name, c)
	if err != nil {
		return out, err
	}
	moved := out.Layout.Version != places.versionOf()
	if len(out.Faults) > 0 && (out.Version != c.Version || !moved) { // positions have no faults
		return out, faultyFlow(out.Faults)
	}
	if out.Version != c.Version || moved {
		if err := d.write(ctx, f, places, out, by); err != nil {
			return out, flowProblem(err)
		}
	}
	out.InForce = false
	if err := d.library.look(context.WithoutCancel(ctx), true); err != nil { // the file is saved nevertheless
		d.log.Warn("workflows not read again after a save", "flow", name, "error", err)
		return out, nil
	}
	now := d.library.Named(name)
	out.InForce = now != nil && now.Hash == out.Version
	return out, nil
}

// write writes the text and the layout of a proposal, if the files still have the texts on which that is
// based. After a crash between the two, the layout may name nodes that are not there.
func (d flowDesk) write(ctx context.Context, f *configFile, places *layoutFile, p web.FlowProposal, by string) error {
	before := f.versionOf()
	if err := f.makeFolder(); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	if err := f.lock(waiting); err != nil {
		return err
	}
	defer f.unlock()
	if f.versionOf() != before || places.changed() {
		return web.ErrFlowStale
	}
	// A layout that is ahead of its workflow is only a hint, so it is written first: what fails then
	// has saved nothing.
	if p.Layout.Version != places.versionOf() {
		if err := places.write(configs.LayoutText(p.Flow, p.Layout.Nodes)); err != nil {
			return err
		}
		d.log.Info("layout of a workflow saved", "flow", p.Flow, "by", by)
	}
	if p.Version == before {
		return nil
	}
	return d.writeText(f, before, p, by)
}

// writeText writes the text of a proposal to the file, which is locked.
func (d flowDesk) writeText(f *configFile, before string, p web.FlowProposal, by string) error {
	made := change{Key: p.Flow, After: &p.Version}
	if before != "" {
		made.Before = &before
	}
	f.by = by
	recorded, err := f.record([]change{made}, []byte(p.Text))
	if err == nil {
		d.log.Info("workflow saved", "flow", p.Flow, "version", p.Version, "by", by, "recorded", recorded)
	}
	return err
}

// makeFolder creates the folder of a file, in one that exists.
func (f *configFile) makeFolder() error {
	dir := filepath.Dir(f.path)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer above.close()
	made, err := above.folder(filepath.Base(dir))
	if err == nil {
		made.close()
	}
	return err
}

// faultyFlow refuses a text with faults, by their keys.
func faultyFlow(faults []web.FlowFault) error {
	fields := make(map[string]string)
	for _, x := range faults {
		text := fmt.Sprintf("line %d: %s", x.Line, x.Text)
		if x.Near != "" {
			text += "; did you mean " + x.Near + "?"
		}
		if key := x.Key; fields[key] == "" {
			fields[key] = text
		}
	}
	first := fileFault{faults[0].File, flows.Fault{Line: faults[0].Line, Key: faults[0].Key, Text: faults[0].Text, Near: faults[0].Near}}
	return &web.Problem{
		Status: http.StatusBadRequest, Code: "faults", Message: fmt.Sprintf("The workflow has %s and was not saved: %s", count(len(faults), "fault"), first),
		Fix: "POST /flows/{flow}/file/diff lists all faults with their lines.", Fields: fields,
	}
}

// propose makes a change of the text of a file, and checks it with the other files.
func (d flowDesk) propose(ctx context.Context, f *configFile, name string, c web.FlowChange) (out web.FlowProposal, places *layoutFile, err error) {
	if c.Version != f.versionOf() {
		return out, nil, web.ErrFlowStale
	}
	next := f.text
	if c.Text != "" {
		next = []byte(c.Text)
	}
	if next, err = configs.EditFlow(next, c.Edits); err != nil {
		if errors.Is(err, configs.ErrByHand) {
			return out, nil, flowProblem(err)
		}
		return out, nil, web.Refusal(err.Error())
	}
	out = web.FlowProposal{Flow: name, File: f.path, Version: flows.HashOf(string(next)), Text: string(next)}
	for _, l := range configs.Diff(linesIn(f.text), linesIn(next), diffContext) {
		mark := ""
		if l.Mark != 0 {
			mark = string(l.Mark)
		}
		out.Diff = append(out.Diff, web.FlowDiffLine{Mark: mark, Text: l.Text})
	}
	out.Start, out.Forms, _ = configs.FlowForms(next) // what is no YAML is a fault
	d.suggest(out.Forms, next)
	places = openLayout(flowsDir(d.config.Load()), name, nodeNames(string(f.text)))
	if out.Layout, err = places.after(name, c, formNames(out.Forms)); err != nil {
		return out, nil, err
	}
	now := d.library.Named(name)
	out.InForce = now != nil && now.Hash == out.Version
	world := d.flowWorld()
	world.Secrets = nil // secretFaults searches each line
	if !web.Local(ctx) {
		world.Secret = nil // it would tell which secrets the machine has
	}
	faults, err := d.newFaults(world, name, f.text, next)
	if err != nil {
		return out, nil, err
	}
	faults = append(faults, secretFaults(f.path, f.text, next)...)
	if !web.Local(ctx) {
		faults = append(faults, d.farSecrets(name, f.path, next)...)
		faults = append(faults, d.farChanges(name, f.path, f.text, next)...)
	}
	out.Faults = shownFaults(faults)
	return out, places, nil
}

// suggest adds what is known for the fields of forms that name a tool, a model or a flow.
func (d flowDesk) suggest(forms []flows.Form, text []byte) {
	f, _ := configs.ReadFlow("f.yaml", text)
	world := d.flowWorld()
	known := map[string][]string{"tool": nil, "model": nil, "flow": nil}
	if world.Tools != nil {
		known["tool"] = slices.Sorted(maps.Keys(world.Tools(f.Profile)))
	}
	if world.Models != nil {
		known["model"] = world.Models(f.Profile)
	}
	for _, other := range d.library.all() {
		known["flow"] = append(known["flow"], other.Name)
	}
	for _, form := range forms {
		for i := range form.Fields {
			if x := &form.Fields[i]; x.Kind == flows.FieldOfLine {
				x.Words = known[x.Key]
			}
		}
	}
}

// linesIn are the lines of a text; none of an empty one.
func linesIn(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// newFaults are the faults of a new text of a flow, and those that other files have because of it.
func (d flowDesk) newFaults(world flows.World, name string, before, next []byte) (faults []fileFault, err error) {
	dir := flowsDir(d.config.Load())
	files, err := readFlows(dir)
	if err != nil {
		return nil, flowProblem(err)
	}
	if files == nil {
		files = make(map[string][]byte)
	}
	file := name + ".yaml"
	if files = maps.Clone(files); before == nil {
		delete(files, file)
	}
	_, old := checkFlows(dir, files, world)
	files[file] = next
	_, now := checkFlows(dir, files, world)
	for _, x := range now {
		if filepath.Base(x.File) == file || !slices.ContainsFunc(old, func(o fileFault) bool { return o.String() == x.String() }) {
			faults = append(faults, x)
		}
	}
	return faults, nil
}

// secretFaults are the lines that a new text has and the old one does not, with a token, a key or a
// password in them.
func secretFaults(path string, before, next []byte) (faults []fileFault) {
	old := linesIn(before)
	for i, line := range linesIn(next) {
		if _, kinds := platforms.MaskSecrets(line); len(kinds) > 0 && !slices.Contains(old, line) {
			faults = append(faults, fileFault{path, flows.Fault{Line: i + 1, Text: "the line has " + strings.Join(kinds, " and ") + "; a header of an http node can refer to a secret as env:NAME or file:path"}})
		}
	}
	return faults
}

// farSecrets are the headers of a new text that send a secret of the machine where no workflow in
// force sends it: a call over the network directs no secret elsewhere.
func (d flowDesk) farSecrets(name, path string, next []byte) (faults []fileFault) {
	f, wrong := configs.ReadFlow(name+".yaml", next)
	if len(wrong) > 0 {
		return nil // which are faults already
	}
	known := make(map[string]bool)
	for _, old := range d.library.all() {
		for _, s := range sentSecrets(old) {
			known[s.reference+" "+s.host] = true
		}
	}
	for _, s := range sentSecrets(&f) {
		if !known[s.reference+" "+s.host] {
			faults = append(faults, fileFault{path, flows.Fault{
				Line: s.line, Key: "nodes." + s.node + ".headers", Text: "over the network, a header can only send a secret to a host to which a workflow sends it already: change this on the machine",
			}})
		}
	}
	return faults
}

// A sentSecret is a secret that a header of an http node sends.
type sentSecret struct {
	node, reference, host string
	line                  int
}

func sentSecrets(f *flows.Flow) (all []sentSecret) {
	for _, n := range f.Nodes {
		s, ok := n.Spec.(*flows.HTTP)
		if !ok {
			continue
		}
		for _, header := range slices.Sorted(maps.Keys(s.Headers)) {
			if text, _ := s.Headers[header].(string); strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "file:") {
				all = append(all, sentSecret{n.Name, text, s.Host(), n.Lines["headers"]})
			}
		}
	}
	return all
}

// FlowHistory implements web.FlowEditor.
func (d flowDesk) FlowHistory(_ context.Context, name string) ([]web.FlowSaved, error) {
	f, err := d.flowFile(name)
	if err != nil {
		return nil, err
	}
	all, err := f.history()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, flowProblem(err)
	}
	if f.text == nil && len(all) == 0 {
		return nil, storage.ErrNotFound
	}
	list := make([]web.FlowSaved, len(all))
	for i, c := range all {
		list[i] = web.FlowSaved{At: claybot.At(c.At), By: c.By}
		if c.Before != nil {
			list[i].Before = *c.Before
		}
		if c.After != nil {
			list[i].After = *c.After
		}
	}
	return list, nil
}
