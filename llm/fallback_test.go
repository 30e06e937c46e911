package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A way answers as its script says, then with ok, and keeps when it was asked.
type way struct {
	name   string
	script []error
	takes  time.Duration
	shows  string // before it fails
	asked  []time.Time
}

func (w *way) Chat(ctx context.Context, r Request) (Response, error) {
	w.asked = append(w.asked, time.Now())
	if !sleep(ctx, w.takes) {
		return Response{}, caused(ctx, Failed(Transient, "ended"))
	}
	if len(w.script) == 0 {
		if r.Delta != nil {
			r.Delta(0, w.name)
		}
		return Response{Text: w.name}, nil
	}
	err := w.script[0]
	w.script = w.script[1:]
	if r.Delta != nil && w.shows != "" {
		r.Delta(0, w.shows)
	}
	return Response{}, err
}

// chain makes a fallback of retried ways, as main does.
func chain(ways ...*way) Model {
	var routes []Route
	for _, w := range ways {
		routes = append(routes, Route{Name: w.name, Model: Retried(w, Retries{Route: w.name})})
	}
	return Fallback(nil, routes...)
}

func many(err error, n int) []error { return slices.Repeat([]error{err}, n) }

var (
	transient  = &Error{Class: Transient, Text: "cut"}
	limited    = &Error{Class: Rate, Status: 429, RetryAfter: 30 * time.Second, Text: "slow down"}
	short      = &Error{Class: Rate, Status: 429, RetryAfter: time.Second, Text: "slow down"}
	badRequest = &Error{Class: Permanent, Status: 400, Text: "bad request"}
	badKey     = &Error{Class: Permanent, Status: 401, Account: true, Text: "bad key"}
	noCredit   = &Error{Class: Permanent, Status: 400, Account: true, Text: "no credit"}
	noModel    = &Error{Class: Permanent, Status: 404, Text: "no model"}
	tooLong    = &Error{Class: Context, Status: 400, Text: "too long"}
	spent      = &Error{Class: Budget, Text: "spent"}
)

func TestFallback(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second []error
		answer        string // who answers; empty: no model
		class         Class
		within        time.Duration
		asked         [2]int
	}{
		{"the first", nil, nil, "a", "", 0, [2]int{1, 0}},
		{"one that recovers", many(transient, 1), nil, "a", "", 2 * time.Second, [2]int{2, 0}},
		{"one that does not", many(transient, 9), nil, "b", "", 2 * time.Second, [2]int{-1, 1}},
		{"limited", many(limited, 9), nil, "b", "", 0, [2]int{1, 1}},
		{"limited for a moment", many(short, 1), nil, "a", "", time.Second, [2]int{2, 0}},
		{"bad key", many(badKey, 9), nil, "b", "", 0, [2]int{1, 1}},
		{"no credit", many(noCredit, 9), nil, "b", "", 0, [2]int{1, 1}},
		{"no model", many(noModel, 9), nil, "b", "", 0, [2]int{1, 1}},
		{"bad request", many(badRequest, 9), nil, "", Permanent, 0, [2]int{1, 0}},
		{"too long", many(tooLong, 9), nil, "", Context, 0, [2]int{1, 0}},
		{"spent", many(spent, 9), nil, "", Budget, 0, [2]int{1, 0}},
		{"no error of a model", many(errors.New("disk"), 9), nil, "", "", 0, [2]int{1, 0}},
		{"both cut", many(transient, 9), many(transient, 9), "", Transient, 13 * time.Second, [2]int{-1, -1}},
		{"both limited", many(limited, 9), many(limited, 9), "", Rate, 0, [2]int{1, 1}},
		{"both keys", many(badKey, 9), many(badKey, 9), "", Permanent, 0, [2]int{1, 1}},
		{"key and cut", many(badKey, 9), many(transient, 9), "", Transient, 11 * time.Second, [2]int{1, -1}},
		{"the second recovers", many(badKey, 9), many(transient, 1), "b", "", 2 * time.Second, [2]int{1, 2}},
		{"the second's request is bad", many(limited, 9), many(badRequest, 9), "", Permanent, 0, [2]int{1, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := &way{name: "a", script: tt.first}, &way{name: "b", script: tt.second}
				start := time.Now()
				resp, err := chain(a, b).Chat(t.Context(), Request{})
				if took := time.Since(start); took > tt.within {
					t.Errorf("took %v, want at most %v", took, tt.within)
				}
				if resp.Text != tt.answer || (err == nil) != (tt.answer != "") {
					t.Errorf("answered by %q, %v", resp.Text, err)
				}
				var e *Error
				if errors.As(err, &e) && e.Class != tt.class {
					t.Errorf("class %s, want %s: %v", e.Class, tt.class, err)
				}
				for i, n := range [2]int{len(a.asked), len(b.asked)} {
					if want := tt.asked[i]; want >= 0 && n != want || want < 0 && (n < 2 || n > 3) {
						t.Errorf("way %d was asked %d times, want %d", i, n, want)
					}
				}
				if len(b.asked) > 0 && b.asked[0].Sub(start) > nextPatience {
					t.Errorf("the second was asked after %v", b.asked[0].Sub(start))
				}
			})
		})
	}
}

