package react_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/runs/runstest"
	"github.com/claybot/claybot/tools"
)

// A thinker answers summary requests and all others apart, and remembers both.
type thinker struct {
	t         testing.TB
	summarize func(n int, text string) (string, error) // n counts from 1
	answer    func(n int, r llm.Request) (llm.Response, error)
	summaries []llm.Request
	requests  []llm.Request
}

func (m *thinker) Chat(_ context.Context, r llm.Request) (llm.Response, error) {
	if err := llm.Check(r.Messages); err != nil {
		m.t.Errorf("invalid request: %v", err)
	}
	usage := claybot.Usage{Input: 7, Output: 1, LLMCalls: 1, Estimated: true}
	if r.Messages[len(r.Messages)-1].ID == llm.SummaryRequest {
		m.summaries = append(m.summaries, r.Keep())
		if len(r.Tools) > 0 || r.Delta != nil || r.System == "" {
			m.t.Error("a summary request has tools, is shown, or says nothing")
		}
		text, err := fmt.Sprintf("summary %d", len(m.summaries)), error(nil)
		if m.summarize != nil {
			text, err = m.summarize(len(m.summaries), r.Messages[0].Content)
		}
		return llm.Response{Text: text, Stop: llm.StopEnd, Usage: usage}, err
	}
	m.requests = append(m.requests, r.Keep())
	if m.answer != nil {
		return m.answer(len(m.requests), r)
	}
	return llm.Response{Text: "here I am", Stop: llm.StopEnd, Usage: usage}, nil
}

// narrow is a loop whose model has a small window: 10,000 tokens, 6,988 of them
// for requests, of which 6,289 are 90 percent.
func narrow(m llm.Model, s *tools.Set) *react.Loop {
	l := loop(m, s)
	l.Window = func(claybot.Agent) int64 { return 10_000 }
	return l
}

func earlier(r claybot.Record) claybot.Record {
	r.Run = "earlier"
	return r
}

// talk is n earlier exchanges with questions of some size, and a new question.
func talk(n, size int) *journal {
	j := newJournal()
	for i := range n {
		j.records = append(j.records,
			earlier(user(fmt.Sprintf("q%d", i), fmt.Sprintf("question %d %s", i, strings.Repeat("x", size)))),
			claybot.Record{Type: claybot.RecordAssistant, Run: "earlier", Text: fmt.Sprintf("answer %d", i)})
	}
	j.records = append(j.records, user("m1", "and now?"))
	return j
}

// said are the texts of a request without padding.
func said(r llm.Request) []string {
	var lines []string
	for _, m := range r.Messages {
		lines = append(lines, strings.TrimRight(llm.Unwrap(m.Content), "x "))
	}
	return lines
}

func summaries(j *journal) []claybot.Record {
	var all []claybot.Record
	for _, r := range j.records {
		if r.Type == claybot.RecordSummary {
			all = append(all, r)
		}
	}
	return all
}

// answered runs the journal and checks that the run ended with an answer.
func answered(t *testing.T, j *journal, l *react.Loop) {
	t.Helper()
	if err := j.run(t, l); err != nil {
		t.Fatal(err)
	}
	if j.last().Type != claybot.RecordAssistant || j.last().Text == "" {
		t.Fatalf("ended with %+v", j.last())
	}
}

// fits checks the sizes of all requests of a narrow loop.
func fits(t *testing.T, m *thinker) {
	t.Helper()
	for i, r := range m.requests {
		if n := llm.Estimate(r, llm.Response{}).Input; n > 6_988 {
			t.Errorf("request %d has %d tokens", i+1, n)
		}
	}
	for i, r := range m.summaries {
		if n := llm.Estimate(r, llm.Response{}).Input; n > 5_200 {
			t.Errorf("summary request %d has %d tokens", i+1, n)
		}
	}
}

// What the compacted records held, their summary holds: a mark of one of them stays until
// the next reset.
func TestSummariesKeepMarks(t *testing.T) {
	for _, tt := range []struct{ tainted, private bool }{{}, {tainted: true}, {private: true}, {true, true}} {
		j := talk(35, 600)
		j.records[1].Tainted, j.records[1].Private = tt.tainted, tt.private
		answered(t, j, narrow(&thinker{t: t}, nil))
		got := summaries(j)
		if len(got) != 1 || got[0].Tainted != tt.tainted || got[0].Private != tt.private {
			t.Errorf("%+v: summaries %+v", tt, got)
		}
	}
}

