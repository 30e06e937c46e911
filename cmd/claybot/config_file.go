package main

import (
	"bytes"
	"context"
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
	path  string
	named string   // the path as it was given, which may be a link: relative references begin in its directory
	text  []byte   // nil for a file that does not exist
	log   *os.File // the history, see lock
	by    string   // who changes it

	reverts int // number of the change that the next text undoes; 0: none
}

// configFile reads the file that would be loaded. One that is missing is created by a change, unless another was meant.
func (e *env) configFile() (*configFile, error) {
	named, given, err := configs.Path(e.Config, e.lookup)
	if err != nil {
		return nil, configError{err}
	}
	f, err := openConfigFile(named)
	if err != nil {
		return nil, configError{err}
	}
	if f.text != nil || !given {
		_, _, err = e.load() // it says what is wrong with the file, or that another one is not read
	}
	return f, err
}

// openConfigFile reads the file with a path. One that is missing has no text.
func openConfigFile(path string) (*configFile, error) {
	f := &configFile{path: path, named: path, by: userName()}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		f.path = real
	}
	return f, f.read()
}

// errIrregular is why a directory, or a link that leads nowhere, is not read.
var errIrregular = errors.New("is not a regular file")

// read reads the text of the file.
func (f *configFile) read() error {
	info, err := os.Lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.text = nil
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s %w", f.path, errIrregular)
	}
	f.text, err = os.ReadFile(f.path)
	return err
}

// load reads a text as if it were that of the file.
func (f *configFile) load(e *env, text []byte) (configs.Config, []configs.Warning, error) {
	return e.loadBy(func(_ string, env func(string) (string, bool), names ...string) (configs.Config, []configs.Warning, error) {
		return configs.LoadText(f.named, text, env, names...)
	})
}

// A change is one of a key of the configuration file, as its history has it.
type change struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"` // name of the user of the system, or the login of the page or API
	Key    string    `json:"key"`
	Before *string   `json:"before"` // null: not set
	After  *string   `json:"after"`
	From   string    `json:"from,omitempty"` // version of the text before it; see record

	Reverts int `json:"reverts,omitempty"` // number of the change that it undoes
}

func orNone(v *string) string {
	if v == nil {
		return "not set"
	}
	return *v
}

func written(text []byte, key string) *string {
	if v, ok := configs.Written(text, key); ok {
		return &v
	}
	return nil
}

// lockPause is how long lock waits before it tries again.
const lockPause = 50 * time.Millisecond

// lock waits until nothing else changes the file, and reads it again. The lock is that of its
// history, and ends with unlock.
func (f *configFile) lock(ctx context.Context) error {
	if f.log != nil {
		return nil
	}
	dir, err := openFolder(f.path)
	if err != nil {
		return err
	}
	defer dir.close()
	name := filepath.Base(f.historyPath())
	if info, err := dir.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return configError{fmt.Errorf("%s is not a regular file", f.historyPath())}
	}
	log, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) // dir follows no link that leads out of it
	if err != nil {
		return err
	}
	if err := dir.own(log); err != nil {
		return err
	}
	for {
		err = syscall.Flock(int(log.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a file descriptor is small
		if !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s is being changed by another process: %w", f.path, ctx.Err()), log.Close())
		case <-time.After(lockPause):
		}
	}
	if err != nil {
		return errors.Join(err, log.Close())
	}
	f.log = log
	err = f.read()
	if err == nil {
		f.sweep()
		err = f.settle()
	}
	if err != nil {
		f.unlock()
	}
	return err
}

// unlock lets other processes change the file.
func (f *configFile) unlock() {
	if f.log != nil {
		_ = f.log.Close() // it was synced
		f.log = nil
	}
}

// errStale is of a change that is based on another text than the file has.
var errStale = errors.New("the file has been changed meanwhile; nothing was changed")

// at refuses a change that is based on another version of the file, which is locked.
func (f *configFile) at(version string) error {
	if version != "" && version != configs.VersionOf(f.text) {
		return configError{fmt.Errorf("%s: %w", f.path, errStale)}
	}
	return nil
}

