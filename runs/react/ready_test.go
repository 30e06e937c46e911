package react_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/tools"
)

// A run that goes on after a restart calls tools that came while it began, such as those of an
// MCP server: whether it waited for them, or they were there just before it would have.
func TestResumedRunTakesLateTools(t *testing.T) {
	for name, late := range map[string]bool{"before it waits": false, "while it waits": true} {
		var c counter
		set, j := c.set(t), newJournal("go")
		l := loop(llmtest.NewScript(llmtest.Use(call("a", "put", "it")), llmtest.Say("ok")), set)
		if err := j.pass(t.Context(), l, j.turn(), 2, false); !errors.Is(err, errCrash) { // the call has begun
			t.Fatalf("%s: %v", name, err)
		}
		none, err := tools.NewSet()
		if err != nil {
			t.Fatal(err)
		}
		there, waited := none, []string(nil)
		l.Tools = func(claybot.Agent) *tools.Set {
			given := there
			if !late {
				there = set
			}
			return given
		}
		l.Ready = func(_ context.Context, names []string) { there, waited = set, names }
		if err := j.run(t, l); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := j.lines(); got[len(got)-2] != "1 a true put it" || c.runs["a"] != 2 || !slices.Equal(waited, []string{"put"}) {
			t.Errorf("%s: %q, ran %v, waited for %q", name, got, c.runs, waited)
		}
	}
}
