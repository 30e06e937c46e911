package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// The measurements of many nodes.
const (
	nodesRounds = 3  // of each setup, in turn, by default
	nodesAtOnce = 16 // runs that a node works on at most, where the model waits
	nodesKills  = 10 // whose takeover is timed
)

// A setup is nodes over a store.
type setup struct {
	name  string
	nodes int // over PostgreSQL; 0: one over SQLite
}

var setups = []setup{{"one node on SQLite", 0}, {"one node on PostgreSQL", 1}, {"three nodes on PostgreSQL", 3}}

// benchNodes measures what many nodes cost and bring, and prints the table. A bar
// that is missed is no error.
func benchNodes(ctx context.Context, o options, dir string) error {
	b := &nodesBencher{bencher: bencher{options: o, dir: dir}}
	for _, step := range []func(context.Context) error{b.short, b.long, b.acquire, b.rest, b.takeover} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	text := b.table.markdown()
	fmt.Print(text)
	if o.out == "" {
		return nil
	}
	return writeNodesReport(o, text)
}

// A nodesBencher measures nodes.
type nodesBencher struct{ bencher }

// bar adds a figure with its bar, and whether that was met.
func (b *nodesBencher) bar(what string, value float64, unit string, ratio float64, bar string, met bool) {
	verdict := ": missed"
	if met {
		verdict = ": pass"
	}
	b.table.add(what, value, unit, ratio, bar+verdict)
}

// short measures answers per second where the model answers at once.
func (b *nodesBencher) short(ctx context.Context) error {
	rates, memory, err := b.rates(ctx, 0)
	if err != nil {
		return err
	}
	sqlite, one, three := rates[0], rates[1], rates[2]
	what := fmt.Sprintf("messages/s, %d chats, 0 ms model: ", b.many.people)
	b.table.add(what+setups[0].name, sqlite, "/s", 0, "")
	b.bar(what+setups[1].name, one, "/s", one/sqlite, ">= 0.5 of SQLite", one >= 0.5*sqlite)
	b.table.add(what+setups[2].name, three, "/s", three/sqlite, "")
	for i, s := range setups {
		b.table.add("resident memory of a node after that: "+s.name, memory[i], "MB", memory[i]/memory[0], "")
	}
	return nil
}

// long measures answers per second where the model takes its time and each node
// works on few runs at once, so that the database is not the limit.
func (b *nodesBencher) long(ctx context.Context) error {
	const thought = 500 * time.Millisecond
	rates, _, err := b.rates(ctx, thought, "CLAYBOT_NODE_MAX_RUNS="+strconv.Itoa(nodesAtOnce))
	if err != nil {
		return err
	}
	what := fmt.Sprintf("messages/s, %d chats, %d ms model, %d runs at once per node: ", b.many.people, thought.Milliseconds(), nodesAtOnce)
	b.table.add(what+setups[0].name, rates[0], "/s", 0, "")
	b.table.add(what+setups[1].name, rates[1], "/s", rates[1]/rates[0], "")
	b.bar(what+setups[2].name, rates[2], "/s", rates[2]/rates[1], ">= 2 x one node on PostgreSQL", rates[2] >= 2*rates[1])
	return nil
}

// rates measures all setups in turn and returns the medians of their answers per
// second, and of the resident memory of a node in MB.
func (b *nodesBencher) rates(ctx context.Context, thought time.Duration, env ...string) (rates, memory []float64, err error) {
	model, stopModel, err := listen(modelServer(thought))
	if err != nil {
		return nil, nil, err
	}
	defer stopModel()
	seen, used := make([][]float64, len(setups)), make([][]float64, len(setups))
	for round := range b.many.rounds {
		for i := range setups {
			i := (i + round) % len(setups) // no setup is always the first
			rate, mb, err := b.rate(ctx, setups[i], model, env)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", setups[i].name, err)
			}
			fmt.Printf("bench-nodes: round %d, model %v, %-26s %8.1f messages/s, %6.1f MB per node\n", round+1, thought, setups[i].name, rate, mb)
			seen[i], used[i] = append(seen[i], rate), append(used[i], mb)
		}
	}
	for i := range setups {
		rates, memory = append(rates, middle(seen[i])), append(memory, middle(used[i]))
	}
	return rates, memory, nil
}