func TestOlderRecordsAreFolded(t *testing.T) {
	m := &thinker{t: t}
	j := talk(35, 600)
	answered(t, j, narrow(m, nil))
	got := summaries(j)
	if len(got) != 1 || got[0].Keep != 20 || got[0].Text != fmt.Sprintf("summary %d", len(m.summaries)) || got[0].Run != runID || got[0].At == 0 {
		t.Fatalf("summaries %+v", got)
	}
	calls := int64(len(m.summaries))
	if *got[0].Tokens != (claybot.Usage{Input: 7 * calls, Output: calls, LLMCalls: calls, Estimated: true}) || j.usage.LLMCalls != calls+1 {
		t.Errorf("tokens %+v, usage %+v", got[0].Tokens, j.usage)
	}
	want := []string{got[0].Text, "answer 25"} // the 20 newest, the question of the run among them
	for i := 26; i < 35; i++ {
		want = append(want, fmt.Sprintf("question %d", i), fmt.Sprintf("answer %d", i))
	}
	wantLines(t, said(m.requests[0]), append(want, "and now?"))
	wantLines(t, j.told, []string{"compacted"})
	fits(t, m)

	// What stays is not folded again, neither in a later pass nor in a later run.
	j.records = append(j.records, user("m2", "more"))
	answered(t, j, narrow(m, nil))
	if len(summaries(j)) != 1 || len(m.summaries) != int(calls) {
		t.Errorf("%d summaries", len(summaries(j)))
	}
}

// The whole of what is folded is shown to the model, in chunks that fit, each
// with the summary of what was before.
func TestSummaryRolls(t *testing.T) {
	m := &thinker{t: t}
	j := talk(200, 500)
	j.records = slices.Insert(j.records, 0, earlier(user("zero", "the very first thing")), claybot.Record{Type: claybot.RecordSummary, Text: "the oldest of all"})
	answered(t, j, narrow(m, nil))
	fits(t, m)
	if len(m.summaries) < 4 {
		t.Fatalf("%d requests", len(m.summaries))
	}
	if first := m.summaries[0].Messages[0].Content; !strings.Contains(first, "the oldest of all") || strings.Contains(first, "the very first thing") {
		t.Errorf("the first request is %.200s", first)
	}
	all := ""
	for i, r := range m.summaries {
		if i > 0 && !strings.Contains(r.Messages[0].Content, fmt.Sprintf("<conversation_summary>\nsummary %d\n</conversation_summary>", i)) {
			t.Errorf("request %d lacks the summary so far", i+1)
		}
		all += r.Messages[0].Content
	}
	for i := range 190 {
		if n := strings.Count(all, fmt.Sprintf("question %d x", i)); n != 1 {
			t.Errorf("question %d is shown %d times", i, n)
		}
	}
}

func TestFillingIsToldOnce(t *testing.T) {
	m := &thinker{t: t}
	j := talk(10, 2000) // some 5,500 tokens, 79 percent
	answered(t, j, narrow(m, nil))
	wantLines(t, j.told, []string{"context-75"})
	notes := func() (n int) {
		for _, r := range j.records {
			if r.Type == claybot.RecordNote && r.Level == "info" {
				n++
			}
		}
		return n
	}
	j.told = nil
	j.records = append(j.records, user("m2", "more"))
	answered(t, j, narrow(m, nil))
	if len(j.told) != 0 || notes() != 1 || len(m.summaries) != 0 {
		t.Errorf("told %v, %d notes", j.told, notes())
	}
	j.records = append(append(j.records, claybot.Record{Type: claybot.RecordReset}), talk(10, 2000).records...)
	answered(t, j, narrow(m, nil))
	if notes() != 2 {
		t.Error("a new context is not told about")
	}

	quiet := talk(10, 2000)
	turn := quiet.turn()
	turn.Reader = nil
	if err := quiet.pass(t.Context(), narrow(m, nil), turn, 0, true); err != nil || len(quiet.records) != 22 {
		t.Errorf("%v, %d records", err, len(quiet.records))
	}
	deaf := talk(10, 2000)
	turn = deaf.turn()
	runstest.Of(turn).TellFunc = func(context.Context, string, string) error { return errors.New("disk full") }
	if err := deaf.pass(t.Context(), narrow(m, nil), turn, 0, true); err != nil || deaf.last().Text != "here I am" {
		t.Errorf("%v, %+v", err, deaf.last())
	}
}

