//go:build unix

package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claybot/claybot/workspace"
)

// Unconfined is the name in Spec.Unsafe by which an operator lets commands do what the user
// can whom claybot runs as.
const Unconfined = "unconfined"

// A confinement is what keeps the commands of a workspace from what claybot and its user
// have.
type confinement string

const (
	// byUser: each workspace has a user of its own, in a view of the machine that lacks the
	// data directory of claybot and whatever else that user may not enter on the way there.
	byUser confinement = "as a user of its own"
	// byLandlock: the kernel lets the commands read the programs of the system and use
	// their workspace, and nothing else. They have no Unix sockets, as claybot's own is one.
	byLandlock confinement = "confined by Landlock"
	// unconfined: the operator gave it up.
	unconfined confinement = Unconfined
)

// A cage is what a process is confined to.
type cage struct {
	how    confinement
	user   int    // of byUser
	files  string // the folder of the workspace
	around string // in which it is, with those of others
}

// errUnconfined is why a machine runs no commands.
var errUnconfined = &workspace.Error{
	Code: workspace.Refused,
	Text: "this machine cannot confine the commands of a local workspace: claybot is not root, and the kernel has no Landlock of version 3 (Linux 6.2): " +
		"use the provider docker, or let commands do what claybot's user can by naming " + Unconfined + " in workspaces.unsafe",
}

// Confinement says in words what keeps commands from what claybot has. The error, of
// code Refused, ends with the next step.
func (p *Provider) Confinement() (string, error) {
	c, err := p.confined(workspace.Spec{})
	return string(c), err
}

func (p *Provider) confined(s workspace.Spec) (confinement, error) {
	if slices.Contains(s.Unsafe, Unconfined) {
		return unconfined, nil
	}
	if c := p.best(); c != "" {
		return c, nil
	}
	return "", errUnconfined
}

// The users of workspaces, which systemd keeps free for such as these.
const firstUser, lastUser = 61184, 65519

// settle gives the files of a workspace to the user of its commands, where that has
// changed.
func (p *Provider) settle(w *place, rec *record, c confinement) error {
	own := 0
	if c == byUser {
		p.users.Lock()
		defer p.users.Unlock() // no other workspace takes the same user meanwhile
		if own = rec.User; own == 0 {
			var err error
			if own, err = p.freeUser(); err != nil {
				return err
			}
		}
	}
	w.user.Store(int64(own))
	if own == rec.User {
		return nil
	}
	err := w.giveAll(cmp.Or(own, os.Geteuid()))
	if err == nil {
		rec.User = own
		err = w.save(*rec)
	}
	if err != nil {
		return &workspace.Error{Code: workspace.Unavailable, Text: "the files of the workspace cannot be given to the user of its commands; see the operator's log", Err: err}
	}
	return nil
}

func (p *Provider) freeUser() (int, error) {
	entries, err := os.ReadDir(p.cfg.Dir)
	if err != nil {
		return 0, &workspace.Error{Code: workspace.Unavailable, Text: "the folder for workspaces cannot be read; see the operator's log", Err: err}
	}
	taken := make(map[int]bool)
	for _, e := range entries {
		one := &place{base: filepath.Join(p.cfg.Dir, e.Name())}
		if rec, err := one.load(); err == nil {
			taken[rec.User] = true
		}
	}
	for user := firstUser; user <= lastUser; user++ {
		if !taken[user] {
			return user, nil
		}
	}
	return 0, &workspace.Error{Code: workspace.Unavailable, Text: "there are too many local workspaces; remove some"}
}

// giveAll gives all files to a user. A file that has another name elsewhere stays as it
// is: that name may be none of the workspace's.
func (w *place) giveAll(user int) error {
	root, err := w.root()
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && ordinary(name, info) != nil {
			return nil
		}
		if err != nil {
			return err
		}
		return root.Lchown(name, user, user)
	})
}

// own is the user of the commands, and whether that is another than claybot's.
func (w *place) own() (user int, other bool) {
	user = int(w.user.Load())
	return user, user != 0
}

// give gives a new file or folder to the user of the commands.
func (w *place) give(root *os.Root, name string) error {
	if user, other := w.own(); other {
		return root.Lchown(name, user, user)
	}
	return nil
}

// mkdirAll makes the folders of a path that are not there, for the user of the commands.
func (w *place) mkdirAll(root *os.Root, folder string) error {
	if _, other := w.own(); !other || folder == "." {
		return root.MkdirAll(folder, 0o755)
	}
	done := ""
	for part := range strings.SplitSeq(folder, "/") {
		done = path.Join(done, part)
		err := root.Mkdir(done, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = w.give(root, done)
		}
		if err != nil {
			return err
		}
	}
	return root.MkdirAll(folder, 0o755) // says what is wrong where a part is a file
}

// temporary is the folder for short-lived files of a workspace by Landlock, which has no
// /tmp.
const temporary = kept + "/tmp"

// tmp are the variables for it.
func (v *view) tmp(ctx context.Context) ([]workspace.Var, error) {
	if v.confine != byLandlock {
		return nil, nil
	}
	root, _, err := v.at(ctx, ".")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := root.MkdirAll(temporary, 0o755); err != nil {
		return nil, explain(temporary, err)
	}
	return []workspace.Var{{Name: "TMPDIR", Value: filepath.Join(v.dir(), filepath.FromSlash(temporary))}}, nil
}

// closedBy is the first folder on the way to a path that other users may not enter; empty
// where there is none.
func closedBy(name string) (string, error) {
	var way []string
	for at := filepath.Clean(name); ; at = filepath.Dir(at) {
		way = append(way, at)
		if at == filepath.Dir(at) {
			break
		}
	}
	for _, at := range slices.Backward(way[1:]) { // the path itself belongs to the user
		info, err := os.Stat(at)
		if err != nil {
			return "", fmt.Errorf("the way to %s: %w", name, err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return at, nil
		}
	}
	return "", nil
}
