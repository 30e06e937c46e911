package documents_test

import (
	"encoding/json"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools/documents"
)

// record is call with the whole record.
func (a agent) record(name string, args m) claybot.Record {
	a.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		a.t.Fatal(err)
	}
	r := call(a.t.Context(), a.set, a.env, claybot.ToolCall{ID: "c", Name: name, Args: string(b)})
	if !r.OK {
		a.t.Fatalf("%s %v: %s", name, args, r.Text)
	}
	return r
}

// A file written by a run that has read untrusted content stays untrusted, for any run that
// reads it, until a run that has read none writes it anew.
func TestTaintStaysWithTheFile(t *testing.T) {
	everywhere(t, func(t *testing.T, a agent) {
		tainted, clean := a, a
		tainted.env.Run, tainted.env.Tainted, clean.env.Run = "tainted", true, "clean"
		reads := func(when string, want bool) {
			t.Helper()
			for tool, args := range map[string]m{
				"read_file": {"path": "in/a.md"}, "grep": {"pattern": "p"}, "glob": {"pattern": "**/a*"}, "ls": {"path": "in"},
			} {
				if r := clean.record(tool, args); r.Tainted != want {
					t.Errorf("%s: %s is tainted: %v, want %v", when, tool, r.Tainted, want)
				}
			}
			if r := clean.record("grep", m{"pattern": "p", "path": "in/a.md"}); r.Tainted != want {
				t.Errorf("%s: grep of the file is tainted: %v, want %v", when, r.Tainted, want)
			}
			for tool, args := range map[string]m{
				"read_file": {"path": "b.md"}, "grep": {"pattern": "good"}, "glob": {"pattern": "b*"},
			} {
				if r := clean.record(tool, args); r.Tainted {
					t.Errorf("%s: %s of another file is tainted", when, tool)
				}
			}
		}
		clean.do("write_file", m{"path": "b.md", "text": "good"})
		clean.do("write_file", m{"path": "in/a.md", "text": "pure"})
		reads("before", false)
		tainted.do("edit_file", m{"path": "in/a.md", "old_text": "pure", "new_text": "poison"})
		reads("edited by strangers", true)
		clean.do("edit_file", m{"path": "in/a.md", "old_text": "poison", "new_text": "poison!"})
		reads("edited afterwards", true)
		clean.env.Run = "second"
		clean.do("write_file", m{"path": "in/a.md", "text": "pure again"})
		reads("written anew", false)
		a.undone("second", "restored: in/a.md")
		reads("taken back to what strangers wrote", true)
		clean.env.Run = "third"
		clean.do("apply_patch", patchOf("*** Update File: in/a.md", "*** Move to: in/away.md", "+pure", "*** End of File"))
		clean.do("apply_patch", patchOf("*** Update File: in/away.md", "*** Move to: in/a.md"))
		reads("moved away and back", true)
		tainted.do("write_file", m{"path": "in/a.md", "text": "poison"})
		reads("written by strangers", true)
		if n := len(list(t, a)); n != 2 {
			t.Errorf("the marks are files: %d", n)
		}
	})
}

// Undo of a tainted run restores a file that has not changed since.
func TestUndoOfTaint(t *testing.T) {
	everywhere(t, func(t *testing.T, a agent) {
		a.env.Run = "clean"
		a.do("write_file", m{"path": "a.md", "text": "pure"})
		a.env.Run, a.env.Tainted = "tainted", true
		a.do("write_file", m{"path": "a.md", "text": "poison"})
		a.env.Tainted = false
		a.undone("tainted", "restored: a.md")
		if r := a.record("read_file", m{"path": "a.md"}); r.Tainted {
			t.Error("what was there before is tainted")
		}
	})
}

func list(t *testing.T, a agent) []documents.File {
	t.Helper()
	b, err := a.b(a.env)
	if err != nil {
		t.Fatal(err)
	}
	files, err := b.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return files
}
