package documents_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/documents"
)

// in is the agent at work on another run.
func (a agent) in(run claybot.RunID) agent {
	a.env.Run = run
	return a
}

// undo restores the files of a run.
func (a agent) undo(run claybot.RunID) (string, bool) {
	a.t.Helper()
	env := a.env
	env.Run, env.Undo = "undo-"+run, true
	o := a.set.Do(a.t.Context(), env, claybot.ToolCall{ID: "u", Name: documents.RestoreTool, Args: fmt.Sprintf(`{"run":%q}`, run)})
	if o.Record.Undo != nil {
		a.t.Error("an undo can be undone")
	}
	return o.Record.Text, o.Record.OK
}

// undone is undo for what must go well.
func (a agent) undone(run claybot.RunID, want string) {
	a.t.Helper()
	for range 2 { // after a crash it is made again
		if text, ok := a.undo(run); !ok || text != want {
			a.t.Errorf("undo %s: %v %q, want %q", run, ok, text, want)
		}
	}
}

// has checks all files: their paths and contents.
func (a agent) has(want map[string]string) {
	a.t.Helper()
	b, err := a.b(a.env)
	if err != nil {
		a.t.Fatal(err)
	}
	all, err := b.List(a.t.Context(), "")
	if err != nil {
		a.t.Fatal(err)
	}
	got := make(map[string]string)
	for _, f := range all {
		if got[f.Path], err = b.Read(a.t.Context(), f.Path); err != nil {
			a.t.Fatal(err)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		a.t.Errorf("files %q, want %q", got, want)
	}
}

func TestUndoOfARun(t *testing.T) {
	everywhere(t, func(t *testing.T, a agent) {
		one, two, three := a.in("one"), a.in("two"), a.in("three")
		one.do("write_file", m{"path": "a", "text": "A"})
		one.do("write_file", m{"path": "deep/er/b", "text": "B"})
		two.do("write_file", m{"path": "a", "text": "A2"})
		two.do("edit_file", m{"path": "a", "old_text": "A2", "new_text": "A22"})
		two.do("write_file", m{"path": "c", "text": "C"})
		two.do("write_file", m{"path": "c", "text": "C"})
		three.do("write_file", m{"path": "c", "text": "C3"})
		a.has(m2{"a": "A22", "deep/er/b": "B", "c": "C3"})

		// What run three changed since stays, and is said.
		for range 2 {
			if text, ok := a.undo("two"); ok || text != "error: restored: a, left as they are: c (it was changed since)" {
				t.Errorf("%v %q", ok, text)
			}
			a.has(m2{"a": "A", "deep/er/b": "B", "c": "C3"})
		}
		a.undone("three", "restored: c")
		a.has(m2{"a": "A", "deep/er/b": "B", "c": "C"})
		a.undone("two", "restored: c, a")
		a.undone("one", "restored: deep/er/b, a")
		a.has(m2{})
		// A folder that is gone may be a file.
		a.in("four").do("write_file", m{"path": "deep", "text": "file"})
		a.has(m2{"deep": "file"})
		if text, ok := a.undo("one"); !ok {
			t.Errorf("a folder that became a file was never this run's: %q", text)
		}
		a.has(m2{"deep": "file"})
	})
}

type m2 = map[string]string

func TestUndoEffects(t *testing.T) {
	everywhere(t, func(t *testing.T, a agent) {
		call := func(env tools.Env, name, args string) *claybot.Undo {
			return a.set.Do(t.Context(), env, claybot.ToolCall{ID: "c", Name: name, Args: args}).Record.Undo
		}
		first := call(a.env, "write_file", `{"path":"notes/a","text":"x"}`)
		second := call(a.env, "edit_file", `{"path":"notes/a","old_text":"x","new_text":"y"}`)
		want := claybot.ToolCall{Name: documents.RestoreTool, Args: `{"run":"r"}`}
		for _, u := range []*claybot.Undo{first, second} {
			if u == nil || u.Call == nil || *u.Call != want || u.What != "changed files, first notes/a" {
				t.Errorf("%+v", u)
			}
		}
		for name, env := range map[string]tools.Env{"outside a run": {Agent: ann}, "without an agent": {Run: "r"}} {
			if u := call(env, "write_file", `{"path":"b","text":"x"}`); u != nil && u.Call != nil {
				t.Errorf("%s: %+v", name, u)
			}
		}
		if u := call(a.env, "write_file", `{"path":"notes","text":"x"}`); u != nil {
			t.Errorf("a write that failed has an effect: %+v", u)
		}
		if u := call(a.env, "read_file", `{"path":"notes/a"}`); u != nil {
			t.Errorf("reading has an effect: %+v", u)
		}
	})
}

// Of an edit that was cut off, what was kept before it says whether it was made: that the new text stands
// in the file, or the old one does not, says nothing. One that was made can be undone.
func TestEditIsProbed(t *testing.T) {
	everywhere(t, func(t *testing.T, a agent) {
		for name, tt := range map[string]struct {
			before   string
			from, to string
			by       string // the call that made the edit; empty: none did
			after    string // that another call wrote then
			want     tools.Probed
		}{
			"made":                       {before: "one two", from: "one", to: "1", by: "e", want: tools.Done},
			"made, nothing in its place": {before: "one two", from: "one ", to: "", by: "e", want: tools.Done},
			"made, around the old text":  {before: "one two", from: "one", to: "one and", by: "e", want: tools.Done},
			"made, then overwritten":     {before: "one two", from: "one", to: "1", by: "e", after: "1 three", want: tools.Unknown},
			"not made":                   {before: "one two", from: "one", to: "1", want: tools.NotDone},
			"the new text stood there":   {before: "1 two", from: "one", to: "1", want: tools.Unknown},
			"nothing to delete":          {before: "two", from: "one ", to: "", want: tools.Unknown},
			"an earlier call made it":    {before: "one two", from: "one", to: "1", by: "earlier", want: tools.Unknown},
		} {
			env := a.env
			env.Run = claybot.RunID("r-" + strings.NewReplacer(" ", "-", ",", "").Replace(name))
			path := string(env.Run)
			a.put(path, tt.before)
			edit := claybot.ToolCall{Name: "edit_file", Args: fmt.Sprintf(`{"path":%q,"old_text":%q,"new_text":%q}`, path, tt.from, tt.to)}
			do := func(id string, c claybot.ToolCall) claybot.Record {
				env.CallID, c.ID = id, id
				return a.set.Do(t.Context(), env, c).Record
			}
			var made claybot.Record
			if tt.by != "" {
				made = do(tt.by, edit)
			}
			if tt.after != "" {
				do("w", claybot.ToolCall{Name: "write_file", Args: fmt.Sprintf(`{"path":%q,"text":%q}`, path, tt.after)})
			}
			env.CallID, edit.ID = "e", "e"
			got, r := a.set.Probe(t.Context(), env, edit)
			if got != tt.want || got == tools.Done && (!r.OK || r.ToolCallID != "e" || r.Text != path+" is changed" || !reflect.DeepEqual(r.Undo, made.Undo) || r.Undo == nil) {
				t.Errorf("%s: %v, %+v, undo %+v, want %v", name, got, r, r.Undo, tt.want)
			}
		}
	})
}

// What is kept aside is out of reach of the tools, and undo of the model.
func TestKeptAsideIsHidden(t *testing.T) {
	everywhere(t, func(t *testing.T, a agent) {
		a.do("write_file", m{"path": "a", "text": "secret before"})
		a.in("r2").do("write_file", m{"path": "a", "text": "after"})
		for _, look := range []struct {
			tool string
			args m
		}{{"ls", m{}}, {"glob", m{"pattern": "**"}}, {"grep", m{"pattern": "."}}} {
			if got := a.do(look.tool, look.args); strings.Contains(got, "undo") || strings.Contains(got, "secret") || strings.Contains(got, "run.json") {
				t.Errorf("%s shows %q", look.tool, got)
			}
		}
		for _, path := range []string{".claybot-undo/" + string(ann.ID) + "/r2/0", "../undo/r2/0", "r2/0", "r2/run.json"} {
			if text, ok := a.call("read_file", m{"path": path}); ok {
				t.Errorf("%s shows %q", path, text)
			}
		}
		a.refused(documents.RestoreTool, m{"run": "r2"}, "unknown tool")
		for _, offered := range a.set.Tools() {
			if offered.Name == documents.RestoreTool {
				t.Error("the model is offered the undo")
			}
		}
		a.has(m2{"a": "after"})
	})
}

// An agent restores its own runs only.
func TestUndoOfOthers(t *testing.T) {
	bob := claybot.Agent{ID: "b23456789012345678901234", Descriptor: ann.Descriptor}
	docs := new(memory)
	a, b := newAgent(t, ann, documents.Store(docs, alone)), newAgent(t, bob, documents.Store(docs, alone))
	a.in("r1").do("write_file", m{"path": "shared", "text": "of ann"})
	b.in("r2").do("write_file", m{"path": "shared", "text": "of bob"})
	for _, run := range []claybot.RunID{"r1", "none", "", "../r1", claybot.RunID(strings.Repeat("x", 5000))} {
		if text, ok := b.undo(run); ok || !strings.Contains(text, "is not kept any more") {
			t.Errorf("%.20q: %v %.300q", run, ok, text)
		}
	}
	if text, ok := a.undo("r1"); ok || !strings.Contains(text, "shared (it was changed since)") {
		t.Errorf("%q", text)
	}
	b.undone("r2", "restored: shared")
	a.undone("r1", "restored: shared")
	a.has(m2{})
}

// Crashes between what is kept, the journal and the file: the undo comes to the
// state from before all the same.
func TestUndoAfterCrash(t *testing.T) {
	for _, existed := range []bool{true, false} {
		for k := 0; ; k++ {
			docs := &memory{}
			a := newAgent(t, ann, documents.State(docs))
			want := m2{"x": "x"}
			a.in("before").do("write_file", m{"path": "x", "text": "x"})
			if existed {
				want["a"] = "old"
				a.in("before").do("write_file", m{"path": "a", "text": "old"})
			}
			cut := &dying{texts: docs, left: k}
			run := newAgent(t, ann, documents.State(cut)).in("run")
			run.call("write_file", m{"path": "a", "text": "new"})
			run.call("edit_file", m{"path": "a", "old_text": "new", "new_text": "newer"})
			again := a.in("run") // the next pass repeats what has no result
			if k%2 == 0 {
				again.do("write_file", m{"path": "a", "text": "new"})
			}
			text, ok := a.undo("run")
			if !ok && !(k < 2 && strings.Contains(text, "is not kept any more")) {
				t.Errorf("k=%d: %q", k, text)
			}
			a.has(want)
			if cut.left > 0 {
				break
			}
		}
	}
}

type texts = storage.Documents

// dying is a store that fails after some writes.
type dying struct {
	texts
	left int
}

func (d *dying) SaveDocument(ctx context.Context, scope, path, text string, limit int64) error {
	if d.left == 0 {
		return errors.New("the power is out")
	}
	d.left--
	return d.texts.SaveDocument(ctx, scope, path, text, limit)
}

func TestKeptRunsAreBounded(t *testing.T) {
	docs := new(memory)
	a := newAgent(t, ann, documents.State(docs))
	for i := range 15 {
		a.in(claybot.RunID(fmt.Sprintf("run%02d", i))).do("write_file", m{"path": "a", "text": fmt.Sprint("text ", i)})
	}
	for i := range 15 {
		text, ok := a.undo(claybot.RunID(fmt.Sprintf("run%02d", i)))
		kept := !strings.Contains(text, "is not kept any more")
		if kept != (i >= 5) || ok != (i == 14) {
			t.Errorf("run %d: %v %q", i, ok, text)
		}
	}
	a.has(m2{"a": "text 13"})
	// By size as well: each run replaces 15 MiB of what was there.
	big := strings.Repeat("x", documents.MaxFile)
	for run := range 6 {
		for file := range 15 {
			a.put(fmt.Sprint(file), big)
			a.in(claybot.RunID(fmt.Sprint("big", run))).do("write_file", m{"path": fmt.Sprint(file), "text": "short"})
		}
	}
	size := 0
	for path, text := range docs.texts["agent/"+string(ann.ID)+"/undo"] {
		size += len(path) + len(text)
	}
	if size > 64<<20 || size < 40<<20 {
		t.Errorf("%d bytes are kept", size)
	}
	if text, ok := a.undo("big5"); !ok {
		t.Errorf("%q", text)
	}
	if text, ok := a.undo("big0"); ok || !strings.Contains(text, "is not kept any more") {
		t.Errorf("%q", text)
	}
	// What is kept counts for nothing of the agent's own room.
	a.in("last").do("write_file", m{"path": "more", "text": "fits"})
}

// Files of others that a run replaces without being able to keep them.
func TestUndoOfWhatCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("a\n", 600_000)
	must(t, os.WriteFile(filepath.Join(dir, "long"), []byte(long), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "binary"), []byte("a\x00\xff"), 0o600))
	must(t, os.Symlink("long", filepath.Join(dir, "link")))
	a := newAgent(t, ann, folder(dir))
	a.do("write_file", m{"path": "long", "text": "short"})
	a.do("write_file", m{"path": "binary", "text": "text"})
	a.refused("write_file", m{"path": "link", "text": "x"}, "symbolic link")
	text, ok := a.undo("r")
	if ok || !strings.Contains(text, "restored: link, binary, left as they are: long (its content from before is not kept: it was too large") {
		t.Errorf("%v %q", ok, text)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "binary")); err != nil || string(b) != "a\x00\xff" {
		t.Errorf("%q, %v", b, err)
	}
}

