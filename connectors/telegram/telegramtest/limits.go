package telegramtest

import (
	"fmt"
	"math"
	"time"
)

// The limits of https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this,
// as of 2026-11-28: about one message a second in a chat with short bursts above it, 20 a
// minute in a group, 30 a second in all. Telegram enforces none of them exactly.
const (
	chatRate    = 1.0
	chatBurst   = 20
	groupMinute = 20
	allSecond   = 30
)

// A rate is a token bucket, and the silence behind an overrun.
type rate struct {
	tokens float64
	filled time.Time
	silent time.Time
	told   time.Time   // the bot knows that it must be silent until then
	minute []time.Time // sends of the last minute; in groups only
}

// take takes one token, or returns how long to be silent.
func (r *rate) take(now time.Time, perSecond float64, burst int) time.Duration {
	if perSecond <= 0 {
		return 0
	}
	if r.filled.IsZero() {
		r.tokens = float64(burst)
	} else {
		r.tokens = min(float64(burst), r.tokens+now.Sub(r.filled).Seconds()*perSecond)
	}
	r.filled = now
	if r.tokens < 1 {
		return time.Duration(math.Ceil((1-r.tokens)/perSecond)) * time.Second
	}
	r.tokens--
	return 0
}

// within counts a send, if less than most were in the last minute, or returns how long to
// be silent.
func (r *rate) within(now time.Time, most int) time.Duration {
	for len(r.minute) > 0 && now.Sub(r.minute[0]) >= time.Minute {
		r.minute = r.minute[1:]
	}
	if len(r.minute) >= most {
		return time.Minute - now.Sub(r.minute[0])
	}
	r.minute = append(r.minute, now)
	return 0
}

// allow counts a send to a chat, or refuses it with a 429. The lock is held.
func (s *Server) allow(c *chat) *apiError {
	now := time.Now()
	r := &c.rate
	if now.Before(r.told) {
		s.broken++
	}
	if !now.Before(r.silent) && !s.cfg.NoLimits {
		var wait time.Duration
		if !now.Before(s.all.silent) {
			if wait = s.all.take(now, allSecond, allSecond); wait > 0 {
				s.all.silent = now.Add(wait)
			}
		}
		if wait = max(s.all.silent.Sub(now), 0); wait == 0 {
			wait = r.take(now, s.cfg.ChatRate, max(s.cfg.ChatBurst, 1))
		}
		if wait == 0 && c.id < 0 {
			wait = r.within(now, groupMinute)
		}
		if wait > 0 {
			r.silent = now.Add(wait)
		}
	}
	if now.Before(r.silent) {
		after := int(math.Ceil(r.silent.Sub(now).Seconds()))
		r.told = now.Add(time.Duration(after) * time.Second)
		return &apiError{Code: 429, Description: fmt.Sprintf("Too Many Requests: retry after %d", after), RetryAfter: after}
	}
	return nil
}
