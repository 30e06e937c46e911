package tools_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/tools"
)

func TestParseRate(t *testing.T) {
	tests := []struct {
		in   string
		want tools.Rate
		ok   bool
	}{
		{"", tools.Rate{}, true},
		{"5/s", tools.Rate{N: 5, Per: time.Second}, true},
		{"30/m", tools.Rate{N: 30, Per: time.Minute}, true},
		{"1000/h", tools.Rate{N: 1000, Per: time.Hour}, true},
		{"1001/m", tools.Rate{}, false},
		{"0/s", tools.Rate{}, false},
		{"-1/s", tools.Rate{}, false},
		{"5", tools.Rate{}, false},
		{"5/d", tools.Rate{}, false},
		{"5 / s", tools.Rate{}, false},
		{"99999999999999999999/s", tools.Rate{}, false},
		{"٥/s", tools.Rate{}, false},
	}
	for _, tt := range tests {
		got, err := tools.ParseRate(tt.in)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("ParseRate(%q) = %v, %v", tt.in, got, err)
		}
		if err == nil && got.String() != tt.in {
			t.Errorf("%q is written %q", tt.in, got)
		}
	}
}

var down = &tools.Fault{Code: "network", Text: "no route", Retriable: true}

func enter(t *testing.T, g *tools.Guard, code string, after time.Duration) {
	t.Helper()
	f := g.Enter("u", "x")
	switch {
	case code == "" && f == nil:
	case f == nil || f.Code != code || !f.Retriable || f.After != after || f.Text == "":
		t.Errorf("Enter = %+v, want %q after %v", f, code, after)
	}
}

func TestCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := tools.NewGuard(nil)
		fail := func(n int, f *tools.Fault) {
			for range n {
				enter(t, g, "", 0)
				g.Done("u", "x", f)
			}
		}
		fail(4, down)
		fail(1, nil) // which closes the row
		fail(4, down)
		for _, code := range []string{tools.FaultArguments, tools.FaultUnknown, tools.FaultInterrupted, tools.FaultForbidden, tools.FaultStopped} {
			fail(5, &tools.Fault{Code: code}) // none of them is the tool's
		}
		fail(1, down)
		enter(t, g, tools.FaultCircuit, time.Minute)
		for _, other := range [][2]string{{"u", "y"}, {"v", "x"}} {
			if f := g.Enter(other[0], other[1]); f != nil {
				t.Errorf("%v: %+v", other, f)
			}
		}
		time.Sleep(59 * time.Second)
		enter(t, g, tools.FaultCircuit, time.Second)
		time.Sleep(time.Second)
		enter(t, g, "", 0) // the trial
		enter(t, g, tools.FaultCircuit, time.Minute)
		time.Sleep(10 * time.Second)
		g.Done("u", "x", down)
		enter(t, g, tools.FaultCircuit, time.Minute)
		time.Sleep(time.Minute)
		enter(t, g, "", 0)
		g.Done("u", "x", nil)
		fail(4, down) // closed: five are needed again
		enter(t, g, "", 0)
	})
}

// Calls that were under way when the circuit opened do not prolong it, and a
// trial that is lost does not keep it open for ever.
func TestCircuitStragglers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := tools.NewGuard(nil)
		for range 20 {
			enter(t, g, "", 0)
		}
		for range 10 {
			g.Done("u", "x", down)
		}
		time.Sleep(50 * time.Second)
		for range 10 {
			g.Done("u", "x", down)
		}
		enter(t, g, tools.FaultCircuit, 10*time.Second)
		time.Sleep(10 * time.Second)
		enter(t, g, "", 0) // and never Done
		time.Sleep(59 * time.Second)
		enter(t, g, tools.FaultCircuit, time.Second)
		time.Sleep(time.Second)
		enter(t, g, "", 0)
	})
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := tools.Rate{N: 3, Per: time.Second}
		g := tools.NewGuard(func(tool string) tools.Rate {
			if tool != "x" {
				return tools.Rate{}
			}
			return rate
		})
		var passed []time.Time
		for range 400 { // as often as it can
			f := g.Enter("u", "x")
			if f == nil {
				passed = append(passed, time.Now())
				g.Done("u", "x", nil)
			} else if f.Code != tools.FaultRate || !f.Retriable || f.After <= 0 || f.After > time.Second {
				t.Fatalf("%+v", f)
			}
			time.Sleep(10 * time.Millisecond)
		}
		for i := 3; i < len(passed); i++ {
			if passed[i].Sub(passed[i-3]) < time.Second {
				t.Errorf("calls %d to %d within %v", i-3, i, passed[i].Sub(passed[i-3]))
			}
		}
		if len(passed) < 12 {
			t.Errorf("%d calls in 4 s", len(passed))
		}
		f := g.Enter("u", "x")
		for f == nil {
			f = g.Enter("u", "x")
		}
		time.Sleep(f.After) // which is what it says
		enter(t, g, "", 0)
		rate = tools.Rate{N: 1, Per: time.Minute} // changed while it is used
		if f := g.Enter("u", "x"); f == nil || f.After > time.Minute {
			t.Errorf("%+v", f)
		}
		for range 100 {
			if f := g.Enter("u", "y"); f != nil {
				t.Fatalf("%+v", f)
			}
		}
	})
}

// A trial that the rate refuses is none.
func TestRateBeforeTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := tools.NewGuard(func(string) tools.Rate { return tools.Rate{N: 5, Per: time.Hour} })
		for range 5 {
			enter(t, g, "", 0)
			g.Done("u", "x", down)
		}
		time.Sleep(time.Minute)
		enter(t, g, tools.FaultRate, 59*time.Minute)
		time.Sleep(59 * time.Minute)
		enter(t, g, "", 0)
	})
}

func TestGuardForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := tools.NewGuard(nil)
		for range 5 {
			enter(t, g, "", 0)
			g.Done("u", "x", down)
		}
		for i := range 20_000 { // strangers do not fill the memory, nor free who is used
			g.Enter(fmt.Sprint("stranger", i), "x")
			time.Sleep(time.Millisecond)
			if i%1000 == 0 {
				if f := g.Enter("u", "x"); f == nil {
					t.Fatalf("forgotten after %d", i)
				}
			}
		}
		if n := g.Known(); n > 4096 {
			t.Errorf("%d pairs are remembered", n)
		}
	})
}

func TestGuardManyAtOnce(t *testing.T) {
	g := tools.NewGuard(func(string) tools.Rate { return tools.Rate{N: 10, Per: time.Hour} })
	var wg sync.WaitGroup
	var mu sync.Mutex
	passed := 0
	for range 100 {
		wg.Go(func() {
			if g.Enter("u", "x") == nil {
				mu.Lock()
				passed++
				mu.Unlock()
				g.Done("u", "x", nil)
			}
		})
	}
	wg.Wait()
	if passed != 10 {
		t.Errorf("%d passed", passed)
	}
}
