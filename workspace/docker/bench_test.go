package docker

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot/workspace"
)

// BenchmarkExec runs true in a warm container, by turns with the CLI of the same
// engine. ratio is that of the medians.
func BenchmarkExec(b *testing.B) {
	cli, err := exec.LookPath("docker")
	if err != nil {
		b.Skip("there is no docker CLI")
	}
	w := opened(b, provider(b), "agent/bench", workspace.Spec{})
	var ours, theirs []time.Duration
	one := func(list *[]time.Duration, f func() error) {
		start := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		*list = append(*list, time.Since(start))
	}
	sh(b, w, "true")
	for b.Loop() {
		one(&ours, func() error {
			_, err := w.Exec(b.Context(), workspace.Command{Args: []string{"true"}, Wall: time.Minute, Idle: time.Minute})
			return err
		})
		one(&theirs, func() error { return exec.CommandContext(b.Context(), cli, "exec", w.box.id, "true").Run() })
	}
	o, t := median(ours), median(theirs)
	b.ReportMetric(float64(o.Microseconds())/1000, "ms/exec")
	b.ReportMetric(float64(t.Microseconds())/1000, "ms/docker-exec")
	b.ReportMetric(float64(o)/float64(t), "ratio")
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkFifty has 50 agents at work at once, each in a container of its own. It
// fails when an answer is lost.
func BenchmarkFifty(b *testing.B) {
	const agents, commands = 50, 5
	for b.Loop() {
		p := provider(b)
		start := time.Now()
		var wg sync.WaitGroup
		for i := range agents {
			wg.Go(func() {
				key := workspace.Key(fmt.Sprintf("agent/fifty-%d", i))
				ws, err := p.Open(b.Context(), key, workspace.Spec{})
				if err != nil {
					b.Errorf("%s: %v", key, err)
					return
				}
				for n := range commands {
					want := fmt.Sprintf("%d of %d\n", n, i)
					r, err := ws.Exec(b.Context(), workspace.Command{Shell: "echo " + want, Wall: time.Minute})
					if err != nil || r.Output != want {
						b.Errorf("%s: lost %q: %+v, %v", key, want, r, err)
					}
				}
			})
		}
		wg.Wait()
		b.ReportMetric(time.Since(start).Seconds(), "s/50-agents")
		b.ReportMetric(residentMiB(), "MiB-resident")
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-of-go")
	}
}

// BenchmarkHang says how long after its limit each command of hanging has ended,
// with its container and without: 2 s is the bar.
func BenchmarkHang(b *testing.B) {
	const limit = time.Second
	for _, kept := range []bool{false, true} {
		w := opened(b, provider(b), workspace.Key(fmt.Sprintf("agent/bench-hang-%t", kept)), workspace.Spec{PIDs: 64, KeepOnTimeout: kept})
		for _, h := range hanging {
			b.Run(fmt.Sprintf("%s, kept=%t", h.name, kept), func(b *testing.B) {
				var late []time.Duration
				for b.Loop() {
					sh(b, w, "rm -f in")
					start := time.Now()
					if r, err := w.Exec(b.Context(), workspace.Command{Shell: h.line, Wall: limit}); err == nil {
						b.Fatalf("it has ended by itself: %+v", r)
					}
					late = append(late, time.Since(start)-limit)
				}
				b.ReportMetric(float64(slices.Max(late).Milliseconds()), "ms-late-at-most")
				b.ReportMetric(float64(median(late).Milliseconds()), "ms-late")
			})
		}
	}
}

// residentMiB is the largest memory that this process had; 0 where the system does not say.
func residentMiB() float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib float64
	_, _ = fmt.Sscan(rest, &kib)
	return kib / 1024
}
