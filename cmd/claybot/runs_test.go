package main

import (
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

// What grows until the end of a run is marked.
func TestFiguresOfARun(t *testing.T) {
	one := claybot.Usage{Input: 1200, Output: 30, LLMCalls: 1, CostMicroUSD: 2500}
	for _, tt := range []struct {
		state        claybot.RunState
		usage        claybot.Usage
		tokens, cost string
	}{
		{claybot.RunPending, claybot.Usage{}, "0 in, 0 out, in 0 calls of the model, so far", "$0.0000, so far"},
		{claybot.RunRunning, one, "1200 in, 30 out, in 1 call of the model, so far", "$0.0025, so far"},
		{claybot.RunAwaiting, claybot.Usage{Input: 5, LLMCalls: 2}, "5 in, 0 out, in 2 calls of the model, so far", "no price known, so far"},
		{claybot.RunSucceeded, one, "1200 in, 30 out, in 1 call of the model", "$0.0025"},
		{claybot.RunCanceled, claybot.Usage{}, "0 in, 0 out, in 0 calls of the model", "$0.0000"},
	} {
		v := web.RunView{State: tt.state, Usage: tt.usage}
		if got := tokens(v); got != tt.tokens {
			t.Errorf("%s: %q, want %q", tt.state, got, tt.tokens)
		}
		if got := soFar(v, cost(v.Usage)); got != tt.cost {
			t.Errorf("%s: %q, want %q", tt.state, got, tt.cost)
		}
	}
}
