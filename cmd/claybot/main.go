// Command claybot is the daemon that connects AI agents to chats, and the
// commands that talk to it.
//
// main parses flags and wires the parts together; everything it does is in the
// packages below. It is the only place that knows all implementations.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones of tasks, also on machines without a zone database

	"github.com/alecthomas/kong"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// version is set by the build.
var version = "dev"

// The exit codes, part of the interface for service managers and scripts.
const (
	exitOK      = 0
	exitError   = 1
	exitUsage   = 2
	exitConfig  = 3
	exitLocked  = 4
	exitDamaged = 5
	// exitInterrupted is what shells make of an end by Ctrl-C.
	exitInterrupted = 130
)

// env is what commands use of the process around them.
type env struct {
	*cli
	in       io.Reader
	out, err io.Writer
	lookup   func(string) (string, bool)
	environ  []string      // what lookup knows; nil: the environment of the process
	patience time.Duration // of the doctor with a platform; 0: platformTime
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// load reads the configuration and returns its warnings.
func (e *env) load() (configs.Config, []configs.Warning, error) { return e.loadBy(configs.Load) }

// loadBy reads the configuration as load does, which is one of configs.Load.
func (e *env) loadBy(load func(path string, env func(string) (string, bool), names ...string) (configs.Config, []configs.Warning, error)) (configs.Config, []configs.Warning, error) {
	environ := slices.Clone(e.environ)
	if environ == nil {
		environ = os.Environ()
	}
	if err := configs.CheckNames(environ); err != nil {
		return configs.Config{}, nil, configError{err}
	}
	for i, entry := range environ {
		environ[i], _, _ = strings.Cut(entry, "=")
	}
	c, warnings, err := load(e.Config, e.lookup, environ...)
	if err != nil {
		return c, nil, configError{fileError{err}}
	}
	if err := c.Override(configs.Override{
		DataDir: e.DataDir, HTTP: e.HTTP, Access: e.Access, Log: e.Log, LogLevel: e.LogLevel, Model: e.Model,
	}); err != nil {
		return c, nil, usageError{err}
	}
	c.Source.Warnings = slices.Concat(warnings, c.UnknownTools(builtin), c.UnknownGroups(tools.GroupNames()), c.WrongTexts(texts.IDs, texts.Replaceable), c.WrongCredentials(), c.WrongHooks(wrongTemplate))
	return c, c.Source.Warnings, nil
}

// run is main with its surroundings as arguments. It returns the exit code.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	return (&env{in: in, out: out, err: errs, lookup: os.LookupEnv}).execute(args)
}

// execute runs the command that args name, and returns its exit code.
func (e *env) execute(args []string) int {
	out, errs := e.out, e.err
	var c cli
	code := -1
	switch {
	case len(args) == 0: // a mistake, so the help goes where mistakes go
		run([]string{"--help"}, e.in, errs, errs)
		return exitUsage
	case args[0] == "help":
		args = append(args[1:], "--help")
	}
	var d daemonCLI
	grammar := any(&c)
	if args[0] == "serve" {
		grammar = &d
	}
	parser, err := newParser(grammar, out, errs, func(n int) { code = n })
	if err != nil {
		fmt.Fprintln(errs, "claybot:", err)
		return exitError
	}
	ctx, err := parser.Parse(negatives(args))
	if code >= 0 { // --help was printed
		return code
	}
	if err == nil {
		err = emptyFlag(parser.Model.Flags)
	}
	if err != nil {
		fmt.Fprintf(errs, "claybot: %s\n", mistake(err))
		return exitUsage
	}
	if grammar == &d {
		c.settingFlags = d.settingFlags
	}
	e.cli = &c
	err = ctx.Run(e)
	if err != nil && !errors.Is(err, errSilent) {
		fmt.Fprintln(errs, "claybot:", complaint(err))
	}
	return exitCode(err)
}

// complaint is an error as the command line prints it: with the next step, if the configuration file is missing or cannot be read.
func complaint(err error) string {
	var file fileError
	if !errors.As(err, &file) {
		return err.Error()
	}
	switch code := configCode(file); code {
	case "config-missing", "config-unreadable":
		return err.Error() + "; " + nextOf(code)
	}
	return err.Error()
}

// emptyFlag refuses a setting of the command line without a value: what holds without
// the flag may allow more.
func emptyFlag(flags []*kong.Flag) error {
	for _, f := range flags {
		if f.Set && f.Target.Kind() == reflect.String && strings.TrimSpace(f.Target.String()) == "" {
			return fmt.Errorf("--%s: has no value; leave the flag out or give it one", f.Name)
		}
	}
	return nil
}

// errSilent ends a command with exit code 1 that has said everything itself.
var errSilent = errors.New("failed")

// A usageError is a mistake on the command line.
type usageError struct{ error }

// A configError is a configuration with which nothing can start.
type configError struct{ error }

// A fileError is a configuration that could not be loaded.
type fileError struct{ error }

func (e fileError) Unwrap() error { return e.error }

// An interruptedError reports an end by Ctrl-C that the user has already seen.
type interruptedError struct{}

func (interruptedError) Error() string { return "interrupted" }
func (interruptedError) Unwrap() error { return errSilent }

func (e configError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var usage usageError
	var config configError
	var interrupted interruptedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &interrupted):
		return exitInterrupted
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, storage.ErrLocked):
		return exitLocked
	case errors.Is(err, storage.ErrDamaged):
		return exitDamaged
	case errors.As(err, &config):
		return exitConfig
	}
	return exitError
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(e *env) error {
	_, err := fmt.Fprintln(e.out, "claybot", version)
	return err
}
