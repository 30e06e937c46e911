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

// Of an edit that was cut off, the file says whether it was surely not made, but not that it was: the new
// text may have been there before.
func TestEditIsProbed(t *testing.T) {
	d := newDesk(t)
	edit := claybot.ToolCall{ID: "1", Name: "edit_file", Args: `{"path":"a.txt","old_text":"one","new_text":"1"}`}
	for text, want := range map[string]tools.Probed{"one two": tools.NotDone, "1 two": tools.Unknown, "three": tools.Unknown} {
		d.write("a.txt", text)
		if got, _ := d.set.Probe(d.Context(), tools.Env{CallID: "c"}, edit); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	edit.Args = `{"path":"gone.txt","old_text":"one","new_text":"1"}`
	if got, _ := d.set.Probe(d.Context(), tools.Env{CallID: "c"}, edit); got != tools.Unknown {
		t.Errorf("a file that is gone: %v", got)
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
		for _, change := range []string{"*** Update File: %s\n-canary\n+changed\n+", "*** Update File: %s\n*** Move to: taken\n-canary\n+changed\n+", "*** Add File: %s\n+changed", "*** Delete File: %s"} {
			d.call("apply_patch", map[string]any{"patch": "*** Begin Patch\n" + fmt.Sprintf(change, path) + "\n*** End Patch"})
		}
	}
	if _, err := d.w.ReadFile(t.Context(), "taken", 100); !workspace.Is(err, workspace.NotFound) {
		t.Errorf("a file from outside was moved in: %v", err)
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "canary" {
		t.Errorf("the file outside has %q, %v", b, err)
	}
}

func TestEffects(t *testing.T) {
	d := newDesk(t)
	for name, want := range map[string]tools.Effect{
		"read_file": tools.ReadOnly, "list_files": tools.ReadOnly, "search_files": tools.ReadOnly,
		"write_file": tools.Idempotent, "edit_file": tools.Once, "apply_patch": tools.Once,
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
		"apply_patch": {"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}, "list_files": {}, "search_files": {"pattern": "a"},
	} {
		if text, code := d.call(name, args); code != "unavailable" || text != "error: Docker does not answer; start it" {
			t.Errorf("%s: %q %q", name, code, text)
		}
	}
}

func patchOf(changes ...string) map[string]any {
	return map[string]any{"patch": "*** Begin Patch\n" + strings.Join(changes, "\n") + "\n*** End Patch\n"}
}

// A patch changes all of its files, or none.
func TestPatch(t *testing.T) {
	for _, tt := range []struct {
		name       string
		patch      map[string]any
		may        claybot.Permissions
		code, want string
		files      string // afterwards, each with its content; as before where it is empty
	}{
		{
			"several", patchOf("*** Update File: a.txt", "-one", "+1", "*** Add File: new/c.txt", "+three", "*** Delete File: dir/b.txt"),
			claybot.Permissions{},
			"", "The patch is applied:\nM a.txt\nA new/c.txt\nD dir/b.txt", "a.txt=1\n new/c.txt=three\n",
		},
		{
			"move", patchOf("*** Update File: a.txt", "*** Move to: dir/z.txt", "-one", "+1"),
			claybot.Permissions{},
			"", "A dir/z.txt\nD a.txt", "dir/b.txt=two\n dir/z.txt=1\n",
		},
		{"rename", patchOf("*** Update File: a.txt", "*** Move to: z.txt"), claybot.Permissions{}, "", "A z.txt\nD a.txt", "dir/b.txt=two\n z.txt=one\n"},
		{
			"the second does not fit", patchOf("*** Update File: a.txt", "-one", "+1", "*** Update File: dir/b.txt", "-three", "+3"),
			claybot.Permissions{},
			tools.FaultArguments, `error: field patch: line 6: these lines are not in "dir/b.txt", none of them; read the file again`, "",
		},
		{
			"the second is missing", patchOf("*** Update File: a.txt", "-one", "+1", "*** Delete File: c.txt"),
			claybot.Permissions{},
			tools.FaultArguments, `line 5: there is no "c.txt"`, "",
		},
		{
			"one is there", patchOf("*** Delete File: a.txt", "*** Add File: dir/b.txt", "+x"),
			claybot.Permissions{},
			tools.FaultArguments, `line 3: "dir/b.txt" is there already; change it with *** Update File:`, "",
		},
		{"the target is there", patchOf("*** Update File: a.txt", "*** Move to: dir/b.txt"), claybot.Permissions{}, tools.FaultArguments, `"dir/b.txt" is there already`, ""},
		{
			"twice", patchOf("*** Update File: a.txt", "-one", "+1", "*** Delete File: ./a.txt"),
			claybot.Permissions{},
			tools.FaultArguments, `line 5: "./a.txt" is in the patch twice, first at line 2`, "",
		},
		{
			"two names", patchOf("*** Update File: a.txt", "-one", "+1", "*** Update File: link", "-one", "+2"),
			claybot.Permissions{},
			tools.FaultArguments, `"link" changed meanwhile, or has two names in the patch; no file was changed`, "",
		},
		{"outside", patchOf("*** Update File: a.txt", "-one", "+1", "*** Add File: ../x", "+x"), claybot.Permissions{}, "outside", "must not contain ..", ""},
		{"a folder", patchOf("*** Delete File: dir"), claybot.Permissions{}, "failed", `"dir"`, ""},
		{"a write that fails", patchOf("*** Update File: a.txt", "-one", "+1", "*** Add File: dir/b.txt/c", "+x"), claybot.Permissions{}, "failed", `"dir/b.txt/c"`, ""},
		{
			"no permission to write the second", patchOf("*** Update File: dir/b.txt", "-two", "+2", "*** Update File: a.txt", "-one", "+1"),
			claybot.Permissions{WriteDirs: []string{"dir"}},
			"refused", `error: writing "a.txt" is not permitted; permitted: dir; no file was changed`, "",
		},
		{
			"no permission to delete", patchOf("*** Add File: dir/c.txt", "+x", "*** Delete File: a.txt"),
			claybot.Permissions{WriteDirs: []string{"dir"}},
			"refused", `error: deleting "a.txt" is not permitted; permitted: dir; no file was changed`, "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			d.write("a.txt", "one\n")
			d.write("dir/b.txt", "two\n")
			if tt.name == "two names" {
				if r, err := d.w.Exec(t.Context(), workspace.Command{Shell: "ln -s a.txt link"}); err != nil || r.ExitCode != 0 {
					t.Fatal(r, err)
				}
			}
			w := d.w
			d.set, _ = tools.NewSet(Tools(func(context.Context, tools.Env) (workspace.Workspace, error) {
				return workspace.Confine(w, tt.may), nil
			})...)
			text, code := d.call("apply_patch", tt.patch)
			if code != tt.code || !strings.Contains(text, tt.want) {
				t.Errorf("%q %q, want %q %q", code, text, tt.code, tt.want)
			}
			want := tt.files
			if want == "" {
				want = "a.txt=one\n dir/b.txt=two\n"
			}
			var got []string
			list, _, err := w.List(t.Context(), "", 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range list {
				if b, err := w.ReadFile(t.Context(), f.Path, maxWrite); err == nil && f.Path != "link" {
					got = append(got, f.Path+"="+string(b))
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("the files are %.300q, want %.300q", got, want)
			}
		})
	}
}

func TestPatchTooLong(t *testing.T) {
	d := newDesk(t)
	d.write("big", strings.Repeat("x", maxWrite-1)+"\n")
	if text, code := d.call("apply_patch", patchOf("*** Update File: big", "+y", "*** End of File")); code != tools.FaultArguments || !strings.Contains(text, "longer than 1048576 bytes") {
		t.Errorf("%q %q", code, text)
	}
}

// A disk that is full in the middle of a patch leaves each file as it was.
func TestPatchOnFullDisk(t *testing.T) {
	d := newDesk(t)
	spec := workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkFull}, Disk: 4096}
	w, err := local.New(local.Config{Dir: t.TempDir()}).Open(t.Context(), "agent/a", spec)
	if err != nil {
		t.Fatal(err)
	}
	d.w = w
	d.set, _ = tools.NewSet(Tools(func(context.Context, tools.Env) (workspace.Workspace, error) { return w, nil })...)
	d.write("a.txt", "one\n")
	text, code := d.call("apply_patch", patchOf("*** Update File: a.txt", "-one", "+1", "*** Add File: b.txt", "+"+strings.Repeat("x", 5000), "*** Delete File: c.txt"))
	if code != tools.FaultArguments {
		t.Error(code, text)
	}
	text, code = d.call("apply_patch", patchOf("*** Update File: a.txt", "-one", "+1", "*** Add File: b.txt", "+"+strings.Repeat("x", 5000)))
	if b, err := w.ReadFile(t.Context(), "a.txt", 100); code != "disk_full" || !strings.HasSuffix(text, "; no file was changed") || err != nil || string(b) != "one\n" {
		t.Errorf("%q %q, the file is %q, %v", code, text, b, err)
	}
}
