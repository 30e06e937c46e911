package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/docker"
	"github.com/claybot/claybot/workspace/local"
)

// A bench is the tools on workspaces of a manager, which can restart.
type bench struct {
	*testing.T
	cfg  workspace.ManagerConfig
	want workspace.Want
	m    *workspace.Manager
	set  *tools.Set
}

// everywhere runs a test in workspaces of each provider.
func everywhere(t *testing.T, test func(b *bench)) {
	for _, name := range []string{"local", "docker"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var p workspace.Provider
			spec := workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkHostUnsafe}}
			if p = local.New(local.Config{Dir: filepath.Join(dir, "ws")}); name == "docker" {
				spec = workspace.Spec{Image: "claybot-test:busybox", KeepOnTimeout: true}
				d := docker.New(docker.Config{Node: "test-" + strings.ToLower(rand(t)), Image: spec.Image})
				t.Cleanup(func() { _ = d.Close() })
				p = d
			}
			db, err := sqlite.Open(context.Background(), filepath.Join(dir, "claybot.db"), sqlite.Config{})
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{T: t, want: workspace.Want{Provider: p.Name(), Key: "agent/a", Spec: spec, TTL: time.Hour}}
			b.cfg = workspace.ManagerConfig{Providers: []workspace.Provider{p}, Ledger: db, Node: "n"}
			t.Cleanup(func() { _ = db.Close() })
			b.begin()
			opened := false
			t.Cleanup(func() {
				b.m.Close()
				if !opened {
					return
				}
				if err := b.m.Remove(context.WithoutCancel(t.Context()), b.want.Provider, b.want.Key, true); err != nil {
					t.Error(err)
				}
			})
			if _, err := b.m.Open(t.Context(), b.want); err != nil {
				if name == "docker" && os.Getenv("CI") != "true" {
					t.Skipf("no Docker engine with the image %s; scripts/docker.sh makes both: %v", spec.Image, err)
				}
				t.Fatal(err)
			}
			opened = true
			test(b)
		})
	}
}

func rand(t *testing.T) string { return fmt.Sprintf("%x", time.Now().UnixNano()) + t.Name()[:4] }

// begin is the start of a process of claybot.
func (b *bench) begin() {
	b.m = workspace.NewManager(b.cfg)
	var err error
	b.set, err = tools.NewSet(Tools(func(ctx context.Context, _ tools.Env) (workspace.Workspace, error) { return b.m.Open(ctx, b.want) }, contained)...)
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) call(name string, args map[string]any) (text, code string) {
	b.Helper()
	if args == nil {
		args = map[string]any{}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		b.Fatal(err)
	}
	o := b.set.Do(b.Context(), tools.Env{CallID: "c"}, claybot.ToolCall{ID: "1", Name: name, Args: string(raw)})
	if o.Fault != nil {
		code = o.Fault.Code
	}
	return o.Record.Text, code
}

// do is call for what must go well.
func (b *bench) do(name string, args map[string]any) string {
	b.Helper()
	text, code := b.call(name, args)
	if code != "" {
		b.Fatalf("%s %v: %s", name, args, text)
	}
	return text
}

func (b *bench) start(command string) {
	b.Helper()
	b.do(Name, map[string]any{"command": command, "background": true})
}

// until makes a call until its text has some words.
func (b *bench) until(name string, args map[string]any, want string) {
	b.Helper()
	text := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if text = b.do(name, args); strings.Contains(text, want) {
			return
		}
	}
	b.Fatalf("%s: %q, want %q", name, text, want)
}

func TestBackground(t *testing.T) {
	everywhere(t, func(b *bench) {
		if text := b.do(processList, nil); text != "(no background process)" {
			b.Error(text)
		}
		if text := b.do(Name, map[string]any{"command": `echo "it's begun"; while read -r l; do echo "got $l"; done; echo over; exit 3`, "background": true}); !strings.HasPrefix(text, "process 1 is started") {
			b.Error(text)
		}
		b.until(processLog, map[string]any{"id": "1"}, "[process 1 runs; bytes 0 to 11 of 11; go on with offset 11]\nit's begun\n")
		if text := b.do(processInput, map[string]any{"id": "1", "text": "tea\n"}); text != "4 bytes are written" {
			b.Error(text)
		}
		b.until(processLog, map[string]any{"id": "1", "offset": 11}, "bytes 11 to 19 of 19; go on with offset 19]\ngot tea\n")
		b.do(processInput, map[string]any{"id": "1", "text": "pot\n", "end": true})
		b.until(processLog, map[string]any{"id": "1", "offset": 19, "limit": 8}, "[process 1 ended with exit code 3; bytes 19 to 27 of 32; go on with offset 27]\ngot pot\n")
		b.until(processList, nil, "1: ended with exit code 3, started ")
		if text, code := b.call(processInput, map[string]any{"id": "1", "text": "x"}); code != tools.FaultFailed || !strings.Contains(text, "process 1 ended with exit code 3") {
			b.Error(code, text)
		}
		if text := b.do(processStop, map[string]any{"id": "1"}); !strings.Contains(text, "does not run") {
			b.Error(text)
		}
		for name, args := range map[string]map[string]any{
			processLog: {"id": "9"}, processInput: {"id": "../1", "text": "x"}, processStop: {"id": ""},
		} {
			if text, code := b.call(name, args); code != tools.FaultArguments || !strings.Contains(text, "there is no process") {
				b.Errorf("%s: %q %q", name, code, text)
			}
		}
		if text, code := b.call(Name, map[string]any{"command": "true", "background": true, "timeout": 5}); code != tools.FaultArguments {
			b.Error(code, text)
		}
		if text, code := b.call(Name, map[string]any{"command": "true", "background": true, "cwd": "no"}); code != string(workspace.NotFound) {
			b.Error(code, text)
		}
	})
}

