// Package local keeps workspaces in folders of this machine, for development. It
// is chosen by name, never taken by itself: a command that runs here has the network
// of this machine. From the files and processes of claybot and its user it is kept by
// a user of its own where claybot is root, else by Landlock; where neither is to be had,
// it does not run unless the operator has named that. See confinement.
//
// What it does guarantee: file tools stay in the folder of the workspace; a
// command gets no variable of claybot, and on Linux cannot read them from
// claybot's process; it ends with all that it started, at its limits, when it is
// stopped and when it is done; it gains no rights by programs that give some.
//
// On Linux as root, each command has a space of processes of its own, which the
// kernel ends as a whole. Without that, what a command started is found by its
// group, its session, its parents and a mark in its environment; a process that
// leaves all four gets away. On other systems it is found by its group alone.
//
// The number of processes is a limit of the kernel for a user who is not root.
// Root's, without a user of the workspace, are only counted, four times a second, so that a fork bomb has thousands
// before it is ended.
//
// Layout, below Config.Dir:
//
//	<name>/workspace.json   whose it is, and when it was made
//	<name>/files/           the directory of the workspace, HOME of its commands
//
// Only cmd imports it.
package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/workspace"
)

// Name is the provider's word in configurations.
const Name = "local"

// The limits of a workspace whose Spec names none.
const (
	defaultMemory = 2 << 30 // bytes of data of each process
	defaultPIDs   = 256     // processes of one command
	scriptWall    = time.Hour
)

// Config says where workspaces are.
type Config struct {
	Dir string // is made when it is needed
	Log *slog.Logger
}

// A Provider keeps workspaces in folders.
type Provider struct {
	cfg  Config
	best func() confinement // that this machine has; empty: none

	users  sync.Mutex // held while a workspace gets a user
	mu     sync.Mutex
	places map[workspace.Key]*place // opened at least once
}

var _ workspace.Provider = (*Provider)(nil)

// New makes a Provider. On Linux, other processes of the same user can no longer
// read the memory and the environment of this one.
func New(cfg Config) *Provider {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := Hide(); err != nil {
		cfg.Log.Warn("commands can read the environment of claybot", "err", err)
	}
	return &Provider{cfg: cfg, best: sync.OnceValue(probe), places: make(map[workspace.Key]*place)}
}

// Name implements workspace.Provider.
func (p *Provider) Name() string { return Name }

// Check implements workspace.Provider.
func (p *Provider) Check(context.Context) error {
	if _, err := os.Stat("/bin/sh"); err != nil {
		return &workspace.Error{Code: workspace.Unavailable, Text: "there is no /bin/sh on this machine; use the provider docker", Err: err}
	}
	if err := os.MkdirAll(p.cfg.Dir, 0o700); err != nil {
		return &workspace.Error{Code: workspace.Unavailable, Text: "the folder for workspaces cannot be made; see the operator's log", Err: err}
	}
	return nil
}

type record struct {
	Key  workspace.Key `json:"key"`
	Made time.Time     `json:"made"`
	// Ready: the initial script has run. One that is not was cut off, and is made
	// anew.
	Ready bool `json:"ready"`
	// User is that of its files and commands, where it has one of its own.
	User int `json:"user,omitempty"`
}

const (
	recordName = "workspace.json"
	filesName  = "files"
)

var plain = lazyregexp.New(`[^a-z0-9]+`)

// folder is the name of the folder of a key: readable, and unlike any other.
func folder(key workspace.Key) string {
	sum := sha256.Sum256([]byte(key))
	readable := strings.Trim(plain.ReplaceAllString(strings.ToLower(string(key)), "-"), "-")
	return readable[:min(len(readable), 60)] + "-" + hex.EncodeToString(sum[:6])
}

func (p *Provider) of(key workspace.Key) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.places[key]
	if w == nil {
		base := filepath.Join(p.cfg.Dir, folder(key))
		if abs, err := filepath.Abs(base); err == nil {
			base = abs
		}
		w = &place{key: key, base: base, log: p.cfg.Log, turn: workspace.NewTurn(), running: make(map[*process]bool)}
		p.places[key] = w
	}
	return w
}

