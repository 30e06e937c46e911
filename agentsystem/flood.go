package agentsystem

import (
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

const (
	// floodWindow is the time over which messages of a person are counted.
	floodWindow = time.Minute
	// botWindow and botMessages bound what another bot may start, so that two bots that
	// answer each other soon fall silent.
	botWindow   = time.Hour
	botMessages = 10
	// floodPeople is how many people are counted before those who wrote nothing lately are
	// forgotten.
	floodPeople = 10_000
)

// Floods bound how many messages may start runs.
type floods struct {
	directory    *people.Directory
	most         func() int // messages that a person may write in a minute; 0: any number
	people, bots flood
}

// bounded marks a message as not to be run if its person, or the bot that sent it, has written
// too many. Commands and answers are not counted, nor are operators, and programs, which know
// a token or a secret.
func (f *floods) bounded(agent claybot.Agent, p *storage.Posting) (leave func()) {
	d, m, most, counted, reason := agent.Descriptor, p.Message, f.most(), &f.people, inbox.SkippedFlood
	if m.From.Bot {
		most, counted, reason = botMessages, &f.bots, inbox.SkippedBot
	}
	written := m.Type == claybot.MessageUser || m.Flow != nil && !m.Nested() && (!m.From.Program || m.From.Bot) && m.Firing == nil
	if most == 0 || p.Skip != "" || !written || m.Silent || f.directory.Program(d) || f.directory.IsOperator(m.Speaker(d)) {
		return func() {}
	}
	leave, ok := counted.enter(f.directory.Identities(m.Speaker(d))[0], m.At, most)
	if !ok {
		p.Skip = reason
	}
	if !ok && m.From.Bot {
		p.Replies = nil // it might answer those
	}
	return leave
}

// A flood counts the messages of each person that may start runs, by when they were
// written: messages that waited on a platform while claybot was away are no flood. It is
// that of one member, and forgets with the process.
type flood struct {
	window time.Duration

	mu    sync.Mutex
	times map[string][]claybot.Time // by person, in the order of arrival
}

// enter counts a message of a person unless most were written within the window around it. leave
// takes it back where it turns out to be a duplicate.
func (f *flood) enter(person string, at claybot.Time, most int) (leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(at)
	near := 0
	for _, t := range f.times[person] {
		if d := at.Time().Sub(t.Time()); d < f.window && d > -f.window {
			near++
		}
	}
	if near >= most {
		return func() {}, false
	}
	all := append(f.times[person], at)
	f.times[person] = all[max(len(all)-2*most, 0):]
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if i := slices.Index(f.times[person], at); i >= 0 {
			f.times[person] = slices.Delete(f.times[person], i, i+1)
		}
	}, true
}

// forget bounds the memory. The caller holds the mutex.
func (f *flood) forget(now claybot.Time) {
	if f.times == nil {
		f.times = make(map[string][]claybot.Time)
	}
	if len(f.times) < floodPeople {
		return
	}
	for person, all := range f.times {
		if len(all) == 0 || now.Time().Sub(slices.Max(all).Time()) >= f.window {
			delete(f.times, person)
		}
	}
}
