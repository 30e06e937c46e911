package llm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
)

// A jar is a Limiter with one budget, as simple as can be.
type jar struct {
	tokens  bool
	binding bool
	limit   int64
	spent   int64
	aside   int64
	last    Charge
	booked  []claybot.Usage
	refused int
}

func (j *jar) Reserve(_ context.Context, c Charge) (Reservation, error) {
	j.last = c
	if !c.Priced && !j.tokens && j.binding {
		return nil, PriceMissing(c.Model, "your budget")
	}
	amount := c.CostMicroUSD
	if j.tokens {
		amount = c.Tokens
	}
	if left := j.limit - j.spent - j.aside; j.binding && amount > left {
		j.refused++
		return nil, &LimitError{Key: "k", Tokens: j.tokens, Limit: j.limit, Spent: j.spent, Left: left, Asked: amount, Text: "used up"}
	}
	j.aside += amount
	return &coins{j, amount}, nil
}

type coins struct {
	*jar
	amount int64
}

func (c *coins) Binding() bool { return c.binding }

func (c *coins) Settle(ctx context.Context, u claybot.Usage) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.aside -= c.amount
	c.booked = append(c.booked, u)
	if c.tokens {
		c.spent += u.Input + u.Output
	} else {
		c.spent += u.CostMicroUSD
	}
	return nil
}

// A modelFunc is a model.
type modelFunc func(ctx context.Context, r Request) (Response, error)

func (f modelFunc) Chat(ctx context.Context, r Request) (Response, error) { return f(ctx, r) }

var tenDollars = Prices{"m": {Input: 10, CachedInput: 1, Output: 10}}

func ask() Request {
	return Request{Agent: "a", Run: "r", System: "be nice", Messages: []Message{{Role: RoleUser, Content: "hello"}}}
}

// answered is a model that took so many tokens, and notes what it was asked.
func answered(got *Request, u claybot.Usage) Model {
	return modelFunc(func(_ context.Context, r Request) (Response, error) {
		*got = r
		return Response{Text: "hi", Model: "m", Usage: u}, nil
	})
}

// sends is what net/http does when a request leaves.
func sends(ctx context.Context) {
	if t := httptrace.ContextClientTrace(ctx); t != nil && t.WroteHeaders != nil {
		t.WroteHeaders()
	}
}

func TestBudgetedBooksWhatWasTaken(t *testing.T) {
	var got Request
	j := &jar{limit: 1_000_000, binding: true}
	m := Budgeted(answered(&got, claybot.Usage{Input: 7, Output: 3, LLMCalls: 1, CostMicroUSD: 100}), "m", j, tenDollars, nil)
	if _, err := m.Chat(t.Context(), ask()); err != nil {
		t.Fatal(err)
	}
	if j.aside != 0 || j.spent != 100 || len(j.booked) != 1 {
		t.Errorf("%+v", j)
	}
	if got.MaxTokens != DefaultAnswer {
		t.Errorf("the answer was bounded to %d", got.MaxTokens)
	}
	if c := j.last; c.Agent != "a" || c.Run != "r" || c.Model != "m" || !c.Priced || c.Tokens != MostInput("m", ask())+DefaultAnswer || c.CostMicroUSD != c.Tokens*10+1 ||
		c.LeastTokens != MostInput("m", ask())+shortAnswer || c.LeastMicroUSD != c.LeastTokens*10+1 {
		t.Errorf("charged %+v", c)
	}
}

// What is missing is counted from a short answer, and from the whole one where only
// what others have set aside is in the way.
func TestMissingFromABudget(t *testing.T) {
	for want, e := range map[int64]LimitError{
		2117: {Left: 13_760, Asked: 141_829, Least: 15_877}, // 13,829 of input and a model with long answers
		500:  {Left: 500, Asked: 1000, Least: 300},
		700:  {Left: 300, Asked: 1000},
		1:    {Left: 300, Asked: 200, Least: 200},
	} {
		if got := e.Missing(); got != want {
			t.Errorf("%+v: %d, want %d", e, got, want)
		}
	}
}

