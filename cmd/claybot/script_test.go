package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claybot/claybot/overview"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// patience is how long a script waits for something that must happen. It only
// passes when a script fails, however busy the machine is. Slack delivers an event
// again after a minute, where its first two tries met a workspace that still started.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	testscript.Main(withClients{m}, map[string]func(){
		"claybot": func() {
			for name := range strings.FieldsSeq(os.Getenv("CLAYBOT_TEST_UNSET")) { // what scripts cannot do
				_ = os.Unsetenv(name)
			}
			os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestScript is the specification of the command line. The scripts run this
// binary as claybot, in processes of their own, against the emulated
// platforms, which live in the test. Under the race detector, client commands
// run without it, see clientCommands. testdata/script/README.md lists the
// commands.
func TestScript(t *testing.T) {
	endScriptServer(t)
	testscript.Run(t, scripts("testdata/script"))
}

// scripts are those of a directory, which share all commands.
func scripts(dir string) testscript.Params {
	return testscript.Params{
		Dir:                dir,
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			for _, v := range []string{
				"CLAYBOT_DATA_DIR=" + filepath.Join(e.WorkDir, "data"), "CLAYBOT_HTTP_ADDR=off", "CLAYBOT_LOG=json",
				"HOME=" + e.WorkDir, "TZ=UTC", "GORACE=atexit_sleep_ms=0",
			} {
				name, value, _ := strings.Cut(v, "=")
				e.Setenv(name, value)
			}
			r := &rig{t: e.T(), read: make(map[string]int), telegrams: make(map[string]*telegramtest.Server), slacks: make(map[string]*slacktest.Server)}
			e.Values[rigKey{}] = r
			e.Defer(r.close)
			return useClients(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"api":          callAPI,
			"bearer":       askWithToken,
			"bytes":        writeBytes,
			"callback":     withRig((*rig).callbackCommand),
			"capture":      capture,
			"damage":       damageFile,
			"database":     makeDatabase,
			"documented":   documented,
			"exits":        exits,
			"expand":       expand,
			"fakes":        withRig((*rig).fakes),
			"discord":      withRig((*rig).discordCommand),
			"fields":       fields,
			"fill":         fillDisk,
			"free-port":    freePort,
			"gone":         gone,
			"hook":         postHook,
			"http":         getHTTP,
			"insert":       insertMember,
			"model":        withRig((*rig).modelCommand),
			"moment":       setMoment,
			"post":         postJSON,
			"postgres":     withRig((*rig).postgresCommand),
			"private":      private,
			"reply":        withRig((*rig).replyCommand),
			"settle":       withRig((*rig).settle),
			"signal":       sendSignal,
			"show":         showFile,
			"slack":        withRig((*rig).slackCommand),
			"telegram":     withRig((*rig).telegramCommand),
			"terminal":     withRig((*rig).terminalCommand),
			"tmpfs":        withRig((*rig).tmpfs),
			"transcript":   transcript,
			"unpack":       unpack,
			"until":        untilStatus,
			"until-prints": untilPrints,
			"wait-ready":   withRig((*rig).waitReady),
		},
	}
}

// expand puts the values of variables into a file: expand FILE. $claybot is the
// path of the program itself.
func expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: expand FILE")
	}
	text := os.Expand(ts.ReadFile(args[0]), func(name string) string {
		if name != "claybot" {
			return ts.Getenv(name)
		}
		for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return filepath.Join(dir, name)
			}
		}
		return ""
	})
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

type rigKey struct{}

// withRig makes a command of a method of the script's rig. None of them can be
// negated.
func withRig(fn func(r *rig, ts *testscript.TestScript, args []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("this command cannot be negated")
		}
		r := ts.Value(rigKey{}).(*rig)
		r.ts = ts
		fn(r, ts, args)
	}
}