// A call is never parted from its result, and the run is never folded.
func TestWhatStaysTogether(t *testing.T) {
	var c counter
	for cut := range 8 {
		set := c.set(t)
		j := talk(0, 0)
		j.records = nil
		for i := range 40 {
			id := fmt.Sprintf("c%d", i)
			j.records = append(j.records,
				earlier(user("q", strings.Repeat("x", 300))),
				claybot.Record{Type: claybot.RecordAssistant, Run: "earlier", ToolCalls: []claybot.ToolCall{call(id+"a", "look", ""), call(id+"b", "look", "")}},
				claybot.Record{Type: claybot.RecordTool, Run: "earlier", ToolCallID: id + "a", OK: true, Text: strings.Repeat("y", 150)},
				claybot.Record{Type: claybot.RecordNote, Run: "earlier", Text: "between"},
				claybot.Record{Type: claybot.RecordTool, Run: "earlier", ToolCallID: id + "b", OK: true, Text: strings.Repeat("y", 150)})
		}
		for i := range cut {
			j.records = append(j.records, earlier(user(fmt.Sprint(i), "a")))
		}
		j.records = append(j.records, user("m1", "and now?"))
		m := &thinker{t: t}
		answered(t, j, narrow(m, set))
		s := summaries(j)
		if len(s) != 1 || s[0].Keep < 20 || s[0].Keep > 30 {
			t.Fatalf("cut %d: summaries %+v", cut, s)
		}
		called := map[string]bool{}
		for _, msg := range m.requests[0].Messages {
			if strings.Contains(msg.Content, "interrupted") || strings.Contains(msg.Content, "not started") {
				t.Errorf("cut %d: a result was folded without its call's", cut)
			}
			for _, c := range msg.Calls {
				called[c.ID] = true
			}
		}
		at := slices.IndexFunc(j.records, func(r claybot.Record) bool { return r.Type == claybot.RecordSummary })
		for _, r := range j.records[at-s[0].Keep : at] {
			if r.Type == claybot.RecordTool && !called[r.ToolCallID] {
				t.Errorf("cut %d: the call of %s was folded", cut, r.ToolCallID)
			}
		}
	}
}

