package web

import (
	"net/netip"
	"sync"
	"time"
)

const (
	guessLimit  = 10
	guessWindow = time.Minute
	guessLock   = 5 * time.Minute
	guessPeople = 1024
)

// guesses counts wrong secrets by address. After ten within a minute the
// address is locked for five minutes, including loopback. Behind an undeclared
// proxy all users share one address, so a lock does not affect sessions and
// one-time codes, which cannot be guessed. The zero value is ready to use.
type guesses struct {
	mu sync.Mutex
	by map[string]*guesser
}

type guesser struct {
	wrong []time.Time
	until time.Time // locked
}

// origin returns the key of an address: for IPv6 the /64 network, since its
// holder has 2^64 addresses.
func origin(addr string) string {
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		return addr
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}

func (g *guesses) locked(addr string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.by[origin(addr)]
	if p == nil {
		return 0
	}
	return max(0, time.Until(p.until))
}

func (g *guesses) wrong(addr string) {
	addr = origin(addr)
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	p := g.by[addr]
	if p == nil {
		if g.by == nil || len(g.by) >= guessPeople {
			g.forget(now)
		}
		p = &guesser{}
		g.by[addr] = p
	}
	for len(p.wrong) > 0 && now.Sub(p.wrong[0]) >= guessWindow {
		p.wrong = p.wrong[1:]
	}
	p.wrong = append(p.wrong, now)
	if len(p.wrong) >= guessLimit {
		p.wrong, p.until = nil, now.Add(guessLock)
	}
}

// forget makes room: it removes addresses that are neither locked nor recently
// used, and all if that is not enough. It needs mu.
func (g *guesses) forget(now time.Time) {
	for addr, p := range g.by {
		if now.After(p.until) && (len(p.wrong) == 0 || now.Sub(p.wrong[len(p.wrong)-1]) >= guessWindow) {
			delete(g.by, addr)
		}
	}
	if g.by == nil || len(g.by) >= guessPeople {
		g.by = make(map[string]*guesser)
	}
}
