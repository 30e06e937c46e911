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

// lastFirings is how many runs of a task `cron show` shows.
const lastFirings = 10

type cronCmd struct {
	List    cronListCmd    `cmd:"" default:"withargs" eg:"cron" help:"List the tasks and any unreadable task files."`
	Show    cronShowCmd    `cmd:"" eg:"cron show morning-news" help:"Show a task, its next runs and its recent results."`
	Add     cronAddCmd     `cmd:"" eg:"cron add --name 'Morning news' --schedule '0 8 * * mon-fri' --route telegram/123456789 'Summarize the news.'" help:"Create a task."`
	Edit    cronEditCmd    `cmd:"" eg:"cron edit morning-news --schedule '30 7 * * mon-fri'" help:"Change a task."`
	Enable  cronEnableCmd  `cmd:"" eg:"cron enable morning-news" help:"Enable a task."`
	Disable cronDisableCmd `cmd:"" eg:"cron disable morning-news" help:"Disable a task."`
	Run     cronRunCmd     `cmd:"" eg:"cron run morning-news" help:"Run a task now, outside its schedule."`
	Delete  cronDeleteCmd  `cmd:"" eg:"cron delete morning-news" help:"Delete a task; its folder moves to .done."`
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
	return show(e, c.JSON, to("/cron"), func(out web.TaskList) error {
		err := e.list("SLUG,NAME,SCHEDULE,ZONE,NEXT,LAST", "No tasks; create one with: claybot cron add\n", each(out.Tasks, func(t connectors.Task) []string {
			last := "never"
			if t.Last != nil {
				last = t.Last.State + " " + moment(t.Last.Planned)
			}
			return []string{t.Slug, oneLine(t.Name), timing(t.TaskSpec), cmp.Or(t.Timezone, "-"), next(t), last}
		}))
		return errors.Join(err, e.problems(out.Problems))
	})
}

// timing is the schedule of a task, in one phrase.
func timing(t connectors.TaskSpec) string {
	switch {
	case t.Every != "":
		return "every " + t.Every
	case t.At != "":
		return "at " + t.At
	}
	return cmp.Or(t.Schedule, "-")
}

// next is the next run of a task, or why there is none.
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
	return e.list("PLANNED,TRY,STATE,STARTED,TOOK,COST,RUN,REASON", "", each(ledger.Firings, firingRow))
}

// taskFields lists the settings of a task.
func taskFields(t connectors.Task) [][]string {
	when := func(ok bool, s string) string {
		if !ok {
			return ""
		}
		return s
	}
	rows := [][]string{{"slug", t.Slug}, {"uid", t.UID}, {"name", t.Name}}
	for _, f := range [][2]string{
		{"description", t.Description},
		{"schedule", timing(t.TaskSpec)},
		{"timezone", t.Timezone},
		{"enabled", cmp.Or(when(t.Enabled, "yes"), "no")},
		{"paused", t.Paused},
		{"misfire", t.Misfire},
		{"once", when(t.Once, "yes")},
		{"retries", when(t.Retries > 0, fmt.Sprint(t.Retries))},
		{"owner", t.Owner},
		{"route", t.Route},
		{"agent", t.Agent},
		{"gate", t.Gate},
		{"prompt", t.Prompt},
	} {
		rows = append(rows, field(f[0], oneLine(f[1]))...)
	}
	return rows
}

// nextFive lists instants, each in its zone.
func nextFive(all []time.Time) string {
	if len(all) == 0 {
		return "It does not run again.\n"
	}
	var b strings.Builder
	b.WriteString("Next runs:\n")
	for _, t := range all {
		b.WriteString("  " + t.Format("Mon 2006-01-02 15:04:05 MST") + "\n")
	}
	return b.String()
}

