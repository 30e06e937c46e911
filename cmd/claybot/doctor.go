package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/web"
)

// doctorTime bounds each check.
const doctorTime = 2 * time.Minute

type doctorCmd struct {
	JSON   bool `name:"json" help:"Print JSON."`
	Online bool `help:"Ask the platforms, the model and the MCP servers too, with the configured credentials; takes 10 seconds at most."`
	Fix    bool `help:"Mend what is safe to mend and can be undone; say what was done."`
}

// A doctor diagnoses an installation, with a daemon or without. It removes what it writes. No
// finding contains a secret.
type doctor struct {
	config configs.Config
	hide   *strings.Replacer
	online bool          // it asks other services
	asking time.Duration // bounds a question to a platform
	engine string        // the address of Docker; empty: the usual one
	what   string        // the check at work
	holder string        // the process that uses the data directory
	opened bool          // the data directory exists and can be used
	unused bool          // the daemon goes on with other settings, because the file is gone or has none
	moves  *people.Moves // the new ids of chats; nil: none are known
	all    []finding
	done   []mended // before this look
}

// Run prints the findings. The exit code is 1 if there is a problem.
func (c doctorCmd) Run(e *env) error {
	d := c.look(e)
	if c.Fix {
		if done, failed := d.mend(context.Background()); len(done) > 0 {
			d = c.look(e)
			d.done, d.all = done, append(d.all, failed...)
		} else {
			d.all = append(d.all, failed...)
		}
	}
	if err := d.print(e, c.JSON); err != nil {
		return err
	}
	if d.count(postgres.LevelProblem) > 0 {
		return errSilent
	}
	return nil
}

// look examines the installation.
func (c doctorCmd) look(e *env) *doctor {
	d := &doctor{hide: strings.NewReplacer(), online: c.Online, asking: cmp.Or(e.patience, platformTime), what: "configuration"}
	d.engine, _ = e.lookup("DOCKER_HOST")
	config, warnings, err := e.load()
	if err != nil {
		code, next := configCode(err), ""
		if code == "config-missing" {
			next = e.daemonNext(code)
		}
		d.problem(code, err.Error()+" (nothing else was checked)", next)
		return d
	}
	d.config, d.hide = config, strings.NewReplacer(hidden(config)...)
	d.settings(e, warnings)
	d.examine(context.Background())
	d.once()
	return d
}

// examine runs all checks that apply. A check that returns false ends its row: those that
// follow would have nothing to look at.
func (d *doctor) examine(ctx context.Context) {
	own := []doctorCheck{{"histories", d.histories}, {"claybot.db", d.sqlite}, {"budgets", d.budgets}, {"chats", d.chats}, {"routes", d.routes}, {"outbox", d.outbox}}
	var shared []doctorCheck // of the database, whatever the data directory is
	if d.config.Storage.Shared() {
		own, shared = nil, []doctorCheck{{"database", d.database}}
	}
	d.rows(ctx, [][]doctorCheck{
		append([]doctorCheck{
			{"data directory", d.directory}, {"daemon", d.daemon}, {"last end", d.lastEnd}, {"limits", d.limits}, {"disk", d.space}, {"writing", d.writing}, {"file modes", d.modes},
		}, own...),
		shared,
		{{"copies", d.copies}},
		{{"tokens", d.tokens}},
	})
	if d.unused {
		return
	}
	d.rows(ctx, [][]doctorCheck{
		{{"files", d.files}},
		{{"web page", d.page}},
		{{"time zones", d.zones}},
		{{"cron", d.tasks}},
		{{"docker", d.docker}},
		{{"workspaces", d.local}},
		{{"skills", d.skills}},
		{{"MCP servers", d.programs}},
		{{"connectors", d.instances}},
		{{"model", d.model}},
		{{"services", d.services}},
	})
}

// A doctorCheck is a check of the doctor. It reports whether those that follow in its row have something to
// look at.
type doctorCheck struct {
	what string
	look func(context.Context) bool
}

func (d *doctor) rows(ctx context.Context, all [][]doctorCheck) {
	for _, row := range all {
		for _, c := range row {
			d.what = c.what
			limited, cancel := context.WithTimeout(ctx, doctorTime)
			more := c.look(limited)
			cancel()
			if !more {
				break
			}
		}
	}
}

// ok, warn and problem record a finding of the check at work. They return whether the
// checks of the row go on.
// next is the next step; if it is empty, the finding gets that of its code.
func (d *doctor) ok(text string) bool {
	return d.say(postgres.CodeOK, postgres.LevelOK, text, "")
}

func (d *doctor) warn(code, text, next string) bool {
	return d.say(code, postgres.LevelWarning, text, next)
}

func (d *doctor) problem(code, text, next string) bool {
	return d.say(code, postgres.LevelProblem, text, next)
}

func (d *doctor) say(code, level, text, next string) bool {
	next = cmp.Or(next, nextOf(code))
	d.all = append(d.all, finding{Finding: postgres.Finding{What: d.what, Level: level, Code: code, Text: d.hide.Replace(text), Next: d.hide.Replace(next)}})
	return true
}

// advice records a problem whose sentence has its next step after the last colon.
func (d *doctor) advice(code string, err error) bool {
	text, next := advised(err)
	return d.problem(code, text, next)
}

