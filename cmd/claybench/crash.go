package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// The load of the crash rig, and the patience of its end.
const (
	chatsEach   = 2 // on each platform
	sayEvery    = 60 * time.Millisecond
	orderEach   = 8                      // so many messages of a chat, one makes its agent call others
	killAfter   = 200 * time.Millisecond // at most, after the daemon was ready
	aimFor      = 2 * time.Second        // so long, a kill waits for a subagent to aim at
	aimMiss     = 120 * time.Millisecond // at most so long after that subagent began, a quarter of it after its end
	breatheEach = 25                     // so many kills, the daemon may live
	breathe     = 9 * time.Second        // so long, for look-ups of unknown sends to end
	quietLimit  = 10 * time.Minute
	stillLimit  = 6 * time.Minute // without any change, it is over
	readyLimit  = time.Minute
	slowReady   = 5 * time.Minute // the same of the crash rig, on a machine that does much else
)

// marker is how messages are recognised in replies.
var marker = regexp.MustCompile(`\bm\d+-\d+\b`)

// crash kills the daemon at random moments under load and then looks for what
// was lost, doubled or out of order.
func crash(ctx context.Context, o options, dir string) error {
	actor := newActor(20*time.Millisecond, 50*time.Millisecond, 150*time.Millisecond)
	model := openaitest.New(openaitest.Config{Reply: actor.reply, Keep: 1})
	modelURL, stopModel, err := model.Start()
	if err != nil {
		return err
	}
	defer stopModel()
	places, err := openPlaces(chatsEach)
	if err != nil {
		return err
	}
	defer places.close()
	if err := places.openDiscord(chatsEach); err != nil {
		return err
	}
	memory := "off"
	if o.threads > 0 {
		places.openThreads(o.threads)
		memory = "on, context: 0" // what others said in a thread would be answered twice
	}
	chats, env := places.chats, append(places.env, "OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL="+modelURL)
	if err := configure(dir, memory); err != nil {
		return err
	}
	clients, err := openClients(ctx, dir, chatsEach, o.pushed)
	if err != nil {
		return err
	}
	defer clients.stop()
	if o.pushed {
		places.push(clients.hooks + "/hooks/slack")
	}
	chats, env = append(chats, clients.chats...), append(env, clients.env()...)
	table, err := newTimetable(ctx, dir, taskFolder{dir})
	if err != nil {
		return err
	}
	rig := &crashRig{
		options: o, dir: dir, env: env, chats: chats, actor: actor, table: table,
		rng: rand.New(rand.NewPCG(uint64(o.seed), 1)), pending: places.pending, meet: places.meet, every: sayEvery * time.Duration(1+o.threads/4),
	}
	fmt.Printf("crash: %d kills, seed %d, %d chats\n", o.crash, o.seed, len(chats))
	began := time.Now()
	stopLoad := rig.load(ctx)
	err = rig.kills(ctx)
	if err := errors.Join(err, stopLoad()); err != nil {
		return err
	}
	if err := rig.settle(ctx); err != nil {
		return err
	}
	r, err := rig.judge(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("crash: %d kills in %v, ", o.crash, time.Since(began).Round(time.Second))
	if overlaps := model.Overlaps(); len(overlaps) > 0 {
		return fmt.Errorf("an agent had two model calls at once: %s", overlaps[0])
	}
	return rig.tell(&r)
}

// tell prints a verdict; the error says what is broken.
func (r *crashRig) tell(v *verdict) error {
	fmt.Printf("%d messages, %d answered, %d ended in a notice\n", v.said, v.answered, v.noticed)
	fmt.Printf("crash: lost %d, ooo %d, unexplained dup %d, explained dup %d, in another chat %d\n", v.lost, v.disorder, v.unexplained, v.explained, v.strayed)
	fmt.Printf("memory: %v\n", &r.actor.memory)
	fmt.Printf("subagents: %v\nsubagents: kills while some were: %v\ncron: %v\n", v.census, &r.actor.moments, v.instants)
	if r.actor.memory.shared.Load() > 0 {
		return errors.New("conversations share their memory")
	}
	if v.broken() > 0 {
		stories := slices.Concat(v.stories, v.census.stories, v.instants.stories)
		return fmt.Errorf("promises broken; repeat with: go run ./cmd/claybench -crash %d -threads %d -pushed=%t -seed %d\n%s", r.crash, r.threads, r.pushed, r.seed, strings.Join(stories, "\n"))
	}
	return nil
}

// configure raises the limits of subagents, and says whether agents remember.
// Without memory each run begins with its own messages: after some thousand
// messages the crash rig would measure how long a model takes to read its
// history.
func configure(dir, memory string) error {
	text := fmt.Sprintf("agents: {default: {memory: %s}}\n"+
		"subagents: {max_depth: 3, max_children: 10000, max_starts_per_hour: 1000000}\n", memory)
	return os.WriteFile(filepath.Join(dir, "claybot.yaml"), []byte(text), 0o600)
}

// A chat is one conversation on an emulated platform. say returns claybot's id
// of the message.
type chat struct {
	name    string
	say     func(text string) claybot.MessageID
	replies func() []string // visible texts, in the order in which they were first sent
	// place is where in the order a message belongs; nil: by the number in its
	// marker.
	place func(marker string) int
	// mayDouble: the platform cannot be asked whether a send arrived, so a
	// marked second copy is allowed.
	mayDouble bool
	// loose: the platform may hand messages over in another order, so any is right.
	loose bool
	// plain: no message orders anything beside its answer.
	plain bool
	// polite: nothing is said before everything has its reply.
	polite bool
	met    <-chan struct{} // closed once the platform keeps what is said; nil: it does

	mu   sync.Mutex
	said []spoken
}

type spoken struct {
	marker string
	id     claybot.MessageID
	orders []order
}

// resentMark is how a repeated send of unknown fate begins.
const resentMark = "sent again"

type crashRig struct {
	options
	dir   string
	env   []string
	chats []*chat
	actor *actor
	table *timetable
	rng   *rand.Rand
	// pending is how many messages the platforms still keep for the daemon.
	pending func() int
	// meet waits until all platforms keep what people write there.
	meet  func(ctx context.Context) error
	every time.Duration // a message of each chat; 0: sayEvery
	// forgive accepts orders that the daemon refused with an error.
	forgive bool
	// hush is held while people say nothing.
	hush sync.RWMutex
}

// load lets everybody talk, whether the daemon is up or not. The returned
// function ends that.
func (r *crashRig) load(ctx context.Context) func() error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for i, c := range r.chats {
		wg.Go(func() {
			if !c.await(ctx) {
				return
			}
			every := cmp.Or(r.every, sayEvery)
			for n := 1; pause(ctx, every/2+rand.N(every)); n++ {
				for c.polite && len(c.counts()) < n-1 {
					if !pause(ctx, every) {
						return
					}
				}
				m := fmt.Sprintf("m%d-%d", i, n)
				text := "please answer " + m
				if !c.plain {
					text = strings.TrimSpace(text + " " + wish(i, n))
				}
				r.hush.RLock()
				id := c.say(text)
				r.hush.RUnlock()
				c.mu.Lock()
				c.said = append(c.said, spoken{m, id, orders(text)})
				c.mu.Unlock()
			}
		})
	}
	failed := make(chan error, 1)
	wg.Go(func() { failed <- r.table.load(ctx) })
	return func() error { cancel(); wg.Wait(); return <-failed }
}

