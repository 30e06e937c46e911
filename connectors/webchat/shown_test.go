package webchat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// show puts a version of a text that is kept up to date into the outbox.
func (m *memory) show(t *testing.T, id, editOf, text string) {
	t.Helper()
	m.mu.Lock()
	n := int64(len(m.outbox) + 1)
	o := claybot.Outgoing{ID: id, N: n, Kind: claybot.OutgoingAnswer, Run: "r1", Shown: "todos", EditOf: editOf, Route: me.Route(), Text: text, At: claybot.Time(n)}
	m.outbox = append(m.outbox, o)
	m.mu.Unlock()
	if _, err := m.chat.Send(t.Context(), o); err != nil {
		t.Error(err)
	}
}

// A text that is kept up to date comes while its run works, names what it
// replaces, and ends nothing.
func TestStreamShowsNewerVersions(t *testing.T) {
	m, srv := start(t)
	c := open(t, srv.Client(), srv.URL+"/stream", "")
	m.chat.Preview(me.Route(), "r1", 1, "I begin")
	c.want(t, "preview", "I begin")
	m.show(t, "t1", "", "- a")
	if e := c.want(t, "message", `"shown":"todos"`); strings.Contains(e.data, "replaces") {
		t.Errorf("the first version: %s", e.data)
	}
	m.show(t, "t2", "t1", "- b")
	c.want(t, "message", `"shown":"todos","replaces":["t1"]`)
	m.chat.Preview(me.Route(), "r1", 1, "I begin and go on")
	c.want(t, "preview", "and go on")
	m.say(t, me, "r1", "done")
	c.want(t, "message", "done")
	m.chat.Preview(me.Route(), "r1", 1, "a ghost")
	m.say(t, me, "r2", "next")
	c.want(t, "message", "next")
}

func TestTranscriptShowsNewestVersion(t *testing.T) {
	m, srv := start(t)
	m.say(t, me, "r0", "before")
	m.show(t, "t1", "", "one")
	m.say(t, me, "r0", "between")
	m.show(t, "t2", "t1", "two")
	m.show(t, "t3", "t1", "three") // each may name the first
	m.show(t, "t4", "t3", "four")  // or the one before
	m.say(t, me, "r0", "after")
	type entry struct {
		Message struct {
			ID, Text, Shown string
			Replaces        []string
			N, At, Edited   int64
		}
	}
	var got struct {
		Entries []entry
		After   int64
	}
	_, v := call(t, srv, "GET", "/transcript", "")
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range got.Entries {
		texts = append(texts, e.Message.Text)
	}
	if want := "before four between after"; strings.Join(texts, " ") != want || got.After != 7 {
		t.Fatalf("%q up to %d, want %q", texts, got.After, want)
	}
	if x := got.Entries[1].Message; x.ID != "t4" || strings.Join(x.Replaces, " ") != "t1 t2 t3" || x.Shown != "todos" || x.N != 6 || x.At != 2 || x.Edited != 6 {
		t.Errorf("the newest version: %+v", x)
	}
	if code, v := call(t, srv, "GET", "/transcript?conversation=empty", ""); code != http.StatusOK || fmt.Sprint(v["entries"]) != "[]" {
		t.Errorf("an empty transcript: %d %v", code, v)
	}
}

func TestAlbum(t *testing.T) {
	c := New(Config{})
	version := func(n int64, id, editOf string) said {
		return c.saidView(claybot.Outgoing{N: n, ID: id, EditOf: editOf, Text: id, At: claybot.Time(n)})
	}
	for name, tc := range map[string]struct {
		in   []said
		want string
	}{
		"nothing":                     {nil, ""},
		"no versions":                 {[]said{version(1, "a", ""), version(2, "b", "")}, "a b"},
		"two texts":                   {[]said{version(1, "a", ""), version(2, "b", ""), version(3, "b2", "b"), version(4, "a2", "a")}, "a2 b2"},
		"the first is too old":        {[]said{version(2, "b", "a"), version(3, "x", ""), version(4, "c", "a"), version(5, "d", "c")}, "d x"},
		"an older one comes later":    {[]said{version(1, "a", ""), version(3, "c", "a"), version(2, "b", "a")}, "c"},
		"the first one comes later":   {[]said{version(2, "b", "a"), version(1, "a", "")}, "b"},
		"a text that replaces itself": {[]said{version(1, "a", "a"), version(2, "b", "a")}, "b"},
		"twice the same":              {[]said{version(1, "a", ""), version(2, "b", "a"), version(2, "b", "a")}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			var a album
			for _, s := range tc.in {
				a.add(s)
			}
			var got []string
			for _, l := range a.lines {
				got = append(got, l.Message.Text)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("shows %v, want %s", got, tc.want)
			}
		})
	}
}

func TestCompactIsShownAsTyped(t *testing.T) {
	m, srv := start(t)
	m.mu.Lock()
	m.fixed = []storage.Entry{{Message: &claybot.AgentMessage{ID: "c", Type: claybot.MessageCompact, At: 1}}}
	m.mu.Unlock()
	if _, v := call(t, srv, "GET", "/transcript", ""); !strings.Contains(fmt.Sprint(v), "/compact") {
		t.Errorf("transcript %v", v)
	}
}