// write replaces the text of the file, which is locked, and adds the changes of keys to the
// history. recorded is false where the history has them not.
func (f *configFile) write(keys []string, next []byte) (made []change, recorded bool, err error) {
	for _, key := range keys {
		made = append(made, change{Key: key, Before: written(f.text, key), After: written(next, key), Reverts: f.reverts})
	}
	recorded, err = f.record(made, next)
	return made, recorded, err
}

// replace replaces the text of the file, which is locked.
func (f *configFile) replace(next []byte) error {
	dir, err := openFolder(f.path)
	if err != nil {
		return err
	}
	defer dir.close()
	if err := dir.replace(filepath.Base(f.path), next); err != nil {
		return fmt.Errorf("%s cannot be changed: %w", f.path, err)
	}
	f.text = next
	return nil
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// final says of changes that no revert undoes them: the history does not have them, or does not keep a secret in them.
func final(made []change, recorded bool) (all []string) {
	if !recorded {
		return []string{"the change is not in the history, which cannot be written"}
	}
	for _, c := range made {
		if c.Before != nil && strings.Contains(*c.Before, configs.Hidden) {
			all = append(all, c.Key+" had a secret, such as an address, which the history does not keep: claybot config revert cannot undo this")
		}
	}
	return all
}

func (f *configFile) historyPath() string { return f.path + ".history" }

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
	N *int `arg:"" optional:"" help:"Number of the change in claybot config history. Default: the newest that is neither undone nor a revert."`
}

// Run puts the value before a change back, unless the key has been changed again since.
func (c configRevertCmd) Run(e *env) error {
	f, err := e.configFile()
	if err == nil {
		err = f.lock(context.Background())
	}
	if err != nil {
		return err
	}
	key, next, err := f.reverted(c.N)
	if err != nil {
		return err
	}
	return f.apply(e, []string{key}, next)
}

var errNoChange = errors.New("there is no such change; claybot config history lists them")

// errAllUndone is of a revert that finds nothing left.
var errAllUndone = errors.New("all changes are undone already; to undo a revert, name its number in claybot config history")

// newest returns the number of the newest change that is neither a revert nor undone, 0 if there is none.
func newest(all []change) int {
	undone := make(map[int]bool)
	for i, c := range slices.Backward(all) {
		switch n := i + 1; {
		case undone[n]: // what it undid is in force again
		case c.Reverts == 0:
			return n
		default:
			undone[c.Reverts] = true
		}
	}
	return 0
}

// A pastError is of a change that cannot be undone any more.
type pastError struct{ error }

// reverted returns the key of a change of the history, and the text of the file without it. Without a
// number, it is the newest that is neither a revert nor undone.
func (f *configFile) reverted(number *int) (key string, next []byte, err error) {
	all, err := f.history()
	if err != nil {
		return "", nil, err
	}
	n := newest(all)
	if number != nil {
		n = *number
	}
	switch {
	case number == nil && n == 0 && len(all) > 0:
		return "", nil, usageError{errAllUndone}
	case n < 1 || n > len(all):
		return "", nil, usageError{errNoChange}
	}
	x := all[n-1]
	if now := written(f.text, x.Key); orNone(now) != orNone(x.After) {
		return x.Key, nil, pastError{fmt.Errorf("%s has been changed again since: it is %s; use claybot config set or unset", x.Key, orNone(now))}
	}
	next, err = configs.Unset(f.text, x.Key)
	if x.Before != nil {
		if strings.Contains(*x.Before, configs.Hidden) {
			return x.Key, nil, pastError{fmt.Errorf("the value before had a secret, which the history does not keep; use claybot config set %s", x.Key)}
		}
		next, err = configs.Set(f.text, x.Key, *x.Before)
	}
	if err != nil {
		return x.Key, nil, configError{fmt.Errorf("%s: %w", f.path, err)}
	}
	f.reverts = n
	return x.Key, next, nil
}

// maxSecretInput is more than any token has, in bytes.
const maxSecretInput = 16 << 10

