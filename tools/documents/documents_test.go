package documents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/documents"
)

// An agent is the tools of one agent on one backend.
type agent struct {
	t   *testing.T
	set *tools.Set
	env tools.Env
	b   documents.Source
}

var ann = claybot.Agent{ID: "a23456789012345678901234", Descriptor: claybot.User("telegram", "4711", "4711")}

func newAgent(t *testing.T, who claybot.Agent, b documents.Source) agent {
	t.Helper()
	s, err := tools.NewSet(documents.Tools(b)...)
	if err != nil {
		t.Fatal(err)
	}
	return agent{t, s, tools.Env{Agent: who, Run: "r", CallID: "c"}, b}
}

// put writes past the tools, which takes less time for much text.
func (a agent) put(path, text string) {
	a.t.Helper()
	b, err := a.b(a.env)
	if err == nil {
		err = b.Write(a.t.Context(), path, text)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// call calls a tool through a Set, so that schema and limits of results count.
func (a agent) call(name string, args any) (text string, ok bool) {
	a.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		a.t.Fatal(err)
	}
	got := call(a.t.Context(), a.set, a.env, claybot.ToolCall{ID: "c", Name: name, Args: string(b)})
	return got.Text, got.OK
}

// do is call for what must go well.
func (a agent) do(name string, args any) string {
	a.t.Helper()
	text, ok := a.call(name, args)
	if !ok {
		a.t.Fatalf("%s %v: %s", name, args, text)
	}
	return text
}

// refused is call for what must fail with this in its words.
func (a agent) refused(name string, args any, want string) {
	a.t.Helper()
	text, ok := a.call(name, args)
	if ok || !strings.Contains(text, want) {
		a.t.Errorf("%s %v: ok %v, %.300q; want an error with %q", name, args, ok, text, want)
	}
}

type m = map[string]any

// everywhere runs a test on each backend.
func everywhere(t *testing.T, test func(t *testing.T, a agent)) {
	for name, source := range map[string]func(t *testing.T) documents.Source{
		"state":      func(t *testing.T) documents.Source { return documents.State(store(t)) },
		"folder":     func(t *testing.T) documents.Source { return documents.Folder(store(t)) },
		"store":      func(t *testing.T) documents.Source { return documents.Store(new(memory), alone) },
		"filesystem": func(t *testing.T) documents.Source { return folder(t.TempDir()) },
	} {
		t.Run(name, func(t *testing.T) { test(t, newAgent(t, ann, source(t))) })
	}
}

func folder(name string) documents.Source {
	return documents.Filesystem(func(tools.Env) (string, error) { return name, nil })
}

func TestSteps(t *testing.T) {
	everywhere(t, func(t *testing.T, a agent) {
		steps := []struct {
			tool string
			args m
			ok   bool
			want string
		}{
			{"ls", m{}, true, "(no files)"},
			{"ls", m{"path": "."}, true, "(no files)"},
			{"ls", m{"path": "notes"}, false, `ENOENT: there is no "notes"`},
			{"glob", m{"pattern": "**"}, true, "(no file fits)"},
			{"grep", m{"pattern": "x"}, true, "(no line fits)"},
			{"grep", m{"pattern": "x", "path": "a.md"}, false, `ENOENT: there is no "a.md"`},
			{"read_file", m{"path": "a.md"}, false, `ENOENT: there is no "a.md"`},
			{"edit_file", m{"path": "a.md", "old_text": "a", "new_text": "b"}, false, `ENOENT: there is no "a.md"`},

			{"write_file", m{"path": "a.md", "text": "one\ntwo\nthree\n"}, true, "a.md is written, 14 bytes"},
			{"write_file", m{"path": "./notes/./b.md", "text": "Two words"}, true, "notes/b.md is written, 9 bytes"},
			{"write_file", m{"path": "notes/deep/c.go", "text": "package c\n"}, true, "is written, 10 bytes"},
			{"write_file", m{"path": "notes.txt", "text": ""}, true, "0 bytes"},
			{"write_file", m{"path": "ünï côdé/😀.md", "text": "smile"}, true, "is written, 5 bytes"},
			{"ls", m{}, true, "a.md (14 bytes)\nnotes.txt (0 bytes)\nnotes/ (2 files)\nünï côdé/ (1 file)"},
			{"ls", m{"path": "notes/"}, true, "b.md (9 bytes)\ndeep/ (1 file)"},
			{"ls", m{"path": "a.md"}, false, `ENOTDIR: "a.md" is a file, not a folder`},
			{"ls", m{"path": "a.md/b"}, false, `ENOTDIR: "a.md" is a file, not a folder`},

			{"read_file", m{"path": "a.md"}, true, "     1\tone\n     2\ttwo\n     3\tthree\n"},
			{"read_file", m{"path": "a.md", "offset": 2, "limit": 1}, true, "     2\ttwo\n[lines 2 to 2 of 3; go on with offset 3]"},
			{"read_file", m{"path": "a.md", "offset": 4}, false, `EINVAL: field offset: 4, but "a.md" has 3 lines`},
			{"read_file", m{"path": "a.md", "offset": -1}, false, "EINVAL: field offset"},
			{"read_file", m{"path": "a.md", "limit": 2001}, false, "EINVAL: field limit"},
			{"read_file", m{"path": "notes.txt"}, true, "(the file is empty)"},
			{"read_file", m{"path": "notes.txt", "offset": 9}, true, "(the file is empty)"},
			{"read_file", m{"path": "notes"}, false, `EISDIR: "notes" is a folder, not a file`},
			{"read_file", m{"path": "a.md/x"}, false, `ENOTDIR: "a.md" is a file, not a folder`},
			{"read_file", m{"path": "note"}, false, `ENOENT: there is no "note"`},
			{"read_file", m{"path": "ünï côdé/😀.md"}, true, "smile"},

			{"write_file", m{"path": "notes", "text": "x"}, false, `EISDIR: "notes" is a folder, not a file`},
			{"write_file", m{"path": "notes/deep", "text": "x"}, false, `EISDIR: "notes/deep" is a folder, not a file`},
			{"write_file", m{"path": "a.md/x/y", "text": "x"}, false, `ENOTDIR: "a.md" is a file, not a folder`},
			{"write_file", m{"path": "bin", "text": "a\x00b"}, false, `EINVAL: the content for "bin" is not text`},

			{"edit_file", m{"path": "a.md", "old_text": "two", "new_text": "2"}, true, "1 place in a.md is changed"},
			{"edit_file", m{"path": "a.md", "old_text": "two", "new_text": "2"}, false, `EINVAL: field old_text: "a.md" has no such text`},
			{"edit_file", m{"path": "a.md", "old_text": "e", "new_text": "E"}, false, "EINVAL: field old_text: occurs more than once"},
			{"edit_file", m{"path": "a.md", "old_text": "e", "new_text": "E", "all": true}, true, "3 places in a.md are changed"},
			{"edit_file", m{"path": "a.md", "old_text": "", "new_text": "E"}, false, "EINVAL: field old_text: must not be empty"},
			{"edit_file", m{"path": "a.md", "old_text": "E", "new_text": "E"}, false, "EINVAL: field new_text: is the same"},
			{"edit_file", m{"path": "a.md", "old_text": "2", "new_text": "\x00"}, false, "EINVAL: the content"},
			{"edit_file", m{"path": "notes", "old_text": "a", "new_text": "b"}, false, "EISDIR"},
			{"read_file", m{"path": "a.md"}, true, "     1\tonE\n     2\t2\n     3\tthrEE\n"},

			{"glob", m{"pattern": "*.md"}, true, "a.md"},
			{"glob", m{"pattern": "**/*.md"}, true, "a.md\nnotes/b.md\nünï côdé/😀.md"},
			{"glob", m{"pattern": "notes/**"}, true, "notes/b.md\nnotes/deep/c.go"},
			{"glob", m{"pattern": "**/*.go", "path": "notes"}, true, "notes/deep/c.go"},
			{"glob", m{"pattern": "deep/?.go", "path": "./notes/"}, true, "notes/deep/c.go"},
			{"glob", m{"pattern": "[", "path": ""}, false, "EINVAL: field pattern"},
			{"glob", m{"pattern": "../*"}, false, "EINVAL: field pattern"},
			{"glob", m{"pattern": "/*"}, false, "EINVAL: field pattern"},
			{"glob", m{"pattern": ""}, false, "EINVAL: field pattern"},
			{"glob", m{"pattern": "*", "path": "a.md"}, false, "ENOTDIR"},
			{"glob", m{"pattern": "*", "path": "no"}, false, "ENOENT"},

			{"grep", m{"pattern": "^t"}, true, "a.md:3: thrEE"},
			{"grep", m{"pattern": "(?i)two"}, true, "notes/b.md:1: Two words"},
			{"grep", m{"pattern": "e", "path": "notes"}, true, "notes/deep/c.go:1: package c"},
			{"grep", m{"pattern": ".", "glob": "**/*.go"}, true, "notes/deep/c.go:1: package c"},
			{"grep", m{"pattern": "2", "path": "a.md"}, true, "a.md:2: 2"},
			{"grep", m{"pattern": "2", "path": "a.md/"}, false, "EINVAL: field path"},
			{"grep", m{"pattern": "2", "path": "a.md/b"}, false, `ENOTDIR: "a.md" is a file`},
			{"grep", m{"pattern": "("}, false, "EINVAL: field pattern"},
			{"grep", m{"pattern": ""}, false, "EINVAL: field pattern"},
			{"grep", m{"pattern": "x", "glob": "a//b"}, false, "EINVAL: field glob"},
		}
		for i, s := range steps {
			text, ok := a.call(s.tool, s.args)
			text = strings.TrimPrefix(text, "error: ")
			// A good text is known to the byte, of an error the beginning.
			fits := strings.HasPrefix(text, s.want)
			if s.ok {
				fits = text == s.want || s.tool == "write_file" && strings.HasSuffix(text, s.want) || s.tool == "read_file" && strings.Contains(text, s.want)
			}
			if ok != s.ok || !fits {
				t.Errorf("step %d, %s %v: ok %v, %q; want %v, %q", i, s.tool, s.args, ok, text, s.ok, s.want)
			}
		}
	})
}

// Each bad path is refused by each tool that takes one, and nothing is made.
func TestBadPaths(t *testing.T) {
	long := strings.Repeat("abcdefg/", 512) + "x"
	tests := map[string]string{
		"/etc/passwd":            "must be relative",
		"/":                      "must be relative",
		"..":                     "must not contain ..",
		"a/../b":                 "must not contain ..",
		"../a":                   "must not contain ..",
		"a//b":                   "has an empty part",
		"a\x00b":                 "control character",
		"a\nb":                   "control character",
		"a\u0085b":               "control character",
		long:                     "4097 bytes, the limit is 4096",
		strings.Repeat("é", 128): "a part has 256 bytes",
		".claybot-x":             "are taken",
		"a/.claybot-x/b":         "are taken",
	}
	everywhere(t, func(t *testing.T, a agent) {
		for path, want := range tests {
			for tool, args := range map[string]m{
				"ls": {}, "read_file": {}, "write_file": {"text": "x"}, "edit_file": {"old_text": "a", "new_text": "b"},
				"glob": {"pattern": "*"}, "grep": {"pattern": "x"},
			} {
				args["path"] = path
				a.refused(tool, args, want)
			}
		}
		for path, want := range map[string]string{"": "want the path of a file", ".": "want the path", "a/": "names a folder", "a/.": "names a folder"} {
			a.refused("read_file", m{"path": path}, want)
			a.refused("write_file", m{"path": path, "text": "x"}, want)
			a.refused("edit_file", m{"path": path, "old_text": "a", "new_text": "b"}, want)
		}
		if got := a.do("ls", m{}); got != "(no files)" {
			t.Errorf("bad paths have made %q", got)
		}
	})
}

func TestLimits(t *testing.T) {
	everywhere(t, func(t *testing.T, a agent) {
		a.put("big", strings.Repeat("x", documents.MaxFile))
		a.refused("edit_file", m{"path": "big", "old_text": "x", "new_text": "yy", "all": true}, `EQUOTA: "big" would become longer`)
		a.do("edit_file", m{"path": "big", "old_text": "x", "new_text": "y", "all": true})
		a.refused("edit_file", m{"path": "big", "old_text": "x", "new_text": ""}, "EINVAL: field old_text") // no x is left
		for i := range 15 {
			a.put(fmt.Sprintf("more/%d", i), strings.Repeat("z", documents.MaxFile-1000))
		}
		a.refused("write_file", m{"path": "last", "text": strings.Repeat("z", 20_000)}, "EQUOTA: all files together may have 16777216 bytes")
		a.do("write_file", m{"path": "last", "text": "fits"})
		a.do("write_file", m{"path": "big", "text": "smaller"}) // makes room
		a.do("write_file", m{"path": "last", "text": strings.Repeat("z", 20_000)})

		text := a.do("read_file", m{"path": "more/3"})
		if len(text) > 3000 || !strings.Contains(text, "more bytes]") {
			t.Errorf("a long line is shown with %d bytes", len(text))
		}
		a.do("write_file", m{"path": "lines", "text": strings.Repeat("a line of words\n", 5000)})
		text = a.do("read_file", m{"path": "lines"})
		if !strings.Contains(text, "of 5000; go on with offset") || len(text) > 32<<10 {
			t.Errorf("many lines are shown with %d bytes: …%q", len(text), text[len(text)-100:])
		}
		text = a.do("grep", m{"pattern": "words", "path": "lines"})
		if n := strings.Count(text, "lines:"); n != 200 || !strings.HasSuffix(text, "[there are more lines; narrow it down]") {
			t.Errorf("%d hits, …%q", n, text[len(text)-100:])
		}
		text = a.do("grep", m{"pattern": "z", "glob": "more/*"})
		if n := strings.Count(text, "more bytes]"); n != 15 || len(text) > 32<<10 {
			t.Errorf("%d hits in long lines, %d bytes", n, len(text))
		}
	})
}

func TestEditKeepsCarriageReturns(t *testing.T) {
	everywhere(t, func(t *testing.T, a agent) {
		a.do("write_file", m{"path": "dos", "text": "a\r\nb\r\nc\r\n"})
		a.do("edit_file", m{"path": "dos", "old_text": "a\nb", "new_text": "x\ny"})
		if got := a.do("grep", m{"pattern": "^[xyc]$"}); got != "dos:1: x\ndos:2: y\ndos:3: c" {
			t.Errorf("got %q", got)
		}
		a.do("edit_file", m{"path": "dos", "old_text": "x\r\ny\r\n", "new_text": ""})
		if got := a.do("ls", m{}); got != "dos (3 bytes)" {
			t.Errorf("got %q", got)
		}
		a.do("write_file", m{"path": "over", "text": "aaa"})
		a.refused("edit_file", m{"path": "over", "old_text": "aa", "new_text": "b"}, "occurs more than once")
	})
}

// Agents see their own state, and the store of their owner.
func TestScopes(t *testing.T) {
	docs := store(t)
	twin := ann // another chat of the same person
	twin.ID, twin.Descriptor = "b23456789012345678901234", claybot.User("telegram", "-100", "4711")
	child := claybot.Agent{ID: "c23456789012345678901234", Descriptor: claybot.Descriptor{Type: claybot.AgentSubagent, UID: "x", Owner: "telegram/4711"}}
	bob := claybot.Agent{ID: "d23456789012345678901234", Descriptor: claybot.User("telegram", "-100", "4712")}
	free := claybot.Agent{ID: "e23456789012345678901234", Descriptor: claybot.Descriptor{Type: claybot.AgentHeartbeat}}

	newAgent(t, ann, documents.State(docs)).do("write_file", m{"path": "s", "text": "state of ann"})
	newAgent(t, ann, documents.Store(docs, alone)).do("write_file", m{"path": "o", "text": "store of ann"})
	newAgent(t, free, documents.Store(docs, alone)).do("write_file", m{"path": "n", "text": "store of free"})
	tests := []struct {
		who          claybot.Agent
		state, store string
	}{
		{ann, "s (12 bytes)", "o (12 bytes)"},
		{twin, "(no files)", "o (12 bytes)"},
		{child, "(no files)", "o (12 bytes)"},
		{bob, "(no files)", "(no files)"},
		{free, "(no files)", "n (13 bytes)"},
	}
	for _, tt := range tests {
		if got := newAgent(t, tt.who, documents.State(docs)).do("ls", m{}); got != tt.state {
			t.Errorf("state of %s: %q, want %q", tt.who.ID, got, tt.state)
		}
		if got := newAgent(t, tt.who, documents.Store(docs, alone)).do("ls", m{}); got != tt.store {
			t.Errorf("store of %s: %q, want %q", tt.who.ID, got, tt.store)
		}
	}
	stranger := newAgent(t, claybot.Agent{}, documents.State(docs))
	stranger.refused("ls", m{}, "EIO: this agent has no files")
}

// What else an agent keeps in its scope is no file.
func TestOtherDocumentsAreNoFiles(t *testing.T) {
	docs := store(t)
	if err := docs.SaveDocument(t.Context(), "agent/"+string(ann.ID), "todos", "[]", 1<<20); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, ann, documents.State(docs))
	if got := a.do("ls", m{}); got != "(no files)" {
		t.Errorf("got %q", got)
	}
	a.refused("read_file", m{"path": "todos"}, "ENOENT")
	a.do("write_file", m{"path": "todos", "text": "x"})
	if text, err := docs.Document(t.Context(), "agent/"+string(ann.ID), "todos"); text != "[]" || err != nil {
		t.Errorf("the todos are %q, %v", text, err)
	}
}

