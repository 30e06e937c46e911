package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
)

// A LimitError is why a hard budget refused a call. errors.As finds in it the
// *Error of class Budget that says so in words.
type LimitError struct {
	Key    string // of the budget, with its period; empty when no budget has not enough but a price is missing
	Name   string // for the person, such as "your budget for today"
	Of     string // for everybody else, such as "the budget of telegram/42 for 23 Nov 2026"
	Tokens bool   // all amounts are tokens; else millionths of a US dollar
	Limit  int64  // with what it was extended by
	Spent  int64
	Left   int64  // what may be set aside now
	Asked  int64  // the most that the call can take
	Least  int64  // what it takes at most with a short answer
	Final  bool   // nobody is asked to extend it
	Text   string // a sentence for the person
}

// Amount is an amount of the budget's unit as people read it.
func (e *LimitError) Amount(n int64) string { return Amount(e.Tokens, n) }

// Standing returns how much of the budget is spent: "$0.12 of $2.00 is spent".
func (e *LimitError) Standing() string { return Standing(e.Tokens, e.Spent, e.Limit) }

// Missing is the least by which the limit has to grow for the call to be made.
func (e *LimitError) Missing() int64 {
	if e.Least > e.Left {
		return e.Least - e.Left
	}
	return max(e.Asked-e.Left, 1)
}

func (e *LimitError) Error() string { return "model: " + e.Text }

// As lets errors.As convert e to an *Error of class Budget.
func (e *LimitError) As(target any) bool {
	if t, ok := target.(**Error); ok {
		*t = &Error{Class: Budget, Text: e.Text}
		return true
	}
	return false
}

// The bounds of an answer where a hard budget pays for it.
const (
	// DefaultAnswer is how many tokens an answer may have where neither the
	// request nor the table of models says so. All of them are set aside.
	DefaultAnswer = 8192
	// leastAnswer is below what an answer is not worth a call: where a budget has
	// room for less, it is spent.
	leastAnswer = 256
	// shortAnswer is what a budget is asked to have room for at the least: most
	// answers and calls of tools fit in it.
	shortAnswer = 2048
	// settleTime bounds the booking of a call whose own context may be done.
	settleTime = 30 * time.Second
)

// Budgeted returns m with every call limited by l: it reserves the most that a call can
// cost before the call is made, and settles what it did cost afterwards. name is the
// model that is asked for, most how many tokens an answer of a model can have, by what
// it can write and by what its route is set to; 0 for unknown; nil: unknown for all.
//
// Where a hard budget pays, the answer is bounded by the smallest of
// Request.MaxTokens, most, what is left of the model's window where that is known,
// and what the budget has room for. It belongs directly around one attempt: above
// what counts (Metered), below what tries again.
//
// What m says that a call took is booked, whether it answered or not: m is a Metered
// model, whose usage everybody else counts, too. Only a call that panics is booked as
// it was set aside.
func Budgeted(m Model, name string, l Limiter, prices Prices, most func(model string) int64) Model {
	if most == nil {
		most = func(string) int64 { return 0 }
	}
	return budgeted{m, name, l, prices, most}
}

type budgeted struct {
	model   Model
	name    string
	limiter Limiter
	prices  Prices
	most    func(string) int64
}

func (b budgeted) Chat(ctx context.Context, r Request) (Response, error) {
	r = Fit(b.model, r) // nothing is set aside for what is not sent
	input := MostInput(b.name, r)
	held, output, err := b.reserve(ctx, r, input)
	if err != nil {
		return Response{}, err
	}
	if held.Binding() {
		r.MaxTokens = output
	}
	took := b.usage(input, output)
	defer func() { b.settle(ctx, held, took) }() // also when the call panics
	resp, err := b.model.Chat(ctx, r)
	took = claybot.Usage{}
	switch {
	case resp.Charged:
		took = resp.Usage
	case resp.Usage.Input+resp.Usage.Output > 0:
		took = b.priced(resp.Usage)
	}
	return resp, err
}

