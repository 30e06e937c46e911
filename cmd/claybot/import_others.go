package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/imports"
	"github.com/claybot/claybot/imports/openclaw"
	"github.com/claybot/claybot/imports/picoclaw"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/storage/sqlite"
)

type (
	importOpenClawCmd struct {
		Dir string `arg:"" optional:"" help:"Directory of OpenClaw. Default: ~/.openclaw."`
		adoptFlags
	}
	importPicoclawCmd struct {
		Dir string `arg:"" optional:"" help:"Directory of picoclaw. Default: ~/.picoclaw."`
		adoptFlags
	}
	adoptFlags struct {
		Apply bool   `help:"Import it. Without this flag, nothing is changed."`
		Owner string `placeholder:"OWNER" help:"Person who owns the imported notes and tasks, such as telegram/123456789. Default: the only person whom the other program allows."`
	}
)

// Run imports from OpenClaw.
func (c importOpenClawCmd) Run(e *env) error {
	return e.adopt(c.adoptFlags, c.Dir, openclaw.Default, openclaw.Read)
}

// Run imports from picoclaw.
func (c importPicoclawCmd) Run(e *env) error {
	return e.adopt(c.adoptFlags, c.Dir, picoclaw.Default, picoclaw.Read)
}

// An adoption imports what another program has. Each part is there as a whole or not at all, so after a
// crash the next one goes on.
type adoption struct {
	*env
	*imports.Find
	ctx    context.Context //nolint:containedctx // it ends with the command
	flags  adoptFlags
	config configs.Config // before the import
	owner  string         // connector/id; empty if it is unknown
	calls  *client        // nil if no daemon runs
	closed map[string]bool

	todo, there, kept, failed [][]string
}

// queryCopy reads the copy of a database of another program.
func queryCopy(path, query string) ([][]string, error) {
	return sqlite.Foreign(context.Background(), path, query)
}

