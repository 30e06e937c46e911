package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/local"
)

// A desk is the tools on a local workspace.
type desk struct {
	*testing.T
	w   workspace.Workspace
	set *tools.Set
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	spec := workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkFull}}
	w, err := local.New(local.Config{Dir: t.TempDir()}).Open(t.Context(), "agent/a", spec)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet(Tools(func(context.Context, tools.Env) (workspace.Workspace, error) { return w, nil })...)
	if err != nil {
		t.Fatal(err)
	}
	return &desk{t, w, set}
}

func (d *desk) write(name, text string) {
	d.Helper()
	if err := d.w.WriteFile(d.Context(), name, []byte(text)); err != nil {
		d.Fatal(err)
	}
}

// call makes a call and returns its text, and the code of its fault.
func (d *desk) call(name string, args map[string]any) (text, code string) {
	d.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		d.Fatal(err)
	}
	o := d.set.Do(d.Context(), tools.Env{CallID: "c"}, claybot.ToolCall{ID: "1", Name: name, Args: string(raw)})
	if o.Fault != nil {
		return o.Record.Text, o.Fault.Code
	}
	return o.Record.Text, ""
}

func TestRead(t *testing.T) {
	d := newDesk(t)
	d.write("a.txt", "one\r\ntwo\nthree")
	d.write("empty", "")
	d.write("long", strings.Repeat("x", 3000)+"\n"+strings.Repeat("line\n", 5000))
	d.write("bin", "\x89PNG\r\n\x1a\n\x00")
	d.write("huge", strings.Repeat("x", maxRead+1))
	for _, tt := range []struct {
		name       string
		args       map[string]any
		code, want string
	}{
		{"whole", map[string]any{"path": "a.txt"}, "", "     1\tone\n     2\ttwo\n     3\tthree\n"},
		{"range", map[string]any{"path": "a.txt", "offset": 2, "limit": 1}, "", "     2\ttwo\n[lines 2 to 2 of 3; go on with offset 3]"},
		{"empty", map[string]any{"path": "empty"}, "", "(the file is empty)"},
		{"long", map[string]any{"path": "long"}, "", "[… 1000 more bytes]"},
		{"behind the end", map[string]any{"path": "a.txt", "offset": 4}, tools.FaultArguments, "has 3 lines"},
		{"picture", map[string]any{"path": "bin"}, "not_text", "image/png, of 9 bytes"},
		{"too large", map[string]any{"path": "huge"}, "too_big", "larger than"},
		{"missing", map[string]any{"path": "nowhere"}, "not_found", "is not there"},
		{"outside", map[string]any{"path": "../a"}, "outside", ".."},
		{"absolute", map[string]any{"path": "/etc/passwd"}, "outside", "outside the workspace"},
		{"NUL", map[string]any{"path": "a\x00"}, "refused", "control character"},
		{"no path", map[string]any{"path": ""}, tools.FaultArguments, "field path"},
		{"negative", map[string]any{"path": "a.txt", "offset": -1}, tools.FaultArguments, "field offset"},
		{"limit", map[string]any{"path": "a.txt", "limit": 2001}, tools.FaultArguments, "field limit"},
	} {
		text, code := d.call("read_file", tt.args)
		if code != tt.code || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %q %q, want %q %q", tt.name, code, text[:min(len(text), 300)], tt.code, tt.want)
		}
	}
	// A long file is read to its end in parts.
	offset, parts := 1, 0
	for ; offset > 0 && parts < 100; parts++ {
		text, code := d.call("read_file", map[string]any{"path": "long", "offset": offset})
		if code != "" || len(text) > 32<<10 {
			t.Fatalf("offset %d: %q, %d bytes", offset, code, len(text))
		}
		_, rest, more := strings.Cut(text, "go on with offset ")
		if offset = 0; more {
			if _, err := fmt.Sscanf(rest, "%d]", &offset); err != nil {
				t.Fatal(err)
			}
		} else if !strings.HasSuffix(text, "  5001\tline\n") {
			t.Errorf("the end is %q", text[len(text)-30:])
		}
	}
	if parts < 3 || parts == 100 {
		t.Errorf("%d parts", parts)
	}
}

