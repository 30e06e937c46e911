package claybot_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

func TestPermissionsNarrow(t *testing.T) {
	type P = claybot.Permissions
	yes, no := new(true), new(false)
	allow := func(names ...string) P { return P{Tools: claybot.ToolPermissions{Allow: names}} }
	deny := func(names ...string) P { return P{Tools: claybot.ToolPermissions{Deny: names}} }
	for name, tc := range map[string]struct{ outer, inner, want P }{
		"nothing":                  {},
		"inherited":                {P{Web: no, WorkingDir: "a", ReadDirs: []string{"a"}}, P{}, P{Web: no, WorkingDir: "a", ReadDirs: []string{"a"}}},
		"added":                    {P{}, P{Web: no, WriteDirs: []string{}}, P{Web: no, WriteDirs: []string{}}},
		"working directory":        {P{WorkingDir: "a"}, P{WorkingDir: "b"}, P{WorkingDir: "b"}},
		"the web is not won back":  {P{Web: no}, P{Web: yes}, P{Web: no}},
		"the web is given up":      {P{Web: yes}, P{Web: no}, P{Web: no}},
		"a directory below":        {P{ReadDirs: []string{"a", "b"}}, P{ReadDirs: []string{"a/x", "c"}}, P{ReadDirs: []string{"a/x"}}},
		"a directory above":        {P{WriteDirs: []string{"a/x", "b"}}, P{WriteDirs: []string{"a"}}, P{WriteDirs: []string{"a/x"}}},
		"the whole workspace":      {P{WriteDirs: []string{"a"}}, P{WriteDirs: []string{"."}}, P{WriteDirs: []string{"a"}}},
		"a name is no directory":   {P{ReadDirs: []string{"a"}}, P{ReadDirs: []string{"ab"}}, P{ReadDirs: []string{}}},
		"the same directory":       {P{ReadDirs: []string{"a"}}, P{ReadDirs: []string{"a"}}, P{ReadDirs: []string{"a"}}},
		"no directory":             {P{ReadDirs: []string{}}, P{ReadDirs: []string{"a"}}, P{ReadDirs: []string{}}},
		"tools":                    {allow("a", "b"), allow("c", "b"), allow("b")},
		"no tools in common":       {allow("a"), allow("b"), P{Tools: claybot.ToolPermissions{Allow: []string{}}}},
		"denied tools add up":      {deny("a"), deny("b", "a"), deny("a", "b")},
		"a denial stays":           {deny("a"), allow("a"), P{Tools: claybot.ToolPermissions{Allow: []string{"a"}, Deny: []string{"a"}}}},
		"routes":                   {P{Routes: []string{"telegram:1", "telegram:2"}}, P{Routes: []string{"telegram:2", "slack:3"}}, P{Routes: []string{"telegram:2"}}},
		"no routes stay no routes": {P{Routes: []string{}}, P{}, P{Routes: []string{}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.outer.Narrow(tc.inner)
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			if again := got.Narrow(tc.inner); !reflect.DeepEqual(again, got) {
				t.Errorf("narrowed again: %+v, want %+v", again, got)
			}
		})
	}
}

// TestPermissionsOnlyNarrow: whatever two permissions say, both together permit nothing
// that one of them does not.
func TestPermissionsOnlyNarrow(t *testing.T) {
	lists := [][]string{nil, {}, {"."}, {"a"}, {"a/x"}, {"b", "a/y"}}
	names := []string{".", "a", "a/x", "a/x/1", "a/y", "ab", "b"}
	for _, x := range lists {
		for _, y := range lists {
			p, q := claybot.Permissions{ReadDirs: x, WriteDirs: y, Tools: claybot.ToolPermissions{Allow: x, Deny: y}}, claybot.Permissions{ReadDirs: y, WriteDirs: x, Tools: claybot.ToolPermissions{Allow: y}}
			n := p.Narrow(q)
			for _, name := range names {
				if got, want := n.MayRead(name), p.MayRead(name) && q.MayRead(name); got != want {
					t.Errorf("reads %q with %v and %v: %v, want %v", name, x, y, got, want)
				}
				if got, want := n.MayWrite(name), p.MayWrite(name) && q.MayWrite(name); got != want {
					t.Errorf("writes %q with %v and %v: %v, want %v", name, y, x, got, want)
				}
				if got, want := n.Uses(name), p.Uses(name) && q.Uses(name); got != want {
					t.Errorf("uses %q with %v and %v: %v, want %v", name, x, y, got, want)
				}
			}
		}
	}
}

