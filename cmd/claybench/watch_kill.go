package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot/overview"

	"golang.org/x/sync/errgroup"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage/sqlite"
)

// The load of the kills.
const (
	killSteps   = 4
	killThought = 15 * time.Millisecond
	killMiss    = 15 * time.Millisecond // at most so long after an answer of the model, a kill comes
	holdLimit   = time.Minute           // so long, a kill waits for a request; runs go on all the time, so there is one
)

// A killing is a daemon that is killed while others listen to it.
type killing struct {
	*watcher
	dir, model string
	door       *door
	sink       *receiver
	answered   chan time.Time
	rng        *rand.Rand

	killed  int // so often
	between int // of these, while the webhook had events that did not count as published

	over atomic.Bool // no more runs are begun
	mu   sync.Mutex
	read []*follower
	runs []claybot.RunID
}

// kills kills the daemon again and again, with readers and sinks that must miss
// nothing.
func (w *watcher) kills(ctx context.Context) error {
	k := &killing{
		watcher: w, dir: filepath.Join(w.dir, "killed"), door: newDoor(), sink: newReceiver(), answered: make(chan time.Time, 1),
		rng: rand.New(rand.NewPCG(uint64(w.seed), 2)),
	}
	defer k.door.close()
	url, stopSink, err := listen(k.sink)
	if err != nil {
		return err
	}
	defer stopSink()
	model, stopModel, err := listen(toolModel(killSteps, killThought, k.answered))
	if err != nil {
		return err
	}
	defer stopModel()
	k.model = model
	if err := k.configure(url); err != nil {
		return err
	}
	// An orderly life first: the sinks are known from then on.
	p, err := k.start(ctx)
	if err != nil {
		return err
	}
	if err := k.door.login(ctx, k.bin, p, "operate"); err != nil {
		return errors.Join(err, p.kill())
	}
	if err := p.term(); err != nil {
		return fmt.Errorf("orderly end: %w\n%s", err, p.log)
	}
	if err := k.live(ctx); err != nil {
		return err
	}
	return k.judge(ctx)
}

func (k *killing) configure(url string) error {
	if err := os.Mkdir(k.dir, 0o700); err != nil {
		return err
	}
	text := fmt.Sprintf("agents: {default: {memory: off}}\nrelay:\n"+
		"  - {name: hook, url: %q, secret: env:BENCH_SINK_SECRET}\n  - {name: lines, file: %q}\n", url, k.lines())
	return os.WriteFile(filepath.Join(k.dir, "claybot.yaml"), []byte(text), 0o600)
}

func (k *killing) lines() string { return filepath.Join(k.dir, "events.jsonl") }

func (k *killing) start(ctx context.Context) (*process, error) {
	return k.door.launch(ctx, k.bin, k.dir, k.model, "BENCH_SINK_SECRET="+sinkSecret)
}

// live is all lives of the daemon but the first.
func (k *killing) live(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, quietLimit)
	defer cancel()
	g, inner := errgroup.WithContext(ctx)
	for i := range k.size.writers {
		g.Go(func() error { return k.write(inner, i) })
	}
	p, err := k.strike(ctx, inner)
	k.over.Store(true)
	if err != nil {
		cancel()
		return errors.Join(err, g.Wait())
	}
	err = g.Wait()
	if err == nil {
		err = k.settle(ctx)
	}
	if err != nil {
		return errors.Join(err, p.kill())
	}
	if err := p.term(); err != nil {
		return fmt.Errorf("orderly end: %w\n%s", err, p.log)
	}
	return nil
}

// strike kills the daemon until it was hit often enough between a commit and its
// publication, and leaves one that lives. It ends early with the load.
func (k *killing) strike(ctx, load context.Context) (*process, error) {
	for {
		p, err := k.start(ctx)
		if err != nil || k.between >= k.size.kills || k.killed >= 4*k.size.kills {
			return p, err
		}
		k.aim(load)
		if k.sink.open.Load() > 0 {
			k.between++
		}
		k.killed++
		err = p.kill()
		k.sink.hold.Store(false)
		if err != nil {
			return nil, err
		}
		if load.Err() != nil {
			return nil, context.Cause(load)
		}
	}
}

// aim returns when the next kill is due: each second one while the webhook has a
// request, whose events are committed and not confirmed, and which gets no answer
// before the kill; of the others, half just after an answer of the model, when
// events are being committed, and half at any time.
func (k *killing) aim(ctx context.Context) {
	pause(ctx, k.upTo(killAfter)/2) // the readers come back, and runs go on
	switch {
	case k.killed%2 == 0:
		aim(ctx, k.sink.asked, holdLimit, func() { k.sink.hold.Store(true) })
	case k.killed%4 == 1:
		aim(ctx, k.answered, aimFor, nil)
		pause(ctx, k.upTo(killMiss))
	default:
		pause(ctx, k.upTo(killAfter))
	}
}

func (k *killing) upTo(d time.Duration) time.Duration { return time.Duration(k.rng.Int64N(int64(d))) }

