package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/nodes"
)

// A reconcile touches what differs alone, and what begins waits for all that end.
func TestReconcile(t *testing.T) {
	const long = 3 * time.Second
	inPlant(t, time.Minute, func(p *plant) {
		p.work = func(ctx context.Context, c string, up func()) error {
			up()
			<-ctx.Done()
			if c == "slow" {
				time.Sleep(long)
			}
			return nil
		}
		reconcile := func(next map[string]string, changed, began, ended []string) {
			p.Helper()
			p.ended = nil
			if got := p.Reconcile(p.Context(), next); !slices.Equal(got, changed) {
				p.Errorf("%v: changed %v, want %v", next, got, changed)
			}
			if got := p.is(); !slices.Equal(got, began) || !slices.Equal(p.ended, ended) {
				p.Errorf("%v: began %v, ended %v; want %v, %v", next, got, p.ended, began, ended)
			}
			if all := p.Configurations(); len(all) != len(next) {
				p.Errorf("%v: there are %v", next, all)
			}
		}
		reconcile(map[string]string{"a": "1", "b": "slow", "c": "1"}, []string{"a", "b", "c"}, []string{"a=1", "b=slow", "c=1"}, nil)
		reconcile(map[string]string{"a": "1", "b": "slow", "c": "1"}, nil, nil, nil)
		began := time.Now()
		reconcile(map[string]string{"a": "1", "c": "2", "d": "1"}, []string{"c", "d"}, []string{"c=2", "d=1"}, []string{"b false", "c false"})
		if took := time.Since(began); took != long {
			p.Errorf("it took %v", took)
		}
		reconcile(nil, nil, nil, []string{"a false", "c false", "d false"})
		reconcile(map[string]string{"b": "1"}, []string{"b"}, []string{"b=1"}, nil)
	})
}

// Nodes that share nothing wait for what had their name alone.
func TestReconcileAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		var mu sync.Mutex
		at := make(map[string]time.Duration)
		start := time.Now()
		set := nodes.NewSet(nodes.Kind[string]{Alone: true, Work: func(ctx context.Context, name, c string, up func()) error {
			mu.Lock()
			at[name+"="+c] = time.Since(start)
			mu.Unlock()
			up()
			<-ctx.Done()
			time.Sleep(3 * time.Second)
			return nil
		}})
		var all sync.WaitGroup
		all.Go(func() { _ = set.Run(ctx) })
		set.Reconcile(ctx, map[string]string{"a": "1", "b": "1"})
		time.Sleep(time.Second)
		set.Reconcile(ctx, map[string]string{"b": "2", "c": "1"})
		time.Sleep(time.Minute)
		end()
		all.Wait()
		for what, want := range map[string]time.Duration{"a=1": 0, "b=1": 0, "b=2": 4 * time.Second, "c=1": time.Second} {
			if got, began := at[what]; !began || got != want {
				t.Errorf("%s began after %v, want %v", what, got, want)
			}
		}
	})
}

// A start that fails, hangs or does not end leaves the others of a reconcile alone.
func TestReconcileWithFailures(t *testing.T) {
	broken := errors.New("broken")
	inPlant(t, nodes.Grace, func(p *plant) {
		p.work = func(ctx context.Context, c string, up func()) error {
			switch c {
			case "fails":
				return broken
			case "good", "deaf":
				up()
			}
			<-ctx.Done()
			if c == "deaf" {
				time.Sleep(time.Minute)
			}
			return nil
		}
		p.Reconcile(p.Context(), map[string]string{"a": "good", "b": "good", "c": "deaf", "d": "good"})
		p.is()
		began := time.Now()
		p.Reconcile(p.Context(), map[string]string{"a": "good", "b": "fails", "d": "hangs"})
		if took := time.Since(began); took != nodes.Grace {
			p.Errorf("it took %v", took)
		}
		if !slices.Equal(p.ended, []string{"b false", "c true", "d false"}) {
			p.Errorf("ended %v", p.ended)
		}
		p.state(p.Node("a"), "what stays", nodes.Started, nil)
		p.wants("while another hangs") // what begins may share its account
		time.Sleep(time.Minute)
		p.state(p.Node("a"), "what stays", nodes.Started, nil)
		p.state(p.Node("b"), "what fails", nodes.Stopped, broken)
		p.state(p.Node("d"), "what hangs", nodes.Started, nil)
		p.is()
		p.Reconcile(p.Context(), map[string]string{"a": "good", "b": "good", "d": "good"})
		for _, name := range []string{"a", "b", "d"} {
			if err := p.Node(name).Start(p.Context()); err != nil {
				p.Errorf("%s: %v", name, err)
			}
		}
		p.wants("then", "b=good", "d=good")
	})
}

