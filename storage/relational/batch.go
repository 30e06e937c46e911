package relational

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
)

// A batch is messages that wait and are to join a run.
type batch struct {
	ids      []claybot.MessageID
	list     []byte // the ids, as JSON
	waits    []waits
	next     front           // of what waits when they have joined
	reserved []claybot.RunID // by them
	run      claybot.RunID   // the first of these that is no run's yet
}

// newBatch returns the messages of an agent that are to join a run, and what is to be
// asked for before check. No message may be in it twice.
func newBatch(agent claybot.AgentID, ids []claybot.MessageID) (b *batch, asks []Ask, err error) {
	b = &batch{ids: ids, waits: make([]waits, len(ids))}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return nil, nil, fmt.Errorf("message %s is twice in the batch", id)
		}
		asks = append(asks, b.waits[i].ask(agent, id))
	}
	if b.list, err = json.Marshal(ids); err != nil {
		return nil, nil, err
	}
	return b, append(asks, b.next.askBut(agent, b.list)), nil
}

// check refuses a batch with a message that does not wait.
func (b *batch) check() error {
	for i, w := range b.waits {
		if !w.found {
			return notWaiting(b.ids[i])
		}
		if w.reserved == "" {
			continue
		}
		b.reserved = append(b.reserved, w.reserved)
		if b.run == "" && !w.taken {
			b.run = w.reserved
		}
	}
	return nil
}

// loadBatch returns waiting messages of an agent that are to join a run.
func loadBatch(c *Conn, agent claybot.AgentID, ids []claybot.MessageID) (*batch, error) {
	b, asks, err := newBatch(agent, ids)
	if err != nil {
		return nil, err
	}
	if err := c.ask(asks...); err != nil {
		return nil, err
	}
	return b, b.check()
}
