package llm

import (
	"context"
	"errors"
	"testing"

	"github.com/claybot/claybot"
)

func TestPrices(t *testing.T) {
	p := Prices{}.With(Prices{"GPT-5": {Input: 1, Output: 10}, "gpt-5-Mini": {Input: 0.25, CachedInput: 0.025, Output: 2}, "claude": {Input: 3, CachedInput: 0.3, Output: 15, CacheWrite: 3.75}})
	for _, tt := range []struct {
		model string
		usage claybot.Usage
		cost  int64
		known bool
	}{
		{"gpt-5", claybot.Usage{Input: 100, Output: 3}, 130, true},
		{"GPT-5-2025-08-07", claybot.Usage{Input: 100}, 100, true},
		{"gpt-5-MINI-2025", claybot.Usage{Input: 1000, CachedInput: 400, Output: 10}, 180, true},
		{"gpt-5-mini", claybot.Usage{Input: 10, CachedInput: 99}, 0, true},
		{"gpt-5", claybot.Usage{Input: 10, CachedInput: 4, CacheWrite: 5}, 10, true}, // no price of their own
		{"claude", claybot.Usage{Input: 1000, CachedInput: 400, CacheWrite: 500, Output: 1}, 300 + 120 + 1875 + 15, true},
		{"claude", claybot.Usage{Input: 10, CachedInput: 8, CacheWrite: 99, Output: -1}, 10, true},
		{"gpt-5-mini", claybot.Usage{Input: 2}, 1, true},
		{"llama3", claybot.Usage{Input: 1e6, Output: 1e6}, 0, false},
		{"", claybot.Usage{Input: 1}, 0, false},
	} {
		if cost, known := p.Cost(tt.model, tt.usage); cost != tt.cost || known != tt.known {
			t.Errorf("%s %+v: got %d %v, want %d %v", tt.model, tt.usage, cost, known, tt.cost, tt.known)
		}
	}
}

func TestDefaultPricesCanBeReplaced(t *testing.T) {
	own := DefaultPrices().With(Prices{"GPT-5-mini": {Input: 9}, "local": {}})
	if got, known := own.For("gpt-5-mini"); !known || got.Input != 9 || got.Output != 0 {
		t.Errorf("got %+v, %v", got, known)
	}
	if _, known := own.For("local/llama"); !known {
		t.Error("a model that costs nothing is known")
	}
	if got, _ := own.For("gpt-4.1-nano-2025-04-14"); got != DefaultPrices()["gpt-4.1-nano"] {
		t.Errorf("got %+v", got)
	}
	for name, p := range DefaultPrices() {
		if p.Input <= 0 || p.CachedInput <= 0 || p.CachedInput > p.Input || p.Output < p.Input || p.CacheWrite != 0 && p.CacheWrite < p.Input {
			t.Errorf("%s: price %+v", name, p)
		}
	}
}

type answering struct {
	resp Response
	err  error
}

func (a answering) Chat(context.Context, Request) (Response, error) { return a.resp, a.err }

func TestMetered(t *testing.T) {
	prices := Prices{"m": {Input: 2, CachedInput: 1, Output: 10}}
	r := Request{System: "12345678", Messages: []Message{{Role: RoleUser, Content: "12345678"}}}
	for _, tt := range []struct {
		name string
		resp Response
		want claybot.Usage
	}{
		{"counted", Response{Model: "m1", Usage: claybot.Usage{Input: 10, CachedInput: 4, Output: 1}}, claybot.Usage{Input: 10, CachedInput: 4, Output: 1, CostMicroUSD: 26, LLMCalls: 1}},
		{"guessed", Response{Model: "m1", Text: "12345"}, claybot.Usage{Input: 4, Output: 2, CostMicroUSD: 28, LLMCalls: 1, Estimated: true}},
		{"unknown", Response{Model: "x", Usage: claybot.Usage{Input: 10, Output: 1, LLMCalls: 1}}, claybot.Usage{Input: 10, Output: 1, LLMCalls: 1, Unpriced: 1}},
		{"known by the other name", Response{Model: "x", Asked: "m", Usage: claybot.Usage{Input: 10}}, claybot.Usage{Input: 10, CostMicroUSD: 20, LLMCalls: 1}},
	} {
		got, err := Metered(answering{resp: tt.resp}, prices).Chat(t.Context(), r)
		if err != nil || got.Usage != tt.want || got.Text != tt.resp.Text {
			t.Errorf("%s: got %+v, %v, want %+v", tt.name, got.Usage, err, tt.want)
		}
	}
	cut := &Error{Class: Transient, Text: "cut"}
	got, err := Metered(answering{resp: Response{Model: "m", Usage: claybot.Usage{Input: 10, Output: 2}}, err: cut}, prices).Chat(t.Context(), r)
	if want := (claybot.Usage{Input: 10, Output: 2, CostMicroUSD: 40, LLMCalls: 1}); !errors.Is(err, cut) || got.Usage != want {
		t.Errorf("a failed call took %+v, %v, want %+v", got.Usage, err, want)
	}
	fails := &Error{Class: Rate, Text: "slow down"}
	if got, err := Metered(answering{err: fails}, prices).Chat(t.Context(), r); !errors.Is(err, fails) || got.Usage != (claybot.Usage{LLMCalls: 1}) { // a try all the same
		t.Errorf("got %+v, %v", got.Usage, err)
	}
}

// A call that was charged without a count of tokens has estimated tokens and the cost that was charged, whatever prices say.
func TestMeteredChargedWithoutTokens(t *testing.T) {
	for _, failed := range []error{nil, Failed(Permanent, "cut")} {
		j := &jar{limit: 1e9, tokens: true}
		m := Budgeted(Metered(modelFunc(func(context.Context, Request) (Response, error) {
			return Response{Text: "hi", Model: "m", Charged: true, Usage: claybot.Usage{CostMicroUSD: 1200}}, failed
		}), tenDollars), "m", j, tenDollars, nil)
		resp, err := m.Chat(t.Context(), ask())
		if u := resp.Usage; !errors.Is(err, failed) || u.Input == 0 || !u.Estimated || u.CostMicroUSD != 1200 || u.Unpriced != 0 || j.spent != u.Input+u.Output || j.booked[0].CostMicroUSD != 1200 {
			t.Errorf("%v: took %+v, booked %+v", err, u, j.booked)
		}
	}
}
