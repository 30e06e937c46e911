package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/storage/sqlite"
)

// The load of the crash rig, and the patience of its end.
const (
	chatsEach   = 2 // on each platform
	sayEvery    = 60 * time.Millisecond
	killAfter   = 200 * time.Millisecond // at most, after the daemon was ready
	breatheEach = 25                     // so many kills, the daemon may live
	breathe     = 9 * time.Second        // so long, for look-ups of unknown sends to end
	quietLimit  = 6 * time.Minute
)

// marker is how messages are recognised in replies.
var marker = regexp.MustCompile(`\bm\d+-\d+\b`)

// crash kills the daemon at random moments under load and then looks for what
// was lost, doubled or out of order.
func crash(ctx context.Context, o options, dir string) error {
	model := openaitest.New(openaitest.Config{Reply: echoMarkers, Keep: 1})
	modelURL, stopModel, err := model.Start()
	if err != nil {
		return err
	}
	defer stopModel()
	chats, env, stop, err := openChats(chatsEach)
	if err != nil {
		return err
	}
	defer stop()
	env = append(env, "OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL="+modelURL)
	if err := forget(dir); err != nil {
		return err
	}
	rig := &crashRig{options: o, dir: dir, env: env, chats: chats, rng: rand.New(rand.NewPCG(uint64(o.seed), 1))}
	fmt.Printf("crash: %d kills, seed %d, %d chats\n", o.crash, o.seed, len(chats))
	began := time.Now()
	stopLoad := rig.load(ctx)
	err = rig.kills(ctx)
	stopLoad()
	if err != nil {
		return err
	}
	if err := rig.settle(ctx); err != nil {
		return err
	}
	r, err := rig.judge(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("crash: %d kills in %v, %d messages, %d answered, %d ended in a notice\n",
		o.crash, time.Since(began).Round(time.Second), r.said, r.answered, r.noticed)
	fmt.Printf("crash: lost %d, ooo %d, unexplained dup %d, explained dup %d\n", r.lost, r.disorder, r.unexplained, r.explained)
	if overlaps := model.Overlaps(); len(overlaps) > 0 {
		return fmt.Errorf("an agent had two model calls at once: %s", overlaps[0])
	}
	if r.lost+r.disorder+r.unexplained > 0 {
		return fmt.Errorf("promises broken; repeat with: go run ./cmd/claybench -crash %d -seed %d\n%s", o.crash, o.seed, strings.Join(r.stories, "\n"))
	}
	return nil
}

// forget lets each run begin with its own messages: after some thousand messages
// the rig would measure how long a model takes to read its history.
func forget(dir string) error {
	return os.WriteFile(filepath.Join(dir, "claybot.yaml"), []byte("agents: {default: {memory: off}}\n"), 0o600)
}

// echoMarkers answers with the markers of all user messages since the last
// answer, after a moment that a kill may fall into.
func echoMarkers(r openaitest.Request) openaitest.Reply {
	var found []string
	for _, m := range r.Messages {
		switch m.Role {
		case llm.RoleAssistant:
			found = nil
		case llm.RoleUser:
			found = append(found, marker.FindAllString(llm.Unwrap(m.Content), -1)...)
		}
	}
	return openaitest.Reply{Text: "re " + strings.Join(found, " "), Delay: rand.N(20 * time.Millisecond)}
}

// A chat is one conversation on an emulated platform. say returns claybot's id
// of the message.
type chat struct {
	name    string
	say     func(text string) claybot.MessageID
	replies func() []string // visible texts, in the order in which they were first sent
	// mayDouble: the platform cannot be asked whether a send arrived, so a
	// marked second copy is allowed.
	mayDouble bool

	mu   sync.Mutex
	said []spoken
}

type spoken struct {
	marker string
	id     claybot.MessageID
}

// resentMark is how a repeated send of unknown fate begins.
const resentMark = "sent again"

type crashRig struct {
	options
	dir   string
	env   []string
	chats []*chat
	rng   *rand.Rand
}

// load lets everybody talk, whether the daemon is up or not. The returned
// function ends that.
func (r *crashRig) load(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for i, c := range r.chats {
		wg.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-time.After(sayEvery/2 + rand.N(sayEvery)):
				}
				m := fmt.Sprintf("m%d-%d", i, n)
				id := c.say("please answer " + m)
				c.mu.Lock()
				c.said = append(c.said, spoken{m, id})
				c.mu.Unlock()
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// kills starts the daemon and kills it, again and again.
func (r *crashRig) kills(ctx context.Context) error {
	for k := 1; k <= r.crash && ctx.Err() == nil; k++ {
		p, err := start(ctx, r.bin, r.dir, r.env...)
		if err != nil {
			return err
		}
		if err := p.waitReady(20 * time.Second); err != nil {
			return fmt.Errorf("start after %d kills: %w", k-1, errors.Join(err, p.kill()))
		}
		live := 2*time.Millisecond + time.Duration(r.rng.Int64N(int64(killAfter)))
		if k%breatheEach == 0 {
			live += breathe
			fmt.Printf("crash: %d kills\n", k)
		}
		select {
		case <-time.After(live):
		case <-ctx.Done():
		}
		if err := p.kill(); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// settle starts the daemon once more and waits until every message has its
// reply, or nothing happens any more.
func (r *crashRig) settle(ctx context.Context) error {
	p, err := start(ctx, r.bin, r.dir, r.env...)
	if err != nil {
		return err
	}
	if err := p.waitReady(20 * time.Second); err != nil {
		return err
	}
	deadline, last, lastChange := time.Now().Add(quietLimit), -1, time.Now()
	for time.Now().Before(deadline) && ctx.Err() == nil {
		open, seen := 0, 0
		for _, c := range r.chats {
			counts := c.counts()
			seen += len(counts)
			open += len(c.said) - len(counts)
		}
		if seen != last {
			last, lastChange = seen, time.Now()
		}
		if open == 0 || time.Since(lastChange) > 90*time.Second {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := p.term(); err != nil {
		return fmt.Errorf("orderly end: %w\n%s", err, p.log)
	}
	return nil
}

// counts says how often each marker is visible.
func (c *chat) counts() map[string]int {
	n := make(map[string]int)
	for _, text := range c.replies() {
		for _, m := range marker.FindAllString(text, -1) {
			n[m]++
		}
	}
	return n
}

// A verdict is what the judge found.
type verdict struct {
	said, answered, noticed, lost, disorder, explained, unexplained int
	stories                                                         []string
}

// judge compares what was said with what is visible. A message without a reply
// must have a recorded end that its sender was told of.
func (r *crashRig) judge(ctx context.Context) (verdict, error) {
	db, err := sqlite.Open(ctx, filepath.Join(r.dir, "data", "claybot.db"), sqlite.Config{})
	if err != nil {
		return verdict{}, err
	}
	defer db.Close()
	var v verdict
	for _, c := range r.chats {
		counts := c.counts()
		for _, s := range c.said {
			v.said++
			if counts[s.marker] > 0 {
				v.answered++
				continue
			}
			receipt, err := db.Receipt(ctx, s.id)
			if err == nil && receipt.Run != nil && receipt.Run.State == claybot.RunFailed && toldAll(receipt.Replies) {
				v.noticed++
				continue
			}
			v.lost++
			v.story("%s: %s (%s) has no reply: %+v %v", c.name, s.marker, s.id, receipt, err)
		}
		v.order(c)
	}
	return v, nil
}

func toldAll(replies []claybot.Outgoing) bool {
	for _, o := range replies {
		if o.State != claybot.SendSent {
			return false
		}
	}
	return len(replies) > 0
}

// order counts doubled and overtaken replies of one chat.
func (v *verdict) order(c *chat) {
	seen := make(map[string]bool)
	newest := 0
	for _, text := range c.replies() {
		again := strings.Contains(text, resentMark)
		for _, m := range marker.FindAllString(text, -1) {
			if seen[m] {
				if again && c.mayDouble {
					v.explained++
				} else {
					v.unexplained++
					v.story("%s: %s is visible twice: %q", c.name, m, text)
				}
				continue
			}
			seen[m] = true
			var chat, n int
			if _, err := fmt.Sscanf(m, "m%d-%d", &chat, &n); err == nil && n < newest {
				v.disorder++
				v.story("%s: %s comes after %d", c.name, m, newest)
			}
			newest = max(newest, n)
		}
	}
}

func (v *verdict) story(format string, args ...any) {
	if len(v.stories) < 20 {
		v.stories = append(v.stories, fmt.Sprintf(format, args...))
	}
}
