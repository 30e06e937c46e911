package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits is the time that a command has. Its context ends when a limit passes,
// with an *Error of code WallLimit or IdleLimit as its cause, or with ctx.
type Limits struct {
	idle time.Duration

	mu    sync.Mutex
	timer *time.Timer // of the idle limit; nil without one
}

// Start begins the limits of c. stop must be called once the command has ended.
func (c Command) Start(ctx context.Context) (inner context.Context, l *Limits, stop func()) {
	inner, cancel := context.WithCancelCause(ctx)
	l = &Limits{idle: c.Idle}
	var wall *time.Timer
	if c.Wall > 0 {
		wall = time.AfterFunc(c.Wall, func() {
			cancel(&Error{Code: WallLimit, Text: fmt.Sprintf("the command ran longer than its limit of %s and was ended", c.Wall)})
		})
	}
	if c.Idle > 0 {
		l.timer = time.AfterFunc(c.Idle, func() {
			cancel(&Error{Code: IdleLimit, Text: fmt.Sprintf("the command wrote nothing for %s, its idle limit, and was ended", c.Idle)})
		})
	}
	return inner, l, func() {
		if wall != nil {
			wall.Stop()
		}
		l.mu.Lock()
		if l.timer != nil {
			l.timer.Stop()
			l.timer = nil
		}
		l.mu.Unlock()
		cancel(nil)
	}
}

// Alive says that the command has written something.
func (l *Limits) Alive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Reset(l.idle)
	}
}

// Check refuses a command that cannot be: neither or both of Shell and Args,
// limits that are negative, a variable that has no name.
func (c Command) Check() error {
	switch {
	case (c.Shell == "") == (len(c.Args) == 0):
		return &Error{Code: Refused, Text: "a command is one of a line for the shell and a list of arguments"}
	case c.Wall < 0 || c.Idle < 0:
		return &Error{Code: Refused, Text: "a limit of time must not be negative"}
	}
	for _, s := range append([]string{c.Shell}, c.Args...) {
		if hasNUL(s) {
			return &Error{Code: Refused, Text: "a command must not have a NUL character"}
		}
	}
	return checkVars(c.Env)
}

func checkVars(vars []Var) error {
	for _, v := range vars {
		if !variable(v.Name) || hasNUL(v.Value) {
			return &Error{Code: Refused, Text: fmt.Sprintf("%.80q is not the name of a variable, or its value has a NUL character", v.Name)}
		}
		if slices.Contains(fileVars, v.Name) {
			return &Error{Code: Refused, Text: fmt.Sprintf("the variable %s makes shells read a file of its own; leave it out", v.Name)}
		}
	}
	return nil
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }

// variable reports a name that every shell takes.
func variable(name string) bool {
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// loginRoot is HOME while a login shell begins: no command can put a file there
// that the shell would read.
const loginRoot = "/"

// login reads what a login shell reads of the system, then becomes the shell of
// the command with its own HOME.
const login = `HOME=$1; export HOME; exec /bin/sh -c "$2"`

// fileVars make shells read a file when they begin.
var fileVars = []string{"ENV", "BASH_ENV"}

// FileVars are the variables that make shells read a file when they begin. No
// command may have them: the file could be one that an earlier command wrote.
func FileVars() []string { return slices.Clone(fileVars) }

// Argv is how a command is started whose HOME is to be home, and the HOME that it
// has to be started with. A shell begins as a login shell, so that what the system
// sets for everybody holds, and yet reads no file of the workspace: what ran
// earlier would have a part in what was approved since.
func (c Command) Argv(home string) (argv []string, start string) {
	if c.Shell == "" {
		return c.Args, home
	}
	return []string{"/bin/sh", "-lc", login, "/bin/sh", home, c.Shell}, loginRoot
}

// Home is the HOME of a command: what its variables say, else those of its
// workspace, the last of each, else dir.
func Home(dir string, lists ...[]Var) string {
	for _, v := range slices.Concat(lists...) {
		if v.Name == "HOME" {
			dir = v.Value
		}
	}
	return dir
}

// A Turn lets one goroutine at a time act. It must be made by NewTurn.
type Turn chan struct{}

// NewTurn makes a Turn that is free.
func NewTurn() Turn { return make(Turn, 1) }

// Take waits for the turn. The error is the cause of the end of ctx.
func (t Turn) Take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Try takes the turn if it is free.
func (t Turn) Try() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// Give ends a turn that was taken.
func (t Turn) Give() { <-t }