// A link in place of what is kept aside leads nowhere.
func TestKeptAsideIsNoLink(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "inside"), 0o700))
	for _, target := range []string{outside, "inside"} {
		link := filepath.Join(dir, ".claybot-undo")
		must(t, os.Symlink(target, link))
		a := newAgent(t, ann, folder(dir))
		a.refused("write_file", m{"path": "a", "text": "x"}, "opening the folder failed")
		must(t, os.Remove(link))
	}
	for _, d := range []string{outside, filepath.Join(dir, "inside")} {
		var found []string
		must(t, filepath.WalkDir(d, func(name string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				found = append(found, name)
			}
			return err
		}))
		if found != nil {
			t.Errorf("%v is written", found)
		}
	}
}

func patchOf(changes ...string) m {
	return m{"patch": "*** Begin Patch\n" + strings.Join(changes, "\n") + "\n*** End Patch"}
}

// A run that deletes and moves files by a patch is undone as a whole.
func TestUndoOfAPatch(t *testing.T) {
	everywhere(t, func(t *testing.T, a agent) {
		before := m2{"a": "A\n", "b": "B\n", "deep/c": "C\n", "empty": ""}
		for path, text := range before {
			a.in("one").do("write_file", m{"path": path, "text": text})
		}
		two := a.in("two")
		text := two.do("apply_patch", patchOf("*** Update File: a", "-A", "+A2", "*** Delete File: ./b", "*** Update File: deep/c", "*** Move to: d", "+D", "*** End of File",
			"*** Delete File: empty", "*** Add File: e/f", "+F"))
		if text != "The patch is applied:\nM a\nA d\nA e/f\nD b\nD deep/c\nD empty" {
			t.Errorf("%q", text)
		}
		a.has(m2{"a": "A2\n", "d": "C\nD\n", "e/f": "F\n"})
		two.refused("apply_patch", patchOf("*** Update File: a", "-A2", "+A3", "*** Delete File: b"), `EINVAL: field patch: line 5: there is no "b"`)
		two.refused("apply_patch", patchOf("*** Add File: e/f/g", "+G"), "ENOTDIR")
		two.refused("apply_patch", patchOf("*** Add File: z", "+Z", "*** Add File: a/g", "+G"), "ENOTDIR")
		a.has(m2{"a": "A2\n", "d": "C\nD\n", "e/f": "F\n"})
		a.undone("two", "restored: empty, deep/c, b, e/f, d, a")
		a.has(before)
		a.in("three").do("apply_patch", patchOf("*** Delete File: b"))
		a.in("four").do("write_file", m{"path": "b", "text": "new"})
		if text, ok := a.undo("three"); ok || !strings.Contains(text, "b (it was changed since)") {
			t.Errorf("%v %q", ok, text)
		}
	})
}

// A patch that cannot go on gives back what it changed.
func TestPatchWithoutRoom(t *testing.T) {
	everywhere(t, func(t *testing.T, a agent) {
		a.do("write_file", m{"path": "a", "text": "A\n"})
		for i := range 16 {
			a.put(fmt.Sprintf("big/%d", i), strings.Repeat("x", documents.MaxFile-1000))
		}
		a.refused("apply_patch", patchOf("*** Update File: a", "-A", "+A2", "*** Add File: b", "+"+strings.Repeat("y", 100_000)), "; no file was changed")
		if text := a.do("read_file", m{"path": "a"}); text != "     1\tA\n" {
			t.Errorf("%q", text)
		}
	})
}