func TestPermissionsCleaned(t *testing.T) {
	id := strings.Repeat("a", 24)
	good := claybot.Permissions{WorkingDir: "./src//lib/", ReadDirs: []string{"a/", "a", "."}, WriteDirs: []string{}, Routes: []string{id, "telegram:1001"}}
	got, err := good.Cleaned()
	want := claybot.Permissions{WorkingDir: "src/lib", ReadDirs: []string{"a", "."}, WriteDirs: []string{}, Routes: []string{id, "telegram:1001"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for why, bad := range map[string]claybot.Permissions{
		`workingDir: invalid directory "/etc"; want a directory relative`: {WorkingDir: "/etc"},
		`readDirs: invalid directory ""`:                                  {ReadDirs: []string{""}},
		`readDirs: invalid directory "a/../b"; .. is not allowed in it`:   {ReadDirs: []string{"a/../b"}},
		`writeDirs: invalid directory "a\x00b"`:                           {WriteDirs: []string{"a\x00b"}},
		`writeDirs: 101 entries, the limit is 100`:                        {WriteDirs: make([]string, 101)},
		`routes: invalid route "somewhere"; want an agent ID`:             {Routes: []string{"somewhere"}},
		`routes: invalid route "telegram:"`:                               {Routes: []string{"telegram:"}},
		`tools.deny: 501 entries`:                                         {Tools: claybot.ToolPermissions{Deny: make([]string, 501)}},
	} {
		if _, err := bad.Cleaned(); err == nil || !strings.HasPrefix(err.Error(), why) {
			t.Errorf("%+v: %v, want %s", bad, err, why)
		}
	}
}

func TestPermissionsReaches(t *testing.T) {
	to, id := claybot.User("telegram", "1001", "7"), claybot.AgentID(strings.Repeat("b", 24))
	for name, tc := range map[string]struct {
		routes []string
		want   bool
	}{
		"all": {nil, true}, "none": {[]string{}, false}, "the agent": {[]string{string(id)}, true},
		"the conversation": {[]string{"telegram:1001"}, true}, "another one": {[]string{"slack:1001", "telegram:100"}, false},
	} {
		if got := (claybot.Permissions{Routes: tc.routes}).Reaches(id, to); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if child := (claybot.Descriptor{Type: claybot.AgentSubagent}); (claybot.Permissions{Routes: []string{":"}}).Reaches(id, child) {
		t.Error("a route without a conversation reaches a subagent")
	}
}

func TestPermissionsWiden(t *testing.T) {
	limited := claybot.Permissions{Web: new(false), ReadDirs: []string{"a"}, WriteDirs: []string{}, Tools: claybot.ToolPermissions{Deny: []string{"x"}}}
	for right, change := range map[string]func(*claybot.Permissions){
		"@web":         func(p *claybot.Permissions) { p.Web = nil },
		"@read:b/":     func(p *claybot.Permissions) { p.ReadDirs = []string{"a", "b"} },
		"@read:.":      func(p *claybot.Permissions) { p.ReadDirs = []string{"a", "."} },
		"@read:a/deep": func(*claybot.Permissions) {},
		"@write:a":     func(p *claybot.Permissions) { p.WriteDirs = []string{"a"} },
	} {
		want := limited.Clone()
		change(&want)
		if got, err := limited.Widen(right); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", right, got, err, want)
		}
	}
	for _, right := range []string{"@web", "@read:a", "@write:b"} {
		if got, err := (claybot.Permissions{}).Widen(right); err != nil || !got.IsZero() {
			t.Errorf("%s without limits: %+v, %v", right, got, err)
		}
	}
	for _, right := range []string{"", "web", "@web:x", "@read", "@read:", "@read:/etc", "@write:a/../b", "@tools:x", "@READ:a"} {
		if got, err := limited.Widen(right); err == nil {
			t.Errorf("%q: %+v", right, got)
		}
	}
}
