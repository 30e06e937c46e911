package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/web"
)

// lastFirings is how many of a task's firings `cron show` shows.
const lastFirings = 10

type cronCmd struct {
	List    cronListCmd    `cmd:"" default:"withargs" help:"List the tasks and any unreadable task files."`
	Show    cronShowCmd    `cmd:"" help:"Show a task, its next runs and its recent results."`
	Add     cronAddCmd     `cmd:"" help:"Create a task."`
	Edit    cronEditCmd    `cmd:"" help:"Change a task."`
	Enable  cronEnableCmd  `cmd:"" help:"Enable a task."`
	Disable cronDisableCmd `cmd:"" help:"Disable a task."`
	Run     cronRunCmd     `cmd:"" help:"Run a task now, outside its schedule."`
	Delete  cronDeleteCmd  `cmd:"" help:"Delete a task; its folder moves to .done."`
}

// A taskRef names a task of the daemon.
type taskRef struct {
	Ref string `arg:"" help:"Slug or uid of the task, as listed by cron."`
}

type (
	cronListCmd struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	cronShowCmd struct {
		taskRef
		JSON bool `name:"json" help:"Print JSON."`
	}
	cronAddCmd struct {
		Name        string `required:"" help:"Name of the task."`
		Description string `help:"Description of the task."`
		Schedule    string `xor:"when" required:"" placeholder:"CRON" help:"Cron expression: minute hour day month weekday, or a shorthand such as @daily."`
		Every       string `xor:"when" required:"" placeholder:"DURATION" help:"Interval between runs, such as 90m or 12h."`
		At          string `xor:"when" required:"" placeholder:"TIME" help:"Time of a single run, such as 2027-01-31T09:00:00+01:00."`
		Timezone    string `placeholder:"ZONE" help:"Time zone of the schedule, such as Europe/Berlin. Default: the configured time zone."`
		Route       string `placeholder:"PLACE" help:"Route of the replies: connector/channel, agent:ID, or none. Default: none."`
		Misfire     string `placeholder:"POLICY" help:"Policy for a missed run: skip, run_once, or run_if_within=DURATION."`
		Once        bool   `help:"Delete the task after its first run."`
		Retries     int    `placeholder:"N" help:"Number of retries after a failed run."`
		DryRun      bool   `help:"Print the next runs without saving the task."`
		JSON        bool   `name:"json" help:"Print JSON."`
		Prompt      string `arg:"" help:"Prompt of the agent for each run."`
	}
	cronEditCmd struct {
		taskRef
		Name        *string `help:"Name of the task."`
		Description *string `help:"Description of the task."`
		Schedule    *string `xor:"when" placeholder:"CRON" help:"Cron expression: minute hour day month weekday, or a shorthand such as @daily."`
		Every       *string `xor:"when" placeholder:"DURATION" help:"Interval between runs, such as 90m or 12h."`
		At          *string `xor:"when" placeholder:"TIME" help:"Time of a single run, such as 2027-01-31T09:00:00+01:00."`
		Timezone    *string `placeholder:"ZONE" help:"Time zone of the schedule, such as Europe/Berlin."`
		Route       *string `placeholder:"PLACE" help:"Route of the replies: connector/channel, agent:ID, or none."`
		Misfire     *string `placeholder:"POLICY" help:"Policy for a missed run: skip, run_once, or run_if_within=DURATION."`
		Once        *bool   `negatable:"" help:"Delete the task after its first run, or keep it."`
		Retries     *int    `placeholder:"N" help:"Number of retries after a failed run."`
		Prompt      *string `help:"Prompt of the agent for each run."`
	}
	cronEnableCmd  struct{ taskRef }
	cronDisableCmd struct{ taskRef }
	cronRunCmd     struct{ taskRef }
	cronDeleteCmd  struct{ taskRef }
)

// Run lists the tasks.
func (c cronListCmd) Run(e *env) error {
	return show(e, c.JSON, to("/cron"), func(list web.TaskList) error {
		if len(list.Tasks) == 0 {
			if err := e.text("No tasks; create one with: claybot cron add\n"); err != nil {
				return err
			}
		} else if err := e.table(taskTable(list.Tasks)); err != nil {
			return err
		}
		return e.problems(list.Problems)
	})
}

func taskTable(all []connectors.Task) [][]string {
	rows := [][]string{{"SLUG", "NAME", "SCHEDULE", "ZONE", "NEXT", "LAST"}}
	for _, t := range all {
		rows = append(rows, []string{t.Slug, oneLine(t.Name), timing(t.TaskSpec), cmp.Or(t.Timezone, "-"), next(t), lastFiring(t)})
	}
	return rows
}

