package discordtest

import (
	"net/http"
	"time"
)

// A Fault makes calls go wrong. Route and Channel choose the calls; of the rest, the first that
// is set happens.
type Fault struct {
	Route   string // such as "POST messages"; empty: every one of a channel
	Channel string // or the server whose threads are listed; empty: every one
	Times   int    // 0 is once, below 0 for ever

	Takes      time.Duration // that long, and then all is well
	RetryAfter time.Duration // a 429
	Global     bool          // of the whole bot
	Drop       bool          // the connection ends; no work is done
	Lost       bool          // the work is done, the connection ends without an answer
	Status     int           // an error instead of the work
	Code       int
}

// Fail adds a fault. Faults are tried in the order in which they were added.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults = append(s.faults, &f)
}

// Heal removes all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// strikes finds the fault that strikes a call. The lock is held.
func (s *Server) strikes(route, channel string) Fault {
	for i, f := range s.faults {
		if f.Route != route && (f.Route != "" || channel == "") || f.Channel != "" && f.Channel != channel {
			continue
		}
		if f.Times--; f.Times == 0 {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
		}
		return *f
	}
	return Fault{}
}

// Down makes Discord unreachable, or reachable again.
func (s *Server) Down(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down = down; down {
		s.drop(0)
	}
}

// Revoke makes the token invalid, also that of the open connection.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = true
	s.drop(4004)
}

// A bucket is a limit of calls.
type bucket struct {
	left  int
	reset time.Time
	until time.Time // of a 429
}

// crowded counts a call of the bot and returns how long it must wait, because the bot has made so
// many within a second: docs.discord.com/developers/topics/rate-limits, Global Rate Limit, read
// 2026-11-28. The lock is held.
func (s *Server) crowded() (wait time.Duration) {
	now := time.Now()
	for len(s.made) > 0 && now.Sub(s.made[0]) >= time.Second {
		s.made = s.made[1:]
	}
	if len(s.made) >= s.cfg.Requests {
		return s.made[0].Add(time.Second).Sub(now)
	}
	s.made = append(s.made, now)
	return 0
}

// limited counts a call of a route for a channel, sets the headers and reports whether it is
// refused, and for how long. The lock is held.
func (s *Server) limited(h http.Header, route, channel string) (wait time.Duration) {
	most, per := 50, 5*time.Second
	switch route {
	case "POST messages", "PATCH message":
		most = s.cfg.Sends
	case "PUT reaction", "DELETE reaction":
		most, per = 1, 250*time.Millisecond
		route = "reaction"
	}
	now := time.Now()
	b := s.limits[route+"/"+channel]
	if b == nil {
		b = &bucket{}
		s.limits[route+"/"+channel] = b
	}
	if !now.Before(b.reset) {
		b.left, b.reset = most, now.Add(per)
	}
	switch {
	case now.Before(b.until):
		wait = b.until.Sub(now)
	case b.left == 0:
		wait = b.reset.Sub(now)
	default:
		b.left--
	}
	h.Set("X-RateLimit-Bucket", "bucket-"+route)
	h.Set("X-RateLimit-Limit", number(float64(most)))
	h.Set("X-RateLimit-Remaining", number(float64(b.left)))
	h.Set("X-RateLimit-Reset-After", number(b.reset.Sub(now).Seconds()))
	return wait
}

// Slow makes the next resume take a time. Heartbeats are acknowledged meanwhile, as they are
// during an outage of Discord.
func (s *Server) Slow(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = d
}

// Refuse makes the gateway start no session, or start them again. It returns how many identifies
// have come.
func (s *Server) Refuse(refuse bool) (identifies int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusing = refuse
	return s.identifies
}
