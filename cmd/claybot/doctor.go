package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/storage/s3"
)

// The levels of findings are those of package postgres.
const (
	levelOK      = postgres.LevelOK
	levelWarning = postgres.LevelWarning
	levelProblem = postgres.LevelProblem
)

// doctorTime bounds each part of what the doctor does.
const doctorTime = 2 * time.Minute

type doctorCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// A doctor looks at an installation without a daemon, and keeps what it finds. What
// it writes to look it removes again. No finding holds a secret.
type doctor struct {
	config configs.Config
	hide   *strings.Replacer
	all    []postgres.Finding
}

// Run prints what it finds. The exit code is 1 when something is a problem.
func (c doctorCmd) Run(e *env) error {
	d := &doctor{hide: strings.NewReplacer()}
	if config, warnings, err := e.load(); err != nil {
		d.say("configuration", levelProblem, err.Error(), "correct it; nothing else was looked at")
	} else {
		d.config, d.hide = config, strings.NewReplacer(hidden(config)...)
		d.settings(warnings)
		d.examine(context.Background())
	}
	if err := d.print(e, c.JSON); err != nil {
		return err
	}
	if d.count(levelProblem) > 0 {
		return errSilent
	}
	return nil
}

// examine looks at everything that the configuration names.
func (d *doctor) examine(ctx context.Context) {
	for _, look := range []func(context.Context){
		d.directory, d.database, d.files, d.zones, d.places, d.credentials,
	} {
		limited, cancel := context.WithTimeout(ctx, doctorTime)
		look(limited)
		cancel()
	}
}

// say keeps a finding. There should be no secret in it; if there is, it is taken out.
func (d *doctor) say(what, level, text, next string) {
	d.all = append(d.all, postgres.Finding{What: what, Level: level, Text: d.hide.Replace(text), Next: d.hide.Replace(next)})
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
		return e.printJSON(map[string]any{"findings": d.all})
	}
	rows := [][]string{{"", "WHAT", "FINDING"}}
	for _, f := range d.all {
		rows = append(rows, []string{f.Level, f.What, strings.Join(strings.Fields(f.Text), " ")})
		if f.Next != "" {
			rows = append(rows, []string{"", "", "→ " + strings.Join(strings.Fields(f.Next), " ")})
		}
	}
	if err := e.table(rows); err != nil {
		return err
	}
	problems, warnings := d.count(levelProblem), d.count(levelWarning)
	verdict := "Nothing is wrong."
	if problems+warnings > 0 {
		verdict = count(problems, "problem") + ", " + count(warnings, "warning") + "."
	}
	_, err := fmt.Fprintf(e.out, "\n%s\n", verdict)
	return err
}

// settings tells of what was read, and what was not understood.
func (d *doctor) settings(warnings []configs.Warning) {
	from := "there is no file; the defaults and the environment hold"
	if d.config.Source.File != "" {
		from = d.config.Source.File + " was read"
	}
	if len(warnings) == 0 {
		d.say("configuration", levelOK, from, "")
	}
	for _, w := range warnings {
		level := levelWarning
		if w.Off {
			level = levelProblem
		}
		d.say("configuration", level, w.String(), cmp.Or(w.Next, "correct it; docs/configuration.md lists all keys"))
	}
	if d.config.NamelessProxy() {
		d.say("web page", levelWarning, "http.trusted_proxies is set and http_hosts is not: requests by the host name of the proxy are refused", "add the name to http_hosts (CLAYBOT_HTTP_HOSTS)")
	}
	if d.config.Access.Mode == configs.AccessOpen {
		d.say("access", levelWarning, "everybody who finds the bot can use it and spend your money", "set CLAYBOT_ACCESS=pairing")
	}
}

// database looks at a database that nodes share.
func (d *doctor) database(ctx context.Context) {
	s := d.config.Storage
	if !s.Shared() {
		return
	}
	if s.URL.Value() == "" {
		d.say("database", levelProblem, fmt.Sprintf("the storage URL is named (%s) and cannot be read", s.URL), "give it a value, or leave storage.url out to use the data directory")
		return
	}
	for _, f := range postgres.Examine(ctx, postgres.Config{URL: s.URL.Value(), Pooler: s.Pooler, NoListen: !s.Listen, Conns: s.Connections}) {
		d.say(f.What, f.Level, f.Text, f.Next)
	}
}

// files looks at the store of files, if there is one.
func (d *doctor) files(ctx context.Context) {
	f := d.config.Storage.Files
	switch {
	case f.Fault != "":
		d.say("files", levelProblem, f.Fault, "")
		return
	case !f.Wanted():
		return
	case !d.config.Storage.Shared():
		d.say("files", levelWarning, "files.url is not used: files are in the data directory as long as there is no database", "set storage.url, or leave files.url out")
		return
	}
	store, err := s3.New(s3.Config{
		Bucket: f.Bucket, Prefix: f.Prefix, Endpoint: f.Endpoint, Region: f.Region, Addressing: f.Addressing,
		AccessKey: f.AccessKey.Value(), SecretKey: f.SecretKey.Value(), SessionToken: f.SessionToken.Value(),
	})
	if err == nil {
		err = store.Check(ctx)
	}
	if err != nil {
		d.advice("files", err)
		return
	}
	d.say("files", levelOK, "the bucket "+f.Bucket+" can be written, read and deleted from", "")
}

// advice is a problem whose sentence has its next step behind a colon.
func (d *doctor) advice(what string, err error) {
	text, next := err.Error(), ""
	if i := strings.LastIndex(text, ": "); i > 0 {
		text, next = text[:i], text[i+2:]
	}
	d.say(what, levelProblem, text, next)
}

// zones looks whether the zones of schedules are known.
func (d *doctor) zones(context.Context) {
	zones := []*time.Location{d.config.Schedule.Cron.Zone, d.config.Schedule.Heartbeat.Zone}
	var said []string
	for _, zone := range zones {
		if zone == nil || slices.Contains(said, zone.String()) {
			continue
		}
		said = append(said, zone.String())
		if _, err := time.LoadLocation(zone.String()); err != nil {
			d.say("time zones", levelProblem, fmt.Sprintf("the zone %s is not known on this machine", zone), "install the package tzdata, or name another zone")
			return
		}
	}
	if len(said) > 0 {
		d.say("time zones", levelOK, "schedules go by "+strings.Join(said, " and ")+"; now it is "+time.Now().In(zones[0]).Format("15:04 MST"), "")
	}
}
