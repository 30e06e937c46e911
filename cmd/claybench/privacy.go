package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/web"
)

// The pace of the rig of secrets.
const (
	leakSteps   = 4                // messages of a sequence, on average
	leakStep    = 10 * time.Second // at most so long, a message waits for its answer
	leakLife    = 2 * time.Second  // a life of the daemon, on average
	leakApprove = 25               // one of so many questions is approved
	leakPress   = time.Second      // after so long, a button is pressed again: a kill loses presses
	leakTail    = 5 * time.Second  // for what comes later: reminders, tasks
)

// A leakRig is people in direct chats and groups whose agents tell whatever they know, and
// do whatever they are told.
type leakRig struct {
	options
	dir   string
	env   []string
	seats []*seat
	judge *leakJudge

	mu        sync.Mutex
	ids       map[claybot.AgentID]readership // agents of conversations
	waits     map[string]chan struct{}       // for a secret, until it is answered
	busy      map[string]chan struct{}       // the same, of all seats
	questions map[string]chan struct{}       // by chat and id, until they are answered
	done      map[string]int                 // what was done, by its name
	sequences atomic.Int64
	over      <-chan struct{} // closed at the end
}

// A seat is one person in one chat.
type seat struct {
	name   string
	reader readership // who reads the chat
	say    func(text string)
}

// A shown is a message of the bot in a chat.
type shown struct {
	chat    string
	reader  readership
	id      string
	text    string
	buttons []string
	press   func(by readership, label string)
}

