package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// The pace of the rig of lifecycles.
const (
	lifeWorkers = 4
	lifeSpeak   = 400 * time.Millisecond // between two messages of a chat
	lifeRound   = 100                    // calls between two looks at everything
	lifeLimit   = 3 * time.Minute        // for what must come to hold; it only passes when the look fails
	lifeSlow    = 10 * time.Second       // what takes so long to hold is printed
	lifeRest    = time.Minute            // for the connections of a node that has stopped; unused ones close by themselves after 90 seconds
	lifeIdle    = 5 * time.Second        // of connections to the model, which would be more than moreSockets for 90 seconds after a busy round
	lifeCall    = 2 * time.Minute        // for an answer of the daemon
	betaToken   = "7654321:FAKE-telegram-token-for-tests-only"
)

// A lifeWorld is what stands around the daemon.
type lifeWorld struct {
	alpha, beta                   *telegramtest.Server
	work                          *slacktest.Server
	alphaDoor, betaDoor, workDoor *doorway
	doors                         []*doorway
	clients                       *clients
	hookCallback                  string
}

// hook is a value of the webhook's key.
func (w *lifeWorld) hook(more string) string {
	return fmt.Sprintf("{type: webhook, scheme: bearer, secret: env:HOOK_SECRET, id_header: %s, channel: %q, prompt: %q, callback: %q, %scallback_secret: env:CALLBACK_SECRET}",
		hookID, "{{ trigger.payload.channel }}", "{{ trigger.payload.text }}", w.hookCallback, more)
}

// openDoors lets the daemon in to the platforms.
func (w *lifeWorld) openDoors() error {
	for _, x := range []struct {
		door **doorway
		to   http.Handler
	}{{&w.alphaDoor, w.alpha}, {&w.betaDoor, w.beta}, {&w.workDoor, w.work}} {
		d, err := openDoorway(x.to)
		if err != nil {
			return err
		}
		*x.door = d
		w.doors = append(w.doors, d)
	}
	return nil
}

// A lifeRig makes random calls that start, stop and configure nodes.
type lifeRig struct {
	crashRig
	world *lifeWorld
	parts []*part
	// file is held for writing while the rig edits the file: two programs that rewrite a file at
	// once lose what one of them says, whatever the daemon does.
	file sync.RWMutex
	// life is held for writing while the daemon is killed and started.
	life    sync.RWMutex
	process *process
	plain   figures // of a daemon that has had no calls

	mu      sync.Mutex
	tally   map[string]int
	stories []string
	next    int          // number of the next call
	strikes map[int]bool // numbers of the calls that are kills
}

// lifecycle makes random calls on nodes and settings, of several callers at once, while people write
// and the daemon is killed, and looks whether all is as the calls and the file say.
func lifecycle(ctx context.Context, o options, dir string) error {
	actor := newActor(20*time.Millisecond, 50*time.Millisecond, 150*time.Millisecond)
	model := openaitest.New(openaitest.Config{Reply: actor.reply, Keep: 1, Idle: lifeIdle})
	modelURL, stopModel, err := model.Start()
	if err != nil {
		return err
	}
	defer stopModel()
	r := &lifeRig{
		crashRig: crashRig{options: o, dir: dir, actor: actor, rng: rand.New(rand.NewPCG(uint64(o.seed), 1)), every: lifeSpeak},
		tally:    make(map[string]int), strikes: make(map[int]bool),
	}
	for len(r.strikes) < min(o.kills, o.lifecycle/4) { // the second half is one life: leaks add up
		r.strikes[r.rng.IntN(o.lifecycle/2)] = true
	}
	closeWorld, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer closeWorld()
	r.env = append(r.env, "OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL="+modelURL, "ALPHA_TOKEN="+telegramtest.Token, "BETA_TOKEN="+betaToken,
		"WORK_BOT_TOKEN=xoxb-test", "WORK_APP_TOKEN=xapp-test")
	fmt.Printf("lifecycle: %d calls of %d callers, %d kills, seed %d, %d chats\n", o.lifecycle, lifeWorkers, len(r.strikes), o.seed, len(r.chats))
	began := time.Now()
	if err := r.live(ctx); err != nil {
		return errors.Join(err, r.end())
	}
	v, err := r.conclude(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("lifecycle: %d calls in %v, %d messages, %d answered, %d ended in a notice\n", o.lifecycle, time.Since(began).Round(time.Second), v.said, v.answered, v.noticed)
	fmt.Printf("lifecycle: lost %d, ooo %d, unexplained dup %d, explained dup %d, in another chat %d; cron: %v\n", v.lost, v.disorder, v.unexplained, v.explained, v.strayed, v.instants)
	fmt.Printf("lifecycle: calls: %s\n", r.counts())
	fmt.Printf("lifecycle: %d things are not as they should be\n", len(r.stories))
	if len(r.stories) > 0 || v.broken() > 0 {
		all := append(append(append(r.stories, v.stories...), v.census.stories...), v.instants.stories...)
		return fmt.Errorf("repeat with: go run ./cmd/claybench -lifecycle %d -kills %d -seed %d\n%s", o.lifecycle, o.kills, o.seed, strings.Join(all[:min(len(all), 40)], "\n"))
	}
	return nil
}

// open starts the platforms, and writes the file of the daemon. The chats and what is pending are those
// of the embedded rig.
func (r *lifeRig) open(ctx context.Context) (func(), error) {
	w := &lifeWorld{
		alpha: telegramtest.New(telegramtest.Config{NoJournal: true, NoLimits: true}),
		beta:  telegramtest.New(telegramtest.Config{NoJournal: true, NoLimits: true, Token: betaToken, Username: "beta"}),
		work:  slacktest.New(slacktest.Config{Manifest: slack.Manifest, PerMinute: noTiers, PostEvery: -1}),
	}
	closeAll := func() {
		if w.clients != nil {
			w.clients.stop()
		}
		w.alpha.Close()
		w.beta.Close()
		w.work.Close()
		for _, d := range w.doors {
			d.stop()
		}
	}
	if err := r.furnish(ctx, w); err != nil {
		closeAll()
		return nil, err
	}
	return closeAll, nil
}

// furnish opens what the daemon is led to, and writes its file.
func (r *lifeRig) furnish(ctx context.Context, w *lifeWorld) (err error) {
	if err := w.openDoors(); err != nil {
		return err
	}
	name := filepath.Join(r.dir, "claybot.yaml")
	text := "agents:\n  default: {memory: off}\nbudgets: []\npprof: true\nsubagents: {max_depth: 3, max_children: 10000, max_starts_per_hour: 1000000}\nrelay: [{name: log, file: events.jsonl}]\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		return err
	}
	if w.clients, err = openClients(ctx, r.dir, 1, false); err != nil {
		return err
	}
	w.hookCallback = w.clients.callback
	r.world, r.env = w, w.clients.env()
	if r.parts, err = newParts(w, r.bin, r.dir); err != nil {
		return err
	}
	b, err := os.ReadFile(name)
	if err == nil {
		b, err = sets(b, r.parts)
	}
	if err == nil {
		err = os.WriteFile(name, b, 0o600)
	}
	if err != nil {
		return err
	}
	bot := func(token string) string { id, _, _ := strings.Cut(token, ":"); return id }
	r.chats = append([]*chat{
		telegramChat(w.alpha, bot(telegramtest.Token), 1001), telegramChat(w.alpha, bot(telegramtest.Token), 1002), telegramChat(w.beta, bot(betaToken), 2001),
		slackChat(w.work, "work", "U1"), slackChat(w.work, "work", "U2"),
	}, w.clients.chats...)
	r.pending = func() int { return len(w.alpha.Pending()) + len(w.beta.Pending()) + len(w.work.Unacked()) }
	r.table, err = newTimetable(ctx, r.dir, taskFolder{r.dir})
	return err
}

