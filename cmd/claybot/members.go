package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

type membersCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists the cluster members.
func (c membersCmd) Run(e *env) error {
	return show(e, c.JSON, to("/members"), func(out web.MemberList) error {
		if err := e.table(memberTable(out.Members, time.Now())); err != nil {
			return err
		}
		return e.text(memberDoubts(out.Members))
	})
}

// memberDoubts explains the members that are marked in the table.
func memberDoubts(all []web.MemberView) string {
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

// memberTable is the table of members.
func memberTable(all []web.MemberView, now time.Time) [][]string {
	rows := [][]string{{"NAME", "STATE", "VERSION", "SINCE", "LAST SEEN", "RUNS", "CLOCK", "CLAIMS", "ID"}}
	for _, n := range all {
		works, clock := fmt.Sprintf("%d of %d", n.Working, n.MaxRuns), skewed(n.Skew)
		if n.State == storage.MemberGone || n.State == storage.MemberLost {
			works, clock = "-", "-"
		}
		state := string(n.State)
		if n.Doubt != "" {
			state += " !"
		}
		rows = append(rows, []string{
			n.Name, state, n.Version, moment(n.Started.Time()), beaten(n.Seen, now), works, clock, alone(n), n.ID,
		})
	}
	return rows
}

// alone lists what only this member does now.
func alone(n web.MemberView) string {
	parts := n.Claims
	if n.Destinations > 0 {
		parts = append(parts[:len(parts):len(parts)], "sends to "+count(n.Destinations, "destination"))
	}
	if len(parts) == 0 {
		return "-"
	}
	return oneLine(strings.Join(parts, ", "))
}

// beaten says how long ago a lease was renewed.
func beaten(at claybot.Time, now time.Time) string {
	if at == 0 {
		return "-"
	}
	return max(0, now.Sub(at.Time()).Round(time.Second)).String() + " ago"
}

// skewed says how far a clock differs from that of the database.
func skewed(ms int64) string {
	switch d := time.Duration(ms) * time.Millisecond; {
	case d >= time.Second:
		return d.Round(100*time.Millisecond).String() + " ahead"
	case d <= -time.Second:
		return (-d).Round(100*time.Millisecond).String() + " behind"
	}
	return "ok"
}

// memberLine is the member that responds to a status request.
func memberLine(n *overview.NodeStatus) string {
	switch {
	case n.Err != "":
		return n.Name + ": " + n.Err
	case n.Nodes > 1:
		return fmt.Sprintf("%s, one of %d", n.Name, n.Nodes)
	}
	return n.Name
}