// A route that failed rests; one bad request lets none rest.
func TestRoutesRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &way{name: "a"}, &way{name: "b"}
		m := chain(a, b)
		ask := func() string {
			resp, err := m.Chat(t.Context(), Request{})
			if err != nil {
				return err.Error()
			}
			return resp.Text
		}
		expect := func(what, want string) {
			t.Helper()
			if got := ask(); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		a.script = []error{badRequest}
		expect("a bad request", "bad request")
		expect("after it", "a")
		a.script = []error{limited}
		expect("limited", "b")
		time.Sleep(29 * time.Second)
		before := len(a.asked)
		expect("still resting", "b")
		if len(a.asked) != before {
			t.Error("it was asked before the provider wanted")
		}
		time.Sleep(2 * time.Second)
		expect("rested", "a")
		a.script = []error{badKey}
		expect("bad key", "b")
		b.script = []error{noModel}
		expect("the resting one is asked last", "a")
		expect("it works again and rests no more", "a")
		// Both providers ask for a pause: the last route waits for a short one.
		five := &Error{Class: Rate, RetryAfter: 5 * time.Second, Text: "slow"}
		a.script, b.script = []error{limited}, []error{five}
		time.Sleep(deadRest)
		start := time.Now()
		expect("both limited", "b")
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestWaitsForTheSoonest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := &Error{Class: Rate, RetryAfter: time.Minute, Text: "slow"}
		a, b := &way{name: "a", script: []error{long}}, &way{name: "b", script: []error{limited, limited}}
		m := chain(a, b)
		if _, err := m.Chat(t.Context(), Request{}); err == nil {
			t.Fatal("both are limited, but something answered")
		}
		start := time.Now()
		var e *Error
		if _, err := m.Chat(t.Context(), Request{}); !errors.As(err, &e) || e.Class != Rate || e.RetryAfter != 30*time.Second || time.Since(start) > 0 {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		time.Sleep(25 * time.Second)
		start = time.Now()
		if _, err := m.Chat(t.Context(), Request{}); err == nil || time.Since(start) != 5*time.Second {
			t.Errorf("got %v after %v, want the second failure of b in 5 s", err, time.Since(start))
		}
		if len(a.asked) != 1 || len(b.asked) != 2 {
			t.Errorf("asked %d and %d times", len(a.asked), len(b.asked))
		}
	})
}

// Text that was shown before a failure is taken back, each failure is told.
func TestFallbackDelta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &way{name: "a", script: many(transient, 9), shows: "half of a"}, &way{name: "b"}
		var shown string
		var told []string
		resp, err := chain(a, b).Chat(t.Context(), Request{
			Delta: func(offset int, text string) { shown = shown[:offset] + text },
			Failed: func(f Attempt) {
				told = append(told, fmt.Sprintf("%s %d %s>%s", f.Err.Class, f.Try, f.Route, f.Next))
			},
		})
		if err != nil || resp.Text != "b" || shown != "b" {
			t.Errorf("got %+v, %v, shown %q", resp, err, shown)
		}
		if n := len(told); n < 3 || told[0] != "transient 1 a>" || told[n-1] != "transient 0 a>b" {
			t.Errorf("told %q", told)
		}
	})
}