// wish is what the n-th message of a chat orders beside its answer: nothing for
// most, else in turn a subagent that succeeds, one that fails, and three to wait
// for, one of which fails.
func wish(chat, n int) string {
	if (n+chat)%orderEach != 0 {
		return ""
	}
	name := fmt.Sprintf("c%d-%d", chat, n)
	switch (n + chat) / orderEach % 3 {
	case 0:
		return fmt.Sprintf("start=%s:ok", name)
	case 1:
		return fmt.Sprintf("start=%s:bad", name)
	}
	return fmt.Sprintf("spawn=%s.1:ok,%s.2:bad,%s.3:ok", name, name, name)
}

// settle starts the daemon once more and waits until every message has its
// reply and nothing is left to do, or nothing happens any more.
func (r *crashRig) settle(ctx context.Context) error {
	p, err := start(ctx, r.bin, r.dir, r.env...)
	if err != nil {
		return err
	}
	if err := p.waitReady(slowReady); err != nil {
		return errors.Join(err, p.kill())
	}
	c, err := openConsole(r.dir)
	if err == nil {
		err = r.wait(ctx, c)
		c.Close()
	}
	if err != nil {
		return errors.Join(err, p.kill())
	}
	if err := p.term(); err != nil {
		return fmt.Errorf("orderly end: %w\n%s", err, p.log)
	}
	return nil
}

