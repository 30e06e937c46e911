package runs_test

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

func took(n int64) *claybot.Usage { return &claybot.Usage{Input: 10 * n, Output: n, LLMCalls: 1} }

// happened yields the events of records, and others, numbered from 1; the error of
// a store that fails behind them, if any.
func happened(fault error, all ...any) func(seq int64) iter.Seq2[claybot.Event, error] {
	return func(seq int64) iter.Seq2[claybot.Event, error] { return behind(seq, fault, all) }
}

func behind(seq int64, fault error, all []any) iter.Seq2[claybot.Event, error] {
	return func(yield func(claybot.Event, error) bool) {
		for i, x := range all {
			if int64(i) < seq {
				continue
			}
			e, _ := x.(claybot.Event)
			if r, ok := x.(claybot.Record); ok {
				e, _ = runs.EventOf(r)
			}
			e.Seq = int64(i + 1)
			if !yield(e, nil) {
				return
			}
		}
		if fault != nil {
			yield(claybot.Event{}, fault)
		}
	}
}

// What a run has taken is known before its end, whatever its engine.
func TestSoFar(t *testing.T) {
	answer := func(n int64) claybot.Record { return claybot.Record{Type: claybot.RecordAssistant, Tokens: took(n)} }
	node := claybot.Record{Type: claybot.RecordNode, Name: "plan", Next: "confirm", Tokens: took(3)}
	summary := claybot.Record{Type: claybot.RecordSummary, Tokens: took(4)}
	tool := runs.ToolCalled("r", claybot.ToolCall{ID: "a", Name: "wait"}, "once")
	paused := runs.Paused("r", claybot.Awaiting{})
	damaged := claybot.Event{Type: claybot.EventAssistantMessage, Data: []byte(`{`)}
	running := claybot.Run{State: claybot.RunRunning, LastSeq: 99}
	lost := errors.New("the store is gone")
	for name, tt := range map[string]struct {
		run   claybot.Run
		all   []any
		fault error
		want  claybot.Usage
	}{
		"just begun": {running, nil, nil, claybot.Usage{}},
		"every kind of call": {
			running,
			[]any{answer(1), tool, answer(2), node, summary},
			nil,
			claybot.Usage{Input: 100, Output: 10, LLMCalls: 4, ToolCalls: 1},
		},
		"without counts": {running, []any{claybot.Record{Type: claybot.RecordAssistant}, damaged}, nil, claybot.Usage{}},
		"after a pause, whose sum has what no event tells": {
			claybot.Run{State: claybot.RunRunning, LastSeq: 99, Usage: claybot.Usage{Input: 500, LLMCalls: 7}},
			[]any{answer(1), paused, answer(2)},
			nil,
			claybot.Usage{Input: 520, Output: 2, LLMCalls: 8},
		},
		"what came after the run was read": {
			claybot.Run{State: claybot.RunRunning, LastSeq: 1},
			[]any{answer(1), answer(2), paused},
			nil,
			*took(1),
		},
		"a pause far behind the first events": {
			claybot.Run{State: claybot.RunRunning, LastSeq: 12_002, Usage: *took(1000)},
			slices.Concat(slices.Repeat([]any{answer(9)}, 12_000), []any{paused, answer(1)}),
			nil,
			claybot.Usage{Input: 10_010, Output: 1001, LLMCalls: 2},
		},
		"a pause long ago": {
			claybot.Run{State: claybot.RunRunning, LastSeq: 5001, Usage: *took(1000)},
			slices.Concat([]any{paused}, slices.Repeat([]any{answer(1)}, 5000)),
			nil,
			claybot.Usage{Input: 10_000 + 20_000, Output: 3000, LLMCalls: 2001},
		},
		"paused":  {claybot.Run{State: claybot.RunAwaiting, LastSeq: 99, Usage: *took(9)}, []any{answer(1)}, lost, *took(9)},
		"ended":   {claybot.Run{State: claybot.RunFailed, LastSeq: 99, Usage: *took(9)}, []any{answer(1)}, lost, *took(9)},
		"pending": {claybot.Run{State: claybot.RunPending}, nil, lost, claybot.Usage{}},
	} {
		got, err := runs.SoFar(tt.run, happened(tt.fault, tt.all...))
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v %v, want %+v", name, got, err, tt.want)
		}
	}
	if got, err := runs.SoFar(claybot.Run{State: claybot.RunRunning, LastSeq: 50_000}, func(seq int64) iter.Seq2[claybot.Event, error] {
		if seq < 40_000 {
			t.Errorf("the events behind %d are read for each look", seq)
		}
		return behind(0, nil, nil)
	}); err != nil || got != (claybot.Usage{}) {
		t.Errorf("a long run: %+v %v", got, err)
	}
	if _, err := runs.SoFar(running, happened(lost, answer(1))); !errors.Is(err, lost) {
		t.Errorf("a store that fails: %v", err)
	}
}
