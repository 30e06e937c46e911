package llm

import (
	"cmp"
	"context"
	"errors"
	"net/http/httptrace"
	"strings"
	"sync/atomic"

	"github.com/claybot/claybot"
)

// Metered returns a model that completes the usage of each call of m, answered or
// not: the call is counted, tokens that the provider did not count are estimated
// from the bytes that went each way and marked so, and the cost is set from prices,
// which know the model by the name that the provider gives it, or else by the one it
// was asked for by; a cost that the provider reports itself stays as it is. Any other
// call of a model that prices does not know is counted in
// Usage.Unpriced: what it cost is unknown. A failed call that the provider cannot
// bill, as it refused it or nothing left, took no tokens and is counted all the same.
//
// All accounts use this usage and no other, so that they agree. It is
// returned, and of a failed call told to Request.Lost as well; so Metered belongs
// around one attempt, below what tries again. It does not change prices and expects
// no other wrapper to.
func Metered(m Model, prices Prices) Model {
	return metered{model: m, prices: prices}
}

type metered struct {
	model  Model
	prices Prices
}

var _ Fitter = metered{}

func (m metered) Fit(r Request) Request { return Fit(m.model, r) }

func (m metered) Chat(ctx context.Context, r Request) (Response, error) {
	r = m.Fit(r)         // what is not sent is not estimated
	var left atomic.Bool // a request has left
	var shown strings.Builder
	told := r.Delta
	r.Delta = func(offset int, text string) {
		if kept := shown.String(); offset < len(kept) { // a try that begins again
			shown.Reset()
			shown.WriteString(kept[:max(offset, 0)])
		}
		shown.WriteString(text)
		if told != nil {
			told(offset, text)
		}
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { left.Store(true) }})
	resp, err := m.model.Chat(traced, r)
	u := &resp.Usage
	if u.Input == 0 && u.Output == 0 {
		charged := u.CostMicroUSD
		switch {
		case err == nil:
			*u = Estimate(r, resp)
		case shown.Len() > 0 || resp.Charged || billed(err, left.Load()):
			*u = Estimate(r, Response{Text: shown.String()})
		default:
			*u = claybot.Usage{}
		}
		if resp.Charged {
			u.CostMicroUSD = charged
		}
	}
	u.LLMCalls = max(u.LLMCalls, 1)
	m.price(&resp)
	if err != nil && r.Lost != nil {
		r.Lost(cmp.Or(resp.Model, resp.Asked), *u)
	}
	return resp, err
}

func (m metered) price(resp *Response) {
	if resp.Charged || resp.Usage.Input == 0 && resp.Usage.Output == 0 {
		return
	}
	known := false
	for _, name := range [...]string{resp.Model, resp.Asked} {
		if resp.Usage.CostMicroUSD, known = m.prices.Cost(name, resp.Usage); known {
			return
		}
	}
	resp.Usage.Unpriced = 1
}

// billed reports whether the provider may bill a call that failed before any text
// of an answer came. A response with an error in the place of an answer is not
// billed; a 500 may have come in the middle of one that calls tools.
func billed(err error, left bool) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok || !left {
		return left
	}
	return e.Status == 0 || e.Status == 500
}

// bytesPerToken is a rule of thumb for prose and code alike.
const bytesPerToken = 4

// Estimate guesses the tokens of a call from its bytes.
func Estimate(r Request, resp Response) claybot.Usage {
	in := len(r.System)
	for i := range r.Messages {
		m := &r.Messages[i]
		in += len(m.Content) + callBytes(m.Calls) + len(m.Images)*pictureTokens*bytesPerToken
		for j := range m.Documents {
			in += int(m.Documents[j].Tokens()) * bytesPerToken
		}
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