// advised returns the cause and the next step of an error whose sentence has it after the last colon.
func advised(err error) (text, next string) {
	text = err.Error()
	if i := strings.LastIndex(text, ": "); i > 0 {
		text, next = text[:i], text[i+2:]
	}
	if i := strings.LastIndex(text, "; "); i > 0 && strings.HasSuffix(text, "run") {
		text, next = text[:i], text[i+2:]+": "+next
	}
	return text, next
}

func (d *doctor) count(level string) (n int) {
	for _, f := range d.all {
		if f.Level == level {
			n++
		}
	}
	return n
}

func (d *doctor) print(e *env, asJSON bool) error {
	if asJSON {
		out := map[string]any{"findings": d.all}
		if len(d.done) > 0 {
			out["fixed"] = d.done
		}
		return e.printJSON(out)
	}
	rows := [][]string{{"", "WHAT", "FINDING"}}
	for _, m := range d.done {
		rows = append(rows, []string{"fixed", m.What, m.Text})
	}
	for _, f := range d.all {
		rows = append(rows, []string{f.Level, f.What, strings.Join(strings.Fields(f.Text), " ")})
		if f.Next != "" {
			rows = append(rows, []string{"", strings.TrimPrefix(f.Code, postgres.CodeOK), "→ " + strings.Join(strings.Fields(f.Next), " ")})
		}
	}
	if err := e.table(rows); err != nil {
		return err
	}
	problems, warnings := d.count(postgres.LevelProblem), d.count(postgres.LevelWarning)
	verdict := "No problems found."
	if problems+warnings > 0 {
		verdict = count(problems, "problem") + ", " + count(warnings, "warning") + "."
	}
	_, err := fmt.Fprintf(e.out, "\n%s\n", verdict)
	return err
}

// settings reports which configuration was read, and its warnings.
func (d *doctor) settings(e *env, warnings []configs.Warning) {
	switch {
	case len(warnings) > 0:
	case d.config.Source.File == "":
		d.ok("no configuration file; using the defaults and the environment")
	default:
		d.ok("read " + d.config.Source.File)
	}
	for _, w := range warnings {
		d.say(w.Code(), levelOf(w.Code(), w.Off), w.String(), w.Next)
		if do := e.renaming(w); do != nil {
			d.offer(do)
		}
	}
	if d.what = "web page"; d.config.NamelessProxy() {
		d.warn("proxy-without-host", "http.trusted_proxies is set and http_hosts is not: requests by the host name of the proxy are refused", "add the name to http_hosts (CLAYBOT_HTTP_HOSTS)")
	}
	if err := web.Guarded(d.config.HTTP.Addr, d.config.HTTP.Guard.TLSCert != "" || d.config.HTTP.Guard.Insecure || len(d.config.HTTP.Guard.Proxies) > 0); err != nil {
		text, next, _ := strings.Cut(err.Error(), "; ")
		d.problem("http-exposed", text, next)
	}
	if d.what = "access"; d.config.Access.Mode == configs.AccessOpen {
		d.warn("access-open", "access is open: anyone who finds the bot can use it and spend your money", restrictsAccess(d.config))
		if d.config.Limits.RunsPerMinute == 0 {
			d.warn("access-unlimited", "access is open, and nothing limits how many messages a person may send", fmt.Sprintf("set limits.runs_per_minute to %d in the configuration", configs.AdvisedRunsPerMinute))
		}
	}
}

// page checks whether the page can listen at its address, unless a daemon does.
func (d *doctor) page(ctx context.Context) bool {
	if addr := d.config.HTTP.Addr; d.holder == "" && addr != configs.Off {
		if err := web.Listenable(ctx, addr, addrSetting(d.config)); err != nil {
			text, next, _ := strings.Cut(err.Error(), "; ")
			d.problem("http-unusable", text, next)
		}
	}
	return true
}

// addrSetting is how the operator has set the address of the page.
func addrSetting(c configs.Config) string {
	const key = "http.addr"
	for _, v := range c.Value(key) {
		switch {
		case v.Origin == configs.OriginDefault:
		case strings.HasPrefix(v.Origin, c.Source.File+":"):
			return key
		default:
			return v.Origin // a variable or a flag
		}
	}
	return web.SettingAddr
}

// tasks checks the files of the tasks of a data directory.
func (d *doctor) tasks(context.Context) bool {
	if !d.opened || d.config.Storage.Shared() || !d.config.Schedule.Cron.Enabled {
		return true
	}
	all, err := cron.Examine(filepath.Join(d.config.DataDir, cron.Layout.Folder), d.config.Schedule.Cron.Zone, func(connector string) bool {
		_, known := d.config.Connectors.Instance(connector)
		return known || slices.Contains([]string{"terminal", "web"}, connector)
	})
	if err != nil {
		return d.warn("record-unreadable", "cannot read the tasks: "+reason(err), "")
	}
	for _, p := range all {
		d.warn("task-wrong", problemLine(p), "correct the file, or run: claybot cron edit TASK")
	}
	return true
}

// zones checks that this machine knows the time zones of schedules.
func (d *doctor) zones(context.Context) bool {
	said := zonesOf(d.config)
	for _, zone := range said {
		if code, text, next := unknownZone(zone); code != postgres.CodeOK {
			return d.problem(code, text, next)
		}
	}
	if len(said) == 0 {
		return true
	}
	now := time.Now().In(cmp.Or(d.config.Schedule.Cron.Zone, d.config.Schedule.Heartbeat.Zone))
	return d.ok("schedules use " + strings.Join(said, " and ") + "; the time there is " + now.Format("15:04 MST"))
}