// The bound of the answer is that of the request, or of the model, and none at
// all where no hard budget pays.
func TestBudgetedBoundsTheAnswer(t *testing.T) {
	for _, tt := range []struct {
		name     string
		asked    int64
		most     int64
		soft     bool
		limit    int64
		want     int64
		refusals int
	}{
		{"as requested", 500, 9000, false, 1e9, 500, 0},
		{"as the model can", 0, 9000, false, 1e9, 9000, 0},
		{"by default", 0, 0, false, 1e9, DefaultAnswer, 0},
		{"soft", 0, 9000, true, 1, 0, 0},
		{"soft and requested", 77, 9000, true, 1, 77, 0},
	} {
		var got Request
		j := &jar{limit: tt.limit, binding: !tt.soft}
		r := ask()
		r.MaxTokens = tt.asked
		m := Budgeted(answered(&got, claybot.Usage{Input: 1, Output: 1, CostMicroUSD: 20}), "m", j, tenDollars, func(string) int64 { return tt.most })
		if _, err := m.Chat(t.Context(), r); err != nil || got.MaxTokens != tt.want || j.refused != tt.refusals {
			t.Errorf("%s: bounded to %d, want %d; %v", tt.name, got.MaxTokens, tt.want, err)
		}
	}
}

// The smallest bound counts: a request does not raise what its route is set to,
// and an answer has room in the window beside its input.
func TestBudgetedTakesTheSmallestBound(t *testing.T) {
	long := ask()
	long.Messages[0].Content = strings.Repeat("word ", 4000) // 5,000 tokens
	for _, tt := range []struct {
		name, model string
		request     Request
		asked, most int64
		least, want int64
	}{
		{"the route", "m", ask(), 0, 500, 500, 500},
		{"the route below the request", "m", ask(), 9000, 500, 500, 500},
		{"the request below the route", "m", ask(), 400, 500, 400, 400},
		{"the window", "gpt-4", long, 0, 8192, 3000, 3192},
		{"a larger window", "gpt-4-32k", long, 0, 8192, 8192, 8192},
		{"no window is left", "gpt-4", Request{System: strings.Repeat("word ", 10_000)}, 0, 8192, leastAnswer, leastAnswer},
	} {
		var got Request
		j := &jar{limit: 1e12, binding: true}
		prices := Prices{tt.model: {Input: 1, Output: 1}}
		tt.request.MaxTokens = tt.asked
		m := Budgeted(answered(&got, claybot.Usage{Input: 1, Output: 1}), tt.model, j, prices, func(string) int64 { return tt.most })
		if _, err := m.Chat(t.Context(), tt.request); err != nil || got.MaxTokens < tt.least || got.MaxTokens > tt.want {
			t.Errorf("%s: bounded to %d, want %d to %d; %v", tt.name, got.MaxTokens, tt.least, tt.want, err)
		}
		if want := MostInput(tt.model, tt.request) + got.MaxTokens; j.last.Tokens != want {
			t.Errorf("%s: %d tokens were set aside, want %d", tt.name, j.last.Tokens, want)
		}
	}
}

// Near the limit answers are shorter, down to where they are not worth a call;
// the limit is never passed.
func TestBudgetedFitsInWhatIsLeft(t *testing.T) {
	for _, tokens := range []bool{false, true} {
		for limit := int64(0); limit < 60_000; limit += 499 {
			var got Request
			called := false
			j := &jar{limit: limit, binding: true, tokens: tokens}
			m := Budgeted(modelFunc(func(_ context.Context, r Request) (Response, error) {
				got, called = r, true
				u := claybot.Usage{Input: MostInput("m", r), Output: r.MaxTokens} // all that it may
				u.CostMicroUSD, _ = tenDollars.Cost("m", u)
				return Response{Usage: u}, nil
			}), "m", j, tenDollars, nil)
			_, err := m.Chat(t.Context(), ask())
			input := MostInput("m", ask())
			room := limit - input
			if !tokens {
				room = limit/10 - input
			}
			switch {
			case j.spent > limit || j.aside != 0:
				t.Fatalf("limit %d: %+v", limit, j)
			case err == nil && got.MaxTokens < leastAnswer:
				t.Fatalf("limit %d: an answer of %d tokens", limit, got.MaxTokens)
			case called != (err == nil):
				t.Fatalf("limit %d: called %v, %v", limit, called, err)
			case err != nil && room > 2*leastAnswer+8:
				t.Fatalf("limit %d has room for %d tokens: %v", limit, room, err)
			}
			if err != nil {
				if l, ok := errors.AsType[*LimitError](err); !ok || l.Key != "k" {
					t.Fatalf("limit %d: %v", limit, err)
				}
				if e, ok := errors.AsType[*Error](err); !ok || e.Class != Budget || e.Text != "used up" {
					t.Fatalf("limit %d: %v", limit, err)
				}
			}
		}
	}
}