// adopt reads a directory, and shows or does what is to be imported.
func (e *env) adopt(flags adoptFlags, dir, usual string, read func(string, imports.Env) (*imports.Find, error)) error {
	if dir == "" {
		dir = usual
	}
	config, _, err := e.load()
	if err != nil {
		return err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	find, err := read(dir, imports.Env{Home: home, Zone: e.hostZone(), Lookup: e.lookup, Now: time.Now(), Query: queryCopy})
	if err != nil {
		return usageError{err}
	}
	ctx, stop := interruptible()
	defer stop()
	a := &adoption{env: e, Find: find, ctx: ctx, flags: flags, config: config, owner: find.Owner(), closed: make(map[string]bool)}
	if flags.Owner != "" {
		connector, id, _ := strings.Cut(flags.Owner, "/")
		if p, ok := config.Connectors.Platforms().Of(connector); !ok || !p.Person.Looks.MatchString(id) {
			return usageError{fmt.Errorf("--owner: %.80q is not connector/id of a person, such as telegram/123456789", flags.Owner)}
		}
		a.owner = flags.Owner
	}
	if err := a.head(); err != nil {
		return err
	}
	f, err := e.configFile()
	if err != nil {
		return err
	}
	defer f.unlock()
	outcome, err := a.settings(f)
	if err == nil {
		err = a.things()
	}
	return errors.Join(err, a.report(f, outcome))
}

// head says what was read.
func (a *adoption) head() error {
	text := fmt.Sprintf("%s in %s", a.Program, a.Dir)
	if a.Workspace != "" && filepath.Dir(a.Workspace) != a.Dir {
		text += ", workspace " + a.Workspace
	}
	return a.text(text + "\n")
}

// report lists what was done or is to be done, what stays, and how to go on.
func (a *adoption) report(f *configFile, outcome string) error {
	left := make([][]string, len(a.Left))
	for i, x := range a.Left {
		left[i] = []string{x.What, x.Why}
	}
	did := "Imported"
	if !a.flags.Apply {
		did, left, a.failed = "To import", append(left, a.failed...), nil
	}
	for _, part := range []struct {
		title string
		rows  [][]string
	}{{did, a.todo}, {"There already", a.there}, {"Kept as it is in claybot", a.kept}, {"Not imported", left}, {"Failed", a.failed}} {
		if len(part.rows) == 0 {
			continue
		}
		for i, row := range part.rows {
			part.rows[i] = []string{"  " + reported(row[0], 100), reported(row[1], 10_000)}
		}
		if err := errors.Join(a.text("\n"+part.title+":\n"), a.table(part.rows)); err != nil {
			return err
		}
	}
	if err := a.text("\n" + a.next(f, outcome)); err != nil || len(a.failed) == 0 {
		return err
	}
	fmt.Fprintln(a.err, "claybot: some parts were not imported; what is done stays. Import again to go on.")
	return errSilent
}

// reported is a text of the report: on one line, and without what may be a secret. Names may hold them.
func reported(text string, limit int) string {
	text, _ = platforms.MaskSecrets(text)
	return connectors.OneLine(text, limit)
}

// next says how to go on.
func (a *adoption) next(f *configFile, outcome string) string {
	switch {
	case len(a.todo) == 0:
		return "There is nothing to import.\n"
	case !a.flags.Apply && a.calls == nil:
		return fmt.Sprintf("Nothing was changed. Notes, tasks and the heartbeat that claybot has already stay as they are. Import it with: claybot import %s %s --apply\n", a.Slug, nodes.ShellWord(a.Dir))
	case !a.flags.Apply:
		return fmt.Sprintf("Nothing was changed. Import it with: claybot import %s %s --apply\n", a.Slug, nodes.ShellWord(a.Dir))
	}
	text := outcome
	if outcome != "" {
		text = fmt.Sprintf("The settings are in %s; claybot config history lists the changes, and claybot config revert undoes one. %s", f.path, outcome)
	}
	if len(a.Accounts) > 0 {
		text += fmt.Sprintf("Stop %s before claybot answers: two programs must not share a bot.\n", a.Program)
	}
	return text
}

// hostZone is the zone of this machine, by its IANA name; UTC if it has none.
func (e *env) hostZone() string {
	zone, _ := e.lookup("TZ")
	zone = strings.TrimPrefix(zone, ":")
	if zone == "" {
		link, _ := os.Readlink("/etc/localtime")
		_, zone, _ = strings.Cut(link, "zoneinfo/")
	}
	if _, err := time.LoadLocation(zone); err != nil || zone == "" || strings.HasPrefix(zone, "/") {
		return "UTC"
	}
	return zone
}

// connected returns the daemon, one that runs or, to import, one inside this process whose bots and
// agents are stopped.
func (a *adoption) connected() (stop func() error, err error) {
	stop = func() error { return nil }
	config, _, err := a.load() // with what was imported
	if err != nil {
		return stop, err
	}
	a.calls, err = dial(config.DataDir)
	if !errors.Is(err, api.ErrNoDaemon) {
		return stop, err
	}
	if a.calls = nil; !a.flags.Apply {
		return stop, nil
	}
	var held []string
	for _, i := range config.Connectors.Instances() {
		held = append(held, i.Name)
	}
	config.HTTP.Addr, config.Tools.MCP, config.Node.MaxRuns = configs.Off, nil, 0
	if a.calls, stop, err = a.insideHolding(a.ctx, config, held); err != nil {
		return func() error { return nil }, err
	}
	return stop, a.awake(config)
}

// awake waits until a daemon that has just started takes calls about tasks.
func (a *adoption) awake(config configs.Config) error {
	ctx, cancel := context.WithTimeout(a.ctx, startTime)
	defer cancel()
	for _, of := range []struct {
		path string
		on   bool
	}{{"/cron", config.Schedule.Cron.Enabled}, {"/heartbeat", config.Schedule.Heartbeat.Enabled}} {
		for of.on {
			err := a.calls.call(ctx, "GET", of.path, nil, nil)
			if err == nil {
				break
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return err
			}
		}
	}
	return nil
}
