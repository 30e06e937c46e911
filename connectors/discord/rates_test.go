package discord

import (
	"testing"
	"testing/synctest"
	"time"
)

// Calls behind others take half of a second's calls at most, and get some while others take all
// that they can.
func TestCallsBehindOthers(t *testing.T) {
	t.Parallel()
	for members, half := range map[int]int{1: 25, 5: 5, 100: 1} {
		synctest.Test(t, func(t *testing.T) {
			r := newRates(func() int { return members })
			granted := func(behind bool) (n int) {
				for {
					if wait, _ := r.take(call{what: "x", behind: behind}); wait > 0 {
						return n
					}
					n++
				}
			}
			if n := granted(true); n != half {
				t.Errorf("%d members: %d calls alone, want %d", members, n, half)
			}
			most, others, behind := max(1, perSecond/members), 0, 0
			for n := range 5 * most { // others call at four fifths of the rate, for five seconds
				time.Sleep(time.Second / time.Duration(most))
				if n%5 < 4 {
					_, _ = r.take(call{what: "x"})
					others++
				}
				if n >= most { // not in the first second
					behind += granted(true)
				}
			}
			if members < 100 && behind < others/5 {
				t.Errorf("%d members: %d calls behind %d of others", members, behind, others)
			}
		})
	}
}
