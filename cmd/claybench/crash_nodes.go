package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// nodesOptions are the flags of the rig of many nodes.
type nodesOptions struct {
	size  nodesSize
	lease time.Duration // of the nodes; shorter than theirs by default, so that there is time for all faults
	chats int           // on each platform, and over HTTP
	every time.Duration // a message of each
	// slowEach: so many answers of the model, one grows slowly.
	slowEach int
	calm     bool   // no fault comes before the last one is got over
	json     string // file for the figures; empty prints only

	people     int           // who write as soon as they are answered, with -bench-nodes
	rounds     int           // of each setup, with -bench-nodes
	kills      int           // whose takeover -bench-nodes times
	benchLease time.Duration // of the nodes then; 0: that which they have by default
}

func (o *nodesOptions) flags() {
	flag.IntVar(&o.size[faultKill], "node-kills", 200, "kill -9 of a node and its restart, with -crash-nodes")
	flag.IntVar(&o.size[faultFreeze], "freezes", 100, "SIGSTOP of a node for longer than its lease, then SIGCONT, with -crash-nodes")
	flag.IntVar(&o.size[faultCut], "cuts", 50, "of the connections of a node to the database, with -crash-nodes")
	flag.IntVar(&o.size[faultRestart], "restarts", 20, "of the database, fast and immediate, with -crash-nodes")
	flag.IntVar(&o.size[faultTear], "tears", tears(40), "deaths of a node at one of its own writes to the database, with -crash-nodes")
	flag.DurationVar(&o.lease, "lease", 3*time.Second, fmt.Sprintf("of the nodes with -crash-nodes; theirs by default is %v", configs.DefaultLease))
	flag.IntVar(&o.chats, "chats", 3, "conversations on each platform and over HTTP, with -crash-nodes")
	flag.DurationVar(&o.every, "every", time.Second, "between two messages of a conversation, with -crash-nodes")
	flag.IntVar(&o.slowEach, "slow-each", slowEach, "of so many answers of the model, one grows slowly, with -crash-nodes")
	flag.StringVar(&o.json, "json", "", "file for the results of -crash-nodes")
	flag.IntVar(&o.people, "people", crowd, "who write as soon as they are answered, with -bench-nodes")
	flag.IntVar(&o.rounds, "rounds", nodesRounds, "of each setup, with -bench-nodes")
	flag.IntVar(&o.kills, "takeovers", nodesKills, "kills whose takeover is timed, with -bench-nodes")
	flag.DurationVar(&o.benchLease, "bench-lease", 0, "of the nodes whose takeover is timed; 0: the default")
}

// tears is n where the saboteur works, and otherwise 0.
func tears(n int) int {
	if !canSabotage {
		return 0
	}
	return n
}

// A nodesRig is three nodes over one database, the world around them, and what
// happens to them.
type nodesRig struct {
	options
	dir    string
	db     *database
	schema string
	model  *openaitest.Server
	actor  *actor
	asks   *asks
	places *places
	web    []*caller
	table  *timetable
	*cluster
	storm *storm
	ends  map[claybot.RunID]time.Time // of runs, as the database has committed them
}

// crashNodes lets faults happen to three nodes under load, and then looks for what
// was lost, doubled, out of order, or written by who had no right to.
func crashNodes(ctx context.Context, o options, dir string) error {
	v, err := strikeNodes(ctx, o, dir)
	if err != nil {
		return err
	}
	return v.report(o)
}

// strikeNodes is crashNodes without its report.
func strikeNodes(ctx context.Context, o options, dir string) (v *nodesVerdict, err error) {
	db, err := openDatabase(ctx, []string{provable}, nodeNames...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	r := &nodesRig{options: o, dir: dir, db: db, actor: newActor(20*time.Millisecond, 50*time.Millisecond, 150*time.Millisecond)}
	r.asks = newAsks(r.actor.reply, o.many.slowEach)
	r.model = openaitest.New(openaitest.Config{Reply: r.asks.reply, Keep: 1})
	modelURL, stopModel, err := r.model.Start()
	if err != nil {
		return nil, err
	}
	defer stopModel()
	if r.places, err = openPlaces(o.many.chats); err != nil {
		return nil, err
	}
	defer r.places.close()
	const config = "agents: {default: {memory: off}}\nsubagents: {max_depth: 3, max_children: 10000, max_starts_per_hour: 1000000}\n"
	env := append([]string{"OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL=" + modelURL}, r.places.env...)
	if r.cluster, err = openCluster(dir, o.bin, db, len(nodeNames), o.many.lease, config, env...); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.cluster.close()) }()
	return r.run(ctx)
}