// reserve reserves what a call can take. Where that is more than a budget has left, a
// shorter answer may still fit.
func (b budgeted) reserve(ctx context.Context, r Request, input int64) (held Reservation, output int64, err error) {
	output = b.bound(r)
	for range maxShrinks {
		held, err = b.limiter.Reserve(ctx, b.charge(r, input, output))
		limit, ok := errors.AsType[*LimitError](err)
		if !ok || limit.Key == "" {
			return held, output, err
		}
		fits := b.room(limit, input)
		if fits < leastAnswer || fits >= output {
			return nil, 0, err
		}
		output = fits
	}
	return nil, 0, err
}

// bound is how many tokens the answer may have: the smallest of what the request,
// the route and the window allow.
func (b budgeted) bound(r Request) int64 {
	output := SmallestBound(r.MaxTokens, b.most(b.name))
	if output == 0 {
		output = DefaultAnswer
	}
	if window := longest(windows, b.name, 0); window > 0 {
		// A guess: the most that the input can be is often above the window of a
		// request that fits. Where none would be left, the provider may say so.
		output = min(output, max(window-Estimate(r, Response{}).Input, leastAnswer))
	}
	return output
}

// SmallestBound is the smallest of the bounds that are above 0; 0 when none is.
func SmallestBound(bounds ...int64) int64 {
	least := int64(0)
	for _, n := range bounds {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// maxShrinks is how often an answer is made shorter: what is left changes while
// others spend.
const maxShrinks = 16

// room is how long an answer may be for which a budget has room, or will have
// when others give back what they have set aside and do not need.
func (b budgeted) room(l *LimitError, input int64) int64 {
	whole := l.Limit - l.Spent
	if half := b.fitting(l.Tokens, max(l.Left, whole/2), input); half >= leastAnswer {
		return half // so that two of them need not wait for each other
	}
	return b.fitting(l.Tokens, whole, input)
}

// fitting is how long an answer may be that an amount pays for.
func (b budgeted) fitting(tokens bool, left, input int64) int64 {
	if tokens {
		return left - input
	}
	left -= b.cost(b.usage(input, 0))
	perMillion := b.cost(claybot.Usage{Output: 1_000_000})
	if left <= 0 || perMillion <= 0 {
		return 0
	}
	// Both costs are rounded up, which is taken off.
	return int64(float64(left-2) / float64(perMillion) * 1_000_000)
}

func (b budgeted) charge(r Request, input, output int64) Charge {
	worst, least := b.usage(input, output), b.usage(input, min(output, shortAnswer))
	return Charge{
		Agent: r.Agent, Run: r.Run, Model: b.name,
		Tokens: input + output, CostMicroUSD: worst.CostMicroUSD, Priced: worst.Unpriced == 0,
		LeastTokens: least.Input + least.Output, LeastMicroUSD: least.CostMicroUSD,
	}
}

func (b budgeted) usage(input, output int64) claybot.Usage {
	u := claybot.Usage{Input: input, Output: output, LLMCalls: 1, Estimated: true}
	u.CostMicroUSD = b.cost(u)
	if _, known := b.prices.Cost(b.name, u); !known {
		u.Unpriced = 1
	}
	return u
}

// cost is the most that u can cost: it is unknown how much of the input comes
// from a cache or is written to one, which may cost more than plain input.
func (b budgeted) cost(u claybot.Usage) int64 {
	plain, read, written := u, u, u
	read.CachedInput, written.CacheWrite = u.Input, u.Input
	most := int64(0)
	for _, v := range []claybot.Usage{plain, read, written} {
		c, _ := b.prices.Cost(b.name, v)
		most = max(most, c)
	}
	if most > 0 {
		most++ // a cost is rounded
	}
	return most
}

// priced is u with the price of the model that was asked for, where the provider
// calls it by a name that has none.
func (b budgeted) priced(u claybot.Usage) claybot.Usage {
	if u.Unpriced == 0 && u.CostMicroUSD > 0 {
		return u
	}
	c, known := b.prices.Cost(b.name, u)
	u.CostMicroUSD, u.Unpriced = max(u.CostMicroUSD, c), 0
	if !known {
		u.Unpriced = 1
	}
	return u
}

func (b budgeted) settle(ctx context.Context, held Reservation, u claybot.Usage) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	// What cannot be settled stays reserved, and the next start charges it in full.
	// The Limiter has logged it.
	_ = held.Settle(ctx, u)
}

// What stands in a request beside its texts, in tokens: more than any provider
// adds.
const (
	baseTokens    = 64
	toolsTokens   = 1024 // a system prompt of the provider's own that explains tools
	messageTokens = 16
	toolTokens    = 32
	callTokens    = 32
	mostImage     = 6000
	// mostPage is the text of a page of a document. A page may have more, but hardly all of them.
	mostPage = 6000
	// miniTokens is what an image takes in models that make it cost as much as in
	// large ones by counting more tokens.
	miniTokens = 50_000
)

// MostInput is a number of tokens that the input of a request does not exceed. No
// tokenizer makes more tokens than there are bytes, as each stands for at least
// one; how many fewer it makes differs by model and language. Prose and JSON in ASCII
// have at least two bytes to a token everywhere, which counts where the operator and
// not a user chose the text: in the system prompt and the tools, the bulk of a short
// request.
func MostInput(model string, r Request) int64 {
	// Some clients repeat the system prompt as a message.
	n := int64(baseTokens) + 2*(mostOwn(r.System)+messageTokens)
	image := int64(mostImage)
	if strings.Contains(strings.ToLower(model), "4o-mini") {
		image = miniTokens
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		n += int64(messageTokens + len(m.Content) + len(m.CallID))
		for _, c := range m.Calls {
			n += int64(callTokens + len(c.ID) + len(c.Name) + len(c.Args))
		}
		n += image * int64(len(m.Images))
		for j := range m.Documents { // each page is a text and an image
			n += int64(m.Documents[j].Pages) * (image + mostPage)
		}
	}
	if len(r.Tools) > 0 {
		n += toolsTokens
	}
	for _, t := range r.Tools {
		n += int64(toolTokens+len(t.Name)) + mostOwn(t.Description) + mostOwn(string(t.Parameters))
	}
	return n
}

// mostOwn bounds the tokens of a text that the operator chose.
func mostOwn(text string) int64 {
	ascii := 0
	for i := range len(text) {
		if text[i] < utf8.RuneSelf {
			ascii++
		}
	}
	return int64((ascii+1)/2 + len(text) - ascii)
}

// PriceMissing is the error of a call whose price is unknown, where a budget in
// money must hold.
func PriceMissing(model, budget string) *LimitError {
	return &LimitError{Name: budget, Text: fmt.Sprintf(
		"No price is known for the model %s, so %s cannot be kept. Ask the operator to add it under model.prices, or to choose another model.", model, budget)}
}

// A Limiter limits what model calls cost: it reserves the most that a call can cost
// before the call is made, and charges what it cost afterwards.
type Limiter interface {
	// Reserve reserves what a call can take at most on every budget that it belongs to,
	// or on none. The error is an *Error of class Budget when one of them has not that
	// much left, most often a *LimitError; its text is for the person. A nil
	// Reservation comes with an error only.
	Reserve(ctx context.Context, c Charge) (Reservation, error)
}

// A Reservation is what was reserved for one call.
type Reservation interface {
	// Settle charges what the call took instead. Call it exactly once; a reservation
	// that is never settled, because the process died, is charged in full.
	Settle(ctx context.Context, u claybot.Usage) error
	// Binding reports whether a hard budget pays, so that the call must not take more
	// than was reserved.
	Binding() bool
}

// A Charge is what one call can take at most.
type Charge struct {
	Agent  claybot.AgentID
	Run    claybot.RunID
	Model  string
	Tokens int64 // input and output together
	// CostMicroUSD is what they cost. Priced is false where no price is known; budgets
	// in money then refuse the call.
	CostMicroUSD int64
	Priced       bool
	// LeastTokens and LeastMicroUSD are the same with a short answer: with so much
	// room the call can be made. 0: as with the whole answer.
	LeastTokens   int64
	LeastMicroUSD int64
}
