package react_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
)

// Whatever is too large, the request fits and the run is answered.
func TestRequestsFit(t *testing.T) {
	big := strings.Repeat("large ", 20_000)
	args := `{"word":"` + strings.Repeat("<&\\n", 20_000) + `"}`
	huge := func(n int) *journal {
		j := newJournal()
		for i := range n {
			id := fmt.Sprintf("c%d", i)
			j.records = append(j.records, earlier(user("q", big)),
				claybot.Record{Type: claybot.RecordAssistant, Run: "earlier", Text: big, ToolCalls: []claybot.ToolCall{{ID: id, Name: "look", Args: args}}},
				claybot.Record{Type: claybot.RecordTool, Run: "earlier", ToolCallID: id, OK: true, Text: id + big, Saved: "results/" + id})
		}
		j.records = append(j.records, user("m1", "and now?"))
		return j
	}
	run := huge(30) // all of one run: nothing can be folded
	for i := range run.records {
		run.records[i].Run = runID
	}
	many := newJournal()
	for i := range 3000 {
		many.records = append(many.records, user(fmt.Sprint(i), "a short message"))
	}
	tests := []struct {
		name string
		j    *journal
		fail bool // the model cannot summarize
	}{
		{"20 huge records", huge(7), false},
		{"300 huge records", huge(100), false},
		{"300 huge records, no summary", huge(100), true},
		{"a huge run", run, false},
		{"a huge question", newJournal(big), false},
		{"a huge quote", func() *journal { j := newJournal("what is that?"); j.records[0].Quote = big; return j }(), false},
		{"3,000 messages at once", many, false},
		{"a huge summary", func() *journal {
			j := newJournal()
			j.records = append(j.records, claybot.Record{Type: claybot.RecordSummary, Text: big}, user("m1", "and now?"))
			return j
		}(), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c counter
			m := &thinker{t: t}
			if tt.fail {
				m.summarize = func(int, string) (string, error) { return "", errors.New("broken") }
			}
			recorded := len(tt.j.records)
			question := tt.j.last()
			answered(t, tt.j, narrow(m, c.set(t)))
			fits(t, m)
			if got := m.requests[0].Messages; got[len(got)-1].ID != string(question.MessageID) {
				t.Errorf("the last message is %+v", got[len(got)-1])
			}
			if len(tt.j.told) > 1 || len(summaries(tt.j)) > 2 || len(tt.j.records) > recorded+2 {
				t.Errorf("told %v, %d records", tt.j.told, len(tt.j.records)-recorded)
			}
		})
	}
}

// A window that is far too small, or prompts and tools that fill it, are no
// reason to say nothing.
func TestHopelessWindow(t *testing.T) {
	var c counter
	for _, window := range []int64{1, 600, 3000} {
		m := &thinker{t: t}
		j := talk(50, 500)
		l := loop(m, c.set(t))
		l.Window = func(claybot.Agent) int64 { return window }
		l.Prompt = func(*runs.Turn) (string, error) { return strings.Repeat("p", 20_000), nil }
		answered(t, j, l)
		if got := m.requests[0].Messages; len(got) > 40 || llm.Unwrap(got[len(got)-1].Content) != "and now?" {
			t.Errorf("window %d: %d messages, %+v", window, len(got), got[len(got)-1])
		}
	}
}

