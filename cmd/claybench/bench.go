package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// The throughput figure is that of so many people who each wait for an answer.
const crowd = 200

// A contestant answers people until it is stopped. cpu is nil where processor
// time cannot be told apart from that of the emulators.
type contestant struct {
	name string
	stop func() error
	cpu  func() (time.Duration, error)
}

// bench measures everything and prints the table.
func bench(ctx context.Context, o options, dir string) error {
	b := &bencher{options: o, dir: dir}
	for _, step := range []func(context.Context) error{b.throughput, b.latency, b.turns, b.memory, b.onDisk, b.crowd} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	st, err := os.Stat(o.bin)
	if err != nil {
		return err
	}
	b.table.add("binary size, stripped", float64(st.Size())/(1<<20), "MiB", 0, "<= 33 MiB")
	text := b.table.markdown()
	fmt.Print(text)
	if o.out == "" {
		return nil
	}
	return writeReport(o, text)
}

type bencher struct {
	options
	dir   string
	table table
	rooms int
}

// room is a fresh directory.
func (b *bencher) room() (string, error) {
	b.rooms++
	dir := filepath.Join(b.dir, fmt.Sprint("room", b.rooms))
	return dir, os.Mkdir(dir, 0o700)
}

// bare starts a bare loop.
func (b *bencher) bare(ctx context.Context, t *town, model string, mode syncMode) (*contestant, error) {
	dir, err := b.room()
	if err != nil {
		return nil, err
	}
	loop, err := newBareLoop(t.url, telegramtest.Token, model, dir, mode)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- loop.run(ctx) }()
	return &contestant{name: mode.String(), stop: func() error { cancel(); return <-ended }}, nil
}

// claybot starts the daemon.
func (b *bencher) claybot(ctx context.Context, t *town, model, dir string) (*contestant, *process, error) {
	p, err := start(ctx, b.bin, dir,
		"TELEGRAM_BOT_TOKEN="+telegramtest.Token, "TELEGRAM_API_URL="+t.url,
		"OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL="+model)
	if err != nil {
		return nil, nil, err
	}
	if err := p.waitReady(readyLimit); err != nil {
		return nil, nil, errors.Join(err, p.kill())
	}
	return &contestant{name: "claybot", stop: p.term, cpu: p.cpu}, p, nil
}

// each runs fn with every contestant in turn, each in a town of its own.
func (b *bencher) each(ctx context.Context, latency time.Duration, modes []syncMode, fn func(*contestant, *town) error) error {
	model, stopModel, err := listen(modelServer(latency))
	if err != nil {
		return err
	}
	defer stopModel()
	one := func(begin func(*town) (*contestant, error)) error {
		t, err := newTown()
		if err != nil {
			return err
		}
		defer t.server.Close()
		c, err := begin(t)
		if err != nil {
			return err
		}
		err = fn(c, t)
		return errors.Join(err, c.stop())
	}
	for _, mode := range modes {
		if err := one(func(t *town) (*contestant, error) { return b.bare(ctx, t, model, mode) }); err != nil {
			return fmt.Errorf("%v: %w", mode, err)
		}
	}
	return one(func(t *town) (*contestant, error) {
		dir, err := b.room()
		if err != nil {
			return nil, err
		}
		c, _, err := b.claybot(ctx, t, model, dir)
		return c, err
	})
}

// throughput measures answers per second with a model that takes no time.
func (b *bencher) throughput(ctx context.Context) error {
	rates := make(map[string]float64)
	return b.each(ctx, 0, []syncMode{syncNever, syncEach, syncBatched}, func(c *contestant, t *town) error {
		t.speak(1, crowd, true)
		if err := rest(ctx, b.span/4); err != nil { // connections and agents come into being
			return err
		}
		t.harvest()
		before, err := usedCPU(c)
		if err != nil {
			return err
		}
		began := time.Now()
		took, err := b.reap(ctx, t, b.span)
		if err != nil {
			return err
		}
		n := len(took)
		rates[c.name] = float64(n) / time.Since(began).Seconds()
		after, err := usedCPU(c)
		if err != nil {
			return err
		}
		fmt.Printf("%-30s %8.0f messages/s\n", c.name, rates[c.name])
		if err := t.silence(ctx); err != nil {
			return err
		}
		if c.cpu == nil {
			b.table.add(fmt.Sprintf("messages/s, %d chats, 0 ms model: %s", crowd, c.name), rates[c.name], "/s", 0, "")
			return nil
		}
		base := rates[syncEach.String()]
		b.table.add(fmt.Sprintf("messages/s, %d chats, 0 ms model: claybot", crowd), rates[c.name], "/s", rates[c.name]/base, ">= 0.6 of fsync per message")
		b.table.add("processor time per message", float64((after-before).Microseconds())/float64(n)/1000, "ms", 0, "<= 0.55 ms")
		return nil
	})
}

func usedCPU(c *contestant) (time.Duration, error) {
	if c.cpu == nil {
		return 0, nil
	}
	return c.cpu()
}

// latency measures how long an answer takes beyond the bare loop's.
func (b *bencher) latency(ctx context.Context) error {
	for _, x := range []struct {
		chats int
		model time.Duration
		bar   string
	}{
		{1, 0, ""}, {1, 500 * time.Millisecond, ""}, {100, 0, ""}, {100, 500 * time.Millisecond, "<= 40 ms p99 added"},
	} {
		var base []time.Duration
		err := b.each(ctx, x.model, []syncMode{syncNever}, func(c *contestant, t *town) error {
			t.speak(1, x.chats, true)
			if err := rest(ctx, b.span/4); err != nil {
				return err
			}
			t.harvest()
			took, err := b.reap(ctx, t, b.span+x.model)
			if err != nil {
				return err
			}
			if err := t.silence(ctx); err != nil {
				return err
			}
			if c.cpu == nil {
				base = took
				return nil
			}
			what := fmt.Sprintf("added latency, %d chats, %d ms model, ", x.chats, x.model.Milliseconds())
			for _, p := range []struct {
				name string
				at   float64
			}{{"p50", 0.5}, {"p99", 0.99}} {
				mine, bare := percentile(took, p.at), percentile(base, p.at)
				bar := ""
				if p.name == "p99" {
					bar = x.bar
				}
				b.table.add(what+p.name, ms(mine-bare), "ms", ratio(mine, bare), bar)
				fmt.Printf("%-50s %8.2f ms (%.2f ms against %.2f ms)\n", what+p.name, ms(mine-bare), ms(mine), ms(bare))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// patience is how much longer than the span a measurement waits for its first
// answer: on a busy machine a short span may have none, and that is no zero.
const patience = time.Minute

// reap lets people talk for the span, or longer when no person was answered yet,
// and takes their answer times.
func (b *bencher) reap(ctx context.Context, t *town, span time.Duration) ([]time.Duration, error) {
	for deadline := time.Now().Add(span + patience); ; {
		if err := rest(ctx, span); err != nil {
			return nil, err
		}
		if took := t.harvest(); len(took) > 0 {
			return took, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("nothing was measured: no person was answered within %v", span+patience)
		}
	}
}

// ratio is 0, which is none, where there is no baseline.
func ratio(d, base time.Duration) float64 {
	if base == 0 {
		return 0
	}
	return float64(d) / float64(base)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
