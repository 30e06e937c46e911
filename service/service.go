package service

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Name is the name of the unit, without its ending.
const Name = "claybot"

// A Service is a daemon that a service manager is to run.
type Service struct {
	Program string            // absolute path of the binary
	Args    []string          // its arguments
	Dir     string            // its working directory, absolute
	Data    string            // the data directory, absolute
	User    string            // who runs it; empty: the user of the manager
	Path    string            // $PATH of the commands that it starts
	Env     map[string]string // variables that may be secrets; they go into a file that only the user reads
}

// Check returns what a service manager could not take.
func (s Service) Check() error {
	for _, text := range slices.Concat([]string{s.Program, s.Dir, s.Data, s.User, s.Path}, s.Args) {
		if strings.ContainsAny(text, "\n\r\x00") {
			return fmt.Errorf("%q has a line break, which no service manager takes", text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if strings.ContainsAny(s.Env[name], "\n\r\x00") {
			return fmt.Errorf("the value of %s has a line break, which a service cannot be given; put it into a file and name that: file:PATH", name)
		}
	}
	return nil
}

// write replaces a file at once, so that a crash leaves the old one or the new one. It
// makes the directory where it is missing.
func write(path, text string, mode fs.FileMode) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
