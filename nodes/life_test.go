package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/nodes"
)

// A plant has nodes, whose work it watches.
type plant struct {
	*testing.T
	*nodes.Set[string]
	work func(ctx context.Context, c string, up func()) error // nil: it starts at once, and works until ctx is done
	stop func()                                               // ends Run, and waits for it

	mu    sync.Mutex
	began []string       // name=configuration
	works map[string]int // how many work at present, by name
	most  int            // of one name at a time
	ended []string       // of Kind.Ended
}

// inPlant runs a test in a bubble, which fails it if a goroutine is left.
func inPlant(t *testing.T, wait time.Duration, test func(*plant)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &plant{T: t, works: make(map[string]int)}
		p.Set = nodes.NewSet(nodes.Kind[string]{Work: p.watch, Wait: wait, Ended: func(name string, hangs bool) {
			p.ended = append(p.ended, fmt.Sprint(name, " ", hangs))
		}})
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = p.Set.Run(ctx) })
		p.stop = func() { cancel(); run.Wait() }
		synctest.Wait()
		test(p)
		p.stop()
		for name, n := range p.works {
			if n != 0 {
				t.Errorf("%d of %s work after the end", n, name)
			}
		}
		if p.most > 1 {
			t.Errorf("%d of a name worked at a time", p.most)
		}
	})
}

func (p *plant) watch(ctx context.Context, name, c string, up func()) error {
	if ctx.Err() != nil {
		return nil
	}
	count := func(n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if n > 0 {
			p.began = append(p.began, name+"="+c)
		}
		p.works[name] += n
		p.most = max(p.most, p.works[name])
	}
	count(1)
	defer count(-1)
	if p.work != nil {
		return p.work(ctx, c, up)
	}
	up()
	<-ctx.Done()
	return context.Cause(ctx)
}

// is returns what has begun since the last look, sorted.
func (p *plant) is() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	began := p.began
	p.began = nil
	slices.Sort(began) // what begins at once does so in any order
	return began
}

// wants checks what has begun since the last look.
func (p *plant) wants(what string, began ...string) {
	p.Helper()
	if got := p.is(); !slices.Equal(got, began) {
		p.Errorf("%s: began %v, want %v", what, got, began)
	}
}

// state checks the state of a node.
func (p *plant) state(n nodes.Node[string], what, want string, because error) {
	p.Helper()
	synctest.Wait()
	if got, err := n.State(); got != want || !errors.Is(err, because) {
		p.Errorf("%s: %s, %v; want %s, %v", what, got, err, want, because)
	}
}

var calls = []struct {
	name string
	call func(context.Context, nodes.Node[string]) error
}{
	{"configure", func(_ context.Context, n nodes.Node[string]) error { return n.Configure("new") }},
	{"start", func(ctx context.Context, n nodes.Node[string]) error { return n.Start(ctx) }},
	{"stop", func(ctx context.Context, n nodes.Node[string]) error { return n.Stop(ctx) }},
	{"delete", func(ctx context.Context, n nodes.Node[string]) error { return n.Delete(ctx) }},
}

