package heartbeat

import (
	"slices"
	"time"

	"github.com/claybot/claybot"
)

// keepGone is how long it is remembered when a task ran whose file is gone: an
// editor or a backup may bring it back.
const keepGone = 24 * time.Hour

// A memory is what must survive.
type memory struct {
	Tasks   map[string]past `json:"tasks,omitempty"` // by id
	Pending *pending        `json:"pending,omitempty"`
	Tick    claybot.Time    `json:"tick,omitempty"` // in the id of the newest message
	// Beats are those since a person wrote last, which was at Word by the clock of
	// that time: another Word means that somebody wrote.
	Beats int          `json:"beats,omitempty"`
	Word  claybot.Time `json:"word,omitempty"`
	Rest  *rest        `json:"rest,omitempty"`
}

// A past is when a task ran last: the tick, and the end of the run. Asked is
// when its gate last said no since.
type past struct {
	Last  claybot.Time `json:"last,omitempty"`
	Ended claybot.Time `json:"ended,omitempty"`
	Asked claybot.Time `json:"asked,omitempty"`
}

// A pending is a message that is about to be posted, waits, or runs.
type pending struct {
	ID    claybot.MessageID `json:"id"`
	At    claybot.Time      `json:"at"`
	Tasks []string          `json:"tasks"`
}

// A rest is why the heartbeat does not beat.
type rest struct {
	At   claybot.Time `json:"at"`
	Why  string       `json:"why"`  // part of a sentence
	Told bool         `json:"told"` // to a person
}

// turnBack is for a clock that was set back: what seems to lie ahead is now. No
// time has passed then, so nothing beats twice, and nothing waits for a time
// that may be years away.
func (m *memory) turnBack(now claybot.Time) {
	fit := func(t claybot.Time) claybot.Time { return max(0, min(t, now)) }
	for id, p := range m.Tasks {
		if q := (past{fit(p.Last), fit(p.Ended), fit(p.Asked)}); q != p {
			m.Tasks[id] = q
		}
	}
	if m.Rest != nil {
		m.Rest.At = fit(m.Rest.At)
	}
}

// forget drops what is known of tasks whose files have been gone for long.
func (m *memory) forget(here []*task, now claybot.Time) {
	for id, p := range m.Tasks {
		known := slices.ContainsFunc(here, func(t *task) bool { return t.id == id })
		if !known && now.Time().Sub(max(p.Last, p.Ended, p.Asked).Time()) > keepGone {
			delete(m.Tasks, id)
		}
	}
}

// next is when a task is due, not before now; the zero time for never.
func (m *memory) next(t *task, s Settings, now time.Time) time.Time {
	if !t.enabled {
		return time.Time{}
	}
	every := t.every
	if every == 0 {
		every = s.Every
	}
	at := now
	p := m.Tasks[t.id]
	if p.Last != 0 {
		// Ticks during the run are left out.
		run := max(0, p.Ended.Time().Sub(p.Last.Time()))
		at = later(at, p.Last.Time().Add(every*(1+run/every)))
	}
	if p.Asked != 0 {
		at = later(at, p.Asked.Time().Add(every))
	}
	at = at.In(s.Zone)
	if t.hours != nil {
		return t.hours.next(at)
	}
	return s.hours.next(at)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