// A run that is long itself folds what was before it, once, and then has its own
// older results shortened in its requests. A broken run goes on all the same.
func TestLongRun(t *testing.T) {
	const steps = 40
	set, err := tools.NewSet(tools.New(tools.Spec{Tool: llm.Tool{Name: "read"}, Effect: tools.ReadOnly}, func(_ context.Context, env tools.Env, _ word) (tools.Result, error) {
		return tools.Result{Text: env.CallID + strings.Repeat(" z", 1500)}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, every := range []int{0, 1} {
		j := talk(25, 400)
		m := &thinker{t: t, answer: func(_ int, r llm.Request) (llm.Response, error) {
			done := 0
			for _, r := range j.records {
				if r.Run == runID && r.Type == claybot.RecordAssistant {
					done++
				}
			}
			if !slices.Contains(said(r), "and now?") {
				t.Error("the question of the run is gone")
			}
			if last := r.Messages[len(r.Messages)-1]; last.Role == llm.RoleTool && len(last.Content) < 3000 {
				t.Errorf("the newest result has %d bytes left", len(last.Content))
			}
			if done == steps {
				return llm.Response{Text: "done"}, nil
			}
			return llm.Response{Calls: []claybot.ToolCall{call(fmt.Sprintf("c%d", done), "read", fmt.Sprint(done))}, Stop: llm.StopTools}, nil
		}}
		l := narrow(m, set)
		err := errCrash
		for errors.Is(err, errCrash) {
			err = j.pass(t.Context(), l, j.turn(), every, true)
		}
		if err != nil || j.last().Text != "done" || j.last().Step != steps+1 {
			t.Fatalf("every %d: %v, ended with %+v", every, err, j.last())
		}
		if got := summaries(j); len(got) != 1 || len(j.started) != steps {
			t.Errorf("every %d: %d summaries, %d calls", every, len(got), len(j.started))
		}
		wantLines(t, j.told, []string{"context-75", "compacted"})
		fits(t, m)
	}
}

func TestModelThatCannotSummarize(t *testing.T) {
	refused := &llm.Error{Class: llm.Permanent, Status: 400, Text: "no"}
	overloaded := &llm.Error{Class: llm.Transient, Status: 503, Text: "overloaded"}
	tests := []struct {
		name string
		n    int // exchanges
		text string
		err  error
		want string // of the summary, empty: nothing changes
	}{
		{"refused", 60, "", refused, "(earlier conversation was cut)"},
		{"says nothing", 60, " \n", nil, "(earlier conversation was cut)"},
		{"some other error", 60, "", errors.New("broken"), "(earlier conversation was cut)"},
		{"overloaded", 60, "", overloaded, ""},
		{"refused while it still fits", 36, "", refused, ""},
		{"too long", 60, "", &llm.Error{Class: llm.Context}, "(earlier conversation was cut)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &thinker{t: t, summarize: func(int, string) (string, error) { return tt.text, tt.err }}
			j := talk(tt.n, 560)
			answered(t, j, narrow(m, nil))
			fits(t, m)
			got := summaries(j)
			if tt.want == "" {
				if len(got) != 0 || len(j.told) > 1 || slices.Contains(j.told, "compacted") {
					t.Errorf("summaries %+v, told %v", got, j.told)
				}
				return
			}
			if len(got) != 1 || got[0].Text != tt.want || !slices.Equal(j.told, []string{"compacted"}) {
				t.Fatalf("summaries %+v, told %v", got, j.told)
			}
			lines := said(m.requests[0])
			if lines[0] != tt.want || !strings.HasPrefix(lines[1], "question") || len(lines) < 15 {
				t.Errorf("asked %d lines, %q", len(lines), lines[:2])
			}
		})
	}
}

// What was summarized before a failure is not lost.
func TestCutKeepsTheSummaryBefore(t *testing.T) {
	m := &thinker{t: t, summarize: func(n int, _ string) (string, error) {
		if n == 2 {
			return "", errors.New("broken")
		}
		return "the beginning", nil
	}}
	j := talk(100, 560)
	answered(t, j, narrow(m, nil))
	if got := summaries(j); len(got) != 1 || got[0].Text != "the beginning\n\n(earlier conversation was cut)" {
		t.Errorf("summaries %+v", got)
	}
	fits(t, m)
}

// However much the model writes, a summary is short.
func TestSummaryIsShort(t *testing.T) {
	m := &thinker{t: t, summarize: func(int, string) (string, error) { return strings.Repeat("word ", 100_000), nil }}
	j := talk(100, 560)
	answered(t, j, narrow(m, nil))
	if got := summaries(j); len(got) != 1 || len(got[0].Text) > 6000 {
		t.Errorf("%d summaries", len(got))
	}
	fits(t, m)
}

func TestStoppedWhileSummarizing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped by the user")
	m := &thinker{t: t, summarize: func(int, string) (string, error) {
		cancel(stopped)
		return "", &llm.Error{Class: llm.Transient, Text: "canceled"}
	}}
	j := talk(60, 560)
	if err := j.pass(ctx, narrow(m, nil), j.turn(), 0, true); !errors.Is(err, stopped) || len(summaries(j)) != 0 || len(m.requests) != 0 {
		t.Errorf("%v", err)
	}
}

// What the provider counted is believed before any guess.
func TestCountedTokensCount(t *testing.T) {
	count := func(u claybot.Usage, more ...claybot.Record) int {
		m := &thinker{t: t}
		j := talk(20, 100) // some 1,300 tokens
		j.records[len(j.records)-2].Tokens = &u
		j.records = append(j.records, more...)
		answered(t, j, narrow(m, nil))
		return len(summaries(j))
	}
	note := claybot.Record{Type: claybot.RecordSummary, Text: "s", Keep: 41}
	tests := []struct {
		name string
		u    claybot.Usage
		more []claybot.Record
		want int
	}{
		{"few", claybot.Usage{Input: 1000, LLMCalls: 1}, nil, 0},
		{"many", claybot.Usage{Input: 6200, Output: 200, LLMCalls: 1}, nil, 1},
		{"estimated", claybot.Usage{Input: 6200, Output: 200, LLMCalls: 1, Estimated: true}, nil, 0},
		{"of two calls", claybot.Usage{Input: 6200, Output: 200, LLMCalls: 2}, nil, 0},
		{"before a summary", claybot.Usage{Input: 6200, Output: 200, LLMCalls: 1}, []claybot.Record{note, user("m2", "x")}, 1},
	}
	for _, tt := range tests {
		if got := count(tt.u, tt.more...); got != tt.want {
			t.Errorf("%s: %d summaries, want %d", tt.name, got, tt.want)
		}
	}
}

// A provider that finds a request too long gets shorter ones, and the reader an
// answer.
func TestContextTooLong(t *testing.T) {
	for refusals := range 4 {
		t.Run(fmt.Sprint(refusals, " refusals"), func(t *testing.T) {
			var sizes []int64
			m := &thinker{t: t, answer: func(n int, r llm.Request) (llm.Response, error) {
				sizes = append(sizes, llm.Estimate(r, llm.Response{}).Input)
				if n <= refusals {
					return llm.Response{}, &llm.Error{Class: llm.Context, Status: 400, Text: "too long"}
				}
				return llm.Response{Text: "ok"}, nil
			}}
			j := talk(30, 400)
			err := j.run(t, narrow(m, nil))
			if want := min(refusals+1, 3); len(sizes) != want || len(summaries(j)) != min(refusals, 1) {
				t.Errorf("sizes %v, %d summaries", sizes, len(summaries(j)))
			}
			for i := 1; i < len(sizes); i++ {
				if sizes[i] > sizes[i-1]*6/10 {
					t.Errorf("sizes %v", sizes)
				}
			}
			if refusals < 3 && (err != nil || j.last().Text != "ok") || refusals == 3 && code(err) != runs.CodeContext {
				t.Errorf("got %v", err)
			}
		})
	}
}
