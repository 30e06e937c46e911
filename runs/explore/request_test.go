package explore

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/texts"
)

func TestAsked(t *testing.T) {
	for _, tt := range []struct{ text, target, goal string }{
		{"", "", ""},
		{"https://a.test/x?y=1#z", "https://a.test/x?y=1#z", ""},
		{"Explore https://a.test/.", "https://a.test/", ""},
		{"explore!", "", ""},
		{"(https://a.test/x), please find the imprint", "https://a.test/x", "( ), please find the imprint"},
		{"<HTTP://A.test/>", "HTTP://A.test/", ""},
		{"[pots](http://a.test/p_1)", "http://a.test/p_1", "[pots]( )"},
		{"http:// nothing", "http://", "nothing"},
		{"explore ftp://a.test/ now", "ftp://a.test/", "explore now"},
		{"_http://a.test/_", "http://a.test/", ""},
		{"go:https://a.test/", "https://a.test/", "go:"},
		{"Now.https://a.test/", "https://a.test/", "Now."},
		{"file:///etc/passwd, please", "file:///etc/passwd", ", please"},
		{"JavaScript:alert(document.cookie)", "JavaScript:alert(document.cookie", ""},
		{"view-source:http://a.test/", "view-source:http://a.test/", ""},
		{"blob:http://a.test/1", "blob:http://a.test/1", ""},
		{"https:a.test", "https:a.test", ""},
		{"about:blank then http://a.test/", "about:blank", "then http://a.test/"},
		{"http://a.test/ has a link to ftp://b.test/", "http://a.test/", "has a link to ftp://b.test/"},
		{"the file: prices, and data:", "", "the file: prices, and data:"},
		{"write to mailto:ann@a.test about:)", "", "write to mailto:ann@a.test about:)"},
		{"1http://a.test/", "1http://a.test/", ""},
		{"find\x00 the\npots\u202e", "", "find the pots"},
		{"first http://a.test/ then http://b.test/", "http://a.test/", "first then http://b.test/"},
		{"найди чайник", "", "найди чайник"},
	} {
		if target, goal := asked(tt.text); target != tt.target || goal != tt.goal {
			t.Errorf("%q: %q and %q", tt.text, target, goal)
		}
	}
	if _, goal := asked(strings.Repeat("x", 5000)); len(goal) > maxGoal {
		t.Errorf("%d bytes", len(goal))
	}
}

func FuzzAsked(f *testing.F) {
	f.Add("look at https://a.test/x, please")
	f.Add("http://[::1]:8/\xff")
	f.Fuzz(func(t *testing.T, text string) {
		target, goal := asked(text)
		if len(goal) > maxGoal || strings.ContainsAny(target, " \t\n<>\"") {
			t.Fatalf("%q: %q, %q", text, target, goal)
		}
	})
}

func TestReadChoice(t *testing.T) {
	for _, tt := range []struct {
		text string
		want choice
	}{
		{`{"choose":3}`, choice{Choose: 3}},
		{"Sure!\n```json\n{\"choose\": 2, \"value\": \"a } b\"}\n``` done {}", choice{Choose: 2, Value: "a } b"}},
		{`{"why": "x"} {"goalReached": true}`, choice{GoalReached: true}},
		{`{"choose":1} {"choose":2}`, choice{Choose: 1}},
		{`{"other": {"choose": 5}}`, choice{Choose: 5}},
	} {
		if got, ok := readChoice(tt.text); !ok || got != tt.want {
			t.Errorf("%s: %+v, %v", tt.text, got, ok)
		}
	}
}

func FuzzReadChoice(f *testing.F) {
	f.Add(`{"choose":3,"value":"x"}`)
	f.Add(`{{{"choose":-1e9}`)
	f.Fuzz(func(t *testing.T, text string) {
		if c, ok := readChoice(text); !ok && c != (choice{}) {
			t.Fatalf("%q: %+v", text, c)
		}
	})
}

// What a walk knows is the same when it is read again, whatever its screens are
// called.
func FuzzMemory(f *testing.F) {
	f.Add("home", "Home", "next")
	f.Add("screen/", "\x00", "move/000001")
	f.Fuzz(func(t *testing.T, id, title, action string) {
		if !utf8.ValidString(id) || !utf8.ValidString(title) || !utf8.ValidString(action) {
			return // devices say nothing of that kind
		}
		a := devices.Action{ID: action, Kind: devices.Click, Label: title}
		m := memory{Now: situation{Start: id, At: id}, Progress: progress{Policy: policies[0]}}
		m.Map.admit(&sighting{ID: id, Screen: &screen{Title: title, Actions: []devices.Action{a}}})
		m.Map.moved(intent{Screen: id, Action: a}, id)
		m.Map.moved(intent{Screen: id, Action: a}, "")
		one, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var again memory
		if err := json.Unmarshal(one, &again); err != nil {
			t.Fatalf("%s: %v", one, err)
		}
		two, err := json.Marshal(again)
		if err != nil || string(one) != string(two) {
			t.Fatalf("%s\n%s\n%v", one, two, err)
		}
		if rule(&again) != nil && len(again.Map.untried(id)) == 0 {
			t.Fatalf("%s: something is done again", one)
		}
	})
}

// A walk ends when there are more screens than can be drawn.
func TestLimitOfScreens(t *testing.T) {
	m := memory{Progress: progress{Policy: policies[0]}}
	for i := range maxScreens + 1 {
		id := strconv.Itoa(i)
		if added := m.Map.admit(&sighting{ID: id, Screen: &screen{Title: id}}); added != (i < maxScreens) {
			t.Fatalf("screen %d: %v", i, added)
		}
	}
	e := ending{Settings{MaxIterations: 10, NoProgress: 5}}
	if got := e.reason(&m); got != ReasonScreens {
		t.Errorf("reason %q", got)
	}
	out := Output{Reason: ReasonScreens}
	out.show(&m, true)
	if text := report(texts.Voice{Language: texts.German}, out, ""); !strings.Contains(text, "die Höchstzahl der Ansichten") || len(out.Screens) != maxScreens {
		t.Errorf("%s", text)
	}
}
