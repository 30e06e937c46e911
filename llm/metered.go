package llm

import (
	"cmp"
	"context"

	"github.com/claybot/claybot"
)

// Metered returns a model that completes the usage of each answer of m: the
// call is counted, tokens that the provider did not count are estimated and
// marked so, and the cost is set from prices, which know the model by the name
// that the provider gives it, or else by the one it was asked for by. A call of
// a model that prices does not know is counted in Usage.Unpriced: what it cost is
// unknown. What a failed call took is completed in the same way and told to
// Request.Lost; so Metered belongs around one attempt, below what tries again. It
// does not change prices and expects nobody else to.
func Metered(m Model, prices Prices) Model {
	return metered{model: m, prices: prices}
}

type metered struct {
	model  Model
	prices Prices
}

func (m metered) Chat(ctx context.Context, r Request) (Response, error) {
	resp, err := m.model.Chat(ctx, r)
	u := &resp.Usage
	if u.Input == 0 && u.Output == 0 {
		if err != nil {
			return resp, err // nothing is known to have been taken
		}
		*u = Estimate(r, resp)
	}
	u.LLMCalls = max(u.LLMCalls, 1)
	known := false
	for _, name := range [...]string{resp.Model, resp.Asked} {
		if u.CostMicroUSD, known = m.prices.Cost(name, *u); known {
			break
		}
	}
	if !known {
		u.Unpriced = 1
	}
	if err != nil && r.Lost != nil {
		r.Lost(cmp.Or(resp.Model, resp.Asked), *u)
	}
	return resp, err
}

// bytesPerToken is a rule of thumb for prose and code alike.
const bytesPerToken = 4

// Estimate guesses the tokens of a call from its bytes.
func Estimate(r Request, resp Response) claybot.Usage {
	in := len(r.System)
	for _, m := range r.Messages {
		in += len(m.Content) + callBytes(m.Calls) + len(m.Images)*pictureTokens*bytesPerToken
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
