package flows

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxBranches is how many branches a node may have.
const MaxBranches = 20

// A Parallel has agents and flows at work at the same time. It ends as Join says.
type Parallel struct {
	// Branches are nodes of the kinds BranchKinds, without edges.
	Branches []Node `key:"branches" kind:"flow branches"`
	// Join is how many branches end the node by their success: JoinAll, JoinAny or a number; empty:
	// JoinAll. Those that are at work then are stopped.
	Join string `key:"join"`
	// OnError is what a branch that fails does where all have to end; otherwise the node fails when too few
	// are left. Empty: OnErrorStop.
	OnError string `key:"on_error" words:"stop,continue,collect"`
}

// The values of Parallel.Join that are no numbers.
const (
	JoinAll = "all"
	JoinAny = "any"
)

// The values of OnError.
const (
	OnErrorStop     = "stop"     // the node fails, and those at work are stopped
	OnErrorContinue = "continue" // what failed is left out
	OnErrorCollect  = "collect"  // each comes as ok, output and error
)

// BranchKinds are the kinds of branches: what works beside others.
var BranchKinds = []string{KindAgent, KindDeep, KindPlan, KindFlow}

// Need is how many branches have to succeed; 0 for a Join that cannot be.
func (p *Parallel) Need() int {
	switch p.Join {
	case "", JoinAll:
		return len(p.Branches)
	case JoinAny:
		return min(1, len(p.Branches))
	}
	n, err := strconv.Atoi(p.Join)
	if err != nil || n < 1 || n > len(p.Branches) {
		return 0
	}
	return n
}

// ItemPart is the part of a node of the kind each: its agents.
const ItemPart = "item"

// Parts are what works within the node beside others: the branches of a parallel one, ItemPart of
// one of the kind each.
func (n *Node) Parts() (names []string) {
	if n.Kind == KindEach {
		return []string{ItemPart}
	}
	if p, ok := n.Spec.(*Parallel); ok {
		for _, b := range p.Branches {
			names = append(names, b.Name)
		}
	}
	return names
}

// All reports whether all branches have to end.
func (p *Parallel) All() bool { return p.Join == "" || p.Join == JoinAll }

// parallelFields are what a node with branches puts out besides these.
var parallelFields = append(slices.Clone(agentFields), "first", "failed")

// branches are those of a node, named as paths; none for other nodes.
func (n *Node) branches() []Node {
	p, ok := n.Spec.(*Parallel)
	if !ok {
		return nil
	}
	all := slices.Clone(p.Branches)
	for i := range all {
		all[i].Name = n.Name + ".branches." + all[i].Name
	}
	return all
}

// mayMiss reports whether a branch that a template reads may have put out nothing.
func (n *Node) mayMiss(path []string) bool {
	p, ok := n.Spec.(*Parallel)
	if !ok || p.All() && p.OnError != OnErrorContinue {
		return false
	}
	if path[0] == "output" {
		path = path[1:]
	}
	return len(path) > 0 && slices.ContainsFunc(p.Branches, func(b Node) bool { return b.Name == path[0] })
}

// parallel checks a node with branches.
func (c *checker) parallel(n *Node, p *Parallel) {
	key := "nodes." + n.Name
	switch {
	case len(p.Branches) < 2:
		c.add(n.Lines[""], key+".branches", "is missing: at least two agents or flows, by their names")
	case len(p.Branches) > MaxBranches:
		c.add(n.Lines["branches"], key+".branches", "%d branches; the limit is %d", len(p.Branches), MaxBranches)
	case p.Need() == 0:
		c.unknown(n.Lines["join"], key+".join", p.Join, []string{JoinAll, JoinAny}, "%.40q is not %s, %s or a number from 1 to %d", p.Join, JoinAll, JoinAny, len(p.Branches))
	case p.OnError != "" && !p.All():
		c.add(n.Lines["on_error"], key+".on_error", "belongs to join: all; with %s, the node fails when too few branches are left", p.Join)
	}
	for _, b := range n.branches() {
		c.branch(&b)
	}
}

// branch checks one branch.
func (c *checker) branch(b *Node) {
	key := "nodes." + b.Name
	if name := b.Name[strings.LastIndexByte(b.Name, '.')+1:]; slices.Contains(parallelFields, name) {
		c.add(b.Lines[""], key, "is a name that every node with branches has already")
	}
	for _, name := range []string{"next", "error", "tries", "max_visits"} {
		if line := b.Lines[name]; line > 0 {
			c.add(line, key+"."+name, "belongs to the node, not to a branch")
		}
	}
	if a := b.Agent(); a != nil && a.Memory != "" {
		c.add(b.Lines["memory"], key+".memory", "the agents of branches work at the same time and remember nothing")
	}
	if s, ok := b.Spec.(*Child); ok && !s.Waits() {
		c.add(b.Lines["wait"], key+".wait", "a branch ends with its flow")
	}
	c.node(b)
}

// BranchKind returns why a kind is none of a branch; empty if it is.
func BranchKind(kind string) string {
	if slices.Contains(BranchKinds, kind) {
		return ""
	}
	return fmt.Sprintf("a branch is of one of the kinds %s; start a workflow with kind: flow for anything else", strings.Join(BranchKinds, ", "))
}
