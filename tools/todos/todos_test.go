package todos_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/todos"
)

const (
	ann = claybot.AgentID("a23456789012345678901234")
	bob = claybot.AgentID("b23456789012345678901234")
)

// screen is a tools.Display that notes what it shows.
type screen struct {
	shown []string
	err   error
}

func (s *screen) Show(_ context.Context, env tools.Env, name, text string) error {
	s.shown = append(s.shown, string(env.Agent.ID)+" "+name+"\n"+text)
	return s.err
}

type world struct {
	t    *testing.T
	docs storage.Documents
	set  *tools.Set
}

func newWorld(t *testing.T, display tools.Display, show func(tools.Env) bool) world {
	t.Helper()
	docs := store(t)
	return world{t, docs, newSet(t, docs, display, show)}
}

func newSet(t *testing.T, docs storage.Documents, display tools.Display, show func(tools.Env) bool) *tools.Set {
	t.Helper()
	set, err := tools.NewSet(todos.Tools(docs, display, show)...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func (w world) call(agent claybot.AgentID, name, args string) (string, bool) {
	w.t.Helper()
	env := tools.Env{Agent: claybot.Agent{ID: agent}, Run: "r", CallID: "c"}
	r := call(w.t.Context(), w.set, env, claybot.ToolCall{ID: "c", Name: name, Args: args})
	return r.Text, r.OK
}

func always(tools.Env) bool { return true }

func TestWriteAndRead(t *testing.T) {
	w := newWorld(t, nil, always)
	if got, ok := w.call(ann, "read_todos", `{}`); got != "(the list is empty)" || !ok {
		t.Errorf("before all: %q", got)
	}
	got, ok := w.call(ann, "write_todos", `{"todos":[
		{"text":" buy  milk\n","status":"done"},
		{"id":"1","text":"bake","status":"in_progress"},
		{"id":" cake ","text":"eat","status":"pending"},
		{"text":"diet","status":"canceled"}]}`)
	want := "2 [done] buy milk\n1 [in_progress] bake\ncake [pending] eat\n3 [canceled] diet"
	if got != "The list is saved.\n"+want || !ok {
		t.Errorf("written: %q", got)
	}
	if got, _ := w.call(ann, "read_todos", `{}`); got != want {
		t.Errorf("read: %q, want %q", got, want)
	}
	if got, _ := w.call(bob, "read_todos", `{}`); got != "(the list is empty)" {
		t.Errorf("another agent reads %q", got)
	}
	list, err := todos.List(t.Context(), w.docs, ann)
	if want := []todos.Todo{
		{ID: "2", Text: "buy milk", Status: todos.Done},
		{ID: "1", Text: "bake", Status: todos.InProgress},
		{ID: "cake", Text: "eat", Status: todos.Pending},
		{ID: "3", Text: "diet", Status: todos.Canceled},
	}; err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("List: %v, %v", list, err)
	}
	if got, ok := w.call(ann, "write_todos", `{"todos":[]}`); got != "The list is saved.\n(the list is empty)" || !ok {
		t.Errorf("emptied: %q", got)
	}
	if list, err := todos.List(t.Context(), w.docs, ann); len(list) != 0 || err != nil {
		t.Errorf("List: %v, %v", list, err)
	}
	for name, want := range map[string]tools.Effect{"write_todos": tools.Idempotent, "read_todos": tools.ReadOnly} {
		if got := w.set.Effect(name); got != want {
			t.Errorf("%s is %v", name, got)
		}
	}
}

func TestRefused(t *testing.T) {
	one := `{"text":"a","status":"pending"}`
	tests := []struct{ args, want string }{
		{`{}`, `missing properties: ["todos"]`},
		{`{"todos":"a"}`, "field todos: type"},
		{`{"todos":[{"text":"a"}]}`, `missing properties: ["status"]`},
		{`{"todos":[` + one + `,{"text":" ","status":"done"}]}`, "field todos[1].text: must not be empty"},
		{`{"todos":[{"text":"a","status":"completed"}]}`, `field todos[0].status: "completed", want pending, in_progress, done or canceled`},
		{`{"todos":[{"text":"a","status":""}]}`, `field todos[0].status: ""`},
		{`{"todos":[{"text":"` + strings.Repeat("é", 501) + `","status":"done"}]}`, "field todos[0].text: 501 characters, the limit is 500"},
		{`{"todos":[{"id":"x","text":"a","status":"done"},{"id":"x ","text":"b","status":"done"}]}`, `field todos[1].id: "x" is the id of todos[0] already`},
		{`{"todos":[{"id":"a\nb","text":"a","status":"done"}]}`, "field todos[0].id: want one line"},
		{`{"todos":[{"id":"` + strings.Repeat("x", 41) + `","text":"a","status":"done"}]}`, "field todos[0].id: want one line of 1 to 40 bytes"},
		{`{"todos":[` + one + strings.Repeat(","+one, 100) + `]}`, "field todos: 101 entries, the limit is 100"},
	}
	s := new(screen)
	w := newWorld(t, s, always)
	for _, tt := range tests {
		s.shown = nil
		w.call(ann, "write_todos", `{"todos":[{"text":"before","status":"pending"}]}`)
		got, ok := w.call(ann, "write_todos", tt.args)
		if ok || !strings.Contains(got, tt.want) {
			t.Errorf("%.100s: %v, %q; want %q", tt.args, ok, got, tt.want)
		}
		if got, _ := w.call(ann, "read_todos", `{}`); got != "1 [pending] before" || len(s.shown) != 1 {
			t.Errorf("%.100s has left %q and shown %q", tt.args, got, s.shown)
		}
	}
}

func TestShown(t *testing.T) {
	s := new(screen)
	w := newWorld(t, s, func(env tools.Env) bool { return env.Agent.ID == ann })
	const list = `{"todos":[{"text":"a *b* [c](d) ~~e~~ <f> \u0060g\u0060","status":"pending"},{"text":"see https://x.org/a_b_*","status":"in_progress"},
		{"text":"x","status":"done"},{"text":"y","status":"canceled"}]}`
	if got, ok := w.call(ann, "write_todos", list); !ok || !strings.HasPrefix(got, "The list is saved.\n1 [pending] a *b*") {
		t.Errorf("got %q", got)
	}
	w.call(bob, "write_todos", list)
	w.call(ann, "read_todos", `{}`)
	w.call(ann, "write_todos", `{"todos":[]}`)
	want := []string{
		string(ann) + " todos\n" +
			"- ☐ a \\*b\\* \\[c\\](d) \\~\\~e\\~\\~ \\<f\\> \\`g\\`\n" +
			"- ◐ **see https://x.org/a_b_***\n" +
			"- ☑ x\n" +
			"- ☒ ~~y~~",
		string(ann) + " todos\nNo todos.",
	}
	if !reflect.DeepEqual(s.shown, want) {
		t.Errorf("shown %q, want %q", s.shown, want)
	}

	// A list that cannot be shown is kept all the same.
	s.err = errors.New("no such place")
	got, ok := w.call(ann, "write_todos", `{"todos":[{"text":"z","status":"done"}]}`)
	if want := "The list is saved, but could not be shown: no such place\n1 [done] z"; got != want || !ok {
		t.Errorf("got %q, want %q", got, want)
	}
	// Without a screen or a word about it, nothing is shown.
	for _, set := range []*tools.Set{newSet(t, w.docs, nil, always), newSet(t, w.docs, s, nil)} {
		n := len(s.shown)
		w.set = set
		if got, ok := w.call(ann, "write_todos", `{"todos":[]}`); !ok || len(s.shown) != n {
			t.Errorf("got %q, shown %d times", got, len(s.shown)-n)
		}
	}
}

func TestLongList(t *testing.T) {
	w := newWorld(t, nil, nil)
	items := make([]string, 100)
	for i := range items {
		items[i] = fmt.Sprintf(`{"text":"%s","status":"in_progress"}`, strings.Repeat("😀", 500))
	}
	got, ok := w.call(ann, "write_todos", `{"todos":[`+strings.Join(items, ",")+`]}`)
	if !ok || len(got) > 32<<10 || strings.Count(got, "…\n") != 99 || !strings.Contains(got, "\n100 [in_progress] 😀") {
		t.Errorf("%v, %d bytes, %d lines", ok, len(got), strings.Count(got, "\n"))
	}
	if list, err := todos.List(t.Context(), w.docs, ann); err != nil || len(list) != 100 || len(list[99].Text) != 2000 {
		t.Errorf("%d kept, %v", len(list), err)
	}
}

func TestDamagedOrFailingStore(t *testing.T) {
	w := newWorld(t, nil, nil)
	for text, want := range map[string]string{
		"{":                     "unexpected end of JSON",
		`{"a":1}`:               "cannot unmarshal",
		`[{"text":"a"}]`:        "field todos[0].id",
		`[{"id":"1","text":1}]`: "cannot unmarshal",
	} {
		if err := w.docs.SaveDocument(t.Context(), "agent/"+string(ann), "todos", text, 1<<20); err != nil {
			t.Fatal(err)
		}
		if got, ok := w.call(ann, "read_todos", `{}`); ok || !strings.Contains(got, want) {
			t.Errorf("%s: %v, %q", text, ok, got)
		}
		if got, ok := w.call(ann, "write_todos", `{"todos":[]}`); !ok { // it can be replaced
			t.Errorf("%s: %q", text, got)
		}
	}
	broken := failing{errors.New("the disk is gone")}
	w = world{t, broken, newSet(t, broken, nil, nil)}
	for tool, args := range map[string]string{"read_todos": `{}`, "write_todos": `{"todos":[]}`} {
		if got, ok := w.call(ann, tool, args); ok || !strings.Contains(got, "the disk is gone") {
			t.Errorf("%s: %v, %q", tool, ok, got)
		}
	}
}

// failing are documents of a store that does not work.
type failing struct{ err error }

func (f failing) Document(context.Context, string, string) (string, error) { return "", f.err }

func (f failing) Documents(context.Context, string) ([]storage.Document, error) { return nil, f.err }

func (f failing) SaveDocument(context.Context, string, string, string, int64) error { return f.err }

func (f failing) DropDocuments(context.Context, string, string) error { return f.err }

// Whatever a stored list is, it is read as a whole or refused.
func FuzzStored(f *testing.F) {
	for _, s := range []string{"", "[]", "null", `[{"id":"1","text":"a","status":"done"}]`, `[{"id":"1","text":"a","status":"x"}]`, "[[[["} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, err := todos.List(t.Context(), one(s), ann)
		if err != nil {
			return
		}
		for _, todo := range list {
			if todo.ID == "" || todo.Text == "" {
				t.Fatalf("%q holds %+v", s, todo)
			}
		}
	})
}

// one are documents that all have the same text.
type one string

func (o one) Document(context.Context, string, string) (string, error) { return string(o), nil }

func (o one) Documents(context.Context, string) ([]storage.Document, error) { return nil, nil }

func (o one) SaveDocument(context.Context, string, string, string, int64) error { return nil }

func (o one) DropDocuments(context.Context, string, string) error { return nil }
