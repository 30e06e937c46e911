package telegram

import (
	"sync"
	"time"
)

// pace adapts to Telegram's rate limits. Before the first 429 it delays
// nothing. A 429 pauses its chat for exactly the requested time; afterwards
// sends to that chat are paced, and each success shortens the gap until none is
// left. The zero value is ready to use. It is safe for concurrent use.
type pace struct {
	mu    sync.Mutex
	chats map[int64]*lane
	all   time.Time   // end of the pause of the whole bot
	hits  []time.Time // recent 429s of distinct chats
}

// A lane is the pace of one chat.
type lane struct {
	next  time.Time // earliest time of the next send
	until time.Time // end of the pause that a 429 requested
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

// take returns how long sends to chat must wait; 0 grants one send now. all
// reports that the wait applies to the whole bot.
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

// silent reports whether chat is still paused by a 429.
func (p *pace) silent(chat int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.chats[chat]
	now := time.Now()
	return now.Before(p.all) || l != nil && now.Before(l.until)
}

// refused records a 429 and reports whether it applies to the whole bot.
// Telegram does not report that; refusals in several chats within a second
// imply it.
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

// done records a success: the gap of the chat shrinks by a quarter, until there
// is none.
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

// moved drops the state of a chat that has a new id.
func (p *pace) moved(chat int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.chats, chat)
}
