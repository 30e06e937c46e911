package react_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
)

// An indexed is a conversation of an agent that has notes.
type indexed struct {
	*testing.T
	j     *journal
	model *thinker
	now   claybot.Index
	fail  error
}

func newIndexed(t *testing.T) *indexed {
	return &indexed{T: t, j: newJournal(), model: &thinker{t: t}}
}

// ask makes a run of one message, and returns its last request.
func (x *indexed) ask(id string) llm.Request {
	x.Helper()
	x.j.records = append(x.j.records, user(id, id))
	l := narrow(x.model, nil)
	l.Prompt = func(*runs.Turn) (string, error) { return "prompt", nil }
	l.Index = func(*runs.Turn) (claybot.Index, error) { return x.now, x.fail }
	if err := x.j.run(x.T, l); err != nil {
		x.Fatal(err)
	}
	for i := range x.j.records { // the next run is another one
		x.j.records[i].Run = "earlier"
	}
	return x.model.requests[len(x.model.requests)-1]
}

// want checks the system prompt of a request, and its last messages.
func (x *indexed) want(r llm.Request, system string, messages ...string) {
	x.Helper()
	var got []string
	for _, m := range r.Messages[max(len(r.Messages)-len(messages), 0):] {
		got = append(got, llm.Unwrap(m.Content))
	}
	if r.System != system || !reflect.DeepEqual(got, messages) {
		x.Errorf("got\n%q\n%q\nwant\n%q\n%q", r.System, got, system, messages)
	}
}

// A note that made room for another one in an index of limited length was called removed.
func TestCutIndex(t *testing.T) {
	const more, most = "- and 2 more; memory_list shows them", "- and 3 more; memory_list shows them"
	x := newIndexed(t)
	x.now.Text = "Notes:\n- a\n- b\n" + more
	first := x.ask("m1")
	x.want(first, "prompt\n\n"+x.now.Text, "m1")
	x.now.Text = "Notes:\n- c\n- b\n" + most
	x.want(x.ask("m2"), first.System, "here I am", "New in the list of your notes and skills:\n- c\n"+most+
		"\nNot in the list of your notes and skills now, which is too long to show all; they may still exist:\n- a", "m2")
	x.now.Text = "Notes:\n- c"
	x.want(x.ask("m3"), first.System, "here I am", "No longer in the list of your notes and skills:\n- b", "m3")
}

// The index stands in the system prompt as the conversation found it. Changes are messages,
// and the requests only grow.
func TestIndex(t *testing.T) {
	x := newIndexed(t)
	x.now.Text = "Notes:\n- a\n- b"
	first := x.ask("m1")
	x.want(first, "prompt\n\nNotes:\n- a\n- b", "m1")
	x.want(x.ask("m2"), first.System, "m1", "here I am", "m2")
	x.now.Text = "Notes:\n- b\n- c\n- c"
	const change = "New in the list of your notes and skills:\n- c\n- c\nNo longer in the list of your notes and skills:\n- a"
	x.want(x.ask("m3"), first.System, "here I am", change, "m3")
	x.want(x.ask("m4"), first.System, change, "m3", "here I am", "m4")
	x.fail = errors.New("the store is gone")
	x.want(x.ask("m5"), first.System, "here I am", "m5")
	for i, next := range x.model.requests[1:] {
		before := x.model.requests[i].Messages
		if next.System != first.System || len(next.Messages) < len(before) || !sameMessages(next.Messages[:len(before)], before) {
			t.Errorf("request %d does not begin with the one before", i+2)
		}
	}
	// A new conversation begins with the notes of then.
	x.fail, x.j.records = nil, append(x.j.records, claybot.Record{Type: claybot.RecordReset})
	x.want(x.ask("m6"), "prompt\n\nNotes:\n- b\n- c\n- c", "m6")
}

func sameMessages(a, b []llm.Message) bool {
	for i := range a {
		if a[i].ID != b[i].ID || a[i].Role != b[i].Role || a[i].Content != b[i].Content {
			return false
		}
	}
	return true
}

// The first note of a conversation is a change as well, and so is the only one that is
// deleted.
func TestIndexFromNothing(t *testing.T) {
	x := newIndexed(t)
	x.want(x.ask("m1"), "prompt", "m1")
	if len(x.j.records) != 2 {
		t.Errorf("without notes there are %d records, want 2", len(x.j.records))
	}
	x.now.Text = "- a"
	x.want(x.ask("m2"), "prompt", "here I am", "New in the list of your notes and skills:\n- a", "m2")
	x.now.Text = ""
	x.want(x.ask("m3"), "prompt", "here I am", "No longer in the list of your notes and skills:\n- a", "m3")
}

// A summary takes the newest index with it, also where the store has nothing from before.
func TestIndexAfterSummary(t *testing.T) {
	x := newIndexed(t)
	x.now.Text = "- a"
	x.ask("m1")
	x.now.Text = "- b"
	x.ask("m2")
	x.j.records = append(x.j.records, earlier(user("old", strings.Repeat("long ", 5_000))), earlier(claybot.Record{Type: claybot.RecordAssistant, Text: "ok"}))
	for range 12 {
		x.j.records = append(x.j.records, earlier(user("more", "more")), earlier(claybot.Record{Type: claybot.RecordAssistant, Text: "ok"}))
	}
	x.want(x.ask("m3"), "prompt\n\n- b", "ok", "m3")
	if len(x.model.summaries) == 0 {
		t.Fatal("nothing was summarized")
	}
	x.want(x.ask("m4"), "prompt\n\n- b", "here I am", "m4")
}

