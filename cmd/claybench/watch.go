package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A watchSize says how much is measured of runs that are watched.
type watchSize struct {
	agents, runs, events int // in the store before the daemon starts; the events are those of one run

	steady, hopping, asleep int           // streams that read, that also come and go, that never read
	rounds                  int           // of writers alone, and as many with streams
	span                    time.Duration // of one round
	every                   time.Duration // a message
	steps                   int           // of a run: answers of the model that call a tool
	thought                 time.Duration // that an answer of the model takes
	passes                  int           // over the long run
	gets                    int           // of each page

	kills, writers int
	benchmarks     bool // those of package runs are run, too
}

// length is how long the model takes for one run.
func (s watchSize) length() time.Duration { return time.Duration(s.steps+1) * s.thought }

// watchBars is what the bars ask for.
func watchBars(o options) watchSize {
	return watchSize{
		agents: o.agents, runs: 10 * o.agents, events: 10 * o.agents,
		steady: 100, hopping: 50, asleep: 50, rounds: 6, span: o.span, every: 50 * time.Millisecond,
		steps: 8, thought: 250 * time.Millisecond, passes: 5, gets: 50,
		kills: o.kills, writers: 6, benchmarks: true,
	}
}

// watch measures runs that are watched, and prints the table. Its error says
// which promises were broken; a time that is too long breaks none.
func watch(ctx context.Context, o options, dir string, size watchSize) error {
	w := &watcher{options: o, size: size, dir: dir}
	err := errors.Join(w.audience(ctx), w.kills(ctx))
	text := w.table.markdown()
	fmt.Print(text)
	if err != nil {
		return err
	}
	if w.broken() > 0 {
		return fmt.Errorf("promises broken: %v; the seed was %d\n%s", &w.faults, o.seed, strings.Join(w.stories, "\n"))
	}
	if o.out == "" {
		return nil
	}
	return writeWatchReport(o, size, text)
}

// A watcher measures runs that are watched.
type watcher struct {
	options
	size  watchSize
	dir   string
	table table
	faults
}

// bar adds a figure that has a limit.
func (w *watcher) bar(what string, value float64, unit string, ratio float64, limit string, met bool) {
	word := "missed"
	if met {
		word = "pass"
	}
	w.table.add(what, value, unit, ratio, limit+": "+word)
}

// count adds a figure of what must not be.
func (w *watcher) count(what string, n int) { w.bar(what, float64(n), "", 0, "0", n == 0) }

// audience measures what needs a full store: writers with and without readers,
// a long run, the pages.
func (w *watcher) audience(ctx context.Context) error {
	dir := filepath.Join(w.dir, "watched")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	began := time.Now()
	full, err := fill(ctx, filepath.Join(dir, "data"), w.size)
	if err != nil {
		return fmt.Errorf("fill the store: %w", err)
	}
	fmt.Printf("watch: %d agents, %d runs, one of %d events, made in %v\n", w.size.agents, w.size.runs, w.size.events, time.Since(began).Round(time.Millisecond))
	if err := configure(dir, "off"); err != nil {
		return err
	}
	model, stopModel, err := listen(toolModel(w.size.steps, w.size.thought, nil))
	if err != nil {
		return err
	}
	defer stopModel()
	d, gauge := newDoor(), newDoor()
	defer d.close()
	defer gauge.close()
	p, err := d.launch(ctx, w.bin, dir, model, "CLAYBOT_PPROF=1")
	if err != nil {
		return err
	}
	gauge.base.Store(d.base.Load())
	h := &house{watcher: w, door: d, gauge: gauge, process: p, long: full.long}
	alive, stop := p.guard(ctx)
	defer stop()
	if err := h.measure(alive, full); err != nil {
		return errors.Join(err, context.Cause(alive), p.kill())
	}
	stop()
	if err := p.term(); err != nil {
		return fmt.Errorf("orderly end: %w\n%s", err, p.log)
	}
	return h.judge(ctx, dir)
}

// measure does one measurement after the other.
func (h *house) measure(ctx context.Context, full filled) error {
	steps := []func(context.Context) error{
		func(ctx context.Context) error { return h.door.login(ctx, h.bin, h.process, "operate") },
		func(ctx context.Context) error { return h.gauge.login(ctx, h.bin, h.process, "admin") },
		h.writers, h.longRun,
		func(ctx context.Context) error { return h.pages(ctx, full) },
	}
	if h.size.benchmarks {
		steps = append(steps, h.benchmarks)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}
