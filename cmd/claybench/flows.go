package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
)

// The load of the rig of workflows.
const (
	flowSenders = 64 // requests at a time
	flowTimes   = 3  // each delivery is sent so often
	flowSteps   = 20 // nodes of the long workflow
	flowLimit   = 10 * time.Minute
	flowLook    = 20 * time.Millisecond
)

// flowFiles are the workflows: one that answers at once, one with many nodes, one that makes a call that
// may act only once, and one that waits.
func flowFiles(sink string) map[string]string {
	long := "triggers: {in: {on: events, match: \"^long\"}}\nstart: n1\nnodes:\n"
	for i := 1; i <= flowSteps-1; i++ {
		next := fmt.Sprint("n", i+1)
		if i == flowSteps-1 {
			next = "say"
		}
		long += fmt.Sprintf("  n%d: {kind: template, value: \"{{ trigger.text }}\", next: %s}\n", i, next)
	}
	long += "  say: {kind: reply, text: \"{{ trigger.text }} done\", next: END}\n"
	return map[string]string{
		"short": `triggers: {in: {on: events, match: "^short"}}
start: make
nodes:
  make: {kind: template, value: "{{ trigger.text }} done", next: say}
  say: {kind: reply, text: "{{ make.output }}", next: END}
`,
		"long": long,
		"once": `triggers: {in: {on: events, match: "^once"}}
start: act
nodes:
  act: {kind: http, method: POST, url: "` + sink + `/act", body: "{{ trigger.text }}", next: say, error: unsure}
  say: {kind: reply, text: "{{ trigger.text }} done", next: END}
  unsure: {kind: reply, text: "{{ trigger.text }} {{ error.code }}", next: END}
`,
		"nap": `triggers: {in: {on: events, match: "^nap"}}
start: rest
nodes:
  rest: {kind: wait, for: 720h, next: say}
  say: {kind: reply, text: "{{ trigger.text }} done", next: END}
`,
	}
}

// acts counts the calls of each text.
type acts struct {
	mu   sync.Mutex
	made map[string]int
}

func (a *acts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b := make([]byte, 100)
	n, _ := r.Body.Read(b) // a text is short and comes in one piece
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made[strings.Trim(string(b[:n]), `"`)]++
}

// A flowRig sends deliveries that start workflows.
type flowRig struct {
	options
	dir     string
	env     []string // further environment of the daemon
	clients *clients
	acts    *acts
	process *process
	rng     *rand.Rand
}

func newFlowRig(o options, dir string) *flowRig {
	return &flowRig{options: o, dir: dir, acts: &acts{made: make(map[string]int)}, rng: rand.New(rand.NewPCG(uint64(o.seed), 1))}
}

// allFlows measures workflows, and kills one run of many nodes.
func allFlows(ctx context.Context, o options, dir string) error {
	apart := filepath.Join(dir, "walk")
	if err := os.Mkdir(apart, 0o700); err != nil {
		return err
	}
	if err := walks(ctx, o, apart); err != nil {
		return err
	}
	return flowRuns(ctx, o, dir)
}

// flowRuns measures workflows that deliveries of a webhook start: how many end in a second, what a node
// costs, what is left of a delivery that is sent three times while the daemon is killed, and what runs
// that wait hold.
func flowRuns(ctx context.Context, o options, dir string) error {
	r := newFlowRig(o, dir)
	sink, stopSink, err := listen(r.acts)
	if err != nil {
		return err
	}
	defer stopSink()
	if err := r.configure(sink, flowFiles(sink), ""); err != nil {
		return err
	}
	return r.with(ctx, r.throughput, r.kills, r.naps)
}

// with takes steps with a daemon.
func (r *flowRig) with(ctx context.Context, steps ...func(context.Context) error) (err error) {
	if r.clients, err = openClients(ctx, r.dir, 0, false); err != nil {
		return err
	}
	defer r.clients.stop()
	if err := r.start(ctx); err != nil {
		return err
	}
	for _, step := range steps {
		if err = step(ctx); err != nil {
			break
		}
	}
	killed := ignoreKilled(r.process.kill()) // its log is complete then
	if err != nil {
		o := r.options
		err = fmt.Errorf("%w\nrepeat with: go run ./cmd/claybench -flows %d -kills %d -seed %d\n%s", err, max(o.flows, 1), o.kills, o.seed, r.process.log)
	}
	return errors.Join(err, killed)
}

// configure writes the configuration, with more keys, and workflows that may call the sink.
func (r *flowRig) configure(sink string, files map[string]string, more string) error {
	folder := filepath.Join(r.dir, "flows")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name+".yaml"), []byte("owner: web/rig\n"+text), 0o600); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("agents: {default: {memory: off}}\nbudgets: []\npprof: true\nweb: {private: [%q]}\n", strings.TrimPrefix(sink, "http://"))
	return os.WriteFile(filepath.Join(r.dir, "claybot.yaml"), []byte(text+more), 0o600)
}