// value returns what the file is to say, or the secret that it is to refer to.
func (c configSetCmd) value(e *env, f *configFile) (value, secret string, err error) {
	secretive := configs.TakesSecret(c.Key)
	switch {
	case c.Value == nil && !configs.Known(c.Key) && !configs.WholeEntry(c.Key):
		return "", "", noSuchKey(f.text, c.Key)
	case c.Value == nil && !secretive:
		return "", "", usageError{fmt.Errorf("give a value: claybot config set %s VALUE", c.Key)}
	case c.Value == nil && configs.SecretGroup(c.Key):
		return "", "", usageError{fmt.Errorf("%s has a secret for each name: claybot config set %s.NAME", c.Key, c.Key)}
	case c.Value == nil:
		secret, err = e.readSecret(c.Key)
		return "", secret, err
	}
	return *c.Value, "", f.referenced(c.Key, *c.Value)
}

// without returns the text of the file in which key is not set.
func (f *configFile) without(key string) ([]byte, error) {
	next, err := configs.Unset(f.text, key)
	switch {
	case err != nil:
		return nil, configError{fmt.Errorf("%s: %w", f.path, err)}
	case bytes.Equal(next, f.text) && !configs.Known(key):
		return nil, noSuchKey(f.text, key)
	}
	return next, nil
}

// referenced refuses a secret as the value of a key, and a value in which a secret is hidden.
func (f *configFile) referenced(key, value string) error {
	if strings.Contains(value, configs.Hidden) {
		return usageError{fmt.Errorf("the value has %s, which stands for what is not shown; write the whole value", configs.Hidden)}
	}
	suspect := configs.IsSecret(key) || configs.ShownKey(key) != key // it is, or is named like, a secret
	if (suspect || configs.ItemAround(f.text, key) != "") && !configs.Known(key) {
		return noSuchKey(f.text, key)
	}
	if configs.IsSecret(key) && !strings.HasPrefix(value, "env:") && !strings.HasPrefix(value, "file:") {
		if configs.SecretGroup(key) {
			key += ".NAME"
		}
		return usageError{fmt.Errorf("a secret must not stand in the file or on the command line: leave it out, and claybot reads it from the terminal: claybot config set %s", key)}
	}
	return nil
}

// keepSecret stores a secret in a file of its own beside the configuration file, or the link by which
// that is named, and returns the reference to it. The one before stays valid until a daemon has read the new one. undo removes
// the file.
func (f *configFile) keepSecret(key, secret string) (reference string, undo func(), err error) {
	dir, err := openFolder(f.named)
	if err != nil {
		return "", nil, err
	}
	defer dir.close()
	name := f.secretsName()
	below, err := dir.folder(name)
	if err != nil {
		return "", nil, err
	}
	defer below.close()
	if err := below.replace(".gitignore", []byte("*\n")); err != nil {
		return "", nil, err
	}
	own := fmt.Sprintf("%s-%s", strings.ReplaceAll(key, "/", "_"), time.Now().UTC().Format("20060102T150405.000000000"))
	if err := below.replace(own, []byte(secret+"\n")); err != nil {
		return "", nil, err
	}
	path := filepath.Join(name, own)
	return "file:" + path, func() { _ = os.Remove(filepath.Join(filepath.Dir(f.named), path)) }, nil // else it stays
}

// secretsName is the name of the folder beside the file that keepSecret stores in.
func (f *configFile) secretsName() string {
	return strings.TrimSuffix(filepath.Base(f.named), filepath.Ext(f.named)) + ".secrets"
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
	return oneSecret(text)
}

// oneSecret returns a secret that is one line.
func oneSecret(text string) (string, error) {
	switch text = strings.TrimSpace(text); {
	case text == "":
		return "", usageError{errors.New("the secret is empty; nothing was changed")}
	case len(text) > maxSecretInput || strings.ContainsAny(text, "\r\n\x00"):
		return "", usageError{errors.New("the secret is not one line; nothing was changed")}
	}
	return text, nil
}
