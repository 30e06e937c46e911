package connectors

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A platform allows so many calls in any minute, and refuses others.
type platform struct {
	mu      sync.Mutex
	limit   int
	calls   []time.Time
	refused int
}

func (p *platform) call() (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.calls = slices.DeleteFunc(p.calls, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	if len(p.calls) >= p.limit {
		p.refused++
		return time.Minute - now.Sub(p.calls[0])
	}
	p.calls = append(p.calls, now)
	return 0
}

// stream shows a text that grows for a time, and returns how late its final text came.
func stream(b *Budget, p *platform, message string, members int, grows time.Duration) (late time.Duration) {
	end := time.Now().Add(grows)
	for time.Now().Before(end) {
		wait := b.Progress(message, members)
		if wait == 0 {
			if refused := p.call(); refused > 0 {
				b.Refused(refused)
			}
		}
		time.Sleep(min(max(wait, time.Second), time.Until(end)))
	}
	for {
		wait := b.Spend(message)
		if wait == 0 {
			if wait = p.call(); wait == 0 {
				return time.Since(end)
			}
			b.Refused(wait)
		}
		time.Sleep(wait)
	}
}

// Twenty texts that grow at once use what the platform allows, and each final text finds a
// call left.
func TestBudget(t *testing.T) {
	for name, tt := range map[string]struct {
		allowed, messages, members int
		grows                      time.Duration
		used                       int // calls at least
	}{
		"twenty":                {50, 20, 1, 30 * time.Second, 45},
		"forty":                 {50, 40, 1, 30 * time.Second, 45},
		"one":                   {50, 1, 1, 30 * time.Second, 25},
		"of two members, ten":   {25, 10, 2, 30 * time.Second, 22},
		"long ones share alike": {50, 5, 1, 10 * time.Minute, 45},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, p := NewBudget(50, time.Minute), &platform{limit: tt.allowed}
				var wait sync.WaitGroup
				for i := range tt.messages {
					wait.Go(func() {
						if late := stream(b, p, string(rune('a'+i)), tt.members, tt.grows); late > 0 {
							t.Errorf("the final text of %d came %s late", i, late)
						}
					})
				}
				wait.Wait()
				if p.refused > 0 || len(p.calls) < tt.used {
					t.Errorf("%d calls in the last minute, %d refused; want at least %d and none", len(p.calls), p.refused, tt.used)
				}
			})
		})
	}
}

// A platform that allows less is refused once or twice, then obeyed; later the documented
// number is tried again.
func TestBudgetLearns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, p := NewBudget(50, time.Minute), &platform{limit: 20}
		var wait sync.WaitGroup
		for i := range 4 {
			wait.Go(func() { stream(b, p, string(rune('a'+i)), 1, 3*time.Minute) })
		}
		wait.Wait()
		if p.refused == 0 || p.refused > 4 {
			t.Errorf("%d calls were refused in three minutes, want 1 to 4", p.refused)
		}
		time.Sleep(time.Hour)
		p.limit, p.refused = 50, 0
		if stream(b, p, "later", 1, time.Minute); p.refused > 0 || len(p.calls) < 45 {
			t.Errorf("an hour later: %d calls, %d refused", len(p.calls), p.refused)
		}
	})
}

// A message whose final text never comes keeps no call from others for good.
func TestBudgetForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(2, time.Second)
		for range 20 {
			b.Progress("left "+time.Now().String(), 1)
			time.Sleep(time.Second)
		}
		time.Sleep(stillGrows + time.Second)
		b.Progress("new", 1)
		if len(b.growing) != 1 {
			t.Errorf("%d messages still grow", len(b.growing))
		}
	})
}