// reach brings a node into a state.
func reach(t *testing.T, n nodes.Node[string], state string) {
	t.Helper()
	var errs []error
	if state != nodes.Created {
		errs = append(errs, n.Configure("old"))
	}
	if state == nodes.Started || state == nodes.Stopped {
		errs = append(errs, n.Start(t.Context()))
	}
	if state == nodes.Stopped {
		errs = append(errs, n.Stop(t.Context()))
	}
	if state == nodes.Deleted {
		errs = append(errs, n.Delete(t.Context()))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Each call does in each state what the table of the package says, and a second one does no more.
func TestLife(t *testing.T) {
	type end struct {
		state string
		err   error
		began string // after the call, and then a start
	}
	for from, want := range map[string][4]end{
		nodes.Created: {
			{nodes.Configured, nil, "n=new"}, {nodes.Created, nodes.ErrNotConfigured, ""}, {nodes.Created, nil, ""}, {nodes.Deleted, nil, ""},
		},
		nodes.Configured: {
			{nodes.Configured, nil, "n=new"}, {nodes.Started, nil, "n=old"}, {nodes.Configured, nil, "n=old"}, {nodes.Deleted, nil, ""},
		},
		nodes.Started: {
			{nodes.Started, nil, "n=new"}, {nodes.Started, nil, ""}, {nodes.Stopped, nil, "n=old"}, {nodes.Deleted, nil, ""},
		},
		nodes.Stopped: {
			{nodes.Stopped, nil, "n=new"}, {nodes.Started, nil, "n=old"}, {nodes.Stopped, nil, "n=old"}, {nodes.Deleted, nil, ""},
		},
		nodes.Deleted: {
			{nodes.Deleted, nodes.ErrDeleted, ""}, {nodes.Deleted, nodes.ErrDeleted, ""}, {nodes.Deleted, nil, ""}, {nodes.Deleted, nil, ""},
		},
	} {
		for i, x := range calls {
			for times := 1; times <= 3; times++ {
				t.Run(fmt.Sprint(from, " ", x.name, " ", times), func(t *testing.T) {
					inPlant(t, 0, func(p *plant) {
						n := p.Node("n")
						reach(p.T, n, from)
						p.is()
						for range times {
							if err := x.call(p.Context(), n); !errors.Is(err, want[i].err) {
								p.Errorf("the error is %v, want %v", err, want[i].err)
							}
							p.state(n, "after it", want[i].state, nil)
						}
						if now := p.works["n"]; (now == 1) != (want[i].state == nodes.Started) {
							p.Errorf("%d work", now)
						}
						_ = n.Start(p.Context())
						if got := strings.Join(p.is(), " "); got != want[i].began {
							p.Errorf("began %q, want %q", got, want[i].began)
						}
					})
				})
			}
		}
	}
}

// Starts that come at once have one attempt and its result, whichever of their callers leaves.
func TestStartsShareAnAttempt(t *testing.T) {
	refused := errors.New("refused")
	for _, want := range []error{nil, refused} {
		inPlant(t, 0, func(p *plant) {
			p.work = func(ctx context.Context, _ string, up func()) error {
				time.Sleep(time.Minute)
				if want == nil {
					up()
					<-ctx.Done()
				}
				return want
			}
			n := p.Node("n")
			reach(p.T, n, nodes.Configured)
			var starts sync.WaitGroup
			for i := range 10 {
				starts.Go(func() {
					time.Sleep(time.Duration(i) * time.Second)
					ctx, cancel := context.WithCancel(p.Context())
					if i == 0 {
						time.AfterFunc(5*time.Second, cancel)
					} else {
						defer cancel()
					}
					if err := n.Start(ctx); !errors.Is(err, want) && i != 0 || i == 0 && !errors.Is(err, context.Canceled) {
						p.Errorf("start %d: %v", i, err)
					}
				})
			}
			starts.Wait()
			p.wants("ten starts", "n=old")
			state := nodes.Started
			if want != nil {
				state = nodes.Stopped
			}
			p.state(n, "at last", state, want)
			// After a failure the next start is another attempt.
			if err := n.Start(p.Context()); !errors.Is(err, want) {
				p.Errorf("the next start: %v", err)
			}
			if began := p.is(); (len(began) == 1) != (want != nil) {
				p.Errorf("the next start: began %v", began)
			}
		})
	}
}

// A start that hangs is ended by a stop or a delete, and follows another configuration.
func TestStartHangs(t *testing.T) {
	for name, x := range map[string]struct {
		call  func(context.Context, nodes.Node[string]) error
		state string
		err   error
	}{
		"stop":      {func(ctx context.Context, n nodes.Node[string]) error { return n.Stop(ctx) }, nodes.Stopped, nodes.ErrStopped},
		"delete":    {func(ctx context.Context, n nodes.Node[string]) error { return n.Delete(ctx) }, nodes.Deleted, nodes.ErrDeleted},
		"configure": {func(_ context.Context, n nodes.Node[string]) error { return n.Configure("good") }, nodes.Started, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inPlant(t, 0, func(p *plant) {
				p.work = func(ctx context.Context, c string, up func()) error {
					if c == "good" {
						up()
					}
					<-ctx.Done()
					return context.Cause(ctx)
				}
				n := p.Node("n")
				reach(p.T, n, nodes.Configured)
				result := make(chan error, 1)
				go func() { result <- n.Start(p.Context()) }()
				synctest.Wait()
				if err := x.call(p.Context(), n); err != nil {
					p.Errorf("%s: %v", name, err)
				}
				if err := <-result; !errors.Is(err, x.err) {
					p.Errorf("the start: %v, want %v", err, x.err)
				}
				p.state(n, "then", x.state, nil)
			})
		})
	}
}

// A work that does not end holds up a stop for the grace, and what follows it for as long as it lasts.
func TestStopHangs(t *testing.T) {
	inPlant(t, 0, func(p *plant) {
		p.work = func(ctx context.Context, c string, up func()) error {
			up()
			<-ctx.Done()
			if c == "old" {
				time.Sleep(time.Minute)
			}
			return nil
		}
		n := p.Node("n")
		reach(p.T, n, nodes.Started)
		began := time.Now()
		for range 2 {
			if err := n.Stop(p.Context()); !errors.Is(err, nodes.ErrHangs) {
				p.Errorf("stop: %v", err)
			}
		}
		if took := time.Since(began); took != 2*nodes.Grace {
			p.Errorf("both stops took %v", took)
		}
		if err := n.Delete(p.Context()); !errors.Is(err, nodes.ErrHangs) {
			p.Errorf("delete: %v", err)
		}
		again := p.Node("n")
		p.state(again, "the node of its name", nodes.Created, nil)
		if err := again.Configure("new"); err != nil {
			p.Error(err)
		}
		go func() { _ = again.Start(p.Context()) }()
		synctest.Wait()
		if former, waits := p.Follows("n"); !waits || former != "n" {
			p.Errorf("it waits for %q, %v", former, waits)
		}
		p.wants("while it hangs", "n=old")
		if err := again.Start(p.Context()); err != nil {
			p.Error(err)
		}
		if took := time.Since(began); took != time.Minute {
			p.Errorf("the next one started after %v", took)
		}
		p.wants("then", "n=new")
		if _, waits := p.Follows("n"); waits {
			p.Error("it waits although it works")
		}
	})
}

// What fails later is stopped, with its error, and can be started again.
func TestWorkFails(t *testing.T) {
	inPlant(t, 0, func(p *plant) {
		broken := errors.New("broken")
		p.work = func(_ context.Context, _ string, up func()) error {
			up()
			time.Sleep(time.Minute)
			return broken
		}
		n := p.Node("n")
		reach(p.T, n, nodes.Started)
		time.Sleep(time.Hour)
		p.state(n, "after a failure", nodes.Stopped, broken)
		reach(p.T, n, nodes.Started)
		p.state(n, "started again", nodes.Started, nil)
		p.wants("in all", "n=old", "n=old")
	})
}

// A Set has its nodes work while it runs, and knows them before and after.
func TestSetBeforeAndAfterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var began []string
		s := nodes.NewSet(nodes.Kind[string]{Work: func(ctx context.Context, _, c string, up func()) error {
			mu.Lock()
			began = append(began, c)
			mu.Unlock()
			up()
			<-ctx.Done()
			return nil
		}})
		s.Reconcile(t.Context(), map[string]string{"a": "1", "b": "1", "c": "1"})
		s.Reconcile(t.Context(), map[string]string{"a": "1", "b": "2"})
		ctx, cancel := context.WithCancelCause(t.Context())
		over := errors.New("over")
		time.AfterFunc(time.Minute, func() { cancel(over) })
		if err := s.Run(ctx); !errors.Is(err, over) {
			t.Errorf("Run: %v", err)
		}
		if slices.Sort(began); !slices.Equal(began, []string{"1", "2"}) {
			t.Errorf("began %v", began)
		}
		if changed := s.Reconcile(t.Context(), map[string]string{"a": "3"}); !slices.Equal(changed, []string{"a"}) || s.Configuration("a") != "3" || s.Configuration("b") != "" {
			t.Errorf("changed %v: %v", changed, s.Configurations())
		}
		if err := s.Node("a").Start(t.Context()); !errors.Is(err, over) {
			t.Errorf("start: %v", err)
		}
	})
}
