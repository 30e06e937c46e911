package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/postgres"
)

type exportCmd struct {
	Agent string `placeholder:"ID" help:"ID of the only agent to export: its descriptor.json, state.json, history.jsonl and files. With a database, cluster members may keep running."`
	Dir   string `arg:"" help:"Target directory; must be empty or not exist."`
}

// Run copies the configured store into an empty data directory.
func (c exportCmd) Run(e *env) error {
	conf, _, err := e.load()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	if c.Agent != "" {
		return c.agent(ctx, e, conf)
	}
	if err := apart(c.Dir, conf); err != nil {
		return err
	}
	from, err := openSource(ctx, conf, false)
	if err != nil {
		return err
	}
	defer from.close()
	to, err := createDirectory(ctx, c.Dir)
	if err != nil {
		return err
	}
	defer to.close()
	if err := e.carry(ctx, from, to); err != nil {
		return fmt.Errorf("export: %w; %s is incomplete: remove it and export again", err, c.Dir)
	}
	_, err = fmt.Fprintf(e.out, "Exported to %s, a complete data directory. Start claybot with --data-dir, or import it into another store: claybot import %s\n", c.Dir, c.Dir)
	return err
}

// apart refuses to copy the data directory onto or out of itself.
func apart(dir string, conf configs.Config) error {
	if conf.Storage.Shared() {
		return nil
	}
	a, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	b, err := filepath.Abs(conf.DataDir)
	if err != nil {
		return err
	}
	if a == b || strings.HasPrefix(a, b+string(filepath.Separator)) {
		return usageError{fmt.Errorf("%s is the configured data directory, or inside it; name another one", dir)}
	}
	return nil
}

// agent writes the files of one agent.
func (c exportCmd) agent(ctx context.Context, e *env, conf configs.Config) error {
	if err := claybot.AgentID(c.Agent).Validate(); err != nil {
		return usageError{err}
	}
	from, err := openSource(ctx, conf, true)
	if err != nil {
		return err
	}
	defer from.close()
	entries, err := os.ReadDir(c.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.MkdirAll(c.Dir, 0o700)
	case err == nil && len(entries) > 0:
		err = configError{fmt.Errorf("%s is not empty; name an empty directory, or one that does not exist", c.Dir)}
	}
	if err != nil {
		return err
	}
	err = files.WriteAgent(ctx, filepath.Clean(c.Dir), from, c.Agent)
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("no agent %s; claybot agents lists them", c.Agent)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "Exported the files of agent %s to %s.\n", c.Agent, c.Dir)
	return err
}

// A carrier is a store that is being copied. finish makes a copy durable; close releases it,
// finished or not, and may be called again.
type carrier struct {
	storage.Portable
	finish func(ctx context.Context) error
	close  func()
}

// openSource opens the configured store to be read.
func openSource(ctx context.Context, conf configs.Config, live bool) (*carrier, error) {
	if !conf.Storage.Shared() {
		return openDirectory(ctx, conf.DataDir)
	}
	pc, err := databaseConfig(ctx, conf)
	if err != nil {
		return nil, err
	}
	a, err := postgres.OpenArchive(ctx, pc, live)
	if err != nil {
		return nil, databaseError(err)
	}
	return &carrier{Portable: a, close: func() { _ = a.Close(ctx) }}, nil // nothing was written
}

// A heldError reports a database that cluster members use. It is ErrLocked without the words
// about a data directory.
type heldError struct{ error }

func (e heldError) Unwrap() error { return e.error }

// Is reports that it is storage.ErrLocked.
func (e heldError) Is(target error) bool { return target == storage.ErrLocked } //nolint:errorlint // identity is meant

// databaseError gives an error of opening a database its exit code.
func databaseError(err error) error {
	if errors.Is(err, postgres.ErrInUse) {
		return heldError{err}
	}
	if setup := (*postgres.SetupError)(nil); errors.As(err, &setup) {
		return configError{err}
	}
	return err
}

// carry copies all rows, prints what it copied, and makes the copy durable.
func (e *env) carry(ctx context.Context, from, to *carrier) error {
	var all []storage.Copied
	err := storage.Copy(ctx, from, to, func(c storage.Copied) { all = append(all, c) })
	if err == nil {
		err = to.finish(ctx)
	}
	if ctx.Err() != nil && err != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TABLE\tROWS\tCHECKSUM\tDAMAGED")
	for _, c := range all {
		damaged := "-"
		if c.Broken > 0 {
			damaged = strconv.FormatInt(c.Broken, 10)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", c.Table, c.Rows, c.Sum, damaged)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(e.out, "Both sides have the same rows and checksums.")
	for _, c := range all {
		if c.Broken > 0 {
			fmt.Fprintf(e.out, "Copied damaged rows unchanged: %s: %s\n", c.Table, plain(strings.Join(c.Damaged, "; ")))
		}
	}
	remarks(e.out, from.Remarks())
	remarks(e.out, to.Remarks())
	return nil
}

func remarks(w io.Writer, all []string) {
	for _, r := range all {
		fmt.Fprintln(w, "Note:", plain(r))
	}
}
