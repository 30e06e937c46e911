package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The bars of times.
const (
	pageBar  = 100 * time.Millisecond
	longBar  = 3 * time.Second
	firstBar = 5 * time.Millisecond
)

// longRun measures how long it takes to read all of a long run that has ended.
func (h *house) longRun(ctx context.Context) error {
	var took []time.Duration
	for range h.size.passes {
		began := time.Now()
		f := h.follower(h.long)
		if err := f.follow(ctx, never); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	what := fmt.Sprintf("%d events of one run over SSE", h.size.events)
	h.table.add(what+", p50", percentile(took, 0.5).Seconds(), "s", 0, "")
	most := took[len(took)-1]
	h.bar(fmt.Sprintf("%s, slowest of %d", what, len(took)), most.Seconds(), "s", 0, "<= 3 s", most <= longBar)
	return nil
}

// pages measures how long the server takes for all of a page.
func (h *house) pages(ctx context.Context, full filled) error {
	agent, run := url.PathEscape(string(full.agent)), url.PathEscape(string(full.run))
	for _, page := range []struct{ name, path string }{
		{"/", "/"},
		{"/ui/agents", "/ui/agents"},
		{"/ui/agents/{id}", "/ui/agents/" + agent},
		{"/ui/runs", "/ui/runs"},
		{"/ui/runs/{id}", "/ui/runs/" + run},
		{"/ui/runs/{id} of the long run", "/ui/runs/" + url.PathEscape(string(full.long))},
		{"/ui/schedule", "/ui/schedule"},
		{"/ui/deliveries", "/ui/deliveries"},
		{"/ui/usage", "/ui/usage"},
		{"/ui/access", "/ui/access"},
		{"/ui/health", "/ui/health"},
		{"/ui/why?q={message}", "/ui/why?q=" + url.QueryEscape(string(full.message))},
	} {
		took := make([]time.Duration, h.size.gets)
		for i := range took {
			began := time.Now()
			b, err := h.door.call(ctx, http.MethodGet, page.path, nil)
			if err != nil {
				return fmt.Errorf("page %s: %w", page.name, err)
			}
			took[i] = time.Since(began)
			if !bytes.HasSuffix(bytes.TrimSpace(b), []byte("</html>")) {
				return fmt.Errorf("page %s is incomplete: %.200s", page.name, b)
			}
		}
		slices.Sort(took)
		p50, p99 := percentile(took, 0.5), percentile(took, 0.99)
		fmt.Printf("watch: page %-32s p50 %7.2f ms, p99 %7.2f ms\n", page.name, ms(p50), ms(p99))
		h.table.add("page "+page.name+", p50", ms(p50), "ms", 0, "")
		h.bar("page "+page.name+", p99", ms(p99), "ms", 0, "<= 100 ms", p99 <= pageBar)
	}
	return nil
}

// benchmarks runs those of package runs: events have a time in milliseconds, so
// what happens within one can only be measured inside.
func (h *house) benchmarks(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkFirstEvent$|^BenchmarkAppend$/^in_step$", "-benchtime", "2000x", "./runs")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the benchmarks of package runs: %w\n%s", err, out)
	}
	figures := make(map[string]time.Duration)
	for line := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(line, " ")
		fields := strings.Fields(rest)
		name = strings.TrimPrefix(name, "Benchmark")
		for i := 1; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil && strings.HasSuffix(fields[i+1], "-µs") {
				kind, _, _ := strings.Cut(name, "/")
				kind, _, _ = strings.Cut(kind, "-")
				figures[kind+" "+strings.TrimSuffix(fields[i+1], "-µs")] = time.Duration(v * float64(time.Microsecond))
			}
		}
	}
	for _, name := range []string{"FirstEvent p50", "FirstEvent p99", "Append 0-readers-p99", "Append 200-readers-p99"} {
		if figures[name] == 0 {
			return fmt.Errorf("the benchmarks of package runs do not tell %s:\n%s", name, out)
		}
	}
	first, base, mine := figures["FirstEvent p99"], figures["Append 0-readers-p99"], figures["Append 200-readers-p99"]
	h.table.add("first event after its commit, in process, p50", ms(figures["FirstEvent p50"]), "ms", 0, "")
	h.bar("first event after its commit, in process, p99", ms(first), "ms", 0, "<= 5 ms", first <= firstBar)
	h.table.add("commit of an event, in process, p99: no readers", ms(base), "ms", 0, "")
	r := ratio(mine, base)
	h.bar("commit of an event, in process, p99: 200 readers", ms(mine), "ms", r, "ratio <= 1.10", r <= 1.1)
	return nil
}
