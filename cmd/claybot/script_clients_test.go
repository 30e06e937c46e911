package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// clientCommands are the groups of commands that call the daemon from one goroutine and open
// no store: the race detector has nothing to find in them, and scripts run them often.
// A command that is missing here runs under the race detector, as serve and chat do.
const clientCommands = "agents answer approve budgets complete completion cron deny forget graph healthcheck heartbeat inbox man nodes notes" +
	" open outbox pair parked questions reminders rules runs skills status token tools undo usage version why workspaces"

// dispatcher runs the first program for client commands and the second for all others.
// exec keeps the pid, which scripts signal.
const dispatcher = `#!/bin/sh
case "$1 $2" in
"runs show" | "runs tail") ;; # a goroutine reads the events
%s)
	unset $CLAYBOT_TEST_UNSET
	exec '%s' "$@"
	;;
esac
exec '%s' "$@"
`

// clientDir is a directory of this run of the tests, see withClients.
var clientDir string

// withClients are the tests with a clientDir.
type withClients struct{ *testing.M }

// Run lets more tests run at once than there are processors: most of their time is waiting for
// daemons, for emulated platforms and for limits.
func (m withClients) Run() int {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = f.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))) // it is a number
	}
	var err error
	if clientDir, err = os.MkdirTemp("", "claybot-clients"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(clientDir)
	return m.M.Run()
}

// useClients lets a script run client commands without the race detector. Where there is
// no race detector, or no Go to build them with, it changes nothing.
func useClients(e *testscript.Env) error {
	if _, err := exec.LookPath("go"); err != nil || !raced {
		return nil
	}
	e.Setenv("PATH", clientDir+string(filepath.ListSeparator)+e.Getenv("PATH"))
	return buildClients()
}

// buildClients makes the claybot in clientDir, with the flags of claybench, whose build
// cache it shares.
var buildClients = sync.OnceValue(func() error {
	race, err := exec.LookPath("claybot")
	if err != nil {
		return err
	}
	plain := filepath.Join(clientDir, "plain", "claybot")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", plain, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build claybot without the race detector: %w\n%s", err, out)
	}
	patterns := `"` + strings.ReplaceAll(clientCommands, " ", ` "* | "`) + ` "*`
	return os.WriteFile(filepath.Join(clientDir, "claybot"), fmt.Appendf(nil, dispatcher, patterns, plain, race), 0o755)
})

// person reads CHAT or CHAT:USER.
func person(ts *testscript.TestScript, s string) (chat, user int64) {
	c, u, ok := strings.Cut(s, ":")
	if !ok {
		u = c
	}
	chat, err := strconv.ParseInt(c, 10, 64)
	ts.Check(err)
	user, err = strconv.ParseInt(u, 10, 64)
	ts.Check(err)
	return chat, user
}