// live makes all calls, in rounds. After each one everything is looked at.
func (r *lifeRig) live(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	stopLoad := sync.OnceValue(r.load(ctx))
	defer func() { _ = stopLoad() }() // another error counts
	if !pause(ctx, 5*time.Second) {
		return context.Cause(ctx)
	}
	if err := r.measure(ctx, true); err != nil {
		return err
	}
	fmt.Printf("lifecycle: without calls, the daemon has %v\n", r.plain)
	for r.next < r.lifecycle && ctx.Err() == nil {
		until := min(r.next+lifeRound, r.lifecycle)
		var working sync.WaitGroup
		failed := make(chan error, lifeWorkers)
		for range lifeWorkers {
			working.Go(func() { failed <- r.work(ctx, until) })
		}
		working.Wait()
		for range lifeWorkers {
			if err := <-failed; err != nil {
				return err
			}
		}
		if err := r.look(ctx); err != nil {
			return err
		}
		fmt.Printf("lifecycle: %d calls, %d things not as they should be\n", until, len(r.stories))
	}
	return errors.Join(context.Cause(ctx), stopLoad())
}

// take returns the number of the next call; false when there are enough.
func (r *lifeRig) take(until int) (n int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next >= until {
		return 0, false
	}
	r.next++
	return r.next - 1, true
}

// start starts the daemon, which nothing edits meanwhile.
func (r *lifeRig) start(ctx context.Context) error {
	r.file.RLock()
	defer r.file.RUnlock()
	p, err := start(ctx, r.bin, r.dir, r.env...)
	if err != nil {
		return err
	}
	r.process = p
	if err := p.waitReady(slowReady); err != nil {
		return errors.Join(err, p.kill())
	}
	return nil
}

// strike kills the daemon a moment from now, and starts it again.
func (r *lifeRig) strike(ctx context.Context, after time.Duration) error {
	pause(ctx, after)
	r.life.Lock()
	defer r.life.Unlock()
	if err := r.process.kill(); err != nil {
		return err
	}
	return r.start(ctx)
}

func (r *lifeRig) end() error {
	if r.process == nil {
		return nil
	}
	return r.process.kill()
}

// conclude ends the daemon in order, looks what it leaves, and judges what became of the messages.
func (r *lifeRig) conclude(ctx context.Context) (v verdict, err error) {
	if err := r.process.term(); err != nil {
		return v, fmt.Errorf("orderly end: %w\n%s", err, r.process.log)
	}
	if n := children(r.dir); n > 0 {
		r.story("%d processes of MCP servers outlive the daemon", n)
	}
	for _, p := range r.parts {
		if p.door != nil && p.door.count() > 0 {
			r.story("%s has %d connections after the end of the daemon", p.key, p.door.count())
		}
	}
	if err := r.settle(ctx); err != nil {
		return v, err
	}
	return r.judge(ctx)
}

func (r *lifeRig) story(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Println("lifecycle: " + text)
	r.stories = append(r.stories, text)
}
