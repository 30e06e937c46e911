package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// The load of the rig of many nodes.
const (
	slowEach       = 3                      // by default, so many answers of the model, one grows slowly
	slowPiece      = 12                     // bytes of it at once
	slowGap        = 150 * time.Millisecond // between two pieces
	heartbeatEvery = 7 * time.Second        // the heartbeat is asked for
)

// asks are the questions to the model about each message. It knows a message by
// its marker.
type asks struct {
	answer func(openaitest.Request) openaitest.Reply
	slow   int // of so many answers, one grows slowly

	mu sync.Mutex
	at map[string][]time.Time
}

func newAsks(answer func(openaitest.Request) openaitest.Reply, slow int) *asks {
	return &asks{answer: answer, slow: max(slow, 1), at: make(map[string][]time.Time)}
}

// reply notes the question, and lets some answers grow slowly.
func (a *asks) reply(r openaitest.Request) openaitest.Reply {
	a.mu.Lock()
	for _, m := range readScene(r.Messages).markers {
		a.at[m] = append(a.at[m], r.At)
	}
	a.mu.Unlock()
	reply := a.answer(r)
	if reply.Text != "" && reply.Fault == "" && strings.HasPrefix(reply.Text, "re ") && rand.IntN(a.slow) == 0 {
		// The words that count come last: a beginning that stays visible after a
		// fault is no answer.
		reply.Text = strings.Repeat("one moment please, ", 8) + reply.Text
		reply.Piece, reply.Gap = slowPiece, slowGap
	}
	return reply
}

// times are when the model was asked about a message.
func (a *asks) times(marker string) []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at[marker]
}

// A caller is a client that talks to an agent over HTTP, by way of any node.
type caller struct {
	chat
	runs []claybot.RunID // of what was said
}

// talk says one thing after the other, each until a node has accepted it. The
// same key makes a repeat harmless, whichever node hears it.
func (c *caller) talk(ctx context.Context, nodes []*node, number int, every time.Duration) {
	for n := 1; pause(ctx, every/2+rand.N(every)); n++ {
		m := fmt.Sprintf("m%d-%d", number, n)
		text := strings.TrimSpace("please answer " + m + " " + wish(number, n))
		for {
			run, err := sayOnce(ctx, nodes[rand.IntN(len(nodes))], c.name, m, text)
			if err == nil {
				c.said = append(c.said, spoken{marker: m, orders: orders(text)})
				c.runs = append(c.runs, run)
				break
			}
			if !pause(ctx, 50*time.Millisecond) {
				return // never accepted, so nothing is owed
			}
		}
	}
}

// sayOnce says something once, with the patience of a person who then asks another
// node.
func sayOnce(ctx context.Context, n *node, channel, key, text string) (claybot.RunID, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return n.door.say(ctx, channel, channel+"-"+key, text)
}

// load lets everybody talk, whatever happens to the nodes. The returned function
// ends that.
func (r *nodesRig) load(ctx context.Context) func() error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	every := r.many.every
	for i, c := range r.places.chats {
		wg.Go(func() {
			for n := 1; pause(ctx, every/2+rand.N(every)); n++ {
				m := fmt.Sprintf("m%d-%d", i, n)
				text := strings.TrimSpace("please answer " + m + " " + wish(i, n))
				id := c.say(text)
				c.mu.Lock()
				c.said = append(c.said, spoken{m, id, orders(text)})
				c.mu.Unlock()
			}
		})
	}
	for i := range r.many.chats {
		c := &caller{chat: chat{name: fmt.Sprintf("web%d", i)}}
		r.web = append(r.web, c)
		wg.Go(func() { c.talk(ctx, r.nodes, len(r.places.chats)+i, every) })
	}
	wg.Go(func() { r.runHeartbeat(ctx) })
	failed := make(chan error, 1)
	wg.Go(func() { failed <- r.table.load(ctx) })
	return func() error { cancel(); wg.Wait(); return <-failed }
}

// runHeartbeat asks nodes for the heartbeat in turn. Whether one runs it is its own affair:
// it may be paused, or dead.
func (r *nodesRig) runHeartbeat(ctx context.Context) {
	for i := 0; pause(ctx, heartbeatEvery); i++ {
		c, err := openConsole(r.nodes[i%len(r.nodes)].dir)
		if err != nil {
			continue
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		_ = c.call(short, http.MethodPost, "/heartbeat/run", nil)
		cancel()
		c.Close()
	}
}
