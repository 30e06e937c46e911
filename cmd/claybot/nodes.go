package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot/overview"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

type nodesCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// A nodeRow is one process as the daemon tells of it.
type nodeRow struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Addr         string            `json:"addr,omitempty"`
	State        storage.NodeState `json:"state"`
	Version      string            `json:"version"`
	Started      claybot.Time      `json:"startedAt"`
	Seen         claybot.Time      `json:"seenAt,omitempty"`
	Working      int               `json:"working"`
	MaxRuns      int               `json:"maxRuns"`
	Skew         int64             `json:"skewMs"`
	Claims       []string          `json:"claims"`
	Destinations int               `json:"destinations"`
	Lease        int64             `json:"leaseMs,omitempty"`
	Doubt        string            `json:"doubt,omitempty"`
}

// Run lists the processes that share the store.
func (c nodesCmd) Run(e *env) error {
	var out struct {
		Nodes []nodeRow `json:"nodes"`
	}
	if err := e.ask("GET", "/nodes", nil, &out); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(out)
	}
	if err := e.table(nodeTable(out.Nodes, time.Now())); err != nil {
		return err
	}
	return e.text(nodeDoubts(out.Nodes))
}

// nodeDoubts says what is wrong with the nodes that are marked in the table.
func nodeDoubts(all []nodeRow) string {
	var b strings.Builder
	for _, n := range all {
		if n.Doubt != "" {
			fmt.Fprintf(&b, "\n! %s (%s): %s", n.Name, n.ID, n.Doubt)
		}
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// nodeTable are nodes for a person to read.
func nodeTable(all []nodeRow, now time.Time) [][]string {
	rows := [][]string{{"NAME", "STATE", "VERSION", "SINCE", "LAST BEAT", "WORKS ON", "CLOCK", "DOES ALONE", "ID"}}
	for _, n := range all {
		works, clock := fmt.Sprintf("%d of %d", n.Working, n.MaxRuns), skewed(n.Skew)
		if n.State == storage.NodeGone || n.State == storage.NodeLost {
			works, clock = "-", "-"
		}
		state := string(n.State)
		if n.Doubt != "" {
			state += " !"
		}
		rows = append(rows, []string{
			n.Name, state, n.Version, moment(n.Started.Time()), beaten(n.Seen, now), works, clock, n.alone(), n.ID,
		})
	}
	return rows
}

// alone is what no other node does now.
func (n nodeRow) alone() string {
	parts := n.Claims
	if n.Destinations > 0 {
		parts = append(parts[:len(parts):len(parts)], "sends to "+count(n.Destinations, "destination"))
	}
	if len(parts) == 0 {
		return "-"
	}
	return oneLine(strings.Join(parts, ", "))
}

// beaten says how long ago a beat was.
func beaten(at claybot.Time, now time.Time) string {
	if at == 0 {
		return "-"
	}
	return max(0, now.Sub(at.Time()).Round(time.Second)).String() + " ago"
}

// skewed says how far a clock is off that of the database.
func skewed(ms int64) string {
	switch d := time.Duration(ms) * time.Millisecond; {
	case d >= time.Second:
		return d.Round(100*time.Millisecond).String() + " ahead"
	case d <= -time.Second:
		return (-d).Round(100*time.Millisecond).String() + " behind"
	}
	return "ok"
}

// nodeLine is the node of a status in a line.
func nodeLine(n *overview.NodeStatus) string {
	switch {
	case n.Err != "":
		return n.Name + ": " + n.Err
	case n.Nodes > 1:
		return fmt.Sprintf("%s, one of %d", n.Name, n.Nodes)
	}
	return n.Name
}