// A process gets its inputs in their order: none is taken while an earlier one waits.
func TestBackgroundInputWaits(t *testing.T) {
	everywhere(t, func(b *bench) {
		b.start("until [ -e go ]; do sleep 0.1; done; tr -d a | wc -c")
		input := func(text string, end bool) (string, string) {
			return b.call(processInput, map[string]any{"id": "1", "text": text, "end": end})
		}
		code := ""
		for n := 0; n < 200 && code == ""; n++ { // until its pipe is full
			_, code = input(strings.Repeat("a", maxInput), false)
		}
		if code != tools.FaultTimeout {
			b.Fatal(code)
		}
		if text, code := input("bc", true); code != tools.FaultRate || !strings.Contains(text, "has not read its earlier input") {
			b.Error(code, text)
		}
		b.do(Name, map[string]any{"command": "touch go"})
		for code = tools.FaultRate; code == tools.FaultRate; {
			_, code = input("bcd", true)
		}
		if code != "" {
			b.Error(code)
		}
		b.until(processLog, map[string]any{"id": "1"}, "]\n3\n")
	})
}

// A stop ends all that a process started, also what has left its group.
func TestBackgroundStop(t *testing.T) {
	everywhere(t, func(b *bench) {
		b.start("sleep 4711 & setsid sleep 4712 & echo on; wait")
		b.until(processLog, map[string]any{"id": "1"}, "on\n")
		if text := b.do(processStop, map[string]any{"id": "1"}); text != "process 1 is stopped" {
			b.Error(text)
		}
		b.until(processList, nil, "1: stopped by process_stop, ")
		if b.want.Provider == "docker" {
			if text := b.do(Name, map[string]any{"command": "ps"}); strings.Contains(text, "sleep 47") {
				b.Error(text)
			}
		}
	})
}

// Processes end with claybot, and are never taken for others afterwards.
func TestBackgroundRestart(t *testing.T) {
	everywhere(t, func(b *bench) {
		b.start("echo on; sleep 4713")
		b.until(processLog, map[string]any{"id": "1"}, "on\n")
		b.m.Close()
		b.begin()
		if text := b.do(processList, nil); !strings.HasPrefix(text, "1: was ended: the workspace was stopped, or claybot restarted, started ") || !strings.HasSuffix(text, ", 3 bytes of output: echo on; sleep 4713\n") {
			b.Error(text)
		}
		if text := b.do(processLog, map[string]any{"id": "1"}); !strings.HasSuffix(text, "]\non\n") {
			b.Error(text)
		}
		b.start("sleep 4714")
		b.until(processList, nil, "2: runs, ")
		// They end with the workspace, too; their files stay.
		if err := b.m.Remove(b.Context(), b.want.Provider, b.want.Key, false); err != nil {
			b.Fatal(err)
		}
		b.until(processList, nil, "2: was ended: ")
	})
}

func TestBackgroundLimits(t *testing.T) {
	everywhere(t, func(b *bench) {
		b.start("head -c 20000000 /dev/zero | tr '\\0' x; echo over > done; sleep 4715")
		b.until(Name, map[string]any{"command": "cat done 2>/dev/null; true"}, "over") // it is not held up
		size := b.do(Name, map[string]any{"command": "wc -c < .claybot/processes/1/log"})
		if !strings.Contains(size, "\n4194304") && !strings.Contains(size, "\n8388608") {
			b.Errorf("the log has %s", size)
		}
		for range maxRunning - 1 {
			b.start("sleep 4716")
		}
		if text, code := b.call(Name, map[string]any{"command": "sleep 4717", "background": true}); code != tools.FaultRate || !strings.Contains(text, "8 processes run in the background already") {
			b.Error(code, text)
		}
		for i := range maxRunning {
			b.do(processStop, map[string]any{"id": fmt.Sprint(i + 1)})
		}
		for i := range keepEnded {
			b.start("true")
			b.until(processList, nil, fmt.Sprintf("\n%d: ended with exit code 0", maxRunning+1+i))
		}
		if text := b.do(processList, nil); strings.Count(text, "\n") != keepEnded || !strings.HasPrefix(text, "9: ") {
			b.Errorf("%s", text)
		}
	})
}
