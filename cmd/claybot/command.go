package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// What commands share: calls to the daemon and the ways to print its answers.

// callTimeout bounds the calls of commands to the daemon.
const callTimeout = 15 * time.Second

// call calls the daemon once and decodes its answer into out, if not nil.
func (e *env) call(method, path string, in, out any) error {
	return e.callWithin(callTimeout, method, path, in, out)
}

// callWithin is call for an answer that may take long.
func (e *env) callWithin(limit time.Duration, method, path string, in, out any) error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return c.call(ctx, method, path, in, out)
}

// A resource is a path of the daemon, or the error of an invalid ID in it.
type resource struct {
	path string
	err  error
}

func to(p string) resource            { return resource{path: p} }
func at(p string, err error) resource { return resource{p, err} }

// with adds a query. Empty values are left out.
func (r resource) with(q url.Values) resource {
	for name, values := range q {
		if len(values) == 1 && values[0] == "" {
			delete(q, name)
		}
	}
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
	return out, e.call(method, r.path, in, &out)
}

// show prints what the daemon has at r: as JSON, or as print does.
func show[T any](e *env, asJSON bool, r resource, print func(T) error) error {
	out, err := ask[T](e, "GET", r, nil)
	switch {
	case err != nil:
		return err
	case asJSON:
		return e.printJSON(out)
	}
	return print(out)
}

// does calls the daemon and then prints words.
func (e *env) does(method string, r resource, in any, words string) error {
	if r.err != nil {
		return r.err
	}
	if err := e.call(method, r.path, in, nil); err != nil {
		return err
	}
	return e.text(words)
}

// reply calls the daemon and prints its answer as words does.
func reply[T any](e *env, method string, r resource, in any, words func(T) string) error {
	out, err := ask[T](e, method, r, in)
	if err != nil {
		return err
	}
	return e.text(words(out))
}

// pages returns the items of all pages of a list.
func pages[P, T any](get func(path string, out any) error, path string, items func(P) (all []T, next string)) ([]T, error) {
	all := []T{}
	for after := ""; ; {
		var page P
		if err := get(path+"?"+url.Values{"limit": {"500"}, "after": {after}}.Encode(), &page); err != nil {
			return nil, err
		}
		some, next := items(page)
		all = append(all, some...)
		if after = next; after == "" {
			return all, nil
		}
	}
}

// interruptible returns a context that ends with Ctrl-C or SIGTERM.
func interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
}

// printJSON prints v as indented JSON.
func (e *env) printJSON(v any) error {
	enc := json.NewEncoder(e.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// each returns a row for each item.
func each[T any](all []T, row func(T) []string) [][]string {
	rows := make([][]string, len(all))
	for i, x := range all {
		rows[i] = row(x)
	}
	return rows
}

// list prints rows below a head of comma-separated columns, or the words for no rows.
func (e *env) list(head, empty string, rows [][]string) error {
	if len(rows) == 0 {
		return e.text(empty)
	}
	return e.table(slices.Insert(rows, 0, strings.Split(head, ",")))
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

// text prints s without what a terminal would obey.
func (e *env) text(s string) error {
	_, err := io.WriteString(e.out, plain(s))
	return err
}

// problems prints the task files that could not be read.
func (e *env) problems(all []connectors.Problem) error {
	for _, p := range all {
		if err := e.text(problemLine(p) + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// problemLine is what is wrong with a file, with its line.
func problemLine(p connectors.Problem) string {
	file := p.File
	if p.Line > 0 {
		file = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return oneLine(file + ": " + p.Text)
}

// idPath is the path of a resource with an ID, which must be safe in a path.
func idPath(kind, list, prefix, id string, more ...string) (string, error) {
	if id == "" || id == "." || id == ".." { // in a path they mean something else
		return "", usageError{fmt.Errorf("invalid %s %q; %s lists them", kind, id, list)}
	}
	return "/" + strings.Join(append([]string{prefix, url.PathEscape(id)}, more...), "/"), nil
}

func taskPath(ref string, more ...string) (string, error) {
	return idPath("task slug", "claybot cron", "cron", ref, more...)
}

func runPath(id string, more ...string) (string, error) {
	return idPath("run ID", "claybot runs", "agents/runs", id, more...)
}

func tokenPath(name string, more ...string) (string, error) {
	return idPath("token name", "claybot token", "tokens", name, more...)
}

func outgoingPath(id string, more ...string) (string, error) {
	return idPath("message ID", "claybot outbox", "outbox", id, more...)
}

// agentPath is the path of an agent. An invalid ID never becomes a part of it.
func agentPath(id claybot.AgentID, more ...string) (string, error) {
	if err := id.Validate(); err != nil {
		return "", usageError{err}
	}
	return "/" + strings.Join(append([]string{"agents", string(id)}, more...), "/"), nil
}

// shortestRef is how many characters of an ID must be given at least.
const shortestRef = 4

// resolve finds the one ID that begins with ref; ref itself if there is none, so that the
// daemon says what became of it. list is the command that lists the IDs.
func resolve(ref, what, list string, ids func() ([]string, error)) (string, error) {
	switch {
	case ref == "." || ref == "..": // in a path they mean something else
		return "", usageError{fmt.Errorf("invalid ID %q; %s lists them", ref, list)}
	case len(ref) < shortestRef:
		return "", usageError{fmt.Errorf("ID %q is too short: give at least %d characters; %s lists them", ref, shortestRef, list)}
	}
	all, err := ids()
	if err != nil || slices.Contains(all, ref) {
		return ref, err
	}
	all = slices.DeleteFunc(all, func(id string) bool { return !strings.HasPrefix(id, ref) })
	slices.Sort(all)
	switch all = slices.Compact(all); len(all) {
	case 0:
		return ref, nil
	case 1:
		return all[0], nil
	}
	return "", usageError{fmt.Errorf("ID %q is ambiguous: more than one %s begins with it; give more of it: %s", ref, what, strings.Join(all, ", "))}
}

var errNoMessageID = usageError{errors.New("the message ID is empty")}

// moment formats a time in the zone of this machine.
func moment(t time.Time) string { return t.Local().Format(time.DateTime) }

// moments formats a stored time, or a dash for none.
func moments(t claybot.Time) string {
	if t == 0 {
		return "-"
	}
	return moment(t.Time())
}

// count formats a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// oneLine fits a text into a column: at most 100 characters of one line.
func oneLine(s string) string {
	const most = 100
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return string(r)
}

// plain removes what a terminal would obey: control characters other than tab and line
// feed, and marks of writing direction.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 ||
			r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, s)
}
