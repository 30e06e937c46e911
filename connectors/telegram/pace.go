package telegram

import (
	"sync"
	"time"
)

// pace learns how fast Telegram lets us send. Before the first 429 it knows
// nothing and holds nothing back. A 429 silences its chat for exactly the time
// named; afterwards that chat is paced and sped up again with every success,
// until it is forgotten. Its zero value is ready; it is safe for concurrent
// use.
type pace struct {
	mu    sync.Mutex
	chats map[int64]*lane
	all   time.Time   // the whole bot is silent until then
	hits  []time.Time // recent 429s of distinct chats
}

// A lane is the pace of one chat.
type lane struct {
	next  time.Time // nothing before it
	until time.Time // silence that a 429 asked for
	gap   time.Duration
	last  time.Time
}

const (
	firstGap     = time.Second     // pace of a private chat behind a 429
	firstGroup   = 3 * time.Second // pace of a group behind a 429
	smallestGap  = 50 * time.Millisecond
	forgetAfter  = 5 * time.Minute
	globalChats  = 3 // so many chats refused
	globalWithin = time.Second
)

// take reports how long chat must still be silent; 0 grants one send now. all
// says that the whole bot must be.
func (p *pace) take(chat int64) (wait time.Duration, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.chats) == 0 && p.all.IsZero() {
		return 0, false
	}
	now := time.Now()
	if now.Before(p.all) {
		return p.all.Sub(now), true
	}
	l := p.chats[chat]
	if l == nil {
		return 0, false
	}
	if now.Before(l.next) {
		return l.next.Sub(now), false
	}
	l.next, l.last = now.Add(l.gap), now
	return 0, false
}

// silent reports whether a 429 still silences chat.
func (p *pace) silent(chat int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.chats[chat]
	now := time.Now()
	return now.Before(p.all) || l != nil && now.Before(l.until)
}

// refused notes a 429 and reports whether it concerns the whole bot: Telegram
// does not say so, but refusing several chats within a second means it.
func (p *pace) refused(chat int64, after time.Duration) (all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.chats == nil {
		p.chats = make(map[int64]*lane)
	}
	for id, l := range p.chats {
		if now.Sub(l.last) > forgetAfter && now.After(l.next) {
			delete(p.chats, id)
		}
	}
	l := p.chats[chat]
	if l == nil {
		l = &lane{gap: firstGap / 2}
		if chat < 0 {
			l.gap = firstGroup / 2
		}
		p.chats[chat] = l
	}
	if now.After(l.until) { // several refusals of one burst count once
		p.hits = append(p.hits, now)
		l.gap = min(2*l.gap, 30*time.Second)
	}
	l.until, l.next, l.last = now.Add(after), now.Add(after), now
	for len(p.hits) > 0 && now.Sub(p.hits[0]) > globalWithin {
		p.hits = p.hits[1:]
	}
	if len(p.hits) >= globalChats {
		p.all = now.Add(after)
		return true
	}
	return false
}

// done notes a success: the chat may go a quarter faster, at last freely.
func (p *pace) done(chat int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.chats[chat]
	if l == nil {
		return
	}
	if l.gap = l.gap * 3 / 4; l.gap < smallestGap {
		delete(p.chats, chat)
	}
}

// moved forgets a chat that has another id now.
func (p *pace) moved(chat int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.chats, chat)
}
