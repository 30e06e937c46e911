package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools/mcp"
)

type statusCmd struct {
	JSON  bool `name:"json" help:"Print JSON."`
	Probe bool `help:"Ask the models, the MCP servers and Docker first, which costs nothing."`
}

// Run prints the status of the daemon.
func (c statusCmd) Run(e *env) error {
	if c.Probe {
		if err := e.does("POST", to("/probe"), nil, ""); err != nil {
			return err
		}
	}
	return show(e, c.JSON, to("/status"), func(st overview.Status) error {
		rows := slices.Concat([][]string{
			{"version", st.Version},
			{"uptime", st.Uptime},
			{"node", memberLine(cmp.Or(st.Node, new(overview.NodeStatus)))},
			{"access", string(st.Access.Mode)},
			{"model", modelLine(st.Model)},
		}, startRows(st), field("unwell", st.Unwell), diskRows(st), figureRows(st, time.Now()), faultRows(st))
		for _, x := range st.Connectors {
			rows = append(rows, []string{x.Name, connectorLine(x)})
		}
		for _, x := range st.Sinks {
			rows = append(rows, []string{"relay " + x.Name, relayLine(x)})
		}
		for _, what := range slices.Sorted(maps.Keys(st.Checks)) {
			rows = append(rows, []string{"check " + what, checkLine(st.Checks[what])})
		}
		for _, x := range st.Settings {
			if x.Code == "" { // otherwise its finding has the next step
				x.Text = join("; ", x.Text, x.Next)
			}
			rows = append(rows, []string{"setting", x.Text})
		}
		for _, x := range st.Servers {
			rows = append(rows, []string{"MCP server " + x.Name, serverLine(x)})
		}
		return e.table(adviceRows(rows, st.Findings))
	})
}

// adviceRows adds the findings about parts without a row, and the next steps of all.
func adviceRows(rows [][]string, all []overview.Finding) [][]string {
	parts := rows // findings about others may have the same text
	for _, f := range all {
		if !slices.ContainsFunc(parts, func(row []string) bool {
			return row[0] == f.What || row[0] == "setting" && (strings.HasPrefix(f.What, "configuration") || f.What == "workflows") || strings.HasSuffix(row[1], f.Text)
		}) {
			rows = append(rows, []string{f.What, connectors.OneLine(f.Text, 600)})
		}
		if f.Next != "" {
			for _, row := range parts {
				if row[0] == f.What { // the next step stands once
					row[1] = strings.Replace(row[1], "; "+f.Next, "", 1)
				}
			}
			rows = append(rows, []string{"", "→ " + f.What + ": " + f.Next + " [" + f.Code + "]"})
		}
	}
	return rows
}

// field is a row of a table of names and values; none without a value.
func field(name, value string) [][]string {
	if value == "" {
		return nil
	}
	return [][]string{{name, value}}
}

// join joins the parts that are not empty.
func join(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}

// startRows show the limits of the process, and how it recovers after crashes.
func startRows(st overview.Status) [][]string {
	l := limits{memory: st.Limits.Memory, files: st.Limits.Files}
	rows := field("limits", fmt.Sprintf("%d concurrent runs; %s", st.Limits.MaxRuns, l))
	if x := st.Start; x != nil {
		rows = append(rows, []string{"start", fmt.Sprintf(
			"%s: it resumes %s at a time; %s to be resumed", crashes(x.Unclean), count(x.AtOnce, "run"), count(x.Waiting, "agent"),
		)})
	}
	return rows
}

// crashes says how often claybot has crashed without a clean end between.
func crashes(n int) string {
	if n == 1 {
		return "claybot crashed"
	}
	return fmt.Sprintf("claybot crashed %d times in a row", n)
}

// diskRows show the free space if it is short.
func diskRows(st overview.Status) [][]string {
	if st.Disk == nil || !st.Disk.NearlyFull() {
		return nil
	}
	code, text, _ := spaceOf(*st.Disk, "")
	if code == "disk-full" {
		return field("disk", "FULL: "+text)
	}
	return field("disk", "low: "+text)
}