func firingRow(f connectors.Firing) []string {
	started, took, spent, planned := "-", "-", "-", moment(f.Planned)
	if !f.Started.IsZero() {
		started = moment(f.Started)
		if !f.Ended.IsZero() {
			took = f.Ended.Sub(f.Started).Round(time.Second).String()
		}
	}
	if f.Cost > 0 {
		spent = dollars(f.Cost)
	}
	if strings.HasPrefix(f.Instant, "manual/") {
		planned += " by hand"
	}
	return []string{planned, fmt.Sprint(max(f.Attempt, 1)), f.State, started, took, spent, cmp.Or(string(f.Run), "-"), cmp.Or(oneLine(f.Reason), "-")}
}

// Run creates a task, or shows its next runs.
func (c cronAddCmd) Run(e *env) error {
	in := web.TaskRequest{TaskSpec: connectors.TaskSpec{
		Name: c.Name, Description: c.Description, Schedule: c.Schedule, Every: c.Every, At: c.At, Timezone: c.Timezone,
		Prompt: c.Prompt, Misfire: c.Misfire, Once: c.Once, Retries: c.Retries, Route: c.Route,
	}, DryRun: c.DryRun}
	out, err := ask[connectors.Task](e, "POST", to("/cron"), in) // of a dry run, only its next runs
	switch {
	case err != nil:
		return err
	case c.JSON && c.DryRun:
		return e.printJSON(map[string]any{"next": out.Next})
	case c.JSON:
		return e.printJSON(out)
	case c.DryRun:
		return e.text("Nothing saved. " + nextFive(out.Next) + repliesTo(c.Route, "SLUG"))
	}
	return e.text(fmt.Sprintf("Saved the task %s. %s", out.Slug, nextFive(out.Next)) + repliesTo(out.Route, out.Slug))
}

// repliesTo says where the replies of a task go.
func repliesTo(route, slug string) string {
	switch route {
	case "":
		return fmt.Sprintf("Its replies go to no chat: read them with `claybot cron show %[1]s`, or set a route with `claybot cron edit %[1]s --route telegram/123456789`.\n", slug)
	case "none":
		return "Its replies go to no chat.\n"
	}
	return "Its replies go to " + route + ".\n"
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
	if c.Schedule != nil || c.Every != nil || c.At != nil { // one replaces the others
		in["schedule"], in["every"], in["at"] = "", "", ""
		set(in, "schedule", c.Schedule)
		set(in, "every", c.Every)
		set(in, "at", c.At)
	}
	if len(in) == 0 {
		return usageError{errors.New("nothing to change; claybot cron edit --help lists the flags")}
	}
	return e.patch(c.Ref, in, "Changed")
}

// set adds a value to a change, if it is given.
func set[T any](in map[string]any, name string, v *T) {
	if v != nil {
		in[name] = *v
	}
}

// patch changes a task and prints what it did and the next runs, if there are any.
func (e *env) patch(ref string, in map[string]any, did string) error {
	return reply(e, "PATCH", at(taskPath(ref)), in, func(t connectors.Task) string {
		if !t.Enabled {
			return did + " the task " + t.Slug + ".\n"
		}
		return did + " the task " + t.Slug + ". " + nextFive(t.Next)
	})
}

// Run enables a task.
func (c cronEnableCmd) Run(e *env) error {
	return e.patch(c.Ref, map[string]any{"enabled": true}, "Enabled")
}

// Run disables a task.
func (c cronDisableCmd) Run(e *env) error {
	return e.patch(c.Ref, map[string]any{"enabled": false}, "Disabled")
}

// Run runs a task.
func (c cronRunCmd) Run(e *env) error {
	r := at(taskPath(c.Ref, "run")).with(url.Values{"key": {rand.Text()}})
	return reply(e, "POST", r, nil, func(t connectors.Task) string {
		return fmt.Sprintf("Running the task %s; see the result with: claybot cron show %s\n", t.Slug, t.Slug)
	})
}

// Run deletes a task.
func (c cronDeleteCmd) Run(e *env) error {
	return e.does("DELETE", at(taskPath(c.Ref)), nil, "Task deleted; its folder is in .done.\n")
}