// write begins one run after the other, each of which has three readers: one
// that only reads, one that comes and goes, one that comes late.
func (k *killing) write(ctx context.Context, writer int) error {
	for n := 0; !k.over.Load(); n++ {
		key := fmt.Sprintf("w%d-%d", writer, n)
		run, err := k.begin(ctx, key)
		if err != nil {
			return err
		}
		g, inner := errgroup.WithContext(ctx)
		steady, hopping, late := k.follower(run), k.follower(run), k.follower(run)
		g.Go(func() error { return hopping.follow(inner, often(1, 4)) })
		g.Go(func() error {
			if err := steady.follow(inner, never); err != nil {
				return err
			}
			return late.follow(inner, never)
		})
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// begin says something until the daemon has confirmed it.
func (k *killing) begin(ctx context.Context, key string) (claybot.RunID, error) {
	for {
		run, err := k.door.say(ctx, "c"+key, key, "message "+key)
		if err == nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.runs = append(k.runs, run)
			return run, nil
		}
		if !pause(ctx, 5*time.Millisecond) {
			return "", fmt.Errorf("message %s is not accepted: %w", key, err)
		}
	}
}

func (k *killing) follower(run claybot.RunID) *follower {
	f := &follower{door: k.door, run: run}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read = append(k.read, f)
	return f
}

// settle waits until nothing is to be done and the sinks know everything.
func (k *killing) settle(ctx context.Context) error {
	c, err := openConsole(k.dir)
	if err != nil {
		return err
	}
	defer c.Close()
	for rounds := 0; rounds < 5; { // of the relay, which looks each 200 ms
		quiet, figures, err := c.quiet(ctx)
		if err != nil {
			return err
		}
		var s overview.Status
		if err := c.call(ctx, http.MethodGet, "/status", &s); err != nil {
			return err
		}
		rounds++
		for _, sink := range s.Sinks {
			if sink.Backlog > 0 || sink.Success == 0 {
				rounds = 0
			}
		}
		if !quiet || len(s.Sinks) != 2 {
			rounds = 0
		}
		if !pause(ctx, 250*time.Millisecond) {
			return fmt.Errorf("no rest: %s, relays %+v: %w", figures, s.Sinks, context.Cause(ctx))
		}
	}
	return nil
}

// judge compares what readers and sinks were told with the store, and counts.
func (k *killing) judge(ctx context.Context) (err error) {
	db, err := sqlite.Open(ctx, filepath.Join(k.dir, "data", "claybot.db"), sqlite.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	file, err := readLines(k.lines())
	if err != nil {
		return err
	}
	var readers, sinks faults
	stored, all := make(map[claybot.RunID][]note), 0
	for _, run := range k.runs {
		if stored[run] != nil {
			readers.story(&readers.doubled, 1, "run %s was begun for two messages", run)
			continue
		}
		if stored[run], err = storedNotes(ctx, db, run, &readers); err != nil {
			return err
		}
		all += len(stored[run])
	}
	read := 0
	for _, f := range k.read {
		readers.compare("a reader of run "+string(f.run), f.got, stored[f.run], f.whole, false)
		read += len(f.got)
	}
	for _, bad := range k.sink.bad {
		sinks.story(&sinks.altered, 1, "the webhook got %s", bad)
	}
	hook, lines := sinks.sink("webhook", k.sink.got, stored), sinks.sink("file", file, stored)
	fmt.Printf("watch: %d kills, %d of them with events that were committed and not published; %d runs with %d events\n", k.killed, k.between, len(stored), all)
	fmt.Printf("watch: %d readers were told %d events: %v; relays: %v, repeats %d and %d\n", len(k.read), read, &readers, &sinks, hook, lines)
	k.report(readers, sinks)
	k.table.add("events told again to the webhook", float64(hook), "", 0, "")
	k.table.add("events told again to the file", float64(lines), "", 0, "")
	k.faults.add(readers)
	k.faults.add(sinks)
	if all == 0 || k.killed == 0 {
		return fmt.Errorf("%d kills; %d runs with %d events: too few", k.killed, len(stored), all)
	}
	return nil
}

// report adds what must not be to the table.
func (k *killing) report(readers, sinks faults) {
	k.table.add("kills", float64(k.killed), "", 0, "")
	k.bar("kills between a commit and its publication", float64(k.between), "", 0, fmt.Sprint(k.size.kills), k.between >= k.size.kills)
	k.count("kills, readers: gaps", readers.gaps)
	k.count("kills, readers: duplicates", readers.doubled)
	k.count("kills, readers: out of order or altered", readers.disorder+readers.altered)
	k.count("kills, relays: lost", sinks.gaps)
	k.count("kills, relays: out of order or altered", sinks.disorder+sinks.altered)
}

// sink compares what a sink got with the store: all of it, in order, at least
// once. It returns how many events came again.
func (f *faults) sink(name string, got, stored map[claybot.RunID][]note) (repeats int) {
	for run, notes := range stored {
		repeats += f.compare("the "+name+" of run "+string(run), got[run], notes, true, true)
	}
	for run, notes := range got {
		if stored[run] == nil {
			f.story(&f.altered, len(notes), "the %s was told of run %s, which was not started", name, run)
		}
	}
	return repeats
}