func (r *flowRig) start(ctx context.Context) (err error) {
	if r.process, err = start(ctx, r.bin, r.dir, append(r.clients.env(), r.env...)...); err != nil {
		return err
	}
	return r.process.waitReady(slowReady)
}

// flowTexts are n texts that start a workflow.
func flowTexts(flow, prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s %s%d", flow, prefix, i)
	}
	return all
}

// deliver sends an event for each text until the daemon says that it has it.
func (r *flowRig) deliver(ctx context.Context, all []string) error {
	queue := make(chan string)
	var wg sync.WaitGroup
	for range flowSenders {
		wg.Go(func() {
			for text := range queue {
				id := strings.ReplaceAll(text, " ", "-")
				body, _ := json.Marshal(map[string]string{"channel": id, "text": text}) // strings always marshal
				for !r.delivered(ctx, id, body) && pause(ctx, againAfter) {
				}
			}
		})
	}
	for _, text := range all {
		queue <- text
	}
	close(queue)
	wg.Wait()
	return context.Cause(ctx)
}

func (r *flowRig) delivered(ctx context.Context, id string, body []byte) bool {
	resp, err := r.clients.event(ctx, id, body)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusAccepted
}

// said returns what was said of a delivery, and nothing while it is not.
func (r *flowRig) said(text string) []string {
	return r.clients.inbox.of(strings.ReplaceAll(text, " ", "-"))
}

// flowNotice begins the notice in place of a reply whose send was cut off as often as it may be tried.
const flowNotice = "One of my last replies may be missing"

// replyOf returns the one reply to a delivery, and whether there is a notice that it may be missing: in its
// place, or behind it where it arrived after all. ok is false for anything else.
func replyOf(said []string) (reply string, noticed, ok bool) {
	if n := len(said); n > 0 && strings.HasPrefix(said[n-1], flowNotice) {
		said, noticed = said[:n-1], true
	}
	switch {
	case len(said) == 1:
		return said[0], noticed, !strings.HasPrefix(said[0], flowNotice)
	case noticed:
		return "", true, len(said) == 0
	}
	return "", false, false
}

// answered waits until each text has a reply, or the notice about it.
func (r *flowRig) answered(ctx context.Context, all []string) error {
	end := time.Now().Add(flowLimit)
	for _, text := range all {
		for len(r.said(text)) == 0 {
			if time.Now().After(end) {
				return fmt.Errorf("no reply to %q", text)
			}
			if !pause(ctx, flowLook) {
				return context.Cause(ctx)
			}
		}
		if said := r.said(text)[0]; !strings.HasPrefix(said, text) && !strings.HasPrefix(said, flowNotice) {
			return fmt.Errorf("the reply to %q is %q", text, said)
		}
	}
	return nil
}

// throughput measures workflows of two nodes, and of many: the difference is what a node costs.
func (r *flowRig) throughput(ctx context.Context) error {
	spent := func(all []string) (took, cpu time.Duration, err error) {
		before, err := r.process.cpu()
		if err != nil {
			return 0, 0, err
		}
		began := time.Now()
		if err := errors.Join(r.deliver(ctx, all), r.answered(ctx, all)); err != nil {
			return 0, 0, err
		}
		took = time.Since(began)
		after, err := r.process.cpu()
		return took, after - before, err
	}
	if _, _, err := spent(flowTexts("short", "warm", r.flows/4)); err != nil {
		return err
	}
	n := float64(r.flows)
	took, short, err := spent(flowTexts("short", "fast", r.flows))
	if err != nil {
		return err
	}
	_, long, err := spent(flowTexts("long", "fast", r.flows))
	if err != nil {
		return err
	}
	each := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) / n }
	fmt.Printf("flows: webhook, template, reply: %d runs, %.0f a second, %.2f ms of processor time each; %.2f ms for one with %d nodes, %.3f ms for each further node\n",
		r.flows, n/took.Seconds(), each(short), each(long), flowSteps, (each(long)-each(short))/(flowSteps-2))
	return nil
}