// Open implements workspace.Provider. Where a Spec asks for what a folder cannot
// give, a protection or a volume is refused; an image, CPUs and a sidecar's
// absence are not: the log tells of what is passed over.
func (p *Provider) Open(ctx context.Context, key workspace.Key, s workspace.Spec) (workspace.Workspace, error) {
	if err := p.accept(key, s); err != nil {
		return nil, err
	}
	c, err := p.confined(s)
	if err != nil {
		return nil, err
	}
	if err := p.Check(ctx); err != nil {
		return nil, err
	}
	w := p.of(key)
	if err := w.turn.Take(ctx); err != nil {
		return nil, err
	}
	defer w.turn.Give()
	v := &view{place: w, spec: s, confine: c}
	rec, err := w.load()
	if errors.Is(err, errNew) || err == nil && !rec.Ready {
		err = p.make(ctx, v)
	} else if err == nil {
		err = p.settle(w, &rec, c)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// accept refuses a Spec that a folder cannot honour.
func (p *Provider) accept(key workspace.Key, s workspace.Spec) error {
	if err := s.Check(); err != nil {
		return err
	}
	no := func(text string) error { return &workspace.Error{Code: workspace.Refused, Text: text} }
	switch {
	case key == "" || len(key) > 500:
		return no("a workspace needs a key of 1 to 500 characters")
	case s.Platform != "" && s.Platform != runtime.GOOS+"/"+runtime.GOARCH:
		return no("a local workspace has the platform of this machine, " + runtime.GOOS + "/" + runtime.GOARCH + "; leave platform out, or use the provider docker")
	case !s.Network.Web():
		return no("a local workspace has the network of this machine; say network: host-unsafe to allow that, or use the provider docker")
	case len(s.Volumes) > 0:
		return no("a local workspace has no volumes; leave them out, or use the provider docker")
	case s.Docker != "":
		return no("a local workspace has no Docker engine of its own; leave docker out, or use the provider docker")
	case s.Runtime != "":
		return no("a local workspace has no runtime; leave it out, or use the provider docker")
	case s.User != "" && s.User != fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()):
		return no("claybot chooses the user of a local workspace; leave user out, or use the provider docker")
	case len(s.Unsafe) > 1 || len(s.Unsafe) == 1 && s.Unsafe[0] != Unconfined:
		return no("the one protection that a local workspace can give up is " + Unconfined + "; leave out the rest of unsafe")
	}
	if s.Image != "" || s.CPUs != 0 {
		p.cfg.Log.Warn("local workspace ignores settings", "key", key, "image", s.Image, "cpus", s.CPUs)
	}
	return nil
}

// make makes the place anew and prepares it. What was in it is lost, so it is for
// unused places.
func (p *Provider) make(ctx context.Context, v *view) error {
	w, s := v.place, v.spec
	rec := record{Key: w.key, Made: time.Now().UTC()}
	failed := func(err error) error {
		return &workspace.Error{Code: workspace.Unavailable, Text: "the folder of the workspace cannot be made; see the operator's log", Err: err}
	}
	if err := os.RemoveAll(w.base); err != nil {
		return failed(err)
	}
	if err := os.MkdirAll(filepath.Join(w.base, filesName), 0o700); err != nil {
		return failed(err)
	}
	if err := w.save(rec); err != nil {
		return failed(err)
	}
	if err := p.settle(w, &rec, v.confine); err != nil {
		return err
	}
	if s.InitialScript != "" {
		r, err := v.Exec(ctx, workspace.Command{Shell: s.InitialScript, Wall: scriptWall})
		if err == nil && r.ExitCode != 0 {
			err = &workspace.Error{
				Code: workspace.Failed, Output: r.Output,
				Text: fmt.Sprintf("the initial script of the workspace ended with exit code %d", r.ExitCode),
			}
		}
		if err != nil {
			return errors.Join(err, os.RemoveAll(w.base))
		}
	}
	rec.Ready = true
	if err := w.save(rec); err != nil {
		return failed(err)
	}
	return nil
}

// errNew is what load says of a place that has no record: nothing was made there.
var errNew = errors.New("there is no workspace yet")

// load reads the record of a place; errNew. Any other error, of code Unavailable,
// says nothing of the files: they may be all that is left.
func (w *place) load() (rec record, err error) {
	damaged := func(name string, err error) (record, error) {
		return record{}, &workspace.Error{
			Code: workspace.Unavailable, Err: err,
			Text: fmt.Sprintf("%s in the folder for workspaces cannot be used; an operator must mend it, or remove the workspace with its data", filepath.Join(filepath.Base(w.base), name)),
		}
	}
	b, err := os.ReadFile(filepath.Join(w.base, recordName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return rec, errNew
	case err != nil:
		return damaged(recordName, err)
	}
	if err := json.Unmarshal(b, &rec); err != nil {
		return damaged(recordName, err)
	}
	if folder(rec.Key) != filepath.Base(w.base) {
		return damaged(recordName, fmt.Errorf("it is of %.100q", rec.Key))
	}
	if _, err := os.Stat(filepath.Join(w.base, filesName)); err != nil {
		return damaged(filesName, err)
	}
	return rec, nil
}

// save writes the record; it is durable then, with the folder that it is in.
func (w *place) save(rec record) error {
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	fresh := filepath.Join(w.base, recordName+".new")
	if err := writeSynced(fresh, b); err != nil {
		return err
	}
	if err := os.Rename(fresh, filepath.Join(w.base, recordName)); err != nil {
		return err
	}
	return errors.Join(syncDir(w.base), syncDir(filepath.Dir(w.base)))
}

func writeSynced(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Remove implements workspace.Provider. Commands that run are ended.
func (p *Provider) Remove(ctx context.Context, key workspace.Key, data bool) error {
	w := p.of(key)
	if err := w.turn.Take(ctx); err != nil {
		return err
	}
	defer w.turn.Give()
	w.endAll()
	if !data {
		return nil
	}
	if err := removeAll(w.base); err != nil {
		return &workspace.Error{Code: workspace.Failed, Text: "the folder of the workspace cannot be removed; see the operator's log", Err: err}
	}
	return nil
}

// removeAll removes a folder, also where a command took the right to write.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(name, 0o700) // #nosec: what fails here fails again below
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// List implements workspace.Provider.
func (p *Provider) List(ctx context.Context) ([]workspace.Info, error) {
	entries, err := os.ReadDir(p.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &workspace.Error{Code: workspace.Failed, Text: "the workspaces cannot be listed; see the operator's log", Err: err}
	}
	var list []workspace.Info
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		one := &place{base: filepath.Join(p.cfg.Dir, e.Name())}
		rec, err := one.load()
		if err != nil {
			continue // not ours, or not to be used
		}
		info := workspace.Info{Key: rec.Key, Provider: Name, ID: e.Name(), Platform: runtime.GOOS + "/" + runtime.GOARCH, State: "idle", Made: rec.Made}
		if p.of(rec.Key).busy() {
			info.State = "busy"
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b workspace.Info) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return list, nil
}
