package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// askTimeout bounds what the commands below ask of the daemon.
const askTimeout = 15 * time.Second

// ask calls the daemon once.
func (e *env) ask(method, path string, in, out any) error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	return c.call(ctx, method, path, in, out)
}

// A resource is a path of the daemon, or what is wrong with an id in it.
type resource struct {
	path string
	err  error
}

func to(p string) resource            { return resource{path: p} }
func at(p string, err error) resource { return resource{p, err} }

// with is r with a query, if there is any.
func (r resource) with(q url.Values) resource {
	if len(q) > 0 {
		r.path += "?" + q.Encode()
	}
	return r
}

// ask calls the daemon once and returns its answer.
func ask[T any](e *env, method string, r resource, in any) (out T, err error) {
	if r.err != nil {
		return out, r.err
	}
	return out, e.ask(method, r.path, in, &out)
}

// show prints what the daemon has at r: as JSON, or as say does.
func show[T any](e *env, asJSON bool, r resource, say func(T) error) error {
	out, err := ask[T](e, "GET", r, nil)
	switch {
	case err != nil:
		return err
	case asJSON:
		return e.printJSON(out)
	}
	return say(out)
}

// does calls the daemon and then prints words.
func (e *env) does(method string, r resource, in any, words string) error {
	if r.err != nil {
		return r.err
	}
	if err := e.ask(method, r.path, in, nil); err != nil {
		return err
	}
	return e.text(words)
}

// list is table, or the words for an empty one.
func (e *env) list(rows [][]string, empty string) error {
	if len(rows) == 1 {
		return e.text(empty)
	}
	return e.table(rows)
}

