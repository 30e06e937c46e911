package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
func (e *env) configFile() (*configFile, error) {
	path, _, err := configs.Path(e.Config, e.lookup)
	if err != nil {
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
func (f *configFile) write(key string, next []byte) (change, error) {
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
	if err := replaceFile(f.path, next); err != nil {
		return made, fmt.Errorf("%s cannot be changed: %w", f.path, err)
	}
	f.text = next
	log, err := os.OpenFile(f.historyPath(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = log.Write(append(line, '\n'))
		err = errors.Join(err, log.Sync(), log.Close())
	}
	if err != nil {
		return made, fmt.Errorf("the file is changed, but not its history: %w", err)
	}
	return made, nil
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

func (f *configFile) historyPath() string { return f.path + ".history" }

// replaceFile replaces a file at once: a crash leaves the old text or the new one. A new file
// is for its owner alone; another one keeps its mode and its owner.
func replaceFile(path string, text []byte) (err error) {
	mode, uid, gid := fs.FileMode(0o600), -1, -1 // as they are
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		mode = info.Mode().Perm()
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
			uid, gid = int(st.Uid), int(st.Gid)
		}
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
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if uid >= 0 {
		if err = os.Chown(f.Name(), uid, gid); err != nil {
			return err
		}
	}
	return os.Rename(f.Name(), path)
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

// maxSecretInput is more than any token has.
const maxSecretInput = 16 << 10

// value returns what the file is to say. A secret is stored in a file of its own.
func (c configSetCmd) value(e *env, f *configFile) (string, error) {
	secret := configs.IsSecret(c.Key)
	switch {
	case c.Value == nil && !secret:
		return "", usageError{fmt.Errorf("give a value: claybot config set %s VALUE", c.Key)}
	case c.Value != nil && secret && !strings.HasPrefix(*c.Value, "env:") && !strings.HasPrefix(*c.Value, "file:"):
		return "", usageError{fmt.Errorf("a secret must not stand in the file or on the command line: leave it out, and claybot reads it from the terminal: claybot config set %s", c.Key)}
	case c.Value != nil:
		return *c.Value, nil
	}
	text, err := e.readSecret(c.Key)
	if err != nil {
		return "", err
	}
	dir := strings.TrimSuffix(f.path, filepath.Ext(f.path)) + ".secrets"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600); err != nil {
		return "", err
	}
	// Each secret has a file of its own: the one before stays valid until a daemon has read this.
	name := fmt.Sprintf("%s-%s", strings.ReplaceAll(c.Key, "/", "_"), time.Now().UTC().Format("20060102T150405"))
	if err := replaceFile(filepath.Join(dir, name), []byte(text+"\n")); err != nil {
		return "", err
	}
	return "file:" + filepath.Join(filepath.Base(dir), name), nil
}

// readSecret reads a secret, of which a terminal shows nothing.
func (e *env) readSecret(key string) (string, error) {
	in, typed := e.in.(*os.File)
	var text string
	if typed && isTerminal(in) {
		fmt.Fprintf(e.err, "%s: ", key)
		b, err := term.ReadPassword(int(in.Fd())) //nolint:gosec // a file descriptor is small
		fmt.Fprintln(e.err)
		if err != nil {
			return "", err
		}
		text = string(b)
	} else {
		line, err := bufio.NewReader(io.LimitReader(e.in, maxSecretInput)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		text = line
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", usageError{errors.New("the secret is empty; nothing was changed")}
	}
	return text, nil
}