// Who waits for the answer can end the call anywhere.
func TestFallbackEnds(t *testing.T) {
	for name, ways := range map[string][]*way{
		"in a call":   {{name: "a", takes: time.Hour}, {name: "b"}},
		"in a pause":  {{name: "a", script: []error{short}}, {name: "b"}},
		"in the last": {{name: "a", script: []error{badKey}}, {name: "b", takes: time.Hour}},
	} {
		synctest.Test(t, func(t *testing.T) {
			why := errors.New("stopped")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(500*time.Millisecond, func() { cancel(why) })
			start := time.Now()
			_, err := chain(ways...).Chat(ctx, Request{})
			var e *Error
			if !errors.Is(err, why) || !errors.As(err, &e) || time.Since(start) != 500*time.Millisecond {
				t.Errorf("%s: %v after %v", name, err, time.Since(start))
			}
			cancel(nil)
		})
	}
	// The whole call ends although each route could go on.
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := chain(&way{name: "a", takes: time.Hour}, &way{name: "b", takes: time.Hour}).Chat(t.Context(), Request{})
		if err == nil || time.Since(start) != StepTime {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// A refreshed model asks the routes and keys that rest, also where the provider asked to be left alone.
func TestRefresh(t *testing.T) {
	a, b, c := &way{name: "a"}, &way{name: "b"}, &way{name: "c"}
	keys := Rotated(nil, Keyed{"1", a}, Keyed{"2", b})
	m := Fallback(nil, Route{Name: "keys", Model: Retried(keys, Retries{})}, Route{Name: "c", Model: Retried(c, Retries{})})
	expect := func(what, want string) {
		t.Helper()
		if resp, err := m.Chat(t.Context(), Request{}); resp.Text != want {
			t.Errorf("%s: %q, %v, want %q", what, resp.Text, err, want)
		}
	}
	a.script = []error{badKey}
	expect("a key is refused", "b")
	b.script = []error{limited}
	expect("the provider is busy", "c")
	expect("it rests", "c")
	Refresh(m)
	expect("after a refresh", "a")
	Refresh(c) // of another kind: nothing happens
}

func TestRotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := &Error{Class: Permanent, Status: 429, Account: true, RetryAfter: time.Hour, Text: "no quota"}
		a, b, c := &way{name: "a"}, &way{name: "b"}, &way{name: "c"}
		m := Rotated(nil, Keyed{"1", a}, Keyed{"2", b}, Keyed{"3", c})
		expect := func(what, want string) {
			t.Helper()
			resp, err := m.Chat(t.Context(), Request{})
			if got := resp.Text + fmt.Sprint(err); got != want+"<nil>" && (err == nil || !strings.Contains(got, want)) {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		expect("the first", "a")
		a.script = []error{limited}
		expect("a limit of the rate changes no key", "slow down")
		expect("after it", "a")
		a.script = []error{quota, badKey}
		expect("no quota", "b")
		time.Sleep(30 * time.Minute)
		b.script, c.script = []error{badKey}, []error{badKey}
		expect("the last one is asked although it rests", "bad key")
		if len(a.asked) != 5 {
			t.Errorf("a was asked %d times", len(a.asked))
		}
		b.script = []error{badRequest}
		expect("a bad request", "bad request")
		expect("the next works", "b")
		time.Sleep(2 * time.Hour)
		expect("what worked last stays", "b")
		if one := Rotated(nil, Keyed{"1", a}); one != Model(a) {
			t.Error("one key is wrapped")
		}
	})
}

func TestFingerprint(t *testing.T) {
	if got := Fingerprint("sk-fake"); len(got) != 8 || strings.Contains("sk-fake", got) || got == Fingerprint("sk-fakf") {
		t.Errorf("got %q", got)
	}
}
