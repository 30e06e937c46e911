package llm

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claybot/claybot"
)

// plain are messages without what is kept beside them.
func plain(chat []Message) []Message {
	chat = slices.Clone(chat)
	for i := range chat {
		chat[i].encoding = nil
	}
	return chat
}

// However a conversation grows, its messages are those of a conversation that was always
// as long.
func TestChat(t *testing.T) {
	record := anyRecord()
	rapid.Check(t, func(t *rapid.T) {
		var c Chat
		var settled []claybot.Record
		for range rapid.IntRange(1, 6).Draw(t, "turns") {
			tools := rapid.IntRange(0, 9).Draw(t, "tools") > 0
			history := slices.Concat(settled, rapid.SliceOfN(record, 0, 5).Draw(t, "new"))
			n := rapid.IntRange(len(settled), len(history)).Draw(t, "settled")
			want := new(Chat).Messages(history, tools, 0)
			if got := c.Messages(history, tools, n); !reflect.DeepEqual(plain(got), plain(want)) {
				t.Fatalf("got %q, want %q", sketch(got), sketch(want))
			}
			settled = history[:n]
		}
	})
}

func TestChatKeepsSettledMessages(t *testing.T) {
	history := []claybot.Record{
		user("1", "a"), assistant("", call("x")), result("x", "1"), assistant("b"),
		user("2", "c"), assistant("", call("y"), call("z")), result("y", "2"), user("3", "late"),
	}
	var c Chat
	c.Messages(history, true, len(history))
	if want := "b"; c.settled != 4 || Unwrap(c.messages[c.settled-1].Content) != want {
		t.Fatalf("%d messages are settled, the last one is %q; an open call, an unanswered message and what follows are not settled", c.settled, c.messages[c.settled-1].Content)
	}
	chat := c.Messages(append(history, result("z", "3"), assistant("d")), true, len(history)+2)
	if c.settled != len(chat)-1 {
		t.Errorf("%d of %d messages are settled", c.settled, len(chat))
	}
}

// A call that was stopped has no result. It keeps nothing from being settled once another
// run follows.
func TestChatSettlesStoppedCalls(t *testing.T) {
	in := func(run claybot.RunID, r claybot.Record) claybot.Record { r.Run = run; return r }
	history := []claybot.Record{
		in("r1", user("1", "a")), in("r1", assistant("", call("x"))),
		in("r2", user("2", "b")), in("r2", assistant("c")),
	}
	var c Chat
	chat := c.Messages(history, true, len(history))
	if c.settled != len(chat)-1 {
		t.Errorf("%d of %q are settled", c.settled, sketch(chat))
	}
	late := c.Messages(append(history, in("r2", result("x", "late"))), true, len(history))
	if got := sketch(late)[2]; got != "tool x: "+inDoubt && got != "tool x: "+neverStarted {
		t.Errorf("the result of another run answers the call: %q", got)
	}
}

func TestEncoded(t *testing.T) {
	times := 0
	encode := func(s string) func() ([]byte, error) {
		return func() ([]byte, error) { times++; return []byte(s), nil }
	}
	var c Chat
	chat := c.Messages([]claybot.Record{user("1", "a"), assistant("b"), user("2", "c")}, true, 2)
	for _, tt := range []struct {
		name  string
		m     Message
		api   string
		fail  bool
		want  string
		calls int
	}{
		{"first", chat[0], "one", false, "A", 1},
		{"kept", chat[0], "one", false, "A", 1},
		{"another API that fails", chat[0], "two", true, "", 1},
		{"another API", chat[0], "two", false, "A", 2},
		{"with an image", Message{Content: "a", Images: []Image{{}}, encoding: chat[0].encoding}, "two", false, "A", 3},
		{"not settled", chat[2], "one", false, "A", 4},
		{"not settled, again", chat[2], "one", false, "A", 5},
	} {
		do := encode("A")
		if tt.fail {
			do = func() ([]byte, error) { return nil, errors.New("no") }
		}
		got, err := tt.m.Encoded(tt.api, do)
		if string(got) != tt.want || (err != nil) != tt.fail || times != tt.calls {
			t.Errorf("%s: got %q, %v after %d calls", tt.name, got, err, times)
		}
	}
}

// A change of the index stands before the messages that wait for an answer, in whatever
// order they were stored, and stays there.
func TestIndexStandsBeforeUnansweredMessages(t *testing.T) {
	index := func(text string) claybot.Record { return claybot.Record{Type: claybot.RecordIndex, Text: text} }
	history := []claybot.Record{
		user("1", "a"), index(""), assistant("b"), user("2", "c"), user("3", "d"), index("first"), index("second"),
		assistant("", call("x")), result("x", "e"), user("4", "f"), index("third"), assistant("g"),
	}
	want := []string{"a", "b", "first", "second", "c", "d", "", "e", "third", "f", "g"}
	var got []string
	chat := Messages(history)
	for _, m := range chat[:len(chat)-1] { // the last one asks to go on
		got = append(got, Unwrap(m.Content))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if kind, ok := SystemKind(chat[2].Content); !ok || kind != IndexMessage || chat[2].ID != IndexMessage {
		t.Errorf("the change is %+v", chat[2])
	}
}