func TestBudgetedFailures(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, tt := range []struct {
		name  string
		sent  bool
		text  bool // some of the answer came
		err   error
		costs bool
	}{
		{"refused connection", false, false, &Error{Class: Transient, Text: "connection refused"}, false},
		{"cut before an answer", true, false, &Error{Class: Transient, Text: "the connection broke"}, true},
		{"cut in the middle", true, true, &Error{Class: Transient, Text: "cut"}, true},
		{"bad key", true, false, &Error{Class: Permanent, Status: 401}, false},
		{"rate", true, false, &Error{Class: Rate, Status: 429}, false},
		{"too long", true, false, &Error{Class: Context, Status: 400}, false},
		{"overloaded", true, false, &Error{Class: Transient, Status: 503}, false},
		{"broken, perhaps in the middle", true, false, &Error{Class: Transient, Status: 500}, true},
		{"an odd error", true, false, errors.New("odd"), true},
		{"an odd error before", false, false, errors.New("odd"), false},
		{"wrapped", true, false, fmt.Errorf("x: %w", &Error{Class: Rate, Status: 429}), false},
		{"canceled", true, false, context.Canceled, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := &jar{limit: 1e9, binding: true}
			ctx := t.Context()
			if errors.Is(tt.err, context.Canceled) {
				ctx = canceled
			}
			model := modelFunc(func(ctx context.Context, r Request) (Response, error) {
				if tt.sent {
					sends(ctx)
				}
				if tt.text {
					r.Delta(0, "beginning")
				}
				if errors.Is(tt.err, context.Canceled) {
					cancel()
				}
				return Response{Model: "m"}, tt.err
			})
			var lost claybot.Usage
			r := ask()
			r.Lost = func(_ string, u claybot.Usage) { lost = lost.Add(u) }
			if _, err := Budgeted(Metered(model, tenDollars), "m", j, tenDollars, nil).Chat(ctx, r); !errors.Is(err, tt.err) {
				t.Errorf("got %v", err)
			}
			want := int64(0)
			if tt.costs {
				guess := Estimate(ask(), Response{Text: map[bool]string{true: "beginning"}[tt.text]})
				want, _ = tenDollars.Cost("m", guess)
			}
			if j.spent != want || j.aside != 0 || lost.CostMicroUSD != j.spent || lost.LLMCalls != 1 {
				t.Errorf("booked %d, want %d; aside %d; the run was told of %+v", j.spent, want, j.aside, lost)
			}
		})
	}
}

// An overloaded provider that broke off in the middle of an answer may bill it.
func TestBudgetedBrokenOffWithAStatus(t *testing.T) {
	j := &jar{limit: 1e9, binding: true}
	shown := ""
	m := Budgeted(Metered(modelFunc(func(ctx context.Context, r Request) (Response, error) {
		sends(ctx)
		r.Delta(0, "half")
		return Response{Model: "m"}, &Error{Class: Transient, Status: 529}
	}), tenDollars), "m", j, tenDollars, nil)
	r := ask()
	r.Delta = func(_ int, text string) { shown += text }
	if _, err := m.Chat(t.Context(), r); err == nil || j.spent == 0 || shown != "half" {
		t.Errorf("%v, booked %d, shown %q", err, j.spent, shown)
	}
}

// What the provider did not count is booked as it is estimated everywhere else; a
// call that panics is booked as it was set aside.
func TestBudgetedUncounted(t *testing.T) {
	worst := (MostInput("m", ask())+DefaultAnswer)*10 + 1
	var got Request
	j := &jar{limit: 1e9, binding: true}
	m := Budgeted(Metered(answered(&got, claybot.Usage{}), tenDollars), "m", j, tenDollars, nil)
	if resp, err := m.Chat(t.Context(), ask()); err != nil || j.spent != resp.Usage.CostMicroUSD || j.spent == 0 || !resp.Usage.Estimated {
		t.Errorf("%v, booked %d of %+v", err, j.spent, resp.Usage)
	}
	j = &jar{limit: 1e9, binding: true}
	m = Budgeted(modelFunc(func(context.Context, Request) (Response, error) { panic("oh") }), "m", j, tenDollars, nil)
	func() {
		defer func() { _ = recover() }() // it is the caller's business
		_, _ = m.Chat(t.Context(), ask())
	}()
	if j.spent != worst || j.aside != 0 {
		t.Errorf("after a panic %+v", j)
	}
}

