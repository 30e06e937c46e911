package react_test

import (
	"context"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// A spender is a provider that counts: its calls answer as they are told.
type spender struct {
	taken claybot.Usage
	calls int
	call  func(n int, r llm.Request) (llm.Response, error) // n counts from 1
}

func (s *spender) Chat(_ context.Context, r llm.Request) (llm.Response, error) {
	s.calls++
	resp, err := s.call(s.calls, r)
	resp.Model, resp.Usage = "m", claybot.Usage{Input: 100 * int64(s.calls), Output: 1, LLMCalls: 1}
	s.taken = s.taken.Add(resp.Usage)
	return resp, err
}

// What the provider counted is told once: with a record, or as lost.
func TestEveryCallIsCountedOnce(t *testing.T) {
	cut := &llm.Error{Class: llm.Transient, Text: "cut"}
	refused := &llm.Error{Class: llm.Permanent, Text: "no"}
	one := llm.Response{Text: "one ", Stop: llm.StopLength}
	summary := func(r llm.Request) bool { return r.Messages[len(r.Messages)-1].ID == llm.SummaryRequest }
	for _, tt := range []struct {
		name string
		long bool // the conversation is to be folded
		call func(stop context.CancelFunc) func(n int, r llm.Request) (llm.Response, error)
		want int64 // of the input that was lost
		fail bool
	}{
		{"the first try fails", false, func(context.CancelFunc) func(int, llm.Request) (llm.Response, error) {
			return func(n int, _ llm.Request) (llm.Response, error) { return llm.Response{}, refused }
		}, 100, true},
		{"the continuation fails", false, func(context.CancelFunc) func(int, llm.Request) (llm.Response, error) {
			return func(n int, _ llm.Request) (llm.Response, error) {
				if n == 1 {
					return one, nil
				}
				return llm.Response{}, cut
			}
		}, 200, false},
		{"the continuation is stopped", false, func(stop context.CancelFunc) func(int, llm.Request) (llm.Response, error) {
			return func(n int, _ llm.Request) (llm.Response, error) {
				if n == 1 {
					return one, nil
				}
				stop()
				return llm.Response{}, cut
			}
		}, 300, true},
		{"a summary", true, func(context.CancelFunc) func(int, llm.Request) (llm.Response, error) {
			return func(int, llm.Request) (llm.Response, error) {
				return llm.Response{Text: "so it was", Stop: llm.StopEnd}, nil
			}
		}, 0, false},
		{"a summary fails", true, func(context.CancelFunc) func(int, llm.Request) (llm.Response, error) {
			return func(n int, r llm.Request) (llm.Response, error) {
				if summary(r) {
					return llm.Response{}, cut
				}
				return llm.Response{Text: "fine", Stop: llm.StopEnd}, nil
			}
		}, 100, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			s := &spender{call: tt.call(stop)}
			j := newJournal("hi")
			if tt.long {
				j = talk(40, 600)
			}
			var failed error
			for r, err := range narrow(llm.Metered(s, nil), nil).Run(ctx, j.turn()) {
				if err != nil {
					failed = err
					break
				}
				j.records = append(j.records, r)
			}
			if (failed != nil) != tt.fail {
				t.Fatalf("ended with %v", failed)
			}
			recorded := claybot.Usage{}
			for _, r := range j.records {
				if r.Tokens == nil {
					continue
				}
				if recorded = recorded.Add(*r.Tokens); r.Model != "m" {
					t.Errorf("a %s names the model %q", r.Type, r.Model)
				}
			}
			all := recorded.Add(j.lost)
			if recorded.Input != j.usage.Input || all.Input != s.taken.Input || all.Output != s.taken.Output || all.LLMCalls != s.taken.LLMCalls || j.lost.Input != tt.want {
				t.Errorf("the provider counted %+v; records have %+v, told were %+v, lost %+v", s.taken, recorded, j.usage, j.lost)
			}
		})
	}
}