// timing says when a task fires, in one phrase.
func timing(t connectors.TaskSpec) string {
	switch {
	case t.Every != "":
		return "every " + t.Every
	case t.At != "":
		return "at " + t.At
	}
	return cmp.Or(t.Schedule, "-")
}

// next says when a task fires next, or why it does not.
func next(t connectors.Task) string {
	switch {
	case !t.Enabled:
		return "off"
	case t.Paused != "":
		return "paused: " + oneLine(t.Paused)
	case len(t.Next) == 0:
		return "never"
	}
	return t.Next[0].Format(time.DateTime) // in the zone of the task
}

func lastFiring(t connectors.Task) string {
	if t.Last == nil {
		return "never"
	}
	return t.Last.State + " " + moment(t.Last.Planned)
}

// Run shows a task.
func (c cronShowCmd) Run(e *env) error {
	ledger, err := ask[web.LedgerPage](e, "GET", at(taskPath(c.Ref, "ledger")).with(url.Values{"limit": {fmt.Sprint(lastFirings)}}), nil)
	if err != nil {
		return err
	}
	list, err := ask[web.TaskList](e, "GET", to("/cron"), nil)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list.Tasks, func(t connectors.Task) bool { return t.Slug == c.Ref })
	if i < 0 {
		i = slices.IndexFunc(list.Tasks, func(t connectors.Task) bool { return t.UID == c.Ref })
	}
	if i < 0 {
		return errors.New("the task was just deleted")
	}
	task := list.Tasks[i]
	if c.JSON {
		return e.printJSON(struct {
			Task connectors.Task `json:"task"`
			web.LedgerPage
		}{task, ledger})
	}
	if err := e.table(taskFields(task)); err != nil {
		return err
	}
	if err := e.text("\n" + nextFive(task.Next)); err != nil || len(ledger.Firings) == 0 {
		return err
	}
	if err := e.text("\n"); err != nil {
		return err
	}
	return e.table(firingTable(ledger.Firings))
}

// taskFields lists what is set in a task.
func taskFields(t connectors.Task) [][]string {
	enabled := "yes"
	if !t.Enabled {
		enabled = "no"
	}
	rows := [][]string{{"slug", t.Slug}, {"uid", t.UID}, {"name", t.Name}}
	for _, f := range [][2]string{
		{"description", t.Description},
		{"schedule", timing(t.TaskSpec)},
		{"timezone", t.Timezone},
		{"enabled", enabled},
		{"paused", t.Paused},
		{"misfire", t.Misfire},
		{"once", positive(t.Once, "yes")},
		{"retries", positive(t.Retries > 0, fmt.Sprint(t.Retries))},
		{"owner", t.Owner},
		{"route", t.Route},
		{"agent", t.Agent},
		{"gate", t.Gate},
		{"prompt", t.Prompt},
	} {
		if f[1] != "" {
			rows = append(rows, []string{f[0], oneLine(f[1])})
		}
	}
	return rows
}

// positive is s when ok, else nothing.
func positive(ok bool, s string) string {
	if !ok {
		return ""
	}
	return s
}

// nextFive lists instants, each in its zone.
func nextFive(all []time.Time) string {
	if len(all) == 0 {
		return "It does not fire again.\n"
	}
	var b strings.Builder
	b.WriteString("It fires next at\n")
	for _, t := range all {
		b.WriteString("  " + t.Format("Mon 2006-01-02 15:04:05 MST") + "\n")
	}
	return b.String()
}

func firingTable(all []connectors.Firing) [][]string {
	rows := [][]string{{"PLANNED", "TRY", "STATE", "STARTED", "TOOK", "COST", "RUN", "REASON"}}
	for _, f := range all {
		started, took, cost := "-", "-", "-"
		if !f.Started.IsZero() {
			started = moment(f.Started)
		}
		if !f.Started.IsZero() && !f.Ended.IsZero() {
			took = f.Ended.Sub(f.Started).Round(time.Second).String()
		}
		if f.Cost > 0 {
			cost = fmt.Sprintf("$%.4f", float64(f.Cost)/1e6)
		}
		planned := moment(f.Planned)
		if strings.HasPrefix(f.Instant, "manual/") {
			planned += " by hand"
		}
		rows = append(rows, []string{
			planned, fmt.Sprint(max(f.Attempt, 1)), f.State, started, took, cost, cmp.Or(string(f.Run), "-"), cmp.Or(oneLine(f.Reason), "-"),
		})
	}
	return rows
}

