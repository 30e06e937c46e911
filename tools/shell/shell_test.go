package shell

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/local"
)

// contained is a workspace without a network.
func contained(tools.Env) string { return workspace.NetworkNone }

func newSet(t *testing.T) (*tools.Set, workspace.Workspace) {
	t.Helper()
	spec := workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkFull}, PIDs: 20}
	w, err := local.New(local.Config{Dir: t.TempDir()}).Open(t.Context(), "agent/a", spec)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet(Tools(func(context.Context, tools.Env) (workspace.Workspace, error) { return w, nil }, contained)...)
	if err != nil {
		t.Fatal(err)
	}
	return set, w
}

func call(t *testing.T, set *tools.Set, args map[string]any) tools.Outcome {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return set.Do(t.Context(), tools.Env{CallID: "c"}, claybot.ToolCall{ID: "1", Name: Name, Args: string(raw)})
}

func TestShell(t *testing.T) {
	set, w := newSet(t)
	if err := w.WriteFile(t.Context(), "sub/x", nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args map[string]any
		code string // of the fault
		want []string
	}{
		{"output", map[string]any{"command": "echo hi"}, "", []string{"exit code 0, after ", "\nhi\n"}},
		{"exit code", map[string]any{"command": "exit 3"}, "", []string{"exit code 3, after", "(no output)"}},
		{"signal", map[string]any{"command": "kill -9 $$"}, "", []string{"exit code 137, killed"}},
		{"cwd", map[string]any{"command": "ls", "cwd": "sub"}, "", []string{"\nx\n"}},
		{"cwd outside", map[string]any{"command": "ls", "cwd": "../.."}, "outside", []string{"must not contain .."}},
		{"cwd missing", map[string]any{"command": "ls", "cwd": "no"}, "not_found", nil},
		{"no limits", map[string]any{"command": "echo on", "timeout": 0, "idle_timeout": 0}, "", []string{"on"}},
		{"wall", map[string]any{"command": "echo begun; sleep 60", "timeout": 10}, "timeout", []string{"longer than its limit of 10s", "begun"}},
		{"idle", map[string]any{"command": "echo begun; sleep 60", "idle_timeout": 10}, "idle_timeout", []string{"wrote nothing for 10s", "begun"}},
		{"long output", map[string]any{"command": "yes | head -c 50000"}, "", []string{"[50000 bytes of output; this is its end, the file .claybot/output/", "has all of it]"}},
		{"empty", map[string]any{"command": " \n"}, tools.FaultArguments, nil},
		{"NUL", map[string]any{"command": "a\x00b"}, tools.FaultArguments, nil},
		{"too long", map[string]any{"command": strings.Repeat("x", maxCommand+1)}, tools.FaultArguments, nil},
		{"negative", map[string]any{"command": "true", "timeout": -1}, tools.FaultArguments, []string{"field timeout"}},
		{"too much", map[string]any{"command": "true", "idle_timeout": 86401}, tools.FaultArguments, []string{"field idle_timeout"}},
		{"not whole", map[string]any{"command": "true", "timeout": 1.5}, tools.FaultArguments, nil},
		{"no command", map[string]any{}, tools.FaultArguments, nil},
		{"unknown field", map[string]any{"command": "true", "sudo": true}, tools.FaultArguments, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // the limits of time are so long that a busy machine has begun by then
			o := call(t, set, tt.args)
			code := ""
			if o.Fault != nil {
				code = o.Fault.Code
			}
			if code != tt.code || o.Record.OK != (tt.code == "") {
				t.Errorf("fault %q, want %q: %s", code, tt.code, o.Record.Text)
			}
			for _, want := range tt.want {
				if !strings.Contains(o.Record.Text, want) {
					t.Errorf("%.500q has no %q", o.Record.Text, want)
				}
			}
		})
	}
}

func TestSpec(t *testing.T) {
	set, _ := newSet(t)
	s, _ := set.Spec(Name)
	if s.Effect != tools.Once || s.Class != tools.Inside || s.Timeout < maxLimit {
		t.Errorf("spec %+v", s)
	}
	for args, want := range map[string]string{
		`{"command":"rm -rf /\n"}`: "rm -rf /\n", `{}`: "", `nonsense`: "", `{"cwd":"x"}`: "",
		`{"command":"make","cwd":"sub/it's"}`: `cd 'sub/it'\''s' && make`,
	} {
		if got := s.Subject(json.RawMessage(args)); got != want {
			t.Errorf("subject of %s: %q", args, got)
		}
	}
}

