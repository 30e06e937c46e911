package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// TestPermitted: permissions are in force at the next call, in both directions, and undo is
// not subject to them.
func TestPermitted(t *testing.T) {
	calls := 0
	does := func(name string) tools.Tool {
		return tools.New(tools.Spec{Tool: llm.Tool{Name: name}}, func(context.Context, tools.Env, struct{}) (tools.Result, error) {
			calls++
			return tools.Result{Text: "done"}, nil
		})
	}
	whole, err := tools.NewSet(does("a"), does("b"), does("c"))
	if err != nil {
		t.Fatal(err)
	}
	var denied string
	set := whole.Permitted(func() tools.Permit {
		return func(spec tools.Spec, _ json.RawMessage) error {
			if spec.Name == denied {
				return errors.New("no")
			}
			return nil
		}
	}).Only([]string{"a", "b"})
	names := func() (all []string) {
		for _, x := range set.Tools() {
			all = append(all, x.Name)
		}
		return all
	}
	for _, step := range []struct{ denied, listed string }{{"", "a b"}, {"b", "a"}, {"", "a b"}, {"a", "b"}} {
		denied = step.denied
		if got := strings.Join(names(), " "); got != step.listed {
			t.Errorf("without %q: %q, want %q", denied, got, step.listed)
		}
		for _, name := range []string{"a", "b"} {
			before, call := calls, claybot.ToolCall{ID: "1", Name: name, Args: "{}"}
			out, refused := set.Do(t.Context(), tools.Env{}, call), set.Check(call)
			if name != denied {
				if out.Fault != nil || refused != nil || calls != before+1 {
					t.Errorf("%s without %q: %v, %v", name, denied, out.Fault, refused)
				}
				continue
			}
			if out.Fault == nil || out.Fault.Code != tools.FaultForbidden || refused == nil || calls != before {
				t.Errorf("%s ran, though it is denied: %+v, %v", name, out.Fault, refused)
			}
			if want := "error: " + name + " was not called: no"; out.Record.Text != want || out.Record.OK {
				t.Errorf("%q, want %q", out.Record.Text, want)
			}
			if out := set.Do(t.Context(), tools.Env{Undo: true}, call); out.Fault != nil {
				t.Errorf("an undo is refused: %v", out.Fault)
			}
		}
	}
	if got := len(whole.Tools()); got != 3 {
		t.Errorf("the set without permissions has %d tools", got)
	}
}

// TestStoppedServer: a tool whose server is stopped is in no set, and its calls are refused as such. Of
// another tool that is not there, permissions say nothing.
func TestStoppedServer(t *testing.T) {
	none, err := tools.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	set := none.Permitted(func() tools.Permit {
		return func(spec tools.Spec, args json.RawMessage) error {
			if spec.Name == "srv_tool" && args == nil {
				return &tools.Fault{Code: tools.FaultStopped, Text: "an operator has stopped srv"}
			}
			return errors.New("no")
		}
	})
	for name, want := range map[string]tools.Fault{
		"srv_tool": {Code: tools.FaultStopped, Text: "an operator has stopped srv"},
		"other":    {Code: tools.FaultUnknown, Text: `unknown tool "other"`},
	} {
		call := claybot.ToolCall{ID: "1", Name: name, Args: "{}"}
		if out := set.Do(t.Context(), tools.Env{}, call); out.Fault == nil || *out.Fault != want {
			t.Errorf("%s: %+v, want %+v", name, out.Fault, want)
		}
		if out := set.Do(t.Context(), tools.Env{Undo: true}, call); out.Fault == nil || out.Fault.Code != tools.FaultUnknown {
			t.Errorf("an undo of %s: %+v", name, out.Fault)
		}
	}
}

func TestForbids(t *testing.T) {
	no := new(false)
	scoped := func(name string, scopes ...string) tools.Spec {
		return tools.Spec{Tool: llm.Tool{Name: name}, Scopes: scopes}
	}
	shell, fetch, open, read := scoped("shell", tools.ScopeShell), scoped("fetch_url", tools.ScopeWeb), scoped("browser_open", tools.ScopeBrowser), scoped("read_file", "files")
	all := []tools.Spec{shell, fetch, open, read}
	for name, tc := range map[string]struct {
		p       claybot.Permissions
		network bool
		allowed []string
	}{
		"nothing":                    {claybot.Permissions{}, true, []string{"shell", "fetch_url", "browser_open", "read_file"}},
		"the web, said":              {claybot.Permissions{Web: new(true)}, true, []string{"shell", "fetch_url", "browser_open", "read_file"}},
		"no web":                     {claybot.Permissions{Web: no}, false, []string{"shell", "read_file"}},
		"no web, commands with one":  {claybot.Permissions{Web: no}, true, []string{"read_file"}},
		"some directories to read":   {claybot.Permissions{ReadDirs: []string{"a"}}, false, []string{"fetch_url", "read_file"}},
		"no directory to write":      {claybot.Permissions{WriteDirs: []string{}}, false, []string{"fetch_url", "read_file"}},
		"a working directory":        {claybot.Permissions{WorkingDir: "a"}, false, []string{"shell", "fetch_url", "browser_open", "read_file"}},
		"tools that are allowed":     {claybot.Permissions{Tools: claybot.ToolPermissions{Allow: []string{"shell"}}}, true, []string{"shell"}},
		"a tool that is denied":      {claybot.Permissions{Tools: claybot.ToolPermissions{Deny: []string{"shell"}}}, true, []string{"fetch_url", "browser_open", "read_file"}},
		"an allowed one without web": {claybot.Permissions{Web: no, Tools: claybot.ToolPermissions{Allow: []string{"fetch_url"}}}, true, nil},
	} {
		var got []string
		for _, spec := range all {
			if tools.Forbids(tc.p, spec, tc.network) == "" {
				got = append(got, spec.Name)
			}
		}
		if !slices.Equal(got, tc.allowed) {
			t.Errorf("%s: %v are allowed, want %v", name, got, tc.allowed)
		}
	}
}