// kills sends each delivery three times while the daemon is killed.
func (r *flowRig) kills(ctx context.Context) error {
	var once []string
	for i, flow := range []string{"short", "long", "once"} {
		once = append(once, flowTexts(flow, "kill", (r.flows+i)/3)...)
	}
	var all []string
	for range flowTimes {
		all = append(all, once...)
	}
	r.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	sent := make(chan error, 1)
	part := len(all) / (r.options.kills + 1)
	for k := range r.options.kills {
		go func() { sent <- r.deliver(ctx, all[k*part:(k+1)*part]) }()
		pause(ctx, time.Duration(r.rng.Int64N(int64(time.Second))))
		if err := ignoreKilled(r.process.kill()); err != nil {
			return err
		}
		if err := r.start(ctx); err != nil {
			return err
		}
		if err := <-sent; err != nil {
			return err
		}
	}
	if err := errors.Join(r.deliver(ctx, all[r.options.kills*part:]), r.answered(ctx, once)); err != nil {
		return err
	}
	return r.judge(once)
}

// judge looks for what was lost, doubled, or said wrongly.
func (r *flowRig) judge(once []string) error {
	var broken []string
	unknown, acted, notices := 0, 0, 0
	for _, text := range once {
		said := r.said(text)
		reply, noticed, ok := replyOf(said)
		if !ok {
			broken = append(broken, fmt.Sprintf("%q has the replies %q", text, said))
			continue
		}
		if noticed {
			notices++
		}
		r.acts.mu.Lock()
		made := r.acts.made[text]
		r.acts.mu.Unlock()
		acted += made
		switch {
		case !strings.HasPrefix(text, "once") && reply == text+" done":
		case reply == text+" done" && made == 1:
		case reply == text+" unknown_outcome" && made <= 1:
			unknown++
		case reply == "" && made <= 1:
		default:
			broken = append(broken, fmt.Sprintf("%q acted %d times and says %q", text, made, said))
		}
	}
	fmt.Printf("flows: %d deliveries, each sent %d times, %d kills: %d with other than one reply or wrong; calls that may act only once: %d, %d of them with unknown outcome; %d replies cut off twice, with a notice\n",
		len(once), flowTimes, r.options.kills, len(broken), acted, unknown, notices)
	if len(broken) > 0 {
		return errors.New(strings.Join(broken[:min(len(broken), 20)], "\n"))
	}
	return nil
}

// naps lets many runs wait, also over a kill, and measures what they hold.
func (r *flowRig) naps(ctx context.Context) error {
	n := 10 * r.flows
	before, err := r.held(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := errors.Join(r.deliver(ctx, flowTexts("nap", "n", n)), r.waiting(ctx, n)); err != nil {
		return err
	}
	took := time.Since(began)
	during, err := r.held(ctx)
	if err != nil {
		return err
	}
	if err := ignoreKilled(r.process.kill()); err != nil {
		return err
	}
	began = time.Now()
	if err := r.start(ctx); err != nil {
		return err
	}
	ready := time.Since(began)
	if err := r.waiting(ctx, n); err != nil {
		return err
	}
	after, err := r.held(ctx)
	if err != nil {
		return err
	}
	if !pause(ctx, r.options.idle) { // what a start leaves to do is done
		return context.Cause(ctx)
	}
	idle, err := r.process.cpu()
	if err != nil || !pause(ctx, r.options.idle) {
		return errors.Join(err, context.Cause(ctx))
	}
	end, err := r.process.cpu()
	fmt.Printf("flows: %d runs wait for 30 days, after %v: goroutines %d, before %d; resident %d MiB, before %d; after kill -9 ready in %v: goroutines %d, resident %d MiB, %.1f %% of a processor\n",
		n, took.Round(time.Second), during.routines, before.routines, during.rss>>20, before.rss>>20, ready.Round(time.Millisecond), after.routines, after.rss>>20,
		100*float64(end-idle)/float64(max(r.options.idle, time.Millisecond)))
	return err
}

// waiting waits until so many runs wait.
func (r *flowRig) waiting(ctx context.Context, n int) error {
	for end := time.Now().Add(flowLimit); ; {
		c, err := openConsole(r.dir)
		if err != nil {
			return err
		}
		var s overview.Status
		err = c.call(ctx, http.MethodGet, "/status", &s)
		c.Close()
		paused := s.Runs[claybot.RunAwaiting]
		switch {
		case err == nil && paused == n && s.Inbox.Waiting == 0:
			return nil
		case time.Now().After(end):
			return errors.Join(fmt.Errorf("%d runs wait, want %d: %+v", paused, n, s.Runs), err)
		case !pause(ctx, 10*flowLook):
			return context.Cause(ctx)
		}
	}
}

// holding is what a process holds.
type holding struct {
	routines int
	rss      int64
}

func (r *flowRig) held(ctx context.Context) (h holding, err error) {
	life := &lifeRig{crashRig: crashRig{dir: r.dir}, process: r.process}
	f, err := life.figures(ctx)
	if err != nil {
		return h, err
	}
	h.routines = f.routines
	h.rss, err = r.process.rss()
	return h, err
}
