package main

import (
	"slices"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
)

// farChanges are the keys of a new text that only the machine itself may give that value: on whose behalf the
// workflow acts, who approves, and to which chats and hosts it sends. A new file may have what workflows in
// force of the same owner and profile have.
func (d flowDesk) farChanges(name, path string, before, next []byte) []fileFault {
	f, wrong := configs.ReadFlow(name+".yaml", next)
	if len(wrong) > 0 || string(before) == string(next) {
		return nil // faults are shown already
	}
	far := farCheck{path: path}
	if old := d.library.Named(name); before != nil {
		if read, wrong := configs.ReadFlow(name+".yaml", before); len(wrong) == 0 {
			old = &read
		}
		if old != nil {
			far.before = []*flows.Flow{old}
		}
	} else {
		for _, other := range d.library.all() {
			if other.Owner == f.Owner && other.Profile == f.Profile {
				far.before = append(far.before, other)
			}
		}
	}
	far.check(&f)
	return far.faults
}

// A farCheck compares a workflow with what it may have.
type farCheck struct {
	path   string
	before []*flows.Flow
	faults []fileFault
}

func (c *farCheck) add(lines flows.Lines, key, full string) {
	line := lines[key]
	if line == 0 {
		line = max(lines[""], 1)
	}
	c.faults = append(c.faults, fileFault{c.path, flows.Fault{Line: line, Key: full, Text: "over the network, this key cannot be given a new value: change it on the machine, in this file"}})
}

func (c *farCheck) check(f *flows.Flow) {
	if len(c.before) == 0 {
		c.add(f.Lines, "owner", "owner")
		return
	}
	if f.Owner != c.before[0].Owner {
		c.add(f.Lines, "owner", "owner")
	}
	if f.Profile != c.before[0].Profile {
		c.add(f.Lines, "profile", "profile")
	}
	chats, hosts := []string{"", "trigger", "owner"}, []string{}
	for _, old := range c.before {
		chats = append(chats, old.Failed...)
		for _, n := range old.Nodes {
			switch spec := n.Spec.(type) {
			case *flows.Reply:
				chats = append(chats, spec.To...)
			case *flows.HTTP:
				hosts = append(hosts, spec.Host())
			}
		}
	}
	if !allIn(f.Failed, chats) {
		c.add(f.Lines, "on_failure", "on_failure")
	}
	for _, n := range f.Nodes {
		key := "nodes." + n.Name + "."
		switch spec := n.Spec.(type) {
		case *flows.Reply:
			if !allIn(spec.To, chats) {
				c.add(n.Lines, "to", key+"to")
			}
		case *flows.HTTP:
			if !slices.Contains(hosts, spec.Host()) {
				c.add(n.Lines, "url", key+"url")
			}
		case *flows.Tool:
			if !c.approves(n.Name, spec) {
				c.add(n.Lines, "approve", key+"approve")
			}
		case *flows.Ask:
			if !c.asks(n.Name, spec) {
				c.add(n.Lines, "by", key+"by")
			}
		}
	}
}

func allIn(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// approves reports whether the same people approve the call as before: those of the node, or for a new node
// those of another call of the tool. A tool that was not called before has the approvals of its profile.
func (c *farCheck) approves(name string, spec *flows.Tool) bool {
	var known []*flows.Approve
	called := false
	for _, old := range c.before {
		for _, n := range old.Nodes {
			was, ok := n.Spec.(*flows.Tool)
			if !ok || was.Tool != spec.Tool {
				continue
			}
			if n.Name == name && len(c.before) == 1 {
				return sameApprove(was.Approve, spec.Approve)
			}
			if called = true; was.Approve != nil {
				known = append(known, was.Approve)
			}
		}
	}
	if !called || len(known) == 0 {
		return spec.Approve == nil
	}
	return slices.ContainsFunc(known, func(a *flows.Approve) bool { return sameApprove(a, spec.Approve) })
}

func sameApprove(a, b *flows.Approve) bool {
	return a == nil && b == nil || a != nil && b != nil && allIn(a.By, b.By) && allIn(b.By, a.By)
}

// asks reports whether the same people answer as before. A new question may be for people who are asked
// already.
func (c *farCheck) asks(name string, spec *flows.Ask) bool {
	var people []string
	for _, old := range c.before {
		people = append(people, old.Owner)
		for _, n := range old.Nodes {
			was, ok := n.Spec.(*flows.Ask)
			if !ok {
				continue
			}
			if n.Name == name && len(c.before) == 1 {
				return allIn(spec.By, was.By) && allIn(was.By, spec.By)
			}
			people = append(people, was.By...)
		}
	}
	return allIn(spec.By, people)
}
