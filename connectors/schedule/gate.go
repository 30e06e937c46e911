package schedule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	maxGateOutput = 8 << 10 // bytes
	// gateDelay is how long to wait for output that a child of an exited gate
	// holds open.
	gateDelay = time.Second
	// exitPermission is the exit code of a shell that may not execute a
	// command.
	exitPermission = 126
)

// A Gate is a command that decides whether a task runs. It runs on this machine
// as the daemon's user, and only an operator can create one.
type Gate struct {
	Command string // for sh -c
	Timeout time.Duration
	Dir     string // where it runs, absolute
	Task    string // its CLAYBOT_TASK
	Zone    *time.Location
}

// A Verdict is the result of a Gate.
type Verdict struct {
	Stop   bool
	Output string // of a command that lets the task run, trimmed
	Note   string // why the gate did not run, or failed
}

// Ask runs the command in its own process group, which is killed before Ask
// returns. Exit code 0 lets the task run, any other stops it. A gate that
// cannot start or times out lets it run, with a note. The error is the cause of
// ctx.
func (g Gate) Ask(ctx context.Context) (Verdict, error) {
	limited, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	out := &limitedBuffer{rest: maxGateOutput}
	cmd := exec.CommandContext(limited, "sh", "-c", g.Command)
	cmd.Dir, cmd.Stdout, cmd.WaitDelay = g.Dir, out, gateDelay
	cmd.Env = g.env()
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	err := cmd.Run()
	if cmd.Process != nil {
		_ = killGroup(cmd) // what it left behind; mostly nothing
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Verdict{}, context.Cause(ctx)
	case limited.Err() != nil:
		return Verdict{Note: fmt.Sprintf("The gate command did not end within %v, so claybot did not check whether there is anything to do.", g.Timeout)}, nil
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return Verdict{Output: strings.TrimSpace(strings.ToValidUTF8(out.kept.String(), ""))}, nil
	case !errors.As(err, &exit) || exit.ExitCode() == exitPermission:
		return Verdict{Note: "The gate command could not be run, so claybot did not check whether there is anything to do."}, nil
	}
	return Verdict{Stop: true}, nil
}

// env returns the environment of a gate, without secrets.
func (g Gate) env() []string {
	search := os.Getenv("PATH")
	if search == "" {
		search = "/usr/local/bin:/usr/bin:/bin"
	}
	return []string{"PATH=" + search, "HOME=" + g.Dir, "TZ=" + g.Zone.String(), "LANG=C.UTF-8", "CLAYBOT_TASK=" + g.Task}
}

// A limitedBuffer keeps the first bytes written to it.
type limitedBuffer struct {
	kept bytes.Buffer // not embedded, because ReadFrom would bypass the limit
	rest int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), b.rest)
	b.rest -= n
	b.kept.Write(p[:n])
	return len(p), nil
}
