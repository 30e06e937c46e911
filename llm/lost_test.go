package llm

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
)

// A try is one answer of a provider.
type try struct {
	usage claybot.Usage
	err   error
}

// counting is a provider that counts what its calls take, also of those that
// fail.
type counting struct {
	name  string
	tries []try
	total *claybot.Usage
}

func (c *counting) Chat(ctx context.Context, _ Request) (Response, error) {
	next := c.tries[0]
	c.tries = c.tries[1:]
	if next.err == nil && !sleep(ctx, time.Second) {
		next.err = caused(ctx, Failed(Transient, "ended"))
	}
	c.total.Input += next.usage.Input
	c.total.Output += next.usage.Output
	return Response{Model: c.name, Usage: next.usage}, next.err
}

// The caller learns of each token that a provider counted, once, whatever
// became of the try.
func TestNoTokenIsLost(t *testing.T) {
	took := func(in, out int64) claybot.Usage { return claybot.Usage{Input: in, Output: out} }
	for _, tt := range []struct {
		name          string
		keys          []try // of the first route, one for each key; nil: the route has one
		first, second []try
		stop          time.Duration
		answered      bool
		lost          []string // models, in order
	}{
		{"answered", nil, []try{{took(10, 1), nil}}, nil, 0, true, nil},
		{"again", nil, []try{{took(50_000, 900), transient}, {took(50_000, 10), nil}}, nil, 0, true, []string{"a"}},
		{"refused, then cut", nil, []try{{took(0, 0), short}, {took(5, 2), transient}, {took(5, 3), nil}}, nil, 0, true, []string{"a", "a"}},
		{"another route", nil, []try{{took(7, 1), transient}, {took(7, 2), noModel}}, []try{{took(9, 3), nil}}, 0, true, []string{"a", "a"}},
		{"none", nil, []try{{took(7, 1), noModel}}, []try{{took(9, 3), badRequest}}, 0, false, []string{"a", "b"}},
		{"another key", []try{{took(4, 1), badKey}, {took(4, 2), nil}}, nil, nil, 0, true, []string{"a"}},
		{"no key", []try{{took(4, 1), badKey}, {took(4, 2), badKey}}, nil, []try{{took(9, 3), nil}}, 0, true, []string{"a", "a"}},
		{"stopped", nil, []try{{took(8, 4), nil}}, nil, time.Millisecond, false, []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var counted, learnt claybot.Usage
				prices := Prices{"a": {Input: 1, Output: 1}, "b": {Input: 1, Output: 1}}
				provider := func(name string, tries ...try) Model {
					return Metered(&counting{name, tries, &counted}, prices)
				}
				first := provider("a", tt.first...)
				if tt.keys != nil {
					var keyed []Keyed
					for _, k := range tt.keys {
						keyed = append(keyed, Keyed{Model: provider("a", k)})
					}
					first = Rotated(nil, keyed...)
				}
				m := Fallback(nil, Route{"a", Retried(first, Retries{})}, Route{"b", Retried(provider("b", tt.second...), Retries{})})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.stop > 0 {
					time.AfterFunc(tt.stop, cancel)
				}
				var lost []string
				resp, err := m.Chat(ctx, Request{Lost: func(model string, u claybot.Usage) {
					lost = append(lost, model)
					learnt = learnt.Add(u)
				}})
				if (err == nil) != tt.answered || !slices.Equal(lost, tt.lost) {
					t.Errorf("%v, lost tries of %q, want %q", err, lost, tt.lost)
				}
				if err == nil {
					learnt = learnt.Add(resp.Usage)
				}
				if learnt.Input != counted.Input || learnt.Output != counted.Output || learnt.CostMicroUSD != counted.Input+counted.Output {
					t.Errorf("the providers counted %+v, the caller learns %+v", counted, learnt)
				}
			})
		})
	}
}

// What a failed call took is booked as its usage says, counted or estimated: neither
// nothing nor all that was set aside.
func TestBudgetedBooksWhatAFailedCallTook(t *testing.T) {
	took := claybot.Usage{Input: 50_000, Output: 3_000}
	guessed := took
	guessed.Estimated = true
	for _, tt := range []struct {
		name  string
		usage claybot.Usage
		err   error
	}{
		{"overloaded in a call of a tool", took, &Error{Class: Transient, Status: 529}},
		{"cut", took, &Error{Class: Transient, Text: "cut"}},
		{"cut, guessed", guessed, &Error{Class: Transient, Status: 529}},
	} {
		j := &jar{limit: 1e9, binding: true}
		m := modelFunc(func(ctx context.Context, _ Request) (Response, error) {
			sends(ctx)
			return Response{Model: "m", Usage: tt.usage}, tt.err
		})
		if _, err := Budgeted(Metered(m, tenDollars), "m", j, tenDollars, nil).Chat(t.Context(), ask()); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if j.spent != 530_000 || j.aside != 0 {
			t.Errorf("%s: booked %d, want 530000; aside %d", tt.name, j.spent, j.aside)
		}
	}
}
