package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// A town is an emulated Telegram with people who each wait for an answer
// before they write again.
type town struct {
	server *telegramtest.Server
	url    string

	mu     sync.Mutex
	people map[int64]*person
}

type person struct {
	id    int64
	wrote time.Time // zero: nothing is open
	again bool      // writes again after each answer
	took  []time.Duration
}

func newTown() (*town, error) {
	t := &town{people: make(map[int64]*person)}
	t.server = telegramtest.New(telegramtest.Config{NoJournal: true, NoLimits: true, OnMessage: t.answered})
	url, err := t.server.Start()
	t.url = url
	return t, err
}

// answered notes the answer that a person got.
func (t *town) answered(m telegramtest.Message) {
	now := time.Now()
	t.mu.Lock()
	p := t.people[m.ChatID]
	if p == nil || p.wrote.IsZero() {
		t.mu.Unlock()
		return
	}
	p.took = append(p.took, now.Sub(p.wrote))
	p.wrote = time.Time{}
	again := p.again
	text := "message " + strconv.Itoa(len(p.took))
	if again {
		p.wrote = now
	}
	t.mu.Unlock()
	if again {
		// The callback must not call the server that calls it.
		go t.server.Say(p.id, p.id, text)
	}
}

// speak lets n people, numbered from first, write once each; with again they
// go on after each answer.
func (t *town) speak(first, n int, again bool) {
	for i := range n {
		id := int64(first + i)
		t.mu.Lock()
		p := t.people[id]
		if p == nil {
			p = &person{id: id}
			t.people[id] = p
		}
		p.wrote, p.again = time.Now(), again
		t.mu.Unlock()
		t.server.Say(id, id, "hello")
	}
}

// silence lets everybody be quiet and waits until all open answers have come.
func (t *town) silence(ctx context.Context) error {
	t.mu.Lock()
	for _, p := range t.people {
		p.again = false
	}
	t.mu.Unlock()
	for deadline := time.Now().Add(time.Minute); ; {
		open := 0
		t.mu.Lock()
		for _, p := range t.people {
			if !p.wrote.IsZero() {
				open++
			}
		}
		t.mu.Unlock()
		if open == 0 {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%d people have no answer", open)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// count is how many answers a person has had since the last harvest.
func (t *town) count(id int64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.people[id].took)
}

// harvest takes the answer times since the last harvest, sorted.
func (t *town) harvest() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []time.Duration
	for _, p := range t.people {
		all = append(all, p.took...)
		p.took = nil
	}
	slices.Sort(all)
	return all
}

// percentile of sorted durations.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}
