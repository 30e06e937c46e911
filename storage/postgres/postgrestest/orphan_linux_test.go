package postgrestest_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// starter names the variable that makes this test binary start a server below a
// folder, print where and which process, and wait to be killed.
const starter = "POSTGRESTEST_STARTER"

func TestStarter(t *testing.T) {
	dir := os.Getenv(starter)
	if dir == "" {
		t.Skip("only run by TestOrphans")
	}
	s := postgrestest.New(t, postgrestest.Config{Fast: true, Dir: dir})
	if os.Getenv(starter+"_FROZEN") != "" {
		ok(t, s.Freeze())
	}
	fmt.Println("started", s.PID(), s.Folder())
	io.Copy(io.Discard, os.Stdin) // ends with the parent process
}

// A server does not outlive a test binary that is killed, and the next one takes its
// folder away; also when the server could not hear the signal.
func TestOrphans(t *testing.T) {
	for _, frozen := range []string{"", "1"} {
		t.Run("frozen="+frozen, func(t *testing.T) { testOrphan(t, frozen) })
	}
}

func testOrphan(t *testing.T, frozen string) {
	postgrestest.Shared(t) // skips where there is none
	dir, err := os.MkdirTemp("/tmp", "claybot-orphans-")
	ok(t, err)
	defer os.RemoveAll(dir)
	ok(t, os.Chmod(dir, 0o711))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStarter$", "-test.v")
	cmd.Env = append(os.Environ(), starter+"="+dir, starter+"_FROZEN="+frozen)
	in, err := cmd.StdinPipe()
	ok(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	pid, folder := "", ""
	for lines := bufio.NewScanner(out); pid == "" && lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == "started" {
			pid, folder = words[1], words[2]
		}
	}
	ok(t, cmd.Process.Kill())
	cmd.Wait()
	if n, err := strconv.Atoi(pid); err != nil || n <= 1 {
		t.Fatalf("no server was started: %q", pid)
	}
	if frozen == "" {
		gone(t, pid)
	}
	s := postgrestest.New(t, postgrestest.Config{Fast: true, Dir: dir})
	gone(t, pid)
	if _, err := os.Stat(folder); err == nil {
		t.Errorf("the folder %s is there", folder)
	}
	if _, err := os.Stat(s.Folder()); err != nil {
		t.Error(err)
	}
}

// gone waits until a process has ended.
func gone(t *testing.T, pid string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("process %s is there", pid)
		}
	}
}