// printJSON prints v as indented JSON.
func (e *env) printJSON(v any) error {
	enc := json.NewEncoder(e.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// table prints rows in columns; the first row is the head.
func (e *env) table(rows [][]string) error {
	w := tabwriter.NewWriter(e.out, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = strings.ReplaceAll(plain(row[i]), "\t", " ")
		}
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// text prints words for a person.
func (e *env) text(s string) error {
	_, err := io.WriteString(e.out, plain(s))
	return err
}

// problems lists the files that could not be read, if any.
func (e *env) problems(all []connectors.Problem) error {
	for _, p := range all {
		place := p.File
		if p.Line > 0 {
			place = fmt.Sprintf("%s:%d", p.File, p.Line)
		}
		if err := e.text(oneLine(place+": "+p.Text) + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// moment shows a time to a person here.
func moment(t time.Time) string { return t.Local().Format(time.DateTime) }

// count says how many there are of something.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// oneLine makes a text fit into a column: at most 100 characters of one line.
func oneLine(s string) string {
	const most = 100
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return string(r)
}

type statusCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints how the daemon is doing.
func (c statusCmd) Run(e *env) error {
	return show(e, c.JSON, to("/status"), func(st overview.Status) error {
		rows := [][]string{
			{"version", st.Version},
			{"uptime", st.Uptime},
			{"node", nodeLine(cmp.Or(st.Node, new(overview.NodeStatus)))},
			{"access", string(st.Access.Mode)},
			{"model", modelLine(st.Model)},
		}
		rows = append(rows, startRows(st)...)
		if st.Unwell != "" {
			rows = append(rows, []string{"unwell", st.Unwell})
		}
		rows = append(rows, diskRows(st)...)
		rows = append(rows, figureRows(st, time.Now())...)
		rows = append(rows, faultRows(st)...)
		for _, x := range st.Connectors {
			rows = append(rows, []string{x.Name, connectorLine(x)})
		}
		for _, x := range st.Sinks {
			line := "told of everything"
			if x.Backlog > 0 {
				line = count(x.Backlog, "run") + " to tell of"
			}
			if x.Error != "" {
				line += ": " + x.Error
			}
			rows = append(rows, []string{"sink " + x.Name, line})
		}
		for _, what := range slices.Sorted(maps.Keys(st.Checks)) {
			x := st.Checks[what]
			line := x.Text + " (" + moment(x.At.Time()) + ")"
			if x.Problem {
				line = "PROBLEM: " + line
			}
			rows = append(rows, []string{"check " + what, line})
		}
		for _, x := range st.Settings {
			line := x.Text
			if x.Next != "" {
				line += "; " + x.Next
			}
			rows = append(rows, []string{"setting", line})
		}
		for _, x := range st.Servers {
			line := x.State
			if x.Err != "" {
				line += ": " + x.Err
			}
			rows = append(rows, []string{"MCP server " + x.Name, line})
		}
		return e.table(rows)
	})
}

// startRows say what claybot may have, and how it comes back after it died.
func startRows(st overview.Status) [][]string {
	l := limits{memory: st.Limits.Memory, files: st.Limits.Files}
	rows := [][]string{{"limits", fmt.Sprintf("%d runs at once; %s", st.Limits.MaxRuns, l)}}
	if x := st.Start; x != nil {
		rows = append(rows, []string{"start", fmt.Sprintf(
			"claybot died %s in a row: runs are resumed %d at a time, %d agents wait", count(x.Unclean, "time"), x.AtOnce, x.Waiting,
		)})
	}
	return rows
}

// diskRows say how much space is left where that is little; none where there is enough.
func diskRows(st overview.Status) [][]string {
	if st.Disk == nil || st.Disk.Free >= littleSpace {
		return nil
	}
	free := fmt.Sprintf("%s of %s are free", size(st.Disk.Free), size(st.Disk.Total))
	if st.Disk.Free < leastSpace {
		return [][]string{{"disk", "FULL: " + free + ", messages can soon not be stored any more; make room"}}
	}
	return [][]string{{"disk", "low: " + free + "; make room"}}
}

// figureRows are what the store counts, and how old that is when it is not of now.
func figureRows(st overview.Status, now time.Time) [][]string {
	if st.Unknown {
		return [][]string{{"figures", "unknown: the database does not answer"}}
	}
	rows := [][]string{
		{"agents", fmt.Sprint(st.Agents)},
		{"waiting", fmt.Sprint(st.Inbox.Waiting)},
		{"runs", counts(st.Runs)},
		{"outbox", counts(st.Outbox)},
	}
	if st.AsOf != 0 {
		at := st.AsOf.Time()
		age := max(0, now.Sub(at).Round(time.Second))
		rows = slices.Insert(rows, 0, []string{"figures", fmt.Sprintf("as of %s, %s old: the database does not answer", moment(at), age)})
	}
	return rows
}

// faultRows say which agents cannot be used, and what waits for them; none when all can.
func faultRows(st overview.Status) (rows [][]string) {
	if st.Faulty > 0 {
		rows = append(rows, []string{"faulty", count(st.Faulty, "agent") + " cannot be used; `claybot parked` lists what waits"})
	}
	for _, x := range st.Faults {
		rows = append(rows, []string{"faulty agent", fmt.Sprintf("%s, since %s: %s", x.Agent, moment(x.Since.Time()), connectors.OneLine(x.Cause, 300))})
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

// connectorLine is how a connector is doing, in a line.
func connectorLine(c overview.ConnectorStatus) string {
	line := c.State
	if c.Held != "" {
		line += ", but " + c.Held
	}
	switch {
	case c.Err != "":
		line += ": " + c.Err
	case c.Held == "" && !c.LastOK.IsZero():
		line += success(c.LastOK)
	}
	return line
}

func modelLine(m overview.ModelStatus) string {
	switch {
	case m.Err != "":
		return m.Name + ": " + m.Err
	case m.LastOK.IsZero():
		return m.Name + ", not asked yet"
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
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

type openCmd struct{}

// Run prints a link that logs one browser in.
func (openCmd) Run(e *env) error {
	link, err := ask[web.LoginLink](e, "POST", to("/login-link"), nil)
	if err != nil {
		return err
	}
	if link.Alone {
		fmt.Fprintln(e.err, "claybot: the database cannot be reached, so the link works on this node only")
	}
	_, err = fmt.Fprintln(e.out, link.URL)
	if link.Local != "" && err == nil {
		_, err = fmt.Fprintln(e.out, "on this machine:", link.Local)
	}
	return err
}

type pairCmd struct {
	List    pairListCmd    `cmd:"" default:"1" help:"List pending requests, and the users and groups with access."`
	Approve pairApproveCmd `cmd:"" help:"Approve the pending request with CODE."`
	Deny    pairDenyCmd    `cmd:"" help:"Deny the pending request with CODE."`
	Allow   pairAllowCmd   `cmd:"" help:"Allow a user or group by ID, such as telegram:123 or slack:U1."`
	Revoke  pairRevokeCmd  `cmd:"" help:"Revoke the access of a user or group."`
}

type (
	pairListCmd struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	pairApproveCmd struct {
		Code string `arg:"" help:"Pairing code of the user."`
	}
	pairDenyCmd struct {
		Code string `arg:"" help:"Pairing code of the user."`
	}
	pairAllowCmd struct {
		Who string `arg:"" help:"User or group as connector:id, with its stable ID."`
	}
	pairRevokeCmd struct {
		Who string `arg:"" help:"User or group as connector:id, as listed by pair list."`
	}
)

// Run lists requests and grants.
func (c pairListCmd) Run(e *env) error {
	return show(e, c.JSON, to("/pairing"), func(p web.PairingList) error {
		rows := [][]string{{"WHO", "NAME (unverified)", "STATE"}}
		for _, x := range p.Pairings {
			rows = append(rows, []string{x.Connector + ":" + x.UserID, x.Name, "asks; approve with: claybot pair approve " + x.Code})
		}
		for _, x := range p.Grants {
			rows = append(rows, []string{x.Connector + ":" + x.Subject, x.Name, "let in " + x.At.Time().Format(time.DateTime)})
		}
		return e.list(rows, "No pending requests, and no approved users or groups.\n")
	})
}

// Run approves a code.
func (c pairApproveCmd) Run(e *env) error {
	p, err := ask[storage.Pairing](e, "POST", to("/pairing"), web.Decision{Code: c.Code, Approve: new(true)})
	if err != nil {
		return err
	}
	return e.text(fmt.Sprintf("%s:%s now has access.\n", p.Connector, p.UserID))
}

// Run denies a code.
func (c pairDenyCmd) Run(e *env) error {
	return e.does("POST", to("/pairing"), web.Decision{Code: c.Code, Approve: new(false)}, "Request denied.\n")
}

// Run grants access to a user or group by id.
func (c pairAllowCmd) Run(e *env) error {
	connector, id, err := who(c.Who)
	if err != nil {
		return err
	}
	return e.does("POST", to("/pairing"), web.Decision{Connector: connector, Subject: id}, fmt.Sprintf("%s:%s now has access.\n", connector, id))
}

// Run takes a grant back.
func (c pairRevokeCmd) Run(e *env) error {
	connector, id, err := who(c.Who)
	if err != nil {
		return err
	}
	path := "/pairing?" + url.Values{"connector": {connector}, "subject": {id}}.Encode()
	out, err := ask[web.Revoked](e, "DELETE", to(path), nil)
	if err != nil {
		return err
	}
	if out.Still != "" {
		return e.text(fmt.Sprintf("Revoked the pairing of %s:%s, but %s.\n", connector, id, out.Still))
	}
	return e.text(fmt.Sprintf("%s:%s no longer has access.\n", connector, id))
}

// who splits connector:id.
func who(s string) (connector, id string, err error) {
	connector, id, ok := strings.Cut(s, ":")
	if !ok || connector == "" || id == "" || strings.HasPrefix(id, "@") {
		return "", "", usageError{fmt.Errorf("%.80q is not connector:id with a stable id, for example telegram:123456", s)}
	}
	return connector, id, nil
}