// figureRows show the counts of the store, and how old they are if the store does not
// respond.
func figureRows(st overview.Status, now time.Time) [][]string {
	if st.Unknown {
		return field("database", "does not respond; agents, messages and runs are unknown")
	}
	var rows [][]string
	if st.AsOf != 0 {
		at := st.AsOf.Time()
		rows = field("database", fmt.Sprintf("does not respond; the counts are from %s, %s ago", moment(at), max(0, now.Sub(at).Round(time.Second))))
	}
	return append(rows, [][]string{
		{"agents", fmt.Sprint(st.Agents)},
		{"waiting", fmt.Sprint(st.Inbox.Waiting)},
		{"runs", counts(st.Runs)},
		{"outbox", counts(st.Outbox)},
	}...)
}

// faultRows show the agents that cannot be used, and their waiting messages.
func faultRows(st overview.Status) (rows [][]string) {
	if st.Faulty > 0 {
		rows = field("faulty", count(st.Faulty, "agent")+" cannot be used; run `claybot parked` to list waiting messages")
	}
	for _, x := range st.Faults {
		rows = append(rows, []string{"faulty agent", fmt.Sprintf("%s, since %s: %s", x.Agent, moment(x.Since.Time()), connectors.OneLine(x.Cause, 300))})
	}
	for _, x := range st.DeadRoutes {
		rows = append(rows, []string{"dead route", fmt.Sprintf("%s, since %s: %s; nothing is sent there until a person writes there or adds the bot again", x, moment(x.Since.Time()), connectors.OneLine(x.Why, 300))})
	}
	if p := st.Parked; p != nil {
		line := fmt.Sprintf("%s for %s that cannot be used, the oldest since %s", count(p.Messages, "message"), count(p.Agents, "agent"), moment(p.Oldest.Time()))
		if p.Full {
			line += "; the parking table is full, further messages wait at their source"
		}
		rows = append(rows, []string{"parked", line})
	}
	return rows
}

func relayLine(s runs.SinkHealth) string {
	line := "up to date"
	if s.Backlog > 0 {
		line = count(s.Backlog, "run") + " behind"
	}
	return join(": ", line, s.Error, s.Stopped)
}

func checkLine(c overview.CheckStatus) string {
	line := c.Text + " (" + moment(c.At.Time()) + ")"
	if c.Problem {
		line = "PROBLEM: " + line
	}
	return line
}

// serverLine says how a server does, in the words of its node.
func serverLine(s overview.ServerStatus) string {
	if s.OK || s.State == mcp.StateLogin {
		return join(": ", s.State, s.Err)
	}
	return join(": ", serverState(s.State, s.Err), s.Err)
}

func connectorLine(c overview.ConnectorStatus) string {
	line := c.Word()
	if c.Held != "" {
		line += ", but " + c.Held
	}
	switch {
	case c.State == connectors.StateOff && c.Held == "": // by whom begins with the word
		line = c.Err
	case c.Err != "":
		line += ": " + c.Err
	case c.Held == "" && !c.LastOK.IsZero():
		line += success(c.LastOK)
	}
	if c.Address != "" {
		line += "; " + c.Address
	}
	if r := c.Refused; r != nil {
		line += fmt.Sprintf("; %s refused, the last at %s: %s", count(int(r.Count), "request"), moment(r.At), r.Why)
	}
	return line
}

func modelLine(m overview.ModelStatus) string {
	switch {
	case m.Err != "":
		return m.Name + ": " + m.Err
	case m.LastOK.IsZero():
		return m.Name + ", not called yet"
	}
	return m.Name + success(m.LastOK)
}

func success(at time.Time) string {
	return ", last success " + time.Since(at).Round(time.Second).String() + " ago"
}

// counts prints the values of a map in the order of its keys.
func counts[K ~string](m map[K]int) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s %d", k, m[k]))
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

type healthCmd struct {
	Ready bool `help:"Check readiness: every connector works and the store responds."`
}

// Run checks the daemon over its socket, so that the probes of a container need neither a
// shell nor the web page.
func (c healthCmd) Run(e *env) error {
	if c.Ready {
		return e.does("GET", to("/readyz"), nil, "ready\n")
	}
	return e.does("GET", to("/healthz"), nil, "ok\n")
}
