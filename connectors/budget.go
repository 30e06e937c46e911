package connectors

import (
	"slices"
	"sync"
	"time"
)

// A Budget divides the calls that a platform allows within a time among the messages that
// grow: what shows unfinished text gives way, so that a final text finds the platform ready.
// It learns from refusals that less is allowed, and goes back to the documented number step
// by step. It is safe for concurrent use.
type Budget struct {
	calls int // documented, within per
	per   time.Duration

	mu      sync.Mutex
	limit   int // calls that are believed to be allowed
	learned time.Time
	until   time.Time   // end of the pause that the platform asked for
	spent   []time.Time // within the last per
	growing map[string]*growing
}

// A growing is a message with unfinished text.
type growing struct {
	began time.Time
	asked time.Time   // last, for its text to be shown
	shown []time.Time // within the last per
}

const (
	// stillGrows is how long a message counts as growing after it last asked for a call.
	stillGrows = 2 * time.Minute
	// quickAnswer is how long an answer grows on average: final texts of answers that grow
	// are expected at that rate.
	quickAnswer = 20 * time.Second
)

// NewBudget returns a Budget of so many calls within per.
func NewBudget(calls int, per time.Duration) *Budget {
	return &Budget{calls: calls, per: per, limit: calls, growing: make(map[string]*growing)}
}

// Progress asks for one call that shows unfinished text of a message, where members share
// the budget. It grants it with 0, or returns how long the text should wait. The final texts
// that are to be expected have their calls kept; growing messages share the others equally.
func (b *Budget) Progress(message string, members int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.tidy()
	g := b.growing[message]
	if g == nil {
		g = &growing{began: now}
		b.growing[message] = g
	}
	g.asked = now
	limit := max(1, b.limit/max(1, members))
	free := limit - b.finals(limit)
	share := (free + len(b.growing) - 1) / len(b.growing)
	switch shown := len(g.shown); {
	case b.until.After(now):
		return b.until.Sub(now)
	case share == 0:
		return b.per
	case now.Equal(g.began) && len(b.growing) > limit/5: // more may begin at this moment
		return time.Second
	case shown >= share:
		return g.shown[shown-share].Add(b.per).Sub(now)
	case shown > 0 && now.Sub(g.shown[shown-1]) < b.per/time.Duration(2*share):
		return b.per/time.Duration(2*share) - now.Sub(g.shown[shown-1])
	case len(b.spent) >= free:
		return b.spent[len(b.spent)-free].Add(b.per).Sub(now)
	}
	g.shown = append(g.shown, now)
	b.spent = append(b.spent, now)
	return 0
}

// finals is how many of limit calls are kept for final texts. The lock is held.
func (b *Budget) finals(limit int) int {
	expected := len(b.growing)
	if b.per < quickAnswer {
		expected = (expected*int(b.per) + int(quickAnswer) - 1) / int(quickAnswer)
	}
	return min(expected, limit)
}

// Return takes back a call that Progress granted and that was not made.
func (b *Budget) Return(message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.growing[message]
	if g == nil || len(g.shown) == 0 {
		return
	}
	at := g.shown[len(g.shown)-1]
	g.shown = g.shown[:len(g.shown)-1]
	if i := slices.Index(b.spent, at); i >= 0 {
		b.spent = slices.Delete(b.spent, i, i+1)
	}
}

// Members returns how many cluster members share a Budget, at least one. nodes returns 0 while that is unknown; nil
// means one.
func Members(nodes func() int) int {
	if nodes == nil {
		return 1
	}
	return max(1, nodes())
}

// Idle reports that nothing is known which a new Budget would not know as well.
func (b *Budget) Idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.tidy()
	return len(b.spent) == 0 && len(b.growing) == 0 && b.limit == b.calls && !b.until.After(now)
}

// Spend counts a call that does not give way, such as the final text of a message. It
// returns how long the platform asked to wait; then nothing is counted.
func (b *Budget) Spend(message string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.tidy()
	if b.until.After(now) {
		return b.until.Sub(now)
	}
	delete(b.growing, message)
	b.spent = append(b.spent, now)
	return 0
}

// Ended forgets a message that grows no more, although no final text was counted for it.
func (b *Budget) Ended(message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.growing, message)
}

// Refused records that the platform refused a call that was counted, and asked for a pause.
func (b *Budget) Refused(after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.tidy()
	if now.Before(b.until) {
		return // of the same burst
	}
	b.limit = max(2, min(b.limit, max(len(b.spent)-1, b.limit/2)))
	b.until, b.learned = now.Add(after), now
}

// tidy forgets what is over, and raises a learned limit by a tenth for each time without a
// refusal. The lock is held.
func (b *Budget) tidy() (now time.Time) {
	now = time.Now()
	b.spent = Recent(b.spent, now, b.per)
	for message, g := range b.growing {
		if g.shown = Recent(g.shown, now, b.per); now.Sub(g.asked) > stillGrows {
			delete(b.growing, message)
		}
	}
	for b.limit < b.calls && now.Sub(b.learned) >= b.per && now.After(b.until) {
		b.limit, b.learned = min(b.calls, b.limit+max(1, b.calls/10)), b.learned.Add(b.per)
	}
	return now
}

// Recent returns the calls, the oldest first, that were made within the last per.
func Recent(calls []time.Time, now time.Time, per time.Duration) []time.Time {
	for len(calls) > 0 && now.Sub(calls[0]) >= per {
		calls = calls[1:]
	}
	return calls
}