// until waits until done reports true; it fails the script with what done said
// last.
func until(ts *testscript.TestScript, done func() (ok bool, why string)) {
	deadline := time.Now().Add(patience)
	for {
		ok, why := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("waited %v: %s", patience, why)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// ask calls the daemon of a data directory.
func askOpenly(ts *testscript.TestScript, method, path string, out any) error {
	c, err := dial(ts.Getenv("CLAYBOT_DATA_DIR"))
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.call(ctx, method, path, nil, out)
}

// waitReady waits until the daemon has said what each connector is up to: the
// same condition as that of the log line "ready".
func (r *rig) waitReady(ts *testscript.TestScript, _ []string) {
	until(ts, func() (bool, string) {
		var st overview.Status
		if err := askOpenly(ts, "GET", "/status", &st); err != nil {
			return false, err.Error()
		}
		for _, c := range st.Connectors {
			if c.LastOK.IsZero() && c.State != connectors.StateStopped && c.State != connectors.StateOff {
				return false, fmt.Sprintf("%s is %s %s", c.Name, c.State, c.Err)
			}
		}
		return len(st.Connectors) > 0, "no connectors yet"
	})
}

// settle waits until nothing is left to do: all that people wrote is taken in,
// no run is at work, and nothing waits to be sent. What is quiet twice is quiet:
// whatever left one queue between the two looks is visible in the other or on
// the platform.
// settle store looks at claybot alone.
func (r *rig) settle(ts *testscript.TestScript, args []string) {
	quiet := 0
	until(ts, func() (bool, string) {
		why := ""
		if len(args) == 0 {
			why = r.unread()
		}
		if why == "" {
			why = busy(ts)
		}
		if why != "" {
			quiet = 0
			return false, why
		}
		quiet++
		return quiet == 2, "not yet sure"
	})
}

// unread is what the platforms still keep for claybot.
func (r *rig) unread() string {
	if r.telegram != nil && len(r.telegram.Pending()) > 0 {
		return fmt.Sprint("unconfirmed updates: ", r.telegram.Pending())
	}
	if r.slack != nil && len(r.slack.Unacked()) > 0 {
		return fmt.Sprint("unacknowledged envelopes: ", r.slack.Unacked())
	}
	if r.discord != nil && r.discord.Unnamed() > 0 {
		return fmt.Sprint("events that are not stored: ", r.discord.Unnamed())
	}
	return ""
}

// busy is what the daemon still has to do.
func busy(ts *testscript.TestScript) string {
	var st overview.Status
	if err := askOpenly(ts, "GET", "/status", &st); err != nil {
		return err.Error()
	}
	if st.Unknown || st.AsOf != 0 {
		return "the figures are not of this moment"
	}
	open := st.Inbox.Waiting + st.Runs[claybot.RunPending] + st.Runs[claybot.RunRunning]
	for _, s := range []claybot.SendState{claybot.SendWaiting, claybot.SendAttempted, claybot.SendAmbiguous} {
		open += st.Outbox[s]
	}
	if open > 0 {
		return fmt.Sprintf("inbox %+v, runs %v, outbox %v", st.Inbox, st.Runs, st.Outbox)
	}
	return ""
}

// sendSignal signals the daemon whose pid stands in the lock of the data
// directory, as an operator does: signal TERM|HUP|INT.
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "INT": syscall.SIGINT}
	if neg || len(args) != 1 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signal TERM|HUP|INT")
	}
	text := ts.ReadFile(filepath.Join(ts.Getenv("CLAYBOT_DATA_DIR"), "claybot.lock"))
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	ts.Check(err)
	for _, cmd := range ts.BackgroundCmds() { // a pid that is not ours is never signalled
		if cmd.Process.Pid == pid {
			ts.Check(syscall.Kill(pid, signals[args[0]]))
			return
		}
	}
	ts.Fatalf("the lock names process %d, which is none of this script", pid)
}

// gone waits until all background commands have ended.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: gone")
	}
	for _, cmd := range ts.BackgroundCmds() {
		until(ts, func() (bool, string) {
			err := cmd.Process.Signal(syscall.Signal(0))
			return errors.Is(err, os.ErrProcessDone), "it has not ended"
		})
	}
}

// untilStatus waits until the daemon's status matches, and tells how long that took:
// until REGEXP.
func untilStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: until REGEXP")
	}
	began := time.Now()
	re, err := regexp.Compile(args[0])
	ts.Check(err)
	until(ts, func() (bool, string) {
		var st json.RawMessage
		if err := askOpenly(ts, "GET", "/status", &st); err != nil {
			return false, err.Error()
		}
		return re.Match(st), "the status is " + string(st)
	})
	ts.Logf("after %v", time.Since(began).Round(time.Millisecond))
}

// exits runs a command and checks its exit code: exits CODE PROGRAM ARGS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGS...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// getHTTP asks the daemon's page, by another name if one is given, and checks
// the status: http STATUS PATH|URL [HOST]. The body becomes the standard output.
func getHTTP(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: http STATUS PATH|URL [HOST]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	overHTTP(ts, want, http.MethodGet, args[1], "", func(req *http.Request) {
		if len(args) == 3 {
			req.Host = args[2]
		}
	})
}

// askWithToken is getHTTP for the holder of a token: bearer TOKEN STATUS METHOD PATH [JSON].
func askWithToken(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 || len(args) > 5 {
		ts.Fatalf("usage: bearer TOKEN STATUS METHOD PATH [JSON]")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	overHTTP(ts, want, args[2], args[3], strings.Join(args[4:], ""), func(req *http.Request) {
		req.Header.Set("Authorization", "Bearer "+args[0])
		if len(args) == 5 {
			req.Header.Set("Content-Type", "application/json")
		}
	})
}

// overHTTP makes a request to the daemon's page and checks its status.
func overHTTP(ts *testscript.TestScript, want int, method, target, body string, prepare func(*http.Request)) {
	if strings.HasPrefix(target, "/") {
		var link struct{ URL string }
		ts.Check(askOpenly(ts, "POST", "/login-link", &link))
		u, err := url.Parse(link.URL)
		ts.Check(err)
		target = "http://" + u.Host + target
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	ts.Check(err)
	if caller := ts.Getenv("TRACEPARENT"); caller != "" {
		req.Header.Set("Traceparent", caller)
	}
	prepare(req)
	resp, err := new(http.Transport).RoundTrip(req) // follows no redirect
	ts.Check(err)
	defer resp.Body.Close()
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
	if resp.StatusCode != want {
		ts.Fatalf("%s answered %d, want %d", target, resp.StatusCode, want)
	}
}