func TestWriteAndEdit(t *testing.T) {
	d := newDesk(t)
	if text, code := d.call("write_file", map[string]any{"path": "a/b.txt", "text": "one two two\r\nend\r\n"}); code != "" || text != "a/b.txt is written, 18 bytes" {
		t.Fatal(text, code)
	}
	for _, tt := range []struct {
		name            string
		old, new        string
		all             bool
		code, want, end string // end: of the file
	}{
		{"unique", "one", "1", false, "", "1 place in a/b.txt is changed", "1 two two\r\nend\r\n"},
		{"twice", "two", "2", false, tools.FaultArguments, "more than once", "1 two two\r\nend\r\n"},
		{"all", "two", "2", true, "", "2 places", "1 2 2\r\nend\r\n"},
		{"lines", "2\nend", "3\nfine", false, "", "1 place", "1 2 3\r\nfine\r\n"},
		{"missing", "nothing", "x", false, tools.FaultArguments, "no such text", "1 2 3\r\nfine\r\n"},
		{"empty", "", "x", false, tools.FaultArguments, "must not be empty", "1 2 3\r\nfine\r\n"},
		{"same", "3", "3", false, tools.FaultArguments, "the same", "1 2 3\r\nfine\r\n"},
		{"too long", "\r\n", strings.Repeat("x", maxWrite/2), true, tools.FaultArguments, "longer than", "1 2 3\r\nfine\r\n"},
		{"delete", "1 ", "", false, "", "1 place", "2 3\r\nfine\r\n"},
	} {
		text, code := d.call("edit_file", map[string]any{"path": "a/b.txt", "old_text": tt.old, "new_text": tt.new, "all": tt.all})
		b, err := d.w.ReadFile(t.Context(), "a/b.txt", 100)
		if code != tt.code || !strings.Contains(text, tt.want) || err != nil || string(b) != tt.end {
			t.Errorf("%s: %q %q, the file is %q, %v", tt.name, code, text, b, err)
		}
	}
	if text, code := d.call("write_file", map[string]any{"path": "big", "text": strings.Repeat("x", maxWrite+1)}); code != tools.FaultArguments {
		t.Error(text, code)
	}
	for _, path := range []string{"../x", "/etc/x", "a", ""} {
		if text, code := d.call("write_file", map[string]any{"path": path, "text": "x"}); code == "" {
			t.Errorf("%q: %s", path, text)
		}
	}
	d.write("bin", "\x00\x01")
	if text, code := d.call("edit_file", map[string]any{"path": "bin", "old_text": "x", "new_text": "y"}); code != "not_text" {
		t.Error(text, code)
	}
}

func TestListAndSearch(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"main.go", "README.md", "src/a.go", "src/deep/b.go", "src/deep/c.txt", ".git/config", "web/node_modules/x/y.go"} {
		d.write(name, "package "+filepath.Base(name)+"\nfunc Needle() {}\n")
	}
	d.write("bin", "Needle\x00")
	r, err := d.w.Exec(t.Context(), workspace.Command{Shell: "pwd; ln -s /etc/passwd leak; mkfifo pipe"})
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(r.Output)
	for _, tt := range []struct {
		name, tool string
		args       map[string]any
		code, want string
	}{
		{"top", "list_files", map[string]any{}, "", ".git/\nREADME.md (35 bytes)\nbin (7 bytes)\nleak (11 bytes)\nmain.go (33 bytes)\npipe (0 bytes)\nsrc/\nweb/"},
		{"folder", "list_files", map[string]any{"path": "src"}, "", "src/a.go (30 bytes)\nsrc/deep/"},
		{"folder in other words", "list_files", map[string]any{"path": dir + "/src/./deep/"}, "", "src/deep/b.go (30 bytes)\nsrc/deep/c.txt (31 bytes)"},
		{"all below", "list_files", map[string]any{"pattern": "**/*.go"}, "", "main.go (33 bytes)\nsrc/a.go (30 bytes)\nsrc/deep/b.go (30 bytes)"},
		{"below a folder", "list_files", map[string]any{"pattern": "**/*.go", "path": "src"}, "", "src/a.go (30 bytes)\nsrc/deep/b.go (30 bytes)"},
		{"what is passed over, by name", "list_files", map[string]any{"path": "web/node_modules/x"}, "", "web/node_modules/x/y.go (30 bytes)"},
		{"nothing", "list_files", map[string]any{"pattern": "*.c"}, "", "(no file fits)"},
		{"bad pattern", "list_files", map[string]any{"pattern": "[a"}, tools.FaultArguments, "error: field pattern: invalid pattern \"[a\"; [ needs a ], and \\ needs a character after it"},
		{"missing folder", "list_files", map[string]any{"path": "no"}, "not_found", `error: "no" is not there`},
		{"outside", "list_files", map[string]any{"path": ".."}, "outside", `error: ".." must not contain ..`},
		{"search", "search_files", map[string]any{"pattern": `^func N\w+`, "glob": "**/*.go"}, "", "main.go:2: func Needle() {}\nsrc/a.go:2: func Needle() {}\nsrc/deep/b.go:2: func Needle() {}"},
		{"search without case", "search_files", map[string]any{"pattern": `(?i)NEEDLE`, "path": "src/deep"}, "", "src/deep/b.go:2: func Needle() {}\nsrc/deep/c.txt:2: func Needle() {}"},
		{"search a file", "search_files", map[string]any{"pattern": `package`, "path": "README.md"}, "", "README.md:1: package README.md"},
		{"search nothing", "search_files", map[string]any{"pattern": `root:`}, "", "(no line fits)\n[left out because they are not text or too long: 3 files]"},
		{"search what is missing", "search_files", map[string]any{"pattern": `x`, "path": "no"}, "not_found", `error: "no" is not there`},
		{"search outside", "search_files", map[string]any{"pattern": `root`, "path": "/etc"}, "outside", `error: "/etc" is outside the workspace, whose directory is ` + dir},
		{"search through a link", "search_files", map[string]any{"pattern": `root`, "path": "leak"}, "outside", `error: "leak" leads out of the workspace`},
		{"bad expression", "search_files", map[string]any{"pattern": `(`}, tools.FaultArguments, "error: field pattern: error parsing regexp: missing closing ): `(`"},
		{"no expression", "search_files", map[string]any{"pattern": ``}, tools.FaultArguments, "error: field pattern: 0 bytes, want 1 to 1000"},
		{"bad glob", "search_files", map[string]any{"pattern": `x`, "glob": "/x"}, tools.FaultArguments, `error: field glob: "/x" must be relative, without a slash at the beginning`},
	} {
		text, code := d.call(tt.tool, tt.args)
		if code != tt.code || text != tt.want {
			t.Errorf("%s: %q\n got %q\nwant %q", tt.name, code, text, tt.want)
		}
	}
	d.write("many", strings.Repeat("needle\n", 1000))
	if text, _ := d.call("search_files", map[string]any{"pattern": "needle", "path": "many"}); strings.Count(text, "many:") != 200 || !strings.HasSuffix(text, "[there are more lines; narrow it down]") {
		t.Errorf("%d lines, end %q", strings.Count(text, "many:"), text[len(text)-60:])
	}
}