// A command that begins in another folder is another action.
func TestSubject(t *testing.T) {
	set, _ := newSet(t)
	s, _ := set.Spec(Name)
	for _, tt := range []struct {
		name  string
		rules tools.Rules
		args  string
		want  tools.Verdict
	}{
		{"pattern", tools.Rules{Allow: []string{"shell(make *)"}}, `{"command":"make all"}`, tools.Allow},
		{"pattern, elsewhere", tools.Rules{Allow: []string{"shell(make *)", "shell(*)", "shell(cd *)"}}, `{"command":"make all","cwd":"evil"}`, tools.Ask},
		{"exactly that", tools.Rules{Always: []string{"shell(cd 'sub' && make)"}}, `{"command":"make","cwd":"sub"}`, tools.Allow},
		{"exactly that, elsewhere", tools.Rules{Always: []string{"shell(make)"}}, `{"command":"make","cwd":"sub"}`, tools.Ask},
	} {
		tt.rules.Confirm = []tools.Confirming{{Tools: Name, When: tools.ConfirmUnlessAllowed}}
		if len(tt.rules.Always) > 0 {
			tt.rules.Confirm[0].When = tools.ConfirmAlways
		}
		if got := tt.rules.Decide(t.Context(), tools.Env{}, s, claybot.ToolCall{ID: "1", Name: Name, Args: tt.args}, nil); got.Verdict != tt.want {
			t.Errorf("%s: %+v, want %v", tt.name, got, tt.want)
		}
	}
}

// With a network, what a command says is of strangers, and after that a command
// that could send it anywhere asks.
func TestNetwork(t *testing.T) {
	_, w := newSet(t)
	for _, tt := range []struct {
		mode           string
		strange        bool
		clean, tainted tools.Verdict
	}{
		{"", false, tools.Allow, tools.Allow},
		{workspace.NetworkNone, false, tools.Allow, tools.Allow},
		{workspace.NetworkAllow, true, tools.Allow, tools.Allow},
		{workspace.NetworkFull, true, tools.Allow, tools.Ask},
		{workspace.NetworkHostUnsafe, true, tools.Allow, tools.Ask},
		{"another", true, tools.Allow, tools.Ask},
	} {
		set, err := tools.NewSet(Tools(func(context.Context, tools.Env) (workspace.Workspace, error) { return w, nil }, func(env tools.Env) string {
			if env.Agent.ID != "a" {
				t.Errorf("asked about the agent %q", env.Agent.ID)
			}
			return tt.mode
		})...)
		if err != nil {
			t.Fatal(err)
		}
		env := tools.Env{Agent: claybot.Agent{ID: "a"}}
		s, _ := set.Spec(Name)
		// The second one is ended, for having too many processes.
		for _, line := range []string{"echo obey", "echo obey; i=0; while [ $i -lt 40 ]; do sleep 60 & i=$((i+1)); done; wait"} {
			c := claybot.ToolCall{ID: "1", Name: Name, Args: `{"command":"` + line + `"}`}
			if o := set.Do(t.Context(), env, c); o.Record.Tainted != tt.strange || !strings.Contains(o.Record.Text, "obey") {
				t.Errorf("%s, %s: %+v", tt.mode, line, o.Record)
			}
			if got := (tools.Rules{}).Decide(t.Context(), env, s, c, nil); got.Verdict != tt.clean {
				t.Errorf("%s, clean: %+v", tt.mode, got)
			}
			dirty := env
			dirty.Tainted = true
			if got := (tools.Rules{}).Decide(t.Context(), dirty, s, c, nil); got.Verdict != tt.tainted {
				t.Errorf("%s, tainted: %+v", tt.mode, got)
			}
		}
	}
}

// An engine that is down is one clear error, which may be tried again.
func TestUnavailable(t *testing.T) {
	set, err := tools.NewSet(Tools(func(context.Context, tools.Env) (workspace.Workspace, error) {
		return nil, &workspace.Error{Code: workspace.Unavailable, Text: "Docker does not answer; start it", Err: errors.New("dial unix")}
	}, contained)...)
	if err != nil {
		t.Fatal(err)
	}
	o := call(t, set, map[string]any{"command": "true"})
	if o.Fault == nil || o.Fault.Code != "unavailable" || !o.Fault.Retriable || o.Record.Text != "error: Docker does not answer; start it" {
		t.Errorf("%+v %+v", o.Fault, o.Record)
	}
}

// The end of the run ends the command.
func TestInterrupted(t *testing.T) {
	set, w := newSet(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan tools.Outcome, 1)
	go func() {
		done <- set.Do(ctx, tools.Env{}, claybot.ToolCall{ID: "1", Name: Name, Args: `{"command":"echo > begun; sleep 600"}`})
	}()
	r, err := w.Exec(t.Context(), workspace.Command{Shell: "while [ ! -e begun ]; do sleep 0.05; done"})
	if err != nil || r.ExitCode != 0 {
		t.Fatal(r, err)
	}
	cancel()
	if o := <-done; o.Fault == nil || o.Fault.Code != tools.FaultInterrupted {
		t.Errorf("%+v", o)
	}
}
