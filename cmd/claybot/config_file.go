package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/claybot/claybot/configs"
)

// A configFile is the configuration file as it was read.
type configFile struct {
	path string
	text []byte // nil for a file that does not exist
}

// configFile reads the file that would be loaded. One that is missing is created by a change.
// Others that change files of the same directory wait until this process ends.
func (e *env) configFile() (*configFile, error) {
	path, _, err := configs.Path(e.Config, e.lookup)
	if err != nil {
		return nil, configError{err}
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, configError{fmt.Errorf("%s is not a regular file", path)}
	}
	if err := exclusive(filepath.Dir(path)); err != nil {
		return nil, configError{err}
	}
	text, err := os.ReadFile(path)
	if _, link := os.Readlink(path); errors.Is(err, fs.ErrNotExist) && link != nil {
		return &configFile{path: path}, nil
	}
	if err == nil {
		_, _, err = e.load() // it says what is wrong with the file
	}
	return &configFile{path, text}, err
}

// exclusive waits until no other process changes a file of a directory. It ends with this process.
func exclusive(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	for {
		err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX) //nolint:gosec // a file descriptor is small
		if !errors.Is(err, syscall.EINTR) {
			runtime.KeepAlive(directoryLock.Swap(d))
			return err
		}
	}
}

// directoryLock keeps the lock of exclusive.
var directoryLock atomic.Pointer[os.File]

// load reads a text as if it were that of the file.
func (f *configFile) load(e *env, text []byte) (configs.Config, []configs.Warning, error) {
	return e.loadBy(func(_ string, env func(string) (string, bool), names ...string) (configs.Config, []configs.Warning, error) {
		return configs.LoadText(f.path, text, env, names...)
	})
}

// A change is one of a key of the configuration file, as its history has it.
type change struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"` // name of the user of the system
	Key    string    `json:"key"`
	Before *string   `json:"before"` // null: not set
	After  *string   `json:"after"`
}

func written(text []byte, key string) *string {
	if v, ok := configs.Written(text, key); ok {
		return &v
	}
	return nil
}

// write replaces the text of the file, unless it is another one by now, and adds the change
// to the history.
func (f *configFile) write(e *env, key string, next []byte) (change, error) {
	made := change{At: time.Now().UTC().Truncate(time.Second), By: userName(), Key: key, Before: written(f.text, key), After: written(next, key)}
	now, err := os.ReadFile(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return made, err
	}
	if !bytes.Equal(now, f.text) {
		return made, fmt.Errorf("%s was changed in between; run the command again", f.path)
	}
	line, err := json.Marshal(made)
	if err != nil {
		return made, err
	}
	if err := replaceFile(f.path, next, f.path); err != nil {
		return made, fmt.Errorf("%s cannot be changed: %w", f.path, err)
	}
	f.text = next
	if err := f.record(line); err != nil {
		fmt.Fprintf(e.err, "claybot: warning: the change is not in the history: %v\n", err)
	}
	return made, nil
}

