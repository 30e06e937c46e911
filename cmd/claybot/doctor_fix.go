package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage/postgres"
)

// A finding is one of the doctor, with what mends it, if that is safe and can be undone.
type finding struct {
	postgres.Finding
	mend func(context.Context) (done string, err error)
}

// A mended is what claybot doctor --fix did about a finding.
type mended struct {
	What string `json:"what"`
	Code string `json:"code"` // of the finding
	Text string `json:"text"`
}

// offer says how to mend the newest finding. do returns what it did, with what was before.
func (d *doctor) offer(do func(context.Context) (done string, err error)) bool {
	f := &d.all[len(d.all)-1]
	f.mend = do
	f.Next += "; or run: claybot doctor --fix"
	return true
}

// mend mends what can be mended, the newest finding first: a daemon reads a changed configuration only from
// a data directory that is safe. It returns what it did, and what it could not do.
func (d *doctor) mend(ctx context.Context) (done []mended, failed []finding) {
	for _, f := range slices.Backward(d.all) {
		if f.mend == nil {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, d.asking)
		text, err := f.mend(limited)
		cancel()
		if err != nil {
			f.Code, f.Text = "fix-failed", d.hide.Replace("cannot mend "+f.Code+": "+err.Error())
			failed = append(failed, f)
			continue
		}
		done = append(done, mended{f.What, f.Code, d.hide.Replace(text)})
	}
	return done, failed
}

// offerClosing offers to close a data directory to other users, if it is without a doubt that of claybot.
func (d *doctor) offerClosing(dir string) bool {
	f, _, err := ownDirectory(dir)
	if err != nil {
		return true // the next step says how
	}
	_ = f.Close() // nothing was written
	return d.offer(closing(dir))
}

// closing returns what closes a data directory to other users.
func closing(dir string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		f, mode, err := ownDirectory(dir)
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }() // it has no content
		if err := f.Chmod(mode &^ 0o077); err != nil {
			return "", err
		}
		return fmt.Sprintf("set the mode of %s to %s; it was %s", dir, octal(mode&^0o077), octal(mode)), nil
	}
}

// ownDirectory opens a data directory and returns its mode. It refuses a link, a directory in which claybot has
// neither its lock nor its database, and one that belongs to others: to another user than this one, or, for
// root, than the owner of those files.
func ownDirectory(dir string) (*os.File, fs.FileMode, error) {
	dir = filepath.Clean(dir) // a slash at the end would follow a link
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	owner, known := userOf(info, err)
	ours := false
	for _, name := range []string{"claybot.lock", "claybot.db"} {
		var st unix.Stat_t
		if err := unix.Fstatat(int(f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil { //nolint:gosec // a file descriptor is small
			ours = ours || st.Mode&unix.S_IFMT == unix.S_IFREG && st.Uid == owner
		}
	}
	switch me := os.Geteuid(); {
	case err != nil:
	case !known || me != 0 && owner != uint32(me): //nolint:gosec // ids of users are not negative here
		err = fmt.Errorf("%s belongs to another user", dir)
	case !ours:
		err = fmt.Errorf("%s has no lock or database of claybot that belongs to its owner", dir)
	default:
		return f, info.Mode(), nil
	}
	return nil, 0, errors.Join(err, f.Close())
}

// userOf returns the user that a file belongs to.
func userOf(info fs.FileInfo, err error) (uid uint32, known bool) {
	if err != nil {
		return 0, false
	}
	st, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return st.Uid, true
}

// octal is a mode as chmod takes it, with the bits before those of the users.
func octal(mode fs.FileMode) string {
	bits := uint32(mode.Perm())
	for bit, is := range map[uint32]fs.FileMode{0o1000: fs.ModeSticky, 0o2000: fs.ModeSetgid, 0o4000: fs.ModeSetuid} {
		if mode&is != 0 {
			bits |= bit
		}
	}
	return fmt.Sprintf("%04o", bits)
}

// trusted refuses a configuration file that a link leads to, or that others than this user and root may
// have put there: claybot doctor --fix changes it unasked.
func (f *configFile) trusted() error {
	if f.path != filepath.Clean(f.named) {
		return fmt.Errorf("a link leads to %s", f.path)
	}
	for _, path := range []string{f.path, filepath.Dir(f.path)} {
		owner, known := userOf(os.Lstat(path))
		if !known || owner != 0 && int(owner) != os.Geteuid() {
			return fmt.Errorf("%s belongs to another user", path)
		}
	}
	return nil
}

// renaming returns what renames a mistyped key of the configuration file; nil where a person must decide.
func (e *env) renaming(w configs.Warning) func(context.Context) (string, error) {
	f, err := e.configFile()
	if err != nil || f.trusted() != nil {
		return nil
	}
	if _, ok := w.Rename(f.text); !ok || w.File != f.named && w.File != f.path {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		if err := f.trusted(); err != nil {
			return "", err
		}
		if err := f.lock(ctx); err != nil {
			return "", err
		}
		defer f.unlock()
		next, ok := w.Rename(f.text)
		if !ok || bytes.Equal(next, f.text) {
			return "", errStale
		}
		quiet := *e
		quiet.out, quiet.err = io.Discard, io.Discard
		if err := f.change(&quiet, []string{w.Near}, next); err != nil {
			return "", err
		}
		done := fmt.Sprintf("%s:%d: renamed %s to %s; claybot config revert unsets it again", w.File, w.Line, w.Key, w.Near)
		if err := f.reload(&quiet); err != nil { // the file is changed all the same
			done += "; " + err.Error()
		}
		return done, nil
	}
}
