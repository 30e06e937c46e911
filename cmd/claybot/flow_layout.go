package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/web"
)

// A layoutFile is the file with the layout of a flow as it was read. It is never a reason for a flow not
// to be in force.
type layoutFile struct {
	*configFile
	known  flows.Layout // of nodes that the flow has
	hints  []fileFault
	unread error // why the file cannot be read
}

// openLayout reads the layout of a flow of a folder that has these nodes. The file may be missing.
func openLayout(dir, name string, nodes []string) *layoutFile {
	l := new(layoutFile)
	l.configFile, l.unread = openConfigFile(filepath.Join(dir, flows.LayoutFile(name)))
	if l.unread != nil {
		l.hints = []fileFault{{l.path, flows.Fault{Line: 1, Text: sentenceOf(l.unread)}}}
		return l
	}
	all, hints := configs.ReadLayout(l.path, l.text, nodes)
	l.known = all.Known(nodes)
	for _, x := range hints {
		l.hints = append(l.hints, fileFault{l.path, x})
	}
	return l
}

// nodeNames are the names of the nodes in the text of a flow, whatever faults it has.
func nodeNames(text string) []string {
	_, forms, _ := configs.FlowForms([]byte(text)) // what is no YAML has none
	return formNames(forms)
}

func formNames(forms []flows.Form) (names []string) {
	for _, f := range forms {
		names = append(names, f.Name)
	}
	return names
}

func (l *layoutFile) view() web.FlowLayout {
	nodes := flows.Layout{}
	maps.Copy(nodes, l.known)
	return web.FlowLayout{File: l.path, Version: l.versionOf(), Nodes: nodes, Hints: shownFaults(l.hints)}
}

// after is the layout after a change of a flow, which has these nodes then; none for a text that cannot
// be read.
func (l *layoutFile) after(flow string, c web.FlowChange, nodes []string) (out web.FlowLayout, err error) {
	out = l.view()
	if c.Layout != nil {
		if c.Layout.Version != out.Version {
			return out, web.ErrFlowStale
		}
		for name, at := range c.Layout.Nodes {
			if !at.Within() {
				return out, web.Refusal(fmt.Sprintf("the position of %.64q is not within -%d and %[2]d", name, flows.MaxPosition))
			}
		}
		out.Nodes = flows.Layout{}
		maps.Copy(out.Nodes, c.Layout.Nodes)
	}
	out.Nodes = out.Nodes.Carried(c.Edits)
	if len(nodes) > 0 {
		out.Nodes = out.Nodes.Known(nodes)
	}
	if maps.Equal(out.Nodes, l.known) {
		return out, nil
	}
	out.Version, out.Hints = "", nil
	if text := configs.LayoutText(flow, out.Nodes); text != nil {
		out.Version = flows.HashOf(string(text))
	}
	return out, nil
}

// changed reports whether the file has another text than the one that was read.
func (l *layoutFile) changed() bool {
	now := &configFile{path: l.path}
	return now.read() == nil && now.versionOf() != l.versionOf()
}

// write replaces the text of the file, or removes the file for none.
func (l *layoutFile) write(text []byte) error {
	if l.unread != nil {
		return l.unread
	}
	if text != nil {
		return l.replace(text)
	}
	dir, err := openFolder(l.path)
	if err != nil {
		return err
	}
	defer dir.close()
	if err := dir.Remove(filepath.Base(l.path)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