// Run makes a task, or shows when it would fire.
func (c cronAddCmd) Run(e *env) error {
	in := web.TaskRequest{TaskSpec: connectors.TaskSpec{
		Name: c.Name, Description: c.Description, Schedule: c.Schedule, Every: c.Every, At: c.At, Timezone: c.Timezone,
		Prompt: c.Prompt, Misfire: c.Misfire, Once: c.Once, Retries: c.Retries, Route: c.Route,
	}, DryRun: c.DryRun}
	var out connectors.Task // of a dry run, only when it fires
	if err := e.ask("POST", "/cron", in, &out); err != nil {
		return err
	}
	switch {
	case c.JSON && c.DryRun:
		return e.printJSON(map[string]any{"next": out.Next})
	case c.JSON:
		return e.printJSON(out)
	case c.DryRun:
		return e.text("Nothing is saved. " + nextFive(out.Next) + sentTo(c.Route, "SLUG"))
	}
	return e.text(fmt.Sprintf("The task %s is saved. %s", out.Slug, nextFive(out.Next)) + sentTo(out.Route, out.Slug))
}

// sentTo says where the answers of a task with a route go.
func sentTo(route, slug string) string {
	switch route {
	case "":
		return fmt.Sprintf("Its answers are sent to no chat: read them with `claybot cron show %[1]s`, or set a route with `claybot cron edit %[1]s --route telegram/123456789`.\n", slug)
	case "none":
		return "Its answers are sent to no chat.\n"
	}
	return "Its answers are sent to " + route + ".\n"
}

// Run changes a task.
func (c cronEditCmd) Run(e *env) error {
	in := make(map[string]any)
	set(in, "name", c.Name)
	set(in, "description", c.Description)
	set(in, "timezone", c.Timezone)
	set(in, "prompt", c.Prompt)
	set(in, "misfire", c.Misfire)
	set(in, "route", c.Route)
	set(in, "once", c.Once)
	set(in, "retries", c.Retries)
	if c.Schedule != nil || c.Every != nil || c.At != nil { // one takes the place of the others
		in["schedule"], in["every"], in["at"] = "", "", ""
		set(in, "schedule", c.Schedule)
		set(in, "every", c.Every)
		set(in, "at", c.At)
	}
	if len(in) == 0 {
		return usageError{errors.New("nothing to change; claybot cron edit --help lists the flags")}
	}
	t, err := e.patch(c.Ref, in)
	if err != nil {
		return err
	}
	return e.text(fmt.Sprintf("The task %s is changed. %s", t.Slug, nextFive(t.Next)))
}

// set puts what is given into a change.
func set[T any](in map[string]any, name string, v *T) {
	if v != nil {
		in[name] = *v
	}
}

// patch changes a task of the daemon.
func (e *env) patch(ref string, in map[string]any) (connectors.Task, error) {
	var t connectors.Task
	path, err := taskPath(ref)
	if err != nil {
		return t, err
	}
	return t, e.ask("PATCH", path, in, &t)
}

// Run enables a task.
func (c cronEnableCmd) Run(e *env) error {
	t, err := e.patch(c.Ref, map[string]any{"enabled": true})
	if err != nil {
		return err
	}
	return e.text(fmt.Sprintf("The task %s is enabled. %s", t.Slug, nextFive(t.Next)))
}

// Run disables a task.
func (c cronDisableCmd) Run(e *env) error {
	t, err := e.patch(c.Ref, map[string]any{"enabled": false})
	if err != nil {
		return err
	}
	return e.text(fmt.Sprintf("The task %s is disabled.\n", t.Slug))
}

// Run fires a task.
func (c cronRunCmd) Run(e *env) error {
	path, err := taskPath(c.Ref, "run")
	if err != nil {
		return err
	}
	t, err := ask[connectors.Task](e, "POST", to(path+"?key="+rand.Text()), nil)
	if err != nil {
		return err
	}
	return e.text(fmt.Sprintf("The task %s fires now; see how it goes with: claybot cron show %s\n", t.Slug, t.Slug))
}

// Run takes a task away.
func (c cronDeleteCmd) Run(e *env) error {
	return e.does("DELETE", at(taskPath(c.Ref)), nil, "Task deleted; its folder is in .done.\n")
}