// The window comes from the setting, else from the name of the model.
func TestWindow(t *testing.T) {
	set := func(n int64) func(claybot.Agent) int64 { return func(claybot.Agent) int64 { return n } }
	name := func(s string) func(claybot.Agent) string { return func(claybot.Agent) string { return s } }
	tests := []struct {
		name string
		l    *react.Loop
		want int64
	}{
		{"nothing", &react.Loop{}, 128_000},
		{"named", &react.Loop{ModelName: name("gpt-4")}, 8_192},
		{"unknown", &react.Loop{ModelName: name("demo")}, 128_000},
		{"set", &react.Loop{Window: set(5), ModelName: name("gpt-4")}, 5},
		{"not set", &react.Loop{Window: set(0), ModelName: name("gpt-4")}, 8_192},
	}
	for _, tt := range tests {
		tt.l.Model = func(claybot.Agent) llm.Model { return nil }
		if got := tt.l.Measure(newJournal().turn()); got.Window != tt.want || got.Reserve != min(16_384, tt.want/4) {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func TestMeasure(t *testing.T) {
	var c counter
	l := narrow(nil, c.set(t))
	l.Model = func(claybot.Agent) llm.Model { return nil }
	l.Prompt = func(*runs.Turn) (string, error) { return strings.Repeat("p", 400), nil }
	l.Index = func(*runs.Turn) (claybot.Index, error) { return claybot.Index{Text: strings.Repeat("n", 600)}, nil }
	j := newJournal()
	if got := l.Measure(j.turn()); got.Notes != 150 || got.System != 100 {
		t.Errorf("a new conversation: notes %d, system %d, want 150 and 100", got.Notes, got.System)
	}
	j.records = append(j.records, earlier(user("gone", strings.Repeat("x", 4000))),
		claybot.Record{Type: claybot.RecordSummary, Text: strings.Repeat("s", 400), Index: &claybot.Index{Text: strings.Repeat("n", 400)}},
		claybot.Record{Type: claybot.RecordIndex, Text: strings.Repeat("i", 400), Index: &claybot.Index{}}, user("m1", strings.Repeat("q", 800)),
		claybot.Record{Type: claybot.RecordAssistant, ToolCalls: []claybot.ToolCall{call("a", "look", "")}},
		claybot.Record{Type: claybot.RecordTool, ToolCallID: "a", Text: strings.Repeat("r", 4<<20)})
	turn := j.turn()
	turn.Agent.State.Context = 77
	got := l.Measure(turn)
	for _, x := range []struct {
		name          string
		got, from, to int64
	}{
		{"window", got.Window, 10_000, 10_000},
		{"reserve", got.Reserve, 2_500, 2_500},
		{"system", got.System, 100, 100},
		{"notes", got.Notes, 200, 260},
		{"tools", got.Tools, 50, 400},
		{"summary", got.Summary, 100, 140},
		{"conversation", got.Conversation, 200, 260},
		{"results", got.Results, 4_096, 4_200},
		{"last", got.Last, 77, 77},
	} {
		if x.got < x.from || x.got > x.to {
			t.Errorf("%s is %d, want %d to %d", x.name, x.got, x.from, x.to)
		}
	}
	if len(got.Groups) != 1 || got.Groups[0].Tokens != got.Tools {
		t.Errorf("the tools are %+v, want one group of all", got.Groups)
	}
}

func TestCompact(t *testing.T) {
	compact := func(j *journal, l *react.Loop) error {
		turn := &runs.Turn{Agent: claybot.Agent{ID: "agent1"}, Run: claybot.Run{ID: "none"}, History: slices.Clone(j.records)}
		for r, err := range l.Compact(t.Context(), turn) {
			if err != nil {
				return err
			}
			j.records = append(j.records, r)
		}
		return nil
	}
	tests := []struct {
		name   string
		n      int // records
		folded int
	}{
		{"nothing", 0, 0},
		{"as many as stay", 20, 0},
		{"one more", 21, 0},
		{"two more", 22, 0},
		{"three more", 23, 3},
		{"many more", 61, 41},
	}
	for _, tt := range tests {
		m := &thinker{t: t}
		j := talk(40, 10)
		j.records = j.records[:tt.n]
		if err := compact(j, narrow(m, nil)); err != nil {
			t.Fatal(err)
		}
		got := summaries(j)
		if tt.folded == 0 && (len(got) != 0 || len(m.summaries) != 0) {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if tt.folded > 0 && (len(got) != 1 || got[0].Keep != 20 || got[0].Run != "" || got[0].Text == "") {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if err := compact(j, narrow(m, nil)); err != nil || len(summaries(j)) != len(got) {
			t.Errorf("%s: a second time: %v", tt.name, err)
		}
	}
	j := talk(40, 10)
	refused := &llm.Error{Class: llm.Permanent, Status: 400, Text: "no"}
	for want, m := range map[string]llm.Model{
		runs.CodeRefused: failing{refused},
		runs.CodeNoModel: nil,
		runs.CodeModel:   &thinker{t: t, summarize: func(int, string) (string, error) { return "", nil }},
	} {
		if err := compact(j, narrow(m, nil)); code(err) != want || len(summaries(j)) != 0 {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The bar: 50 MB of history, most of it in results of 5 MB. The next message is
// answered, told about at most once, and in little memory.
func TestHugeHistory(t *testing.T) {
	var c counter
	set := c.set(t)
	five := strings.Repeat("result ", 5<<20/7)
	j := newJournal()
	for i := range 100 {
		id := fmt.Sprintf("c%d", i)
		result := "small"
		if i%10 == 3 {
			result = five
		}
		j.records = append(j.records, earlier(user("q", strings.Repeat("word ", 2000))),
			claybot.Record{Type: claybot.RecordAssistant, Run: "earlier", ToolCalls: []claybot.ToolCall{call(id, "look", id)}},
			claybot.Record{Type: claybot.RecordTool, Run: "earlier", ToolCallID: id, OK: true, Text: result})
	}
	j.records = append(j.records, user("m1", "and now?"))
	for _, window := range []int64{8_192, 128_000} {
		m := &thinker{t: t}
		j := &journal{records: slices.Clone(j.records), started: map[string]string{}}
		l := loop(m, set)
		l.Window = func(claybot.Agent) int64 { return window }
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		answered(t, j, l)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
			t.Errorf("window %d: %d bytes were allocated", window, got)
		}
		if len(j.told) > 1 || len(summaries(j)) != 1 || len(m.requests) != 1 || len(m.summaries) > 40 {
			t.Errorf("window %d: told %v, %d summaries of %d calls", window, j.told, len(summaries(j)), len(m.summaries))
		}
		if n := llm.Estimate(m.requests[0], llm.Response{}).Input; n > window*3/4 {
			t.Errorf("window %d: %d tokens", window, n)
		}
	}
}

// Whatever the history, the window and the model: requests are valid and fit,
// the run is answered or fails for a reason, and no record of the run is folded.
func TestAnyHistoryIsAnswered(t *testing.T) {
	var c counter
	set := c.set(t)
	id := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	record := rapid.Custom(func(t *rapid.T) claybot.Record {
		r := claybot.Record{
			Type: rapid.SampledFrom([]claybot.RecordType{
				claybot.RecordUser, claybot.RecordSystem, claybot.RecordAssistant, claybot.RecordTool, claybot.RecordTool, claybot.RecordNote,
				claybot.RecordSummary, claybot.RecordReset,
			}).Draw(t, "type"),
			Run: "earlier", ToolCallID: id.Draw(t, "of"), Keep: rapid.IntRange(-1, 4).Draw(t, "keep"),
			Text: strings.Repeat("x", rapid.SampledFrom([]int{0, 10, 1000, 40_000}).Draw(t, "size")),
		}
		if r.Type == claybot.RecordAssistant {
			for range rapid.IntRange(0, 2).Draw(t, "calls") {
				r.ToolCalls = append(r.ToolCalls, call(id.Draw(t, "call"), "look", strings.Repeat("y", rapid.SampledFrom([]int{0, 30_000}).Draw(t, "args"))))
			}
		}
		return r
	})
	rapid.Check(t, func(rt *rapid.T) {
		j := newJournal()
		j.records = rapid.SliceOfN(record, 0, 60).Draw(rt, "history")
		j.records = append(j.records, user("m1", "and now?"))
		broken := rapid.Bool().Draw(rt, "broken")
		m := &thinker{t: t, summarize: func(n int, text string) (string, error) {
			if broken {
				return "", errors.New("broken")
			}
			return strings.Repeat("s", rapid.IntRange(1, 20_000).Draw(rt, "summary")), nil
		}, answer: func(n int, r llm.Request) (llm.Response, error) {
			last := r.Messages[len(r.Messages)-1]
			if n == 1 && llm.Unwrap(last.Content) != "and now?" {
				rt.Fatalf("the model is asked %.100q", last.Content)
			}
			if n < 3 {
				return llm.Response{Calls: []claybot.ToolCall{call("a", "look", "1")}, Stop: llm.StopTools}, nil
			}
			return llm.Response{Text: "ok"}, nil
		}}
		l := narrow(m, set)
		if rapid.Bool().Draw(rt, "without tools") {
			l.Tools = nil
		}
		if err := j.pass(context.Background(), l, j.turn(), 0, true); err != nil {
			rt.Fatal(err)
		}
		fits(t, m)
		first := slices.IndexFunc(j.records, func(r claybot.Record) bool { return r.Run == runID && r.Type == claybot.RecordUser })
		for i, r := range j.records {
			if r.Type == claybot.RecordSummary && r.Run == runID && i-r.Keep > first {
				rt.Fatalf("the summary at %d keeps %d, the run begins at %d", i, r.Keep, first)
			}
		}
	})
}
