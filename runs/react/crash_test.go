package react_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs/runstest"
	"github.com/claybot/claybot/tools"
)

// scene is a run with every kind of step: each effect, neighbours that run side
// by side, a refused call, an unknown tool, a message that joins in.
var scene = []llmtest.Reply{
	llmtest.Use(call("a", "look", "1"), call("b", "look", "2"), call("c", "pay", "3"), call("d", "put", "4")),
	llmtest.Use(call("e", "pay", "5"), claybot.ToolCall{ID: "f", Name: "look", Args: `{"word"`}, call("g", "none", "6")),
	llmtest.Use(call("h", "put", "7")),
	llmtest.Say("all done"),
}

// rest is the model for a run that has got as far as j.
func rest(j *journal) *llmtest.Script {
	answers := 0
	for _, r := range j.records {
		if r.Type == claybot.RecordAssistant {
			answers++
		}
	}
	return llmtest.NewScript(scene[answers:]...)
}

func sceneJournal() *journal {
	j := newJournal("go")
	j.inject = [][]claybot.Record{nil, {user("m2", "wait, also this")}}
	return j
}

func TestCrashAtEveryStep(t *testing.T) {
	var c counter
	set := c.set(t)
	smooth := sceneJournal()
	if err := smooth.run(t, loop(rest(smooth), set)); err != nil {
		t.Fatal(err)
	}
	want := smooth.lines()
	total := len(want) - 2 // two user messages
	if total != 12 {
		t.Fatalf("the scene has %d records", total)
	}

	t.Run("after a record", func(t *testing.T) {
		for k := 1; k <= total; k++ {
			set := c.set(t)
			j := sceneJournal()
			if err := j.pass(t.Context(), loop(rest(j), set), j.turn(), k, true); !errors.Is(err, errCrash) {
				t.Fatalf("k=%d: %v", k, err)
			}
			if err := j.run(t, loop(rest(j), set)); err != nil {
				t.Fatalf("k=%d: %v", k, err)
			}
			wantLines(t, j.lines(), want)
			checkScene(t, k, j, &c)
		}
	})
	t.Run("before a record", func(t *testing.T) {
		for k := 1; k <= total; k++ {
			set := c.set(t)
			j := sceneJournal()
			if err := j.pass(t.Context(), loop(rest(j), set), j.turn(), k, false); !errors.Is(err, errCrash) {
				t.Fatalf("k=%d: %v", k, err)
			}
			if err := j.run(t, loop(rest(j), set)); err != nil {
				t.Fatalf("k=%d: %v", k, err)
			}
			checkScene(t, k, j, &c)
		}
	})
	t.Run("after every record", func(t *testing.T) {
		set := c.set(t)
		j := sceneJournal()
		passes := 0
		for err := errCrash; err != nil; passes++ {
			if err = j.pass(t.Context(), loop(rest(j), set), j.turn(), 1, true); err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
		}
		if passes != total+1 { // the last one finds nothing to do
			t.Errorf("%d passes, want %d", passes, total+1)
		}
		wantLines(t, j.lines(), want)
		checkScene(t, 0, j, &c)
	})
}

// A start that is durable may or may not have been followed by the tool.
func TestCrashBetweenStartAndTool(t *testing.T) {
	var c counter
	for k := 1; k <= 6; k++ {
		set := c.set(t)
		j := sceneJournal()
		turn := j.turn()
		record := runstest.Of(turn).StartedFunc
		runstest.Of(turn).StartedFunc = func(ctx context.Context, call claybot.ToolCall, effect string) error {
			if err := record(ctx, call, effect); err != nil {
				return err
			}
			if len(j.started) == k {
				return errCrash
			}
			return nil
		}
		if err := j.pass(t.Context(), loop(rest(j), set), turn, 0, true); !errors.Is(err, errCrash) {
			t.Fatalf("k=%d: %v", k, err)
		}
		if err := j.run(t, loop(rest(j), set)); err != nil {
			t.Fatalf("k=%d: %v", k, err)
		}
		checkScene(t, k, j, &c)
	}
}

// checkScene checks what holds however the scene was interrupted.
func checkScene(t *testing.T, k int, j *journal, c *counter) {
	t.Helper()
	results := map[string]claybot.Record{}
	for _, r := range j.records {
		if r.Type != claybot.RecordTool {
			continue
		}
		if _, twice := results[r.ToolCallID]; twice {
			t.Errorf("k=%d: call %s has two results", k, r.ToolCallID)
		}
		results[r.ToolCallID] = r
	}
	if len(results) != 8 {
		t.Errorf("k=%d: %d results", k, len(results))
	}
	for _, id := range []string{"c", "e"} {
		r := results[id]
		if c.runs[id] > 1 || r.OK && c.runs[id] != 1 {
			t.Errorf("k=%d: pay %s ran %d times, result %+v", k, id, c.runs[id], r)
		}
		if !r.OK && !(r.Interrupted && strings.HasPrefix(r.Text, "interrupted, outcome unknown")) {
			t.Errorf("k=%d: pay %s came to %+v", k, id, r)
		}
	}
	for _, id := range []string{"a", "b", "d", "h"} {
		if !results[id].OK || c.runs[id] < 1 {
			t.Errorf("k=%d: %s ran %d times, result %+v", k, id, c.runs[id], results[id])
		}
	}
	if results["f"].OK || results["g"].OK || c.runs["f"]+c.runs["g"] != 0 {
		t.Errorf("k=%d: refused calls: %+v %+v", k, results["f"], results["g"])
	}
	if j.last().Text != "all done" || !slices.Contains(j.lines(), "user_message wait, also this") {
		t.Errorf("k=%d: ended with\n%s", k, strings.Join(j.lines(), "\n"))
	}
	if _, ok := j.started["g"]; ok || len(j.started) != 6 {
		t.Errorf("k=%d: started %v", k, j.started)
	}
}

// A tool may be gone, or its effect unknown, when the run goes on.
func TestStartedToolIsGone(t *testing.T) {
	j := newJournal("go")
	j.records = append(j.records, claybot.Record{Type: claybot.RecordAssistant, Run: runID, Step: 1, ToolCalls: []claybot.ToolCall{call("a", "pay", "1")}})
	j.started["a"] = "once"
	none, err := tools.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	if err := j.run(t, loop(llmtest.NewScript(llmtest.Say("ok")), none)); err != nil {
		t.Fatal(err)
	}
	if r := j.records[2]; !r.Interrupted || r.OK {
		t.Errorf("result %+v", r)
	}
}

func TestResumedRunIsDone(t *testing.T) {
	j := newJournal("go")
	j.records = append(j.records, claybot.Record{Type: claybot.RecordAssistant, Run: runID, Step: 1, Text: "hi"})
	script := llmtest.NewScript(llmtest.Say("again"))
	if err := j.run(t, loop(script, nil)); err != nil {
		t.Fatal(err)
	}
	if len(j.records) != 2 || len(script.Requests()) != 0 {
		t.Errorf("records %v", j.lines())
	}
	j.records = append(j.records, claybot.Record{Type: claybot.RecordNote, Run: runID, Text: "a note is not a question"})
	if err := j.run(t, loop(script, nil)); err != nil || len(j.records) != 3 {
		t.Errorf("%v, records %v", err, j.lines())
	}
	j.records = append(j.records, user("m2", "one more"))
	if err := j.run(t, loop(script, nil)); err != nil || j.last().Text != "again" {
		t.Errorf("%v, records %v", err, j.lines())
	}
}
