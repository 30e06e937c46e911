package discord

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors"
)

// rates keep calls within Discord's limits as its responses name them: a bucket for each route
// and channel, a number of calls in a second for the whole bot, and few refused calls, because
// Discord blocks the address of who makes many.
//
// Headers and scopes: docs.discord.com/developers/topics/rate-limits, read 2026-11-28.
type rates struct {
	share func() int // members among which the calls of a second are divided

	mu       sync.Mutex
	buckets  map[string]string // by route, the bucket that Discord names
	limits   map[string]*limit // by bucket and channel
	all      time.Time         // end of the pause of the whole bot
	recent   []time.Time       // calls within the last second
	behind   []time.Time       // those of them that are behind others
	refusals []time.Time       // within invalidWindow
}

// A limit is the state of one bucket.
type limit struct {
	calls, left int       // calls until reset
	reset       time.Time // when all calls are allowed again
	until       time.Time // end of the pause that a 429 requested
}

func newRates(share func() int) *rates {
	return &rates{share: share, buckets: make(map[string]string), limits: make(map[string]*limit)}
}

// key names the limit of a route. The lock is held.
func (r *rates) key(what, major string) string {
	if bucket := r.buckets[what]; bucket != "" {
		return bucket + "/" + major
	}
	return what + "/" + major
}

// take returns how long a call must wait; 0 grants it. The call leaves its reserve of its bucket,
// and half of the calls of a second to others if it is behind them. all reports that the wait applies to the
// whole bot.
func (r *rates) take(x call) (wait time.Duration, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Before(r.all) {
		return r.all.Sub(now), true
	}
	l := r.limits[r.key(x.what, x.major)]
	if l != nil {
		switch {
		case now.Before(l.until):
			return l.until.Sub(now), false
		case now.Before(l.reset) && l.left <= min(x.reserve, l.calls-1):
			return l.reset.Sub(now), false
		}
	}
	most := max(1, perSecond/connectors.Members(r.share))
	if wait := full(&r.recent, now, most); wait > 0 {
		return wait, true
	}
	if x.behind {
		if wait := full(&r.behind, now, max(1, most/2)); wait > 0 {
			return wait, true
		}
		r.behind = append(r.behind, now)
	}
	r.recent = append(r.recent, now)
	if l != nil && now.Before(l.reset) {
		l.left--
	}
	return 0, false
}

// full returns how long it takes until fewer than most of the calls are within the last second, and
// forgets older ones.
func full(calls *[]time.Time, now time.Time, most int) time.Duration {
	*calls = connectors.Recent(*calls, now, time.Second)
	if len(*calls) < most {
		return 0
	}
	return (*calls)[len(*calls)-most].Add(time.Second).Sub(now)
}

// learn notes what a response says of the bucket of its route.
func (r *rates) learn(what, major string, h http.Header) {
	bucket := h.Get("X-RateLimit-Bucket")
	calls, err := strconv.Atoi(h.Get("X-RateLimit-Limit"))
	left, err2 := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	after, err3 := strconv.ParseFloat(h.Get("X-RateLimit-Reset-After"), 64)
	if bucket == "" || err != nil || err2 != nil || err3 != nil || calls < 1 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buckets[what] = bucket
	now := time.Now()
	l := r.limit(what, major, now)
	reset := now.Add(seconds(after))
	if now.Before(l.reset) && l.calls == calls { // calls under way count already
		left = min(left, l.left)
	}
	l.calls, l.left, l.reset = calls, left, reset
}

// limit returns the limit of a route. The lock is held.
func (r *rates) limit(what, major string, now time.Time) *limit {
	key := r.key(what, major)
	l := r.limits[key]
	if l == nil {
		if len(r.limits) >= maxChannels {
			for k, old := range r.limits {
				if now.After(old.reset) && now.After(old.until) {
					delete(r.limits, k)
				}
			}
		}
		l = &limit{calls: 1}
		r.limits[key] = l
	}
	return l
}

// refused notes a 429 and returns the pause, and whether it applies to the whole bot.
func (r *rates) refused(what, major string, after time.Duration, global bool, h http.Header) (time.Duration, bool) {
	if named, err := strconv.ParseFloat(h.Get("Retry-After"), 64); after <= 0 && err == nil {
		after = seconds(named)
	}
	if after <= 0 {
		after = time.Second
	}
	global = global || h.Get("X-RateLimit-Scope") == "global"
	if h.Get("X-RateLimit-Scope") != "shared" {
		r.invalid()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if global {
		r.all = now.Add(after)
		return after, true
	}
	r.limit(what, major, now).until = now.Add(after)
	return after, false
}

// invalid counts a refused call. Well before Discord would block the address, the bot pauses.
func (r *rates) invalid() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.refusals = append(connectors.Recent(r.refusals, now, invalidWindow), now); len(r.refusals) >= invalidLimit {
		r.all = r.refusals[0].Add(invalidWindow)
	}
}