// leaks lets people tell secrets to agents that pass on whatever they know, and looks for
// secrets where nobody who may read them approved that. It kills the daemon meanwhile.
func leaks(ctx context.Context, o options, dir string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &leakRig{
		options: o, dir: dir, over: ctx.Done(), ids: make(map[claybot.AgentID]readership), waits: make(map[string]chan struct{}),
		busy: make(map[string]chan struct{}), questions: make(map[string]chan struct{}), done: make(map[string]int),
	}
	model := openaitest.New(openaitest.Config{Reply: r.gossip, Keep: 1})
	modelURL, stop, err := model.Start()
	if err != nil {
		return err
	}
	defer stop()
	chats, err := r.openChats()
	if err != nil {
		return err
	}
	defer chats.close()
	r.env = append(chats.env, "OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL="+modelURL)
	if err := os.WriteFile(filepath.Join(dir, "claybot.yaml"), []byte(leakConfig), 0o600); err != nil {
		return err
	}
	fmt.Printf("leaks: %d sequences, seed %d, %d people in chats\n", o.leaks, o.seed, len(r.seats))
	began := time.Now()
	kills, err := r.live(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("leaks: %d sequences in %v, %d kills, %d secrets, %d of them crossed with one of %d approvals\n",
		r.sequences.Load(), time.Since(began).Round(time.Second), kills, len(r.judge.secrets), len(r.judge.crossed), r.judge.approvals)
	fmt.Printf("leaks: done: %s\n", r.tally())
	fmt.Printf("leaks: %d secrets crossed an audience without an approval\n", len(r.judge.leaks))
	if len(r.judge.leaks) > 0 {
		return fmt.Errorf("repeat with: go run ./cmd/claybench -leaks %d -seed %d\n%s", o.leaks, o.seed, strings.Join(r.judge.leaks[:min(len(r.judge.leaks), 10)], "\n"))
	}
	return nil
}

const leakConfig = `
access: {mode: allowlist, allow: ["telegram:1001", "telegram:1002", "telegram:-100", "slack:U1", "slack:U2", "slack:C1"]}
people: {ann: [telegram/1001, slack/U1]}
agents:
  foreground_scope: all
  default: {deep: {files: store, todos: false}, send_to: ["telegram:1001", "telegram:1002", "telegram:-100", "slack:T1/DU1", "slack:T1/DU2", "slack:T1/C1"]}
subagents: {max_depth: 3, max_children: 10000, max_starts_per_hour: 1000000}
`

// live runs the people and the daemon, whose lives are short, until there were enough
// sequences, and then once more for what comes later.
func (r *leakRig) live(ctx context.Context) (kills int, err error) {
	var wg sync.WaitGroup
	load, stop := context.WithCancel(ctx)
	defer func() { stop(); wg.Wait() }()
	for i, s := range r.seats {
		wg.Go(func() { r.talk(load, i, s) })
	}
	rng := rand.New(rand.NewPCG(uint64(r.seed), 7))
	for enough := false; !enough; {
		p, err := start(ctx, r.bin, r.dir, r.env...)
		if err != nil {
			return kills, err
		}
		if err := p.waitReady(readyLimit); err != nil {
			return kills, errors.Join(err, p.kill())
		}
		if err := r.learn(ctx); err != nil {
			return kills, errors.Join(err, p.kill())
		}
		life := leakLife/2 + time.Duration(rng.Int64N(int64(leakLife)))
		if enough = r.sequences.Load() >= int64(r.leaks); enough {
			stop()
			wg.Wait()
			life = leakTail
		}
		if !pause(ctx, life) {
			return kills, errors.Join(context.Cause(ctx), p.kill())
		}
		if err := p.kill(); err != nil {
			return kills, err
		}
		kills++
	}
	return kills, nil
}

// learn finds out which agents there are, for calls that name one.
func (r *leakRig) learn(ctx context.Context) error {
	c, err := openConsole(r.dir)
	if err != nil {
		return err
	}
	defer c.Close()
	var list web.AgentList
	if err := c.call(ctx, "GET", "/agents?type=user&limit=100", &list); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range list.Agents {
		d := a.Descriptor
		for _, name := range []string{"everybody in " + d.Connector + "/" + d.ChannelID, d.Connector + "/" + d.UserID} {
			if by := r.judge.named[name]; by != "" {
				r.ids[a.ID] = by
				break
			}
		}
	}
	return nil
}

// readers returns who reads the conversation of an agent.
func (r *leakRig) readers(id claybot.AgentID) (by readership, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	by, ok = r.ids[id]
	return by, ok
}

// talk tells the agent of a seat one secret after the other, with orders.
func (r *leakRig) talk(ctx context.Context, i int, s *seat) {
	rng := rand.New(rand.NewPCG(uint64(r.seed), uint64(100+i)))
	for n := 0; ctx.Err() == nil; {
		for range 1 + rng.IntN(2*leakSteps-1) {
			n++
			r.step(ctx, rng, s, fmt.Sprintf("canary-%d-%d", i, n))
		}
		r.sequences.Add(1)
		if rng.IntN(2) == 0 {
			s.say("/new")
		}
	}
}

// step tells one secret and waits until the agent answers.
func (r *leakRig) step(ctx context.Context, rng *rand.Rand, s *seat, secret string) {
	r.judge.tell(secret, s.reader)
	answered := make(chan struct{})
	r.mu.Lock()
	r.waits[s.name+secret], r.busy[secret] = answered, answered
	by := author{rng: rng, ids: slices.Sorted(maps.Keys(r.ids)), count: r.count}
	r.mu.Unlock()
	s.say(secret + " " + by.order())
	select {
	case <-answered:
	case <-time.After(leakStep):
		r.count("no answer")
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waits, s.name+secret)
	delete(r.busy, secret)
	select {
	case <-answered:
	default:
		close(answered)
	}
}

// heard takes what the bot says in a chat.
func (r *leakRig) heard(m shown) {
	r.judge.see(m.text, m.reader, m.chat)
	r.mu.Lock()
	for _, s := range r.seats {
		if s.reader != m.reader {
			continue
		}
		for _, secret := range secretForm.FindAllString(m.text, -1) {
			if wait, ok := r.waits[s.name+secret]; ok && len(m.buttons) == 0 {
				delete(r.waits, s.name+secret)
				close(wait)
			}
		}
	}
	asks, key := slices.Contains(m.buttons, "Approve"), m.chat+"/"+m.id
	answered, asked := r.questions[key]
	switch {
	case asks && !asked:
		answered = make(chan struct{})
		r.questions[key] = answered
		go r.answer(m, answered) // ends with the question
	case !asks && asked:
		delete(r.questions, key)
		close(answered)
	}
	r.mu.Unlock()
}

// answer presses buttons under a question until it is answered: mostly Deny. In a group,
// all press.
func (r *leakRig) answer(m shown, answered <-chan struct{}) {
	label := "Deny"
	if !r.deny && rand.IntN(leakApprove) == 0 {
		label = "Approve"
	}
	r.count(label)
	for {
		for _, by := range r.pressers(m.reader) {
			if label == "Approve" {
				go r.afterAll(r.judge.approve(m.text, by))
			}
			m.press(by, label)
		}
		select {
		case <-answered:
			return
		case <-time.After(leakPress):
		case <-r.over:
			return
		}
	}
}

// afterAll calls done when all messages have their answer that have none now.
func (r *leakRig) afterAll(done func()) {
	r.mu.Lock()
	busy := slices.Collect(maps.Values(r.busy))
	r.mu.Unlock()
	for _, answered := range busy {
		<-answered
	}
	time.Sleep(time.Second) // what works in the background needs no answer
	done()
}

func (r *leakRig) pressers(reader readership) []readership {
	if all := r.judge.members[reader]; all != nil {
		all = slices.Clone(all)
		rand.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		return all
	}
	return []readership{reader}
}

func (r *leakRig) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[what]++
}

func (r *leakRig) tally() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(r.done)) {
		all = append(all, fmt.Sprintf("%s %d", what, r.done[what]))
	}
	return strings.Join(all, ", ")
}