func TestBudgetedWithoutAPrice(t *testing.T) {
	var got Request
	j := &jar{limit: 1e9, binding: true}
	_, err := Budgeted(answered(&got, claybot.Usage{Input: 1}), "unknown", j, tenDollars, nil).Chat(t.Context(), ask())
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Class != Budget || !strings.Contains(e.Text, "model.prices") || !strings.Contains(e.Text, "unknown") || got.System != "" {
		t.Errorf("got %v, asked %+v", err, got)
	}
	for _, j := range []*jar{{limit: 1e9, binding: true, tokens: true}, {limit: 1e9}} {
		m := Budgeted(Metered(answered(&got, claybot.Usage{Input: 5, Output: 2}), nil), "unknown", j, nil, nil)
		if _, err := m.Chat(t.Context(), ask()); err != nil || len(j.booked) != 1 || j.booked[0].Unpriced != 1 || j.booked[0].CostMicroUSD != 0 {
			t.Errorf("%v, booked %+v", err, j.booked)
		}
	}
	// A provider that calls the model by a name without a price.
	j = &jar{limit: 1e9, binding: true}
	u := claybot.Usage{Input: 5, Output: 2, Unpriced: 1}
	if _, err := Budgeted(answered(&got, u), "m", j, tenDollars, nil).Chat(t.Context(), ask()); err != nil || j.spent != 70 || j.booked[0].Unpriced != 0 {
		t.Errorf("%v, booked %+v", err, j.booked)
	}
}

// What is written to a cache may cost more than plain input, and counts so.
func TestBudgetedCacheIsNotAssumed(t *testing.T) {
	j := &jar{limit: 1e9, binding: true}
	prices := Prices{"m": {Input: 10, CachedInput: 1, Output: 10, CacheWrite: 20}}
	u := claybot.Usage{Input: MostInput("m", ask()), Output: DefaultAnswer}
	u.CacheWrite = u.Input
	u.CostMicroUSD, _ = prices.Cost("m", u)
	var got Request
	if _, err := Budgeted(answered(&got, u), "m", j, prices, nil).Chat(t.Context(), ask()); err != nil || j.spent > j.last.CostMicroUSD {
		t.Errorf("%v, %d were set aside, %d were taken", err, j.last.CostMicroUSD, j.spent)
	}
}

func TestMostInput(t *testing.T) {
	small := MostInput("m", Request{})
	r := ask()
	r.Tools = []Tool{{Name: "look", Description: "looks", Parameters: []byte(`{"type":"object"}`)}}
	r.Messages = append(r.Messages, Message{
		Role: RoleAssistant, Calls: []claybot.ToolCall{{ID: "c1", Name: "look", Args: strings.Repeat("x", 1000)}},
	}, Message{Role: RoleTool, CallID: "c1", Content: strings.Repeat("ü", 1000)})
	most := MostInput("m", r)
	if small < 1 || most < 1000+2000+2*7+5 {
		t.Errorf("%d and %d", small, most)
	}
	r.Messages[0].Images = []Image{{}, {}}
	if n := MostInput("m", r); n != most+2*mostImage {
		t.Errorf("two images make %d of %d", n, most)
	}
	if n := MostInput("gpt-4o-mini", r); n != most+2*miniTokens {
		t.Errorf("two images make %d of %d", n, most)
	}
	r.Messages[0].Images, r.Messages[0].Documents = nil, []Document{{Pages: 3}}
	if n := MostInput("m", r); n != most+3*(mostImage+mostPage) {
		t.Errorf("three pages make %d of %d", n, most)
	}
}

func TestDollars(t *testing.T) {
	for micro, want := range map[int64]string{
		0: "$0", 1: "$0.000001", 400: "$0.0004", 9_999: "$0.009999", 3_000: "$0.003", 10_000: "$0.01", 14_900: "$0.015", 120_000: "$0.12",
		999_400: "$0.999", 1_000_000: "$1.00", 123_456_789: "$123.46", 1_234_567_890: "$1,234.57", -500_000: "-$0.50", -1: "-$0.000001",
		math.MaxInt64: "$9,223,372,036,854.78", math.MinInt64: "-$9,223,372,036,854.78",
	} {
		if got := Dollars(micro); got != want {
			t.Errorf("%d is %q, want %q", micro, got, want)
		}
	}
}

// A call that a budget refused is not tried again.
func TestBudgetIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &jar{binding: true}
		var got Request
		_, err := Retried(Budgeted(answered(&got, claybot.Usage{}), "m", j, tenDollars, nil), Retries{}).Chat(t.Context(), ask())
		if l, ok := errors.AsType[*LimitError](err); !ok || l.Key != "k" || j.refused != 1 {
			t.Errorf("%v after %d tries", err, j.refused)
		}
	})
}
