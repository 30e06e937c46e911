package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// memory measures the start and the resident memory: with nothing on disk,
// after 1,000 agents, and after many more.
func (b *bencher) memory(ctx context.Context) error {
	model, stopModel, err := listen(modelServer(0))
	if err != nil {
		return err
	}
	defer stopModel()
	t, err := newTown()
	if err != nil {
		return err
	}
	defer t.server.Close()
	dir, err := b.room()
	if err != nil {
		return err
	}
	first, p, err := b.begin(ctx, t, model, dir)
	if err != nil {
		return err
	}
	b.table.add("start to first poll, empty directory", ms(first), "ms", 0, "<= 15 ms")
	if err := b.resident(ctx, p, "resident memory, idle", "<= 28 MB"); err != nil {
		return err
	}
	own, err := p.memory("RssAnon")
	if err != nil {
		return err
	}
	b.table.add("resident memory, idle, without pages of the binary", float64(own)/1e6, "MB", 0, "")
	made := 0
	for _, n := range []int{min(1000, b.agents), b.agents} {
		for made < n { // in groups, as a crowd arrives
			step := min(500, n-made)
			t.speak(1+made, step, false)
			if err := t.silence(ctx); err != nil {
				return errors.Join(err, p.kill())
			}
			made += step
		}
		bar := ""
		if n == b.agents {
			bar = "<= 80 MB"
		}
		if err := b.resident(ctx, p, fmt.Sprintf("resident memory after %d agents", n), bar); err != nil {
			return err
		}
	}
	if err := p.term(); err != nil {
		return err
	}
	again, p, err := b.begin(ctx, t, model, dir)
	if err != nil {
		return err
	}
	b.table.add(fmt.Sprintf("start to first poll, %d agents", b.agents), ms(again), "ms", 0, "<= 500 ms")
	if err := b.resident(ctx, p, fmt.Sprintf("resident memory, started with %d idle agents", b.agents), "<= 80 MB"); err != nil {
		return err
	}
	return p.term()
}

// onDisk measures the start, and the memory after it, with many agents in the data
// directory, of which none has anything to do.
func (b *bencher) onDisk(ctx context.Context) error {
	n := cmp.Or(b.stored, 10*b.agents)
	model, stopModel, err := listen(modelServer(0))
	if err != nil {
		return err
	}
	defer stopModel()
	t, err := newTown()
	if err != nil {
		return err
	}
	defer t.server.Close()
	dir, err := b.room()
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if _, err := fill(ctx, data, watchSize{agents: n, runs: n / 10, events: 10}); err != nil {
		return err
	}
	took := make([]time.Duration, 0, onDiskStarts)
	for range onDiskStarts {
		first, p, err := b.begin(ctx, t, model, dir)
		if err != nil {
			return err
		}
		if took = append(took, first); len(took) == onDiskStarts {
			slices.Sort(took)
			b.table.add(fmt.Sprintf("start to first poll, %d agents on disk", n), ms(took[onDiskStarts/2]), "ms", 0, "<= 100 ms")
			if err := b.resident(ctx, p, fmt.Sprintf("resident memory, started with %d agents on disk", n), "<= 45 MB"); err != nil {
				return errors.Join(err, p.kill())
			}
			own, err := p.memory("RssAnon")
			if err != nil {
				return errors.Join(err, p.kill())
			}
			b.table.add(fmt.Sprintf("resident memory, started with %d agents on disk, without pages of the binary", n), float64(own)/1e6, "MB", 0, "")
		}
		if err := p.term(); err != nil {
			return err
		}
	}
	return nil
}

// onDiskStarts is of how many starts onDisk takes the median.
const onDiskStarts = 5

// begin starts the daemon and says how long its first poll took to come.
func (b *bencher) begin(ctx context.Context, t *town, model, dir string) (time.Duration, *process, error) {
	polls := t.server.Calls("getUpdates")
	came := make(chan time.Time, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		if t.server.WaitCalls(ctx, "getUpdates", polls+1) == nil {
			came <- time.Now()
		}
		close(came)
	}()
	_, p, err := b.claybot(ctx, t, model, dir)
	if err != nil {
		return 0, nil, err
	}
	at, ok := <-came
	if !ok {
		return 0, nil, errors.Join(errors.New("the daemon never polled"), p.kill())
	}
	return at.Sub(p.began), p, nil
}

func (b *bencher) resident(ctx context.Context, p *process, what, bar string) error {
	if err := rest(ctx, b.idle); err != nil {
		return err
	}
	bytes, err := p.rss()
	if err != nil {
		return err
	}
	b.table.add(what, float64(bytes)/1e6, "MB", 0, bar)
	fmt.Printf("%-50s %8.1f MB\n", what, float64(bytes)/1e6)
	return nil
}
