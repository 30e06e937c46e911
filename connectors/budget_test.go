package connectors

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A platform allows so many calls in any minute, and refuses others.
type platform struct {
	limit   int
	calls   []time.Time
	refused int
}

func (p *platform) call() (wait time.Duration) {
	now := time.Now()
	p.calls = slices.DeleteFunc(p.calls, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	if len(p.calls) >= p.limit {
		p.refused++
		return time.Minute - now.Sub(p.calls[0])
	}
	p.calls = append(p.calls, now)
	return 0
}

// stream shows texts that grow for a time, one after the other at each moment, and returns how
// late the last final text came.
func stream(b *Budget, p *platform, messages, members int, grows time.Duration) (late time.Duration) {
	end := time.Now().Add(grows)
	due := make([]time.Time, messages) // of what each does next
	for i := range due {
		due[i] = time.Now()
	}
	for open := messages; open > 0; {
		next := 0
		for i, at := range due {
			if at.Before(due[next]) {
				next = i
			}
		}
		time.Sleep(time.Until(due[next]))
		switch message, now := string(rune('a'+next)), time.Now(); {
		case now.Before(end):
			wait := b.Progress(message, members)
			if wait == 0 {
				if refused := p.call(); refused > 0 {
					b.Refused(refused)
				}
			}
			due[next] = now.Add(min(max(wait, time.Second), end.Sub(now)))
		default:
			wait := b.Spend(message)
			if wait == 0 {
				if wait = p.call(); wait == 0 {
					open, late, due[next] = open-1, now.Sub(end), now.Add(24*time.Hour)
					continue
				}
				b.Refused(wait)
			}
			due[next] = now.Add(wait)
		}
	}
	return late
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
				if late := stream(b, p, tt.messages, tt.members, tt.grows); late > 0 {
					t.Errorf("a final text came %s late", late)
				}
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
		stream(b, p, 4, 1, 3*time.Minute)
		if p.refused == 0 || p.refused > 4 {
			t.Errorf("%d calls were refused in three minutes, want 1 to 4", p.refused)
		}
		time.Sleep(time.Hour)
		p.limit, p.refused = 50, 0
		if stream(b, p, 1, 1, time.Minute); p.refused > 0 || len(p.calls) < 45 {
			t.Errorf("an hour later: %d calls, %d refused", len(p.calls), p.refused)
		}
	})
}

// Calls that were refused together teach one lesson.
func TestBudgetRefusedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(50, time.Minute)
		for range 20 {
			b.Spend("a")
		}
		for range 3 {
			b.Refused(time.Minute)
		}
		if b.limit != 25 {
			t.Errorf("%d calls are believed to be allowed, want 25", b.limit)
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
