package imports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors"
)

// An Env is what a directory is read with.
type Env struct {
	Home   string // that of the user, for paths that begin with ~
	Zone   string // the IANA name of the zone of this machine, for schedules without one
	Lookup func(string) (string, bool)
	Now    time.Time
	// Query returns what a query finds in a copy of an SQLite database, as text.
	Query func(path, query string) ([][]string, error)
}

// Expand returns a path with the home directory in the place of ~.
func (e Env) Expand(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return e.Home + "/" + rest
	}
	return p
}

// Secret returns a secret that is a variable, if it has a value; otherwise why not.
func (e Env) Secret(name string) (s Secret, why string) {
	if v, ok := e.Lookup(name); !ok || v == "" {
		return s, "it is the variable " + oneWord(name) + ", which is not set here; set it and import again"
	}
	return Secret{Env: name}, ""
}

// A Job is a scheduled task as the other programs have it.
type Job struct {
	ID, Name, Text string
	Kind           string // cron, every or at
	Expr, Zone     string // of cron
	Every          float64
	At             time.Time
	Once, Off      bool
	// Silent: its answers go to no chat. Otherwise they go to To on Channel; without To, to the chat of
	// the person who wrote last.
	Silent      bool
	Channel, To string
}

// maxEvery is longer than any interval that claybot takes.
const maxEvery = 1e12

// AddJob adds a task, or says why it has no place.
func (f *Find) AddJob(j Job, env Env) {
	what := "task " + shortened(j.Name, j.ID)
	t := Task{ID: j.ID, TaskSpec: connectors.TaskSpec{Name: shortened(j.Name, j.ID), Prompt: j.Text, Once: j.Once, Description: fmt.Sprintf("Imported from %s, job %s", f.Program, oneWord(j.ID))}}
	switch {
	case j.ID == "":
		f.Leave(what, "it has no id")
		return
	case slices.ContainsFunc(f.Tasks, func(x Task) bool { return x.ID == j.ID }):
		f.Leave(what, "another task has its id")
		return
	case j.Off:
		f.Leave(what, "it is switched off there")
		return
	case j.Text == "":
		f.Leave(what, "it has no text; claybot runs no commands on a schedule, only agents")
		return
	case len(j.Text) > maxText:
		f.Leave(what, fmt.Sprintf("its text has more than %d KiB", maxText>>10))
		return
	case j.Kind == "cron":
		fields := strings.Fields(j.Expr)
		if len(fields) == 6 && fields[0] == "0" { // claybot has no seconds
			fields = fields[1:]
		}
		t.Schedule, t.Timezone = strings.Join(fields, " "), j.Zone
		if t.Timezone == "" {
			t.Timezone = env.Zone
		}
		if _, err := time.LoadLocation(t.Timezone); err != nil {
			f.Leave(what, fmt.Sprintf("%q is not a time zone", oneWord(t.Timezone)))
			return
		}
	case j.Kind == "every" && j.Every >= 1000 && j.Every < maxEvery:
		t.Every = (time.Duration(j.Every) * time.Millisecond).String()
	case j.Kind == "at" && !j.At.IsZero() && j.At.Year() <= 9999:
		if !j.At.After(env.Now) {
			f.Leave(what, "its time, "+j.At.Format(time.RFC3339)+", is over")
			return
		}
		t.At = j.At.Format(time.RFC3339)
	default:
		f.Leave(what, "its schedule cannot be read")
		return
	}
	switch {
	case j.Silent:
		t.Route = "none"
	case j.To != "":
		t.Route = Route(j.Channel, j.To)
	default:
		t.Chat = true
	}
	t.Prompt = f.masked(what, t.Prompt)
	f.Tasks = append(f.Tasks, t)
}

func shortened(name, id string) string {
	name = connectors.OneLine(name, 100)
	if name == "" {
		return oneWord(id)
	}
	return name
}

// Jobs reads the list of a store of jobs, whose version is 1. The error is words for Leave.
func (d *Dir) Jobs(name string) ([]Value, error) {
	v, err := d.JSON5(name)
	if err != nil {
		return nil, err
	}
	if n := v.At("version"); n.There() && n.Text() != "1" {
		return nil, fmt.Errorf("it has version %s; claybot reads version 1", oneWord(n.Scalar()))
	}
	if list := v.At("jobs"); list.There() {
		return list.List(), nil
	}
	return v.List(), nil
}
