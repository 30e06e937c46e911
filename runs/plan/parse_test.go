package plan

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine may have none

	"github.com/claybot/claybot/runs"
)

func FuzzParsePlan(f *testing.F) {
	for _, s := range []string{
		"", "{}", "```json\n{\"steps\": []}\n```", `{"steps": [{"id": 1, "tool": "a", "args": "{}", "dependsOn": 1}]}`,
		`{"steps": [{"id": "a", "tool": "b", "args": {"x": "{{ inputs.a.b }}"}, "costEstimate": 1e400}]}`, `{"steps": [null, {}, []], "diff": 5}`,
		"{\"steps\":\n{\"steps\": []}", `{"steps": [{"id": "\u0000", "tool": "\ud800", "dependsOn": [[1], null, "a"]}]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, faults := parsePlan(text)
		if len(d.steps) > maxSteps {
			t.Fatalf("%d steps", len(d.steps))
		}
		faults = append(faults, shape(d.steps)...)
		_ = told(faults)
		for _, st := range d.steps {
			if _, ok := members(st.Args); !ok {
				t.Fatalf("arguments %q", st.Args)
			}
			if st.Risk != riskLow && st.Risk != riskHigh || st.CostMicroUSD < 0 {
				t.Fatalf("step %+v", st)
			}
			fill := filling{values: map[string]json.RawMessage{"a": json.RawMessage(`{"b":"{{ inputs.a }}"}`)}, known: []string{"a"}}
			if args := fill.fill(st.Args); !json.Valid(args) {
				t.Fatalf("filled %q", args)
			}
		}
		if len(faults) == 0 && len(inOrder(d.steps)) != len(d.steps) {
			t.Fatalf("a circle is not a fault: %+v", d.steps)
		}
		if _, err := json.Marshal(Scratch{Steps: d.steps}); err != nil {
			t.Fatal(err)
		}
		_, _ = parseIntent(text)
	})
}

// A plan that is cut anywhere is no plan, and never a shorter one.
func TestCutPlans(t *testing.T) {
	for _, whole := range []string{
		`{"steps":[{"id":"a","tool":"t","args":{"steps":[],"x":{"steps":[{"id":"z"}]}}},{"id":"b","tool":"t"}],"diff":"{}"}`,
		"{\n  \"steps\": [\n    {\n      \"id\": \"a\", \"tool\": \"t\",\n      \"args\":\n      {\"steps\": []}\n    }\n  ]\n}",
	} {
		if d, faults := parsePlan(whole); len(d.steps) == 0 || len(faults) > 0 {
			t.Fatalf("%v %v", d, faults)
		}
		for n := range len(whole) {
			if d, faults := parsePlan(whole[:n]); len(faults) == 0 {
				t.Errorf("%q is read as %+v", whole[:n], d)
			}
		}
	}
}

func TestNested(t *testing.T) {
	all := map[string]json.RawMessage{}
	setNested(all, "a", json.RawMessage("1"))
	setNested(all, "a.b", json.RawMessage(`"x"`))
	setNested(all, "a.c.d", json.RawMessage("true"))
	setNested(all, ".", json.RawMessage("2"))
	setNested(all, "e.", json.RawMessage("3"))
	got := string(encode(all))
	if want := `{".":2,"a":{"b":"x","c":{"d":true},"c.d":true},"a.b":"x","a.c.d":true,"e.":3}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for key, want := range map[string]string{"a.c.d": "true", "a.b": `"x"`, "a.c": `{"d":true}`} {
		if v, ok := lookup(all, key); !ok || string(v) != want {
			t.Errorf("%s is %s", key, v)
		}
	}
	for _, key := range []string{"b", "a.x", "a.b.c", ""} {
		if v, ok := lookup(all, key); ok {
			t.Errorf("%s is %s", key, v)
		}
	}
}

// Long numbers and markup come through as they were written.
func TestFillKeepsValues(t *testing.T) {
	f := filling{values: map[string]json.RawMessage{"n": json.RawMessage("12345678901234567890.5")}, known: []string{"n"}}
	got := string(f.fill(json.RawMessage(`{"a":"{{inputs.n}}","b":9007199254740993,"c":"<&>","d":["{{ inputs.n }}",null]}`)))
	if want := `{"a":12345678901234567890.5,"b":9007199254740993,"c":"<&>","d":[12345678901234567890.5,null]}`; got != want || len(f.faults) > 0 {
		t.Errorf("got %s, want %s, %q", got, want, f.faults)
	}
}

func TestQuietAcrossClockChanges(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		q    Quiet
		now  string
		want string // empty: not quiet
	}{
		{Quiet{From: 22 * 60, To: 7 * 60}, "2026-03-28T23:00:00+01:00", "2026-03-29T07:00:00+02:00"},
		{Quiet{From: 22 * 60, To: 7 * 60}, "2026-10-25T02:30:00+02:00", "2026-10-25T07:00:00+01:00"},
		{Quiet{From: 60, To: 150}, "2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"}, // 02:30 does not exist
		{Quiet{From: 22 * 60, To: 7 * 60}, "2026-12-31T22:00:00+01:00", "2027-01-01T07:00:00+01:00"},
		{Quiet{From: 22 * 60, To: 7 * 60}, "2026-12-31T21:59:59+01:00", ""},
		{Quiet{From: 22 * 60, To: 7 * 60}, "2026-12-31T07:00:00+01:00", ""},
		{Quiet{From: 0, To: 24 * 60}, "2026-12-31T13:00:00+01:00", "2027-01-01T00:00:00+01:00"},
	} {
		at, err := time.Parse(time.RFC3339, x.now)
		if err != nil {
			t.Fatal(err)
		}
		end, quiet := x.q.until(at.In(berlin))
		got := ""
		if quiet {
			got = end.Format(time.RFC3339)
		}
		if got != x.want {
			t.Errorf("%+v at %s: until %s, want %s", x.q, x.now, got, x.want)
		}
	}
	if _, quiet := (*Quiet)(nil).until(time.Now()); quiet {
		t.Error("no quiet hours are quiet")
	}
}

func TestPause(t *testing.T) {
	for n, want := range []time.Duration{1: 500, 2: 1000, 3: 2000, 4: 4000, 5: 5000, 6: 5000, 80: 5000} {
		if want == 0 {
			continue
		}
		want *= time.Millisecond
		for range 100 {
			if got := pause(500*time.Millisecond, n, 0); got > want || got < want*3/4 {
				t.Fatalf("pause %d is %s", n, got)
			}
		}
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"a  b\n\nc":           "a b c",
		"*a* [b](c) `d` _e_":  "\\*a\\* [b\\](c) \\`d\\` \\_e\\_",
		"\x1b[31m\u202eevil ": "[31mevil",
		"\xff":                "\uFFFD",
	} {
		if got := plain(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// The ids of calls tell their step, and fit what providers take.
func TestStepOf(t *testing.T) {
	s := &state{Turn: &runs.Turn{}}
	for _, id := range []string{"a", "step-01", "x-0123456789abcdef", strings.Repeat("z", 23)} {
		c := Step{PlannedStep: runs.PlannedStep{ID: id, Tool: "t", Args: json.RawMessage("{}")}}.call(s)
		if stepOf(c.ID) != id || len(c.ID) > 40 || !idForm.MatchString(id) {
			t.Errorf("%s is of %s", c.ID, stepOf(c.ID))
		}
	}
	if stepOf("none") != "" {
		t.Error("an id of another kind has a step")
	}
}