// In any order of calls a node is in the state of the table, and works if it is started.
func TestLifeAtRandom(t *testing.T) {
	table := map[string]map[string]string{
		"configure": {nodes.Created: nodes.Configured},
		"start":     {nodes.Configured: nodes.Started, nodes.Stopped: nodes.Started},
		"stop":      {nodes.Started: nodes.Stopped},
		"delete":    {nodes.Created: nodes.Deleted, nodes.Configured: nodes.Deleted, nodes.Started: nodes.Deleted, nodes.Stopped: nodes.Deleted},
	}
	inPlant(t, 0, func(p *plant) {
		dice := rand.New(rand.NewPCG(1, 2))
		n, state := p.Node("n"), nodes.Created
		for range 5000 {
			x := calls[dice.IntN(len(calls))]
			if x.name == "delete" && dice.IntN(4) > 0 {
				continue
			}
			err := x.call(p.Context(), n)
			if to, moves := table[x.name][state]; moves {
				state = to
			}
			if got, _ := n.State(); got != state || (err == nil) == (x.name == "start" && state == nodes.Created) {
				p.Fatalf("%s: %s, %v, want %s", x.name, got, err, state)
			}
			synctest.Wait()
			if (p.works["n"] == 1) != (state == nodes.Started) {
				p.Fatalf("%s: %s, and %d work", x.name, state, p.works["n"])
			}
			if state == nodes.Deleted {
				n, state = p.Node("n"), nodes.Created
			}
		}
	})
}

// However calls and reconciles come at once, with works that start, fail and end as they like, two of a name never
// work at a time, what the last reconcile wants works, and nothing else.
func TestCallsAtOnce(t *testing.T) {
	for seed := range uint64(30) {
		inPlant(t, time.Second, func(p *plant) {
			dice := rand.New(rand.NewPCG(seed, 3))
			var rolling sync.Mutex
			roll := func(n int) int {
				rolling.Lock()
				defer rolling.Unlock()
				return dice.IntN(n)
			}
			p.work = func(ctx context.Context, c string, up func()) error {
				time.Sleep(time.Duration(roll(1500)) * time.Millisecond)
				if c != "last" && roll(4) == 0 {
					return errors.New("broken")
				}
				up()
				<-ctx.Done()
				time.Sleep(time.Duration(roll(20)) * time.Second) // some beyond the grace
				return nil
			}
			turn := make(chan struct{}, 1)
			reconcile := func(next map[string]string) {
				turn <- struct{}{}
				defer func() { <-turn }()
				p.Reconcile(p.Context(), next)
			}
			names := []string{"a", "b", "c"}
			var all sync.WaitGroup
			for i := range 200 {
				name, x := names[roll(3)], calls[roll(len(calls))]
				next := map[string]string{name: fmt.Sprint(roll(3)), names[roll(3)]: "always"}
				if roll(4) == 0 {
					all.Go(func() { reconcile(next) })
				} else {
					all.Go(func() { _ = x.call(p.Context(), p.Node(name)) })
				}
				if i%3 == 0 {
					time.Sleep(time.Duration(roll(2000)) * time.Millisecond)
				}
				if i == 150 && seed%3 == 0 {
					p.stop()
				}
			}
			all.Wait()
			next := map[string]string{"a": "last", "c": "last"}
			reconcile(next)
			time.Sleep(time.Hour)
			for _, name := range names {
				p.mu.Lock()
				works := p.works[name] == 1
				p.mu.Unlock()
				if works != (next[name] != "" && seed%3 != 0) {
					p.Errorf("seed %d: %s works: %v", seed, name, works)
				}
			}
		})
	}
}