func (r *crashRig) wait(ctx context.Context, c *console) error {
	if err := r.table.rest(ctx, c); err != nil {
		return err
	}
	last, changed := "", time.Now()
	for deadline := time.Now().Add(quietLimit); time.Now().Before(deadline); {
		quiet, figures, err := c.quiet(ctx)
		if err != nil {
			return err
		}
		open := r.pending()
		for _, c := range r.chats {
			open += len(c.said) - len(c.counts())
		}
		tasks := r.table.open(ctx)
		now := fmt.Sprint(open, " messages without a reply or not taken, ", tasks, " tasks to come, ", figures)
		if now != last {
			last, changed = now, time.Now()
		}
		still := time.Since(changed)
		switch {
		case quiet && tasks == 0 && open == 0 && still > 200*time.Millisecond:
			return nil
		case quiet && tasks == 0 && r.pending() == 0 && still > 20*time.Second:
			return nil // some replies are notices, which have no marker
		case still > stillLimit:
			fmt.Printf("crash: nothing happens any more: %s\n", now)
			return nil // the judge says what is missing
		}
		if !pause(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	fmt.Printf("crash: no end: %s\n", last)
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

// order is where in the order of its chat a message belongs; 0 for anywhere.
func (c *chat) order(marker string) int {
	if c.place != nil {
		return c.place(marker)
	}
	var chat, n int
	if _, err := fmt.Sscanf(marker, "m%d-%d", &chat, &n); err != nil {
		return 0
	}
	return n
}

// outcome reports whether a word stands once in what the chat's reader sees:
// copies that are marked as such count only where there is nothing else.
func (c *chat) outcome(word string) bool {
	plain, again := 0, 0
	for _, text := range c.replies() {
		n := strings.Count(text+",", word+",")
		if strings.Contains(text, resentMark) {
			again += n
		} else {
			plain += n
		}
	}
	return plain == 1 && (again == 0 || c.mayDouble) || plain == 0 && again > 0
}

// A verdict is what the judge found.
type verdict struct {
	said, answered, noticed, lost, disorder, explained, unexplained, strayed int

	lacks    []string // messages of the present chat without a reply
	stories  []string
	census   *census
	instants *punctuality
}

func (v *verdict) broken() int {
	return v.lost + v.disorder + v.unexplained + v.strayed + v.census.broken() + v.instants.broken()
}

// judge compares what was said with what is visible and what is on disk. A
// message without a reply must have a recorded end that its sender was told of.
func (r *crashRig) judge(ctx context.Context) (v verdict, err error) {
	a, err := openArchive(ctx, r.dir)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	v.census = &census{forgive: r.forgive}
	for _, c := range r.chats {
		counts := c.counts()
		v.lacks = nil
		for _, s := range c.said {
			v.message(ctx, a, c, s, counts[s.marker])
			for _, o := range s.orders {
				if err := v.census.count(ctx, a, s.id, o, c.outcome); err != nil {
					return v, err
				}
			}
		}
		if n := len(v.lacks); n > 1 {
			v.story("%s: of %d messages, %d have no reply: %s to %s", c.name, len(c.said), n, v.lacks[0], v.lacks[n-1])
		}
		v.order(c)
		v.strays(c)
	}
	v.instants, err = r.table.judge(ctx, a)
	return v, err
}

// message counts what became of one message that is visible so often.
func (v *verdict) message(ctx context.Context, a *archive, c *chat, s spoken, visible int) {
	v.said++
	if visible > 0 {
		v.answered++
		return
	}
	receipt, err := a.db.Receipt(ctx, s.id)
	if err == nil && receipt.Run != nil && (receipt.Run.State == claybot.RunFailed && toldAll(receipt.Replies) || mayBeMissing(receipt.Replies)) {
		v.noticed++
		return
	}
	v.lost++
	if v.lacks = append(v.lacks, s.marker); len(v.lacks) > 3 {
		return // the summary of the chat says how many more
	}
	v.story("%s: %s (%s) has no reply: %+v %v", c.name, s.marker, s.id, receipt, err)
}

// mayBeMissing reports whether a reply was given up because kills hit it while it was sent, one
// if it must not be sent twice, else two: whether it arrived is unknown, and it has a notice.
func mayBeMissing(replies []claybot.Outgoing) bool {
	return slices.ContainsFunc(replies, func(o claybot.Outgoing) bool {
		return o.State == claybot.SendFailed && (o.Copies >= 2 || o.Once && o.Copies > 0)
	})
}

func toldAll(replies []claybot.Outgoing) bool {
	for _, o := range replies {
		if o.State != claybot.SendSent {
			return false
		}
	}
	return len(replies) > 0
}

// order counts doubled and overtaken replies of one chat. A second copy is explained
// when one of the two is marked as sent again: the one that was thought lost may come
// last.
func (v *verdict) order(c *chat) {
	copies := make(map[string]int)
	plain := make(map[string]bool) // of these, one is not marked
	newest := 0
	for _, text := range c.replies() {
		again := strings.Contains(text, resentMark)
		for _, m := range marker.FindAllString(text, -1) {
			copies[m]++
			known := plain[m]
			plain[m] = known || !again
			switch {
			case copies[m] == 1:
				n := c.order(m)
				if n < newest && !c.loose {
					v.disorder++
					v.story("%s: %s comes after %d", c.name, m, newest)
				}
				newest = max(newest, n)
			case c.mayDouble && (again || !known):
				v.explained++
			default:
				v.unexplained++
				v.story("%s: %s is visible again: %q", c.name, m, text)
			}
		}
	}
}

func (v *verdict) story(format string, args ...any) {
	if len(v.stories) < 20 {
		v.stories = append(v.stories, fmt.Sprintf(format, args...))
	}
}
