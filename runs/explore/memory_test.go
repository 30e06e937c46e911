package explore

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/claybot/claybot/devices"
)

// What walks know is stored with their runs, so its JSON stays what it was when they
// began, to the byte.
func TestMemoryJSON(t *testing.T) {
	a := devices.Action{ID: "a1", Kind: devices.Click, Label: "Next <&>", Once: true}
	in := intent{Screen: "s1", Action: a, Value: "v"}
	full := memory{
		Target:   target{URL: "https://example.com/", Goal: "g"},
		Now:      situation{Start: "s1", At: "s2", Seen: &sighting{ID: "s2"}, Intent: &in, Outcome: &outcome{There: true, Fault: "f"}, New: true, Filled: []intent{in}},
		Progress: progress{Policy: "depth", Iterations: 1, Idle: 2, Crashed: true, Crashes: 3, Exhausted: true, Reached: true, Why: "w", Spent: 4, Garbled: 5, Stop: "goal"},
	}
	full.Map.admit(&sighting{ID: "s1", Screen: &screen{Title: "One", Actions: []devices.Action{a}}})
	full.Map.admit(&sighting{ID: `s"2`, Screen: &screen{Title: "Two", URL: "https://example.com/2"}})
	full.Map.moved(in, "s2")
	const act = `{"id":"a1","kind":"click","label":"Next \u003c\u0026\u003e","once":true}`
	for _, test := range []struct {
		name string
		m    memory
		want string
	}{
		{"nothing", memory{}, `{}`},
		{"a screen alone", memory{Map: chart{Screens: map[string]*screen{"x": {N: 1, Title: "t"}}}}, `{"screen/x":{"n":1,"title":"t"}}`},
		{"everything", full, `{"url":"https://example.com/","goal":"g","start":"s1","at":"s2","seen":{"id":"s2"},` +
			`"intent":{"screen":"s1","action":` + act + `,"value":"v"},"outcome":{"there":true,"fault":"f"},"new":true,` +
			`"filled":[{"screen":"s1","action":` + act + `,"value":"v"}],"policy":"depth","iterations":1,"idle":2,"crashed":true,` +
			`"crashes":3,"exhausted":true,"reached":true,"why":"w","spent":4,"garbled":5,"stop":"goal",` +
			`"screen/s1":{"n":1,"title":"One","actions":[` + act + `]},"screen/s\"2":{"n":2,"title":"Two","url":"https://example.com/2"},` +
			`"move/000000":{"from":"s1","action":"a1","to":"s2","kind":"click","label":"Next \u003c\u0026\u003e","once":true}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := json.Marshal(test.m)
			if err != nil || string(got) != test.want {
				t.Fatalf("%v, got\n%s\nwant\n%s", err, got, test.want)
			}
			var again memory
			if err := json.Unmarshal(got, &again); err != nil {
				t.Fatal(err)
			}
			if again.Now.At != test.m.Now.At || len(again.Map.Moves) != len(test.m.Map.Moves) || !reflect.DeepEqual(again.Progress, test.m.Progress) {
				t.Errorf("read %+v", again)
			}
		})
	}
}