// A file outside keeps its content, whatever the tools are called with.
func TestNothingOutside(t *testing.T) {
	d := newDesk(t)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := d.w.Exec(t.Context(), workspace.Command{Shell: "ln -s " + outside + " link; ln -s " + filepath.Dir(outside) + " folder; ln " + outside + " hard || echo > hard"})
	if err != nil || r.ExitCode != 0 {
		t.Fatal(r, err)
	}
	for _, path := range []string{outside, "link", "folder/secret", "hard", "../secret", "folder/../secret", "./link/", "folder//secret"} {
		if text, _ := d.call("read_file", map[string]any{"path": path}); strings.Contains(text, "canary") {
			t.Errorf("read_file %s: %s", path, text)
		}
		if text, _ := d.call("search_files", map[string]any{"path": path, "pattern": "canary"}); strings.Contains(text, "canary") {
			t.Errorf("search_files %s: %s", path, text)
		}
		d.call("edit_file", map[string]any{"path": path, "old_text": "canary", "new_text": "changed"})
		d.call("write_file", map[string]any{"path": path, "text": "changed"})
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "canary" {
		t.Errorf("the file outside has %q, %v", b, err)
	}
}

func TestEffects(t *testing.T) {
	d := newDesk(t)
	for name, want := range map[string]tools.Effect{
		"read_file": tools.ReadOnly, "list_files": tools.ReadOnly, "search_files": tools.ReadOnly,
		"write_file": tools.Idempotent, "edit_file": tools.Once,
	} {
		s, ok := d.set.Spec(name)
		if !ok || s.Effect != want || s.Class != tools.Inside {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// A workspace that cannot be had is one clear error of each tool.
func TestUnavailable(t *testing.T) {
	set, err := tools.NewSet(Tools(func(context.Context, tools.Env) (workspace.Workspace, error) {
		return nil, &workspace.Error{Code: workspace.Unavailable, Text: "Docker does not answer; start it", Err: errors.New("dial unix")}
	})...)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t, nil, set}
	for name, args := range map[string]map[string]any{
		"read_file": {"path": "a"}, "write_file": {"path": "a", "text": ""}, "edit_file": {"path": "a", "old_text": "a", "new_text": "b"},
		"list_files": {}, "search_files": {"pattern": "a"},
	} {
		if text, code := d.call(name, args); code != "unavailable" || text != "error: Docker does not answer; start it" {
			t.Errorf("%s: %q %q", name, code, text)
		}
	}
}
