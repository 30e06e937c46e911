package main

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/nodes"
)

// flowNodes are the workflows in force, and those whose files have faults. They have no calls: a
// workflow that took no messages would leave open where they go.
func (d nodeDesk) flowNodes() (list []nodes.View) {
	faults := d.library.faultsByFlow()
	for _, f := range d.library.all() {
		n := nodes.View{Key: nodes.Key{Kind: nodes.Flow, Name: f.Name}, State: nodes.Running, Uses: []nodes.Key{{Kind: nodes.Profile, Name: cmp.Or(f.Profile, configs.DefaultProfile)}}}
		if why := faults[f.Name]; why != "" {
			n.Text = "works as before, until its file has no fault: " + why
		}
		delete(faults, f.Name)
		list = append(list, n)
	}
	for name, why := range faults {
		list = append(list, nodes.View{Key: nodes.Key{Kind: nodes.Flow, Name: name}, State: nodes.Off, Text: why})
	}
	return list
}

// startsFlows adds to connectors and cron the workflows that they start.
func (d nodeDesk) startsFlows(all []nodes.View) {
	for _, f := range d.library.all() {
		for _, t := range f.Triggers {
			from := keyOfConnector(cmp.Or(t.On, string(claybot.AgentCron)))
			i := slices.IndexFunc(all, func(n nodes.View) bool { return n.Key == from })
			to := nodes.Key{Kind: nodes.Flow, Name: f.Name}
			if i >= 0 && !slices.Contains(all[i].Uses, to) {
				all[i].Uses = append(all[i].Uses, to)
			}
		}
	}
}

// faultsByFlow is the first fault of each file that has any, by the name of its flow.
func (l *library) faultsByFlow() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]string)
	for _, f := range l.faults {
		if name := strings.TrimSuffix(filepath.Base(f.File), ".yaml"); all[name] == "" {
			all[name] = f.String()
		}
	}
	return all
}