// run is the whole story: load, faults, the end, the verdict.
func (r *nodesRig) run(ctx context.Context) (v *nodesVerdict, err error) {
	// The first node makes the tables; from then on the database takes notes.
	first := r.nodes[0]
	if err := first.start(ctx); err != nil {
		return nil, err
	}
	if err := first.term(); err != nil {
		return nil, err
	}
	if err := watchWrites(ctx, r.db); err != nil {
		return nil, err
	}
	if r.schema, err = schemaOf(ctx, r.db); err != nil {
		return nil, err
	}
	store, err := openStore(ctx, r.db.url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	tree := taskTree{store.Tree()}
	if r.table, err = newTimetable(ctx, first.dir, tree); err != nil {
		return nil, err
	}
	if err := tree.write(ctx, "heartbeat/rig.md", "---\ntitle: Rig\nevery: 5m\n---\n"+job{name: "beat"}.task()+"\n"); err != nil {
		return nil, err
	}
	if err := r.startAll(ctx); err != nil {
		return nil, err
	}
	size := r.many.size
	r.storm = &storm{cluster: r.cluster, calm: r.many.calm, rng: rand.New(rand.NewPCG(uint64(r.seed), 3))}
	plan := size.plan(r.storm.rng)
	fmt.Printf("crash-nodes: %d kills, %d freezes, %d cuts, %d restarts of the database, %d tears, seed %d, lease %v\n",
		size[faultKill], size[faultFreeze], size[faultCut], size[faultRestart], size[faultTear], r.seed, r.lease)
	began := time.Now()
	stopLoad := r.load(ctx)
	err = r.storm.rage(ctx, plan, func(done int) {
		if done%20 == 0 {
			fmt.Printf("crash-nodes: %d of %d faults in %v\n", done, len(plan), time.Since(began).Round(time.Second))
		}
	})
	if err := errors.Join(err, stopLoad()); err != nil {
		return nil, err
	}
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	v, err = r.judge(ctx)
	if err != nil {
		return nil, err
	}
	v.Seconds = time.Since(began).Seconds()
	return v, nil
}

// settle waits until nothing is left to do, or nothing happens any more, and ends
// the nodes in order.
func (r *nodesRig) settle(ctx context.Context) error {
	var consoles []*console
	defer func() {
		for _, c := range consoles {
			c.Close()
		}
	}()
	for _, n := range r.nodes {
		c, err := openConsole(n.dir)
		if err != nil {
			return err
		}
		consoles = append(consoles, c)
		if err := r.table.rest(ctx, c); err != nil {
			return fmt.Errorf("node %s: %w", n.name, err)
		}
	}
	if err := r.wait(ctx, consoles[0]); err != nil {
		return err
	}
	var all []error
	for _, n := range r.nodes {
		all = append(all, n.term())
	}
	return errors.Join(all...)
}

func (r *nodesRig) wait(ctx context.Context, c *console) error {
	last, changed := "", time.Now()
	for deadline := time.Now().Add(quietLimit); time.Now().Before(deadline); {
		if err := r.storm.revive(ctx); err != nil {
			return err
		}
		quiet, figures, err := c.quiet(ctx)
		if err != nil {
			return err
		}
		open := r.places.pending()
		for _, c := range r.places.chats {
			open += len(c.said) - len(c.counts())
		}
		tasks := r.table.open(ctx)
		now := fmt.Sprint(open, " messages without a reply, ", tasks, " tasks to come, ", figures)
		if now != last {
			last, changed = now, time.Now()
		}
		still := time.Since(changed)
		switch {
		case quiet && tasks == 0 && open == 0 && still > time.Second:
			return nil
		case quiet && tasks == 0 && still > 20*time.Second:
			return nil // some replies are notices, which have no marker
		case still > stillLimit:
			fmt.Printf("crash-nodes: nothing happens any more: %s\n", now)
			return nil // the judge says what is missing
		}
		if !pause(ctx, 250*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	fmt.Printf("crash-nodes: no end: %s\n", last)
	return nil
}

// A takeoverFigure is how long others took to go on with the work of a node.
type takeoverFigure struct {
	Runs      int     `json:"runs"`
	Disturbed int     `json:"disturbed"` // runs apart from these, in whose takeover another fault came
	P50       float64 `json:"p50Seconds"`
	P99       float64 `json:"p99Seconds"`
	Max       float64 `json:"maxSeconds"`
}

func figureOf(took []time.Duration, disturbed int) takeoverFigure {
	slices.Sort(took)
	f := takeoverFigure{Runs: len(took), Disturbed: disturbed, P50: percentile(took, 0.5).Seconds(), P99: percentile(took, 0.99).Seconds()}
	if len(took) > 0 {
		f.Max = took[len(took)-1].Seconds()
	}
	return f
}

// A nodesVerdict is what the rig of many nodes found. All that is named below
// Accepted until Explained is to be 0.
type nodesVerdict struct {
	Seed     int64          `json:"seed"`
	Lease    string         `json:"lease"`
	Seconds  float64        `json:"seconds"`
	Faults   map[string]int `json:"faults"`
	Accepted map[string]int `json:"accepted"` // messages, by platform
	Answered int            `json:"answered"`
	Noticed  int            `json:"noticed"`

	Unaccepted  int   `json:"unaccepted"` // never confirmed to their platform
	Lost        int   `json:"lost"`
	RunTwice    int64 `json:"runTwice"`
	OutOfOrder  int   `json:"outOfOrder"`
	Unexplained int   `json:"doubledUnexplained"`
	StaleWrites int64 `json:"staleWrites"`
	CronDoubled int   `json:"cronDoubled"`
	CronOdd     int   `json:"cronUnexplained"`
	Subagents   int   `json:"subagentsBroken"`

	Explained int            `json:"doubledExplained"`
	Writes    int64          `json:"fencedWrites"` // that were looked at
	AfterThaw int            `json:"askedAfterThaw"`
	Overlaps  int            `json:"modelCallsAtOnce"`
	Restarted int            `json:"endedByThemselves"`
	CronFired int            `json:"cronFired"`
	Kill      takeoverFigure `json:"takeoverAfterKill"`
	Freeze    takeoverFigure `json:"takeoverAfterFreeze"`
	Late      []string       `json:"lateTakeovers,omitempty"` // what happened where it took longer than the lease and 2 s
	Stories   []string       `json:"stories,omitempty"`

	census   *census
	instants *punctuality
}

// broken is how many promises were.
func (v *nodesVerdict) broken() int64 {
	return int64(v.Unaccepted+v.Lost+v.OutOfOrder+v.Unexplained+v.CronDoubled+v.CronOdd+v.Subagents) + v.RunTwice + v.StaleWrites
}

// report prints and keeps the figures; its error says which promises were broken.
func (v *nodesVerdict) report(o options) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	fmt.Printf("crash-nodes: lost %d, run twice %d, out of order %d, stale writes %d of %d, unexplained dup %d, explained dup %d, cron doubled %d of %d\n",
		v.Lost, v.RunTwice, v.OutOfOrder, v.StaleWrites, v.Writes, v.Unexplained, v.Explained, v.CronDoubled, v.CronFired)
	fmt.Printf("crash-nodes: lease %s; takeover after kill p99 %.2f s (%d runs), after freeze p99 %.2f s (%d runs)\n",
		v.Lease, v.Kill.P99, v.Kill.Runs, v.Freeze.P99, v.Freeze.Runs)
	fmt.Printf("subagents: %v\ncron: %v\n%s\n", v.census, v.instants, b)
	if o.many.json != "" {
		if err := os.WriteFile(filepath.Clean(o.many.json), append(b, '\n'), 0o644); err != nil {
			return err
		}
	}
	if v.broken() > 0 {
		return fmt.Errorf("promises broken; repeat with: go run ./cmd/claybench -crash-nodes -seed %d\n%s", o.seed, strings.Join(v.Stories, "\n"))
	}
	return nil
}