// A run that others read does not see an index with the notes of the agent's person, and
// the next one that the person reads alone does.
func TestIndexOfOwner(t *testing.T) {
	x := newIndexed(t)
	x.now = claybot.Index{Text: "- owner: CANARY\n- mine", Owner: true}
	x.ask("m1")
	x.now.Text += "\n- owner: CANARY too"
	x.ask("m2")
	x.now = claybot.Index{Text: "- mine"}
	shared := x.ask("m3")
	x.want(shared, "prompt", "m2", "here I am", "New in the list of your notes and skills:\n- mine", "m3")
	x.now, x.fail = claybot.Index{}, errors.New("the store is gone")
	for _, r := range []llm.Request{shared, x.ask("m4")} {
		for _, m := range append(r.Messages, llm.Message{Content: r.System}) {
			if strings.Contains(m.Content, "CANARY") {
				t.Errorf("a run that others read has %q", m.Content)
			}
		}
	}
	x.now, x.fail = claybot.Index{Text: "- owner: CANARY\n- mine", Owner: true}, nil
	x.want(x.ask("m5"), "prompt\n\n- owner: CANARY\n- mine", "New in the list of your notes and skills:\n- owner: CANARY", "m5")
}

// SOUL.md and USER.md stand in the prompt as the conversation found them. A change is a message, and a
// run that others read sees no USER.md.
func TestIndexOfFiles(t *testing.T) {
	x := newIndexed(t)
	x.now = claybot.Index{Text: "- a", Files: "soul, CANARY", Person: true}
	first := x.ask("m1")
	x.want(first, "prompt\n\nsoul, CANARY\n\n- a", "m1")
	const change = "SOUL.md and USER.md have changed. They hold as follows, and no longer as before:\n"
	x.now.Files = "soul, CANARY too"
	x.want(x.ask("m2"), first.System, "here I am", change+"soul, CANARY too", "m2")
	x.want(x.ask("m3"), first.System, "m2", "here I am", "m3")
	x.now = claybot.Index{Text: "- a", Files: "soul", Owner: true}
	shared := x.ask("m4")
	x.want(shared, "prompt", "m3", "here I am", change+"soul\nNew in the list of your notes and skills:\n- a", "m4")
	for _, m := range append(shared.Messages, llm.Message{Content: shared.System}) {
		if strings.Contains(m.Content, "CANARY") {
			t.Errorf("a run that others read has %q", m.Content)
		}
	}
	x.j.records = append(x.j.records, claybot.Record{Type: claybot.RecordReset})
	x.now = claybot.Index{Files: "soul"}
	x.want(x.ask("m5"), "prompt\n\nsoul", "m5")
	x.now = claybot.Index{}
	x.want(x.ask("m6"), "prompt\n\nsoul", "here I am", "SOUL.md and USER.md are gone; what they said holds no longer.", "m6")
}

// However often a pass breaks, the conversation is the same.
func TestIndexCrash(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, keep := range []bool{false, true} {
			x := newIndexed(t)
			x.now.Text = "- a"
			x.j.records = append(x.j.records, user("m1", "m1"))
			l := narrow(x.model, nil)
			l.Index = func(*runs.Turn) (claybot.Index, error) { return x.now, nil }
			if err := x.j.pass(t.Context(), l, x.j.turn(), n, keep); err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			if err := x.j.run(t, l); err != nil {
				t.Fatal(err)
			}
			wantLines(t, x.j.lines(), []string{"user_message m1", "index ", "1 assistant here I am"})
		}
	}
}

// While files cannot be read, those that a conversation was told last hold: none is called gone, and
// none takes their place.
func TestUnreadFiles(t *testing.T) {
	x := newIndexed(t)
	x.now = claybot.Index{Files: "SOUL USER", Person: true, Private: true}
	x.want(x.ask("m1"), "prompt\n\nSOUL USER", "m1")
	x.now = claybot.Index{Unread: true, Person: true}
	x.want(x.ask("m2"), "prompt\n\nSOUL USER", "m1", "here I am", "m2")
	x.now = claybot.Index{Files: "USER", Unread: true, Person: true, Text: "- a"}
	x.want(x.ask("m3"), "prompt\n\nSOUL USER", "New in the list of your notes and skills:\n- a", "m3")
	for _, r := range x.j.records {
		if r.Index != nil && (r.Index.Files != "SOUL USER" || !r.Index.Private || r.Index.Unread) {
			t.Errorf("%+v", r.Index)
		}
	}
	x.now = claybot.Index{Files: "USER", Text: "- a"}
	x.want(x.ask("m4"), "prompt", "SOUL.md and USER.md have changed. They hold as follows, and no longer as before:\nUSER\nNew in the list of your notes and skills:\n- a", "m4")
}
