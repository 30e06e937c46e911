package openai

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// What OpenRouter says that it charged stands in the place of the price table, in the usage and in budgets; also where that knows
// no price, and for a model that costs nothing. Other servers mean something else by the field.
func TestCharged(t *testing.T) {
	for _, tt := range []struct {
		name   string
		prices llm.Prices
		quirks llm.Quirks
		cost   int64
		known  bool
	}{
		{"without a price", nil, quirksOf("openrouter"), 1200, true},
		{"in the place of a price", llm.Prices{"test": {Input: 50, Output: 100}}, quirksOf("openrouter"), 1200, true},
		{"of another server", nil, llm.Quirks{System: true}, 0, false},
	} {
		_, c := serve(t, openaitest.Config{Dialect: openaitest.OpenRouter}, Config{Quirks: &tt.quirks})
		b := new(booked)
		resp, err := llm.Budgeted(llm.Metered(c, tt.prices), "test-model", b, tt.prices, nil).Chat(t.Context(), ask("x"))
		if u := resp.Usage; err != nil || u.CostMicroUSD != tt.cost || (u.Unpriced == 0) != tt.known || resp.Charged != tt.known {
			t.Errorf("%s: %+v, %v", tt.name, resp, err)
		}
		if b.took.CostMicroUSD != tt.cost || (b.took.Unpriced == 0) != tt.known {
			t.Errorf("%s: the budget was charged %+v", tt.name, b.took)
		}
	}
}

// A booked is a budget without a limit.
type booked struct{ took claybot.Usage }

func (b *booked) Reserve(context.Context, llm.Charge) (llm.Reservation, error) { return b, nil }
func (b *booked) Binding() bool                                                { return false }

func (b *booked) Settle(_ context.Context, u claybot.Usage) error {
	b.took = u
	return nil
}

func TestChargedAmounts(t *testing.T) {
	for said, want := range map[string]int64{
		`{"cost":0.0012}`: 1200,
		`{"cost":0}`:      0,
		`{"cost":0.0012,"is_byok":false,"cost_details":{"upstream_inference_cost":19}}`: 1200,
		`{"cost":0.05,"is_byok":true,"cost_details":{"upstream_inference_cost":1}}`:     1_050_000,
		`{"cost":0.05,"is_byok":true}`: -1,
		`{"cost":0.05,"is_byok":true,"cost_details":{"upstream_inference_cost":null}}`: -1,
		`{}`:                 -1,
		`{"cost":null}`:      -1,
		`{"cost":-1}`:        -1,
		`{"cost":1e300}`:     -1,
		`{"cost":"0.1"}`:     -1,
		`{"cost":{"a":0.1}}`: -1,
	} {
		var u wireUsage
		if err := json.Unmarshal([]byte(said), &u); err != nil {
			t.Fatal(err)
		}
		if cost, ok := u.charged(); ok != (want >= 0) || ok && cost != want {
			t.Errorf("%s: %d, %t", said, cost, ok)
		}
	}
}

// A charge without a count of tokens is kept beside estimated tokens, also where the answer fails after it.
func TestChargedWithoutTokens(t *testing.T) {
	const said = `data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0,"cost":0.0012}}` + "\n\n"
	for end, fails := range map[string]bool{"data: [DONE]\n\n": false, `data: {"error":{"message":"broken","code":502}}` + "\n\n": true} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, said+end)
		}))
		t.Cleanup(srv.Close)
		quirks := quirksOf("openrouter")
		b := new(booked)
		m := llm.Budgeted(llm.Metered(New(Config{BaseURL: srv.URL, Model: "m", Quirks: &quirks}), nil), "m", b, nil, nil)
		resp, err := m.Chat(t.Context(), ask("x"))
		if u := resp.Usage; (err != nil) != fails || u.Input == 0 || !u.Estimated || u.CostMicroUSD != 1200 || u.Unpriced != 0 || b.took.Input != u.Input || b.took.CostMicroUSD != 1200 {
			t.Errorf("%v: took %+v, booked %+v", err, u, b.took)
		}
	}
}