func TestTooManyFiles(t *testing.T) {
	docs := new(memory)
	a := newAgent(t, ann, documents.State(docs))
	for i := range documents.MaxFiles {
		if err := docs.SaveDocument(t.Context(), "agent/"+string(ann.ID), fmt.Sprintf("files/%d/%d", i%10, i), "", 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	a.do("ls", m{})
	a.refused("write_file", m{"path": "one/more", "text": ""}, "EQUOTA")
	a.do("write_file", m{"path": "0/0", "text": "known"})
	if err := docs.SaveDocument(t.Context(), "agent/"+string(ann.ID), "files/beyond", "", 1<<20); err != nil {
		t.Fatal(err)
	}
	a.refused("ls", m{}, "EQUOTA: there are more than 5000 files in the top folder")
	if got := a.do("ls", m{"path": "3"}); !strings.HasPrefix(got, "1003 (0 bytes)\n") || len(got) > 32<<10 {
		t.Errorf("a folder of many shows %.100q, %d bytes", got, len(got))
	}
}

// Whatever the store says, the model gets a code and a sentence without it.
func TestFailingStore(t *testing.T) {
	for cause, want := range map[error]string{
		errors.New("disk on fire at /secret"): "EIO: ",
		storage.ErrFull:                       "EQUOTA: there is no space left",
	} {
		a := newAgent(t, ann, documents.State(&memory{fail: cause}))
		for tool, args := range map[string]m{
			"ls": {}, "read_file": {"path": "a"}, "write_file": {"path": "a", "text": "x"},
			"edit_file": {"path": "a", "old_text": "a", "new_text": "b"}, "glob": {"pattern": "*"}, "grep": {"pattern": "x"},
		} {
			a.refused(tool, args, want)
			if text, _ := a.call(tool, args); strings.Contains(text, "secret") {
				t.Errorf("%s tells %q", tool, text)
			}
		}
	}
}

func TestEffects(t *testing.T) {
	a := newAgent(t, ann, folder(t.TempDir()))
	for name, want := range map[string]tools.Effect{
		"ls": tools.ReadOnly, "read_file": tools.ReadOnly, "glob": tools.ReadOnly, "grep": tools.ReadOnly,
		"write_file": tools.Idempotent, "edit_file": tools.Once, "apply_patch": tools.Once,
	} {
		if got := a.set.Effect(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if n := len(a.set.Tools()); n != 7 {
		t.Errorf("%d tools, want 7", n)
	}
}

// alone is the audience of agents that only their owners read.
func alone(env tools.Env) claybot.Audience {
	return claybot.Audience{Owner: env.Agent.Descriptor.OwnerID()}
}

// Agents of one person share files only where the same people read.
func TestStoreOfAPlace(t *testing.T) {
	docs := new(memory)
	place := func(p string) documents.Source {
		return documents.Store(docs, func(env tools.Env) claybot.Audience {
			return claybot.Audience{Owner: env.Agent.Descriptor.OwnerID(), Place: p}
		})
	}
	newAgent(t, ann, place("")).do("write_file", m{"path": "secret", "text": "of ann alone"})
	newAgent(t, ann, place("telegram/-1")).do("write_file", m{"path": "group", "text": "of the group"})
	for p, want := range map[string]string{"": "secret", "telegram/-1": "group", "telegram/-2": ""} {
		got := newAgent(t, ann, place(p)).do("ls", m{})
		for _, name := range []string{"secret", "group"} {
			if strings.Contains(got, name) != (name == want) {
				t.Errorf("in %q there is %q", p, got)
			}
		}
	}
}