func middle(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// rate measures one setup with a world of its own.
func (b *nodesBencher) rate(ctx context.Context, s setup, model string, env []string) (rate, mb float64, err error) {
	t, err := newTown()
	if err != nil {
		return 0, 0, err
	}
	defer t.server.Close()
	processes, stop, err := b.raise(ctx, s, t, model, env)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	t.speak(1, b.many.people, true)
	if err := rest(ctx, b.span/2); err != nil { // connections and agents come into being
		return 0, 0, err
	}
	t.harvest()
	began := time.Now()
	took, err := b.reap(ctx, t, b.span)
	if err != nil {
		return 0, 0, err
	}
	rate = float64(len(took)) / time.Since(began).Seconds()
	for _, p := range processes {
		bytes, err := p.rss()
		if err != nil {
			return 0, 0, err
		}
		mb += float64(bytes) / 1e6 / float64(len(processes))
	}
	return rate, mb, t.silence(ctx)
}

// raise starts a setup. stop ends it in order.
func (b *nodesBencher) raise(ctx context.Context, s setup, t *town, model string, env []string) (processes []*process, stop func() error, err error) {
	dir, err := b.room()
	if err != nil {
		return nil, nil, err
	}
	env = append([]string{
		"TELEGRAM_BOT_TOKEN=" + telegramtest.Token, "TELEGRAM_API_URL=" + t.url,
		"OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL=" + model,
	}, env...)
	if s.nodes == 0 {
		p, err := start(ctx, b.bin, dir, env...)
		if err != nil {
			return nil, nil, err
		}
		if err := p.waitReady(readyLimit); err != nil {
			return nil, nil, errors.Join(err, p.kill())
		}
		return []*process{p}, p.term, nil
	}
	db, err := openDatabase(ctx, nil, nodeNames...)
	if err != nil {
		return nil, nil, err
	}
	c, err := openCluster(dir, b.bin, db, s.nodes, 0, "", env...)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	c.direct = true
	stop = func() error {
		var all []error
		for _, n := range c.nodes {
			all = append(all, n.term())
		}
		return errors.Join(append(all, c.close(), db.Close())...)
	}
	for _, n := range c.nodes {
		if err := n.start(ctx); err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		processes = append(processes, n.p)
	}
	return processes, stop, nil
}

// rest measures what three nodes ask the database for when there are no messages.
func (b *nodesBencher) rest(ctx context.Context) error {
	t, err := newTown()
	if err != nil {
		return err
	}
	defer t.server.Close()
	model, stopModel, err := listen(modelServer(0))
	if err != nil {
		return err
	}
	defer stopModel()
	dir, err := b.room()
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, nil, nodeNames...)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it is removed anyway
	c, err := openCluster(dir, b.bin, db, 3, 0, "", "TELEGRAM_BOT_TOKEN="+telegramtest.Token, "TELEGRAM_API_URL="+t.url,
		"OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL="+model)
	if err != nil {
		return err
	}
	c.direct = true
	defer func() { _ = c.close() }() // what could fail has failed before
	for _, n := range c.nodes {
		if err := n.start(ctx); err != nil {
			return err
		}
	}
	t.speak(1, 50, false) // some agents are there
	if err := t.silence(ctx); err != nil {
		return err
	}
	if err := rest(ctx, b.idle); err != nil { // what follows an answer is over
		return err
	}
	queries, err := asked(ctx, db, 6*b.idle)
	if err != nil {
		return err
	}
	per := queries / float64(len(c.nodes))
	b.bar("idle: queries/s of a node, besides begin and commit", per, "/s", 0, "<= 8", per <= 8)
	for _, n := range c.nodes {
		if err := n.term(); err != nil {
			return err
		}
	}
	return nil
}

// asked is how many statements a second a server gets within a span. They are
// counted in its log, which has all of them.
func asked(ctx context.Context, db *database, span time.Duration) (float64, error) {
	for _, q := range []string{"ALTER SYSTEM SET log_statement = 'all'", "SELECT pg_reload_conf()"} {
		if _, err := db.query(ctx, q); err != nil {
			return 0, err
		}
	}
	if err := rest(ctx, time.Second); err != nil { // all backends have heard of it
		return 0, err
	}
	log, err := os.Open(db.Log())
	if err != nil {
		return 0, err
	}
	defer log.Close()
	if _, err := log.Seek(0, io.SeekEnd); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := rest(ctx, span); err != nil {
		return 0, err
	}
	n := 0
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if statement(lines.Text()) {
			n++
		}
	}
	return float64(n) / time.Since(began).Seconds(), lines.Err()
}

// statement reports whether a line of the server's log tells of a statement of a
// node that asks for, or changes, something.
func statement(line string) bool {
	_, text, found := strings.Cut(line, "LOG:  ")
	if !found || strings.Contains(line, "postgrestest") {
		return false
	}
	how, sql, _ := strings.Cut(text, ": ")
	if how != "statement" && !strings.HasPrefix(how, "execute ") {
		return false
	}
	switch word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(sql)), " "); strings.TrimSuffix(word, ";") {
	case "begin", "commit", "rollback", "": // they come with a query
		return false
	}
	return true
}

// takeover times how others take over the work of nodes that are killed, with the
// lease that nodes have by default.
func (b *nodesBencher) takeover(ctx context.Context) error {
	dir, err := b.room()
	if err != nil {
		return err
	}
	o := b.options
	o.many.size = nodesSize{faultKill: o.many.kills}
	o.many.lease, o.many.json = o.many.benchLease, ""
	// All nodes have runs all the time, and each kill is got over before the next.
	o.many.chats, o.many.every, o.many.slowEach = max(o.many.chats, 3), 500*time.Millisecond, 1
	o.many.calm = true
	if o.many.lease == 0 {
		o.many.lease = configs.DefaultLease
	}
	v, err := strikeNodes(ctx, o, filepath.Clean(dir))
	if err != nil {
		return err
	}
	if v.broken() > 0 {
		return fmt.Errorf("promises broken while nodes were killed:\n%s", strings.Join(v.Stories, "\n"))
	}
	const limit = 4 // whatever the lease: the server knows at once that a process is gone
	what := fmt.Sprintf("takeover of a run after kill -9, lease %v, %d runs, ", o.many.lease, v.Kill.Runs)
	b.table.add(what+"p50", v.Kill.P50, "s", 0, "")
	b.bar(what+"p99", v.Kill.P99, "s", 0, "<= 4 s", v.Kill.Runs > 0 && v.Kill.P99 <= limit)
	return nil
}
