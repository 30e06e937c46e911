package chromium_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/chromium"
)

// otherProcess names the address that a process of its own opens a browser for, see
// other.
const otherProcess = "CLAYBOT_TEST_OTHER_PROCESS"

func TestMain(m *testing.M) {
	address, ok := os.LookupEnv(otherProcess)
	if !ok {
		os.Exit(m.Run())
	}
	home, stop := "nothing", func() error { return nil }
	if host, ok := devices.HostOf(address); ok {
		hosts, err := devices.ParseHosts([]string{host})
		if err != nil {
			panic(err)
		}
		ctx := context.Background()
		d, err := chromium.Browser{}.Open(ctx, devices.Spec{URL: address, Hosts: hosts})
		if err != nil {
			panic(err)
		}
		_ = d.Starter().Launch(ctx) // nothing needs to be at the address
		home, stop = chromium.Home(d), d.Close
	}
	fmt.Println(home)
	_, _ = io.Copy(io.Discard, os.Stdin) // waits for its end
	if err := stop(); err != nil {
		panic(err)
	}
}

// other starts a process of its own, which waits until the test ends: with a
// browser where there is an address. home is the folder of that.
func other(t *testing.T, address string) (cmd *exec.Cmd, home string) {
	t.Helper()
	cmd = exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), otherProcess+"="+address)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // it may have been killed
	})
	home, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the other process says %q: %v", home, err)
	}
	return cmd, strings.TrimSpace(home)
}

// kill ends a process at once, and waits for that.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // that it was killed
}

// Only folders of processes that do not live any more are removed.
func TestSweep(t *testing.T) {
	living, _ := other(t, "")
	dead, _ := other(t, "")
	kill(t, dead)
	const self = 1 << 30 // no process has such an id
	dir := t.TempDir()
	elsewhere := filepath.Join(t.TempDir(), "keep")
	for path, gone := range map[string]bool{
		fmt.Sprintf("claybot-chromium-%d-1/profile/x", dead.Process.Pid):   true,
		fmt.Sprintf("claybot-chromium-%d-2/profile/x", dead.Process.Pid):   true,
		fmt.Sprintf("claybot-chromium-%d-1/profile/x", self):               true,
		fmt.Sprintf("claybot-chromium-%d-1/profile/x", living.Process.Pid): false,
		fmt.Sprintf("claybot-chromium-%d-1/profile/x", os.Getpid()):        false,
		fmt.Sprintf("claybot-chromium-%d/x", dead.Process.Pid):             false,
		fmt.Sprintf("claybot-chromium-%d-1x/x", dead.Process.Pid):          false,
		fmt.Sprintf("my-claybot-chromium-%d-1/x", dead.Process.Pid):        false,
		"claybot-chromium-0-1/x":                                           false,
		"claybot-chromium--1-1/x":                                          false,
		"claybot-chromium-99999999999999999999-1/x":                        false,
		fmt.Sprintf("claybot-chromium-%d-9", dead.Process.Pid):             false, // a file
		filepath.Join(elsewhere, "x"):                                      false,
	} {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := os.Stat(path); os.IsNotExist(err) != gone {
				t.Errorf("%s: %v, to be removed: %v", path, err, gone)
			}
		}()
	}
	// What a link leads to is not ours.
	if err := os.Symlink(elsewhere, filepath.Join(dir, fmt.Sprintf("claybot-chromium-%d-8", dead.Process.Pid))); err != nil {
		t.Fatal(err)
	}
	chromium.Sweep(dir, self)
	chromium.Sweep(filepath.Join(dir, "nothing"), self)
}

// A process that is killed leaves its profile, and the next one removes it.
func TestKilled(t *testing.T) {
	installed(t)
	// A folder of our own: browsers of other tests sweep the usual one. Its path is
	// short, else the usual one is taken.
	dir, err := os.MkdirTemp("/tmp", "cb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // processes of a killed browser may still write
	t.Setenv("TMPDIR", dir)
	killed, home := other(t, "http://127.0.0.1:9/")
	if want := fmt.Sprintf("claybot-chromium-%d-", killed.Process.Pid); !strings.HasPrefix(filepath.Base(home), want) {
		t.Fatalf("its folder is %s", home)
	}
	kill(t, killed)
	if _, err := os.Stat(home); err != nil {
		t.Fatalf("it left nothing: %v", err)
	}
	end := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for { // the last processes of its browser may still write
		_, named := other(t, "http://127.0.0.1:9/")
		if _, err := os.Stat(home); os.IsNotExist(err) {
			if _, err := os.Stat(named); err != nil {
				t.Errorf("the next one lost its own: %v", err)
			}
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s is still there", home)
		}
	}
}
