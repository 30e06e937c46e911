package llm

import (
	"context"

	"github.com/claybot/claybot"
)

// Metered returns a model that completes the usage of each answer of m: the
// call is counted, tokens that the provider did not count are estimated and
// marked so, and the cost is set from prices. With a model that prices does not
// know the cost is 0; Prices.Cost tells such models apart. It does not change
// prices and expects nobody else to.
func Metered(m Model, prices Prices) Model {
	return metered{model: m, prices: prices}
}

type metered struct {
	model  Model
	prices Prices
}

func (m metered) Chat(ctx context.Context, r Request) (Response, error) {
	resp, err := m.model.Chat(ctx, r)
	if err != nil {
		return resp, err
	}
	u := &resp.Usage
	if u.Input == 0 && u.Output == 0 {
		*u = Estimate(r, resp)
	}
	u.LLMCalls = max(u.LLMCalls, 1)
	u.CostMicroUSD, _ = m.prices.Cost(resp.Model, *u)
	return resp, nil
}

// bytesPerToken is a rule of thumb for prose and code alike.
const bytesPerToken = 4

// Estimate guesses the tokens of a call from its bytes.
func Estimate(r Request, resp Response) claybot.Usage {
	in := len(r.System)
	for _, m := range r.Messages {
		in += len(m.Content) + callBytes(m.Calls)
	}
	for _, t := range r.Tools {
		in += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return claybot.Usage{
		Input:     tokens(in),
		Output:    tokens(len(resp.Text) + callBytes(resp.Calls)),
		LLMCalls:  1,
		Estimated: true,
	}
}

func callBytes(calls []claybot.ToolCall) int {
	n := 0
	for _, c := range calls {
		n += len(c.Name) + len(c.Args)
	}
	return n
}

func tokens(bytes int) int64 { return int64((bytes + bytesPerToken - 1) / bytesPerToken) }