// record adds a line to the history.
func (f *configFile) record(line []byte) error {
	b, err := os.ReadFile(f.historyPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(b) > 0 && b[len(b)-1] != '\n' { // a power cut left half a line
		b = append(b, '\n')
	}
	return replaceFile(f.historyPath(), append(append(b, line...), '\n'), f.path)
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

func (f *configFile) historyPath() string { return f.path + ".history" }

// replaceFile replaces a file at once: a crash leaves the old text or the new one. A new file
// is for its owner alone, and has the owner and group of the file at like; another one keeps
// its mode.
func replaceFile(path string, text []byte, like string) (err error) {
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, own(f.Name(), like), f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// own gives a new file the owner and the group of another one, if there is one.
func own(path, like string) error {
	info, err := os.Stat(like)
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Geteuid() && int(st.Gid) == os.Getegid() {
		return nil
	}
	return os.Chown(path, int(st.Uid), int(st.Gid))
}

// history returns the changes of the file, the oldest first. Lines that are damaged are left
// out.
func (f *configFile) history() ([]change, error) {
	b, err := os.ReadFile(f.historyPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var all []change
	for line := range bytes.Lines(b) {
		var c change
		if json.Unmarshal(line, &c) == nil && c.Key != "" {
			all = append(all, c)
		}
	}
	return all, nil
}

type configHistoryCmd struct {
	JSON bool `name:"json" help:"Print as JSON."`
}

// Run lists the changes, the newest first.
func (c configHistoryCmd) Run(e *env) error {
	f, err := e.configFile()
	if err != nil {
		return err
	}
	all, err := f.history()
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(slices.Concat([]change{}, all))
	}
	rows := make([][]string, len(all))
	for i, x := range all {
		rows[len(all)-1-i] = []string{strconv.Itoa(i + 1), moment(x.At), x.By, x.Key, oneLine(orNone(x.Before)), oneLine(orNone(x.After))}
	}
	return e.list("N,TIME,USER,KEY,BEFORE,AFTER", "Nothing was changed with claybot config.\n", rows)
}

type configRevertCmd struct {
	N int `arg:"" optional:"" help:"Number of the change in claybot config history. Default: the newest."`
}

// Run puts the value before a change back, unless the key has been changed again since.
func (c configRevertCmd) Run(e *env) error {
	f, err := e.configFile()
	if err != nil {
		return err
	}
	all, err := f.history()
	if err != nil {
		return err
	}
	n := c.N
	if n == 0 {
		n = len(all)
	}
	if n < 1 || n > len(all) {
		return usageError{errors.New("there is no such change; claybot config history lists them")}
	}
	x := all[n-1]
	if now := written(f.text, x.Key); orNone(now) != orNone(x.After) {
		return fmt.Errorf("%s has been changed again since: it is %s; use claybot config set or unset", x.Key, orNone(now))
	}
	next, err := configs.Unset(f.text, x.Key)
	if x.Before != nil {
		if strings.Contains(*x.Before, configs.Hidden) {
			return fmt.Errorf("the value before had a secret, which the history does not keep; use claybot config set %s", x.Key)
		}
		next, err = configs.Set(f.text, x.Key, *x.Before)
	}
	if err != nil {
		return configError{fmt.Errorf("%s: %w", f.path, err)}
	}
	return f.apply(e, x.Key, next)
}

// maxSecretInput is more than any token has, in bytes.
const maxSecretInput = 16 << 10

// value returns what the file is to say. A secret is stored in a file of its own, which undo
// removes.
func (c configSetCmd) value(e *env, f *configFile) (value string, undo func(), err error) {
	secret, undo := configs.IsSecret(c.Key), func() {}
	switch {
	case c.Value == nil && !secret:
		return "", undo, usageError{fmt.Errorf("give a value: claybot config set %s VALUE", c.Key)}
	case c.Value != nil && secret && !strings.HasPrefix(*c.Value, "env:") && !strings.HasPrefix(*c.Value, "file:"):
		return "", undo, usageError{fmt.Errorf("a secret must not stand in the file or on the command line: leave it out, and claybot reads it from the terminal: claybot config set %s", c.Key)}
	case c.Value != nil:
		return *c.Value, undo, nil
	}
	text, err := e.readSecret(c.Key)
	if err != nil {
		return "", undo, err
	}
	dir := strings.TrimSuffix(f.path, filepath.Ext(f.path)) + ".secrets"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", undo, err
	}
	if err := errors.Join(own(dir, f.path), replaceFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), f.path)); err != nil {
		return "", undo, err
	}
	// Each secret has a file of its own: the one before stays valid until a daemon has read this.
	name := fmt.Sprintf("%s-%s", strings.ReplaceAll(c.Key, "/", "_"), time.Now().UTC().Format("20060102T150405.000000000"))
	path := filepath.Join(dir, name)
	return "file:" + filepath.Join(filepath.Base(dir), name), func() { _ = os.Remove(path) }, replaceFile(path, []byte(text+"\n"), f.path)
}

// readSecret reads a secret, of which a terminal shows nothing.
func (e *env) readSecret(key string) (string, error) {
	in, typed := e.in.(*os.File)
	var text string
	if typed && term.IsTerminal(int(in.Fd())) { //nolint:gosec // a file descriptor is small
		fmt.Fprintf(e.err, "%s: ", key)
		b, err := term.ReadPassword(int(in.Fd())) //nolint:gosec // a file descriptor is small
		fmt.Fprintln(e.err)
		if err != nil {
			return "", err
		}
		text = string(b)
	} else {
		b, err := io.ReadAll(io.LimitReader(e.in, maxSecretInput+1))
		if err != nil {
			return "", err
		}
		text = string(b)
	}
	switch text = strings.TrimSpace(text); {
	case text == "":
		return "", usageError{errors.New("the secret is empty; nothing was changed")}
	case len(text) > maxSecretInput || strings.ContainsAny(text, "\r\n\x00"):
		return "", usageError{errors.New("the secret is not one line; nothing was changed")}
	}
	return text, nil
}
