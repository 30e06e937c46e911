package web

import (
	"math"
	"time"
)

// paces are the rates of tokens, by name. A full minute's requests may come at once.
type paces map[string]pace

type pace struct {
	left float64
	at   time.Time
}

// wait counts a request of t. It returns how long the token must wait where its rate does
// not allow the request, which then does not count. The caller holds the mutex of the auth.
func (p paces) wait(t token, now time.Time) time.Duration {
	if t.Rate == 0 {
		return 0
	}
	most := float64(t.Rate)
	x, known := p[t.Name]
	if !known {
		x = pace{most, now}
	}
	x.left = min(most, x.left+max(now.Sub(x.at).Minutes(), 0)*most)
	x.at = now
	var wait time.Duration
	if x.left < 1 {
		wait = time.Duration(math.Ceil((1 - x.left) / most * float64(time.Minute)))
	} else {
		x.left--
	}
	p[t.Name] = x
	return wait
}

// A TokenBudget is how many tokens of models the conversations of an API token may take a
// day.
type TokenBudget struct {
	Token string
	Limit int64
}

// TokenBudgets lists the budgets of the API tokens. It is safe for concurrent use.
func (s *Server) TokenBudgets() (all []TokenBudget) {
	for _, t := range s.auth.list() {
		if t.Budget > 0 && !t.over(time.Now()) {
			all = append(all, TokenBudget{t.Name, t.Budget})
		}
	}
	return all
}
