package runs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// The hooks of a program that counts the edges of workflows and agents alike.
func ExampleHooks() {
	done := make(chan bool)
	hooks := runs.Hooks{Edge: func(_ context.Context, run claybot.RunID, from, to string) error {
		fmt.Println(run, from, "to", to)
		if to == runs.End {
			close(done)
		}
		return nil
	}}
	// A daemon has them in agentsystem.Config.Hooks; here the events come by hand.
	ctx, stop := context.WithCancel(context.Background())
	caller := runs.NewHookCaller(hooks, slog.Default())
	go caller.Run(ctx)
	for _, r := range []claybot.Record{{Type: claybot.RecordNode, Run: "r1", Name: "plan", Next: "act"}, {Type: claybot.RecordNode, Run: "r1", Name: "act", Next: runs.End}} {
		if e, ok := runs.EventOf(r); ok {
			caller.Event(claybot.EnginePlan, e)
		}
	}
	<-done
	stop()
	// Output:
	// r1 plan to act
	// r1 act to END
}

// heard are hooks that note what they hear.
func heard(all *[]string) runs.Hooks {
	note := func(text string) error { *all = append(*all, text); return nil }
	return runs.Hooks{
		Enter: func(_ context.Context, run claybot.RunID, node string, n int) error {
			return note(fmt.Sprintf("%s+%s%d", run, node, n))
		},
		Exit: func(_ context.Context, run claybot.RunID, node string, n int, result string) error {
			return note(fmt.Sprintf("%s-%s%d %s", run, node, n, result))
		},
		Edge: func(_ context.Context, run claybot.RunID, from, to string) error {
			return note(fmt.Sprintf("%s %s>%s", run, from, to))
		},
	}
}

func edge(run claybot.RunID, from, to string) claybot.Event {
	e, _ := runs.EventOf(claybot.Record{Type: claybot.RecordNode, Run: run, Name: from, Next: to})
	return e
}

// Hooks hear of nodes and edges in the order of the run. The loop has edges between its nodes and to its
// end; a graph has those that it took, also where a pause is between two nodes.
func TestHooks(t *testing.T) {
	const r = "r1"
	enter := func(node string) claybot.Event { return runs.NodeBegan(r, node, 1) }
	exit := func(node string) claybot.Event { return runs.NodeEnded(r, node, 1, "ok", 0) }
	for name, tt := range map[string]struct {
		engine string
		events []claybot.Event
		want   string
	}{
		"loop": {
			claybot.EngineReact,
			[]claybot.Event{enter("model"), exit("model"), enter("tools"), exit("tools"), enter("model"), exit("model"), runs.Finished(r, "", claybot.Usage{})},
			"r1+model1 r1-model1 ok r1 model>tools r1+tools1 r1-tools1 ok r1 tools>model r1+model1 r1-model1 ok r1 model>END",
		},
		"loop that pauses": {
			claybot.EngineReact,
			[]claybot.Event{enter("tools"), exit("tools"), runs.Paused(r, claybot.Awaiting{}), enter("tools"), exit("tools"), runs.Failed(r, claybot.RunError{}, 1)},
			"r1+tools1 r1-tools1 ok r1+tools1 r1-tools1 ok",
		},
		"graph": {
			claybot.EnginePlan,
			[]claybot.Event{enter("a"), exit("a"), edge(r, "a", "b"), enter("b"), exit("b"), edge(r, "b", runs.End), runs.Finished(r, "", claybot.Usage{})},
			"r1+a1 r1-a1 ok r1 a>b r1+b1 r1-b1 ok r1 b>END",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				c := runs.NewHookCaller(heard(&got), slog.New(slog.DiscardHandler))
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go c.Run(ctx)
				for _, e := range tt.events {
					c.Event(tt.engine, e)
				}
				synctest.Wait()
				if s := strings.Join(got, " "); s != tt.want {
					t.Errorf("heard %s\nwant  %s", s, tt.want)
				}
			})
		})
	}
}

// What goes wrong in a hook is logged, and the next fact is heard all the same.
func TestHooksFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		n := 0
		c := runs.NewHookCaller(runs.Hooks{Edge: func(context.Context, claybot.RunID, string, string) error {
			if n++; n == 1 {
				panic("first")
			}
			return errors.New("second")
		}}, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go c.Run(ctx)
		for range 3 {
			c.Event(claybot.EnginePlan, edge("r1", "a", "b"))
		}
		synctest.Wait()
		if s := log.String(); n != 3 || !strings.Contains(s, "hook panicked") || strings.Count(s, "hook failed") != 2 || !strings.Contains(s, "edge.taken") {
			t.Errorf("called %d times: %s", n, s)
		}
	})
}

// A hook that hangs keeps no run waiting, and the process stops; what it could not hear is counted.
func TestHooksAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		free, n := make(chan bool), 0
		c := runs.NewHookCaller(runs.Hooks{Edge: func(context.Context, claybot.RunID, string, string) error { n++; <-free; return nil }}, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() { c.Run(ctx); close(ended) }()
		for range 2000 {
			c.Event(claybot.EnginePlan, edge("r1", "a", "b"))
			synctest.Wait()
		}
		for range 2000 {
			select {
			case free <- true:
			default:
			}
			synctest.Wait()
		}
		c.Event(claybot.EnginePlan, edge("r1", "a", "b"))
		synctest.Wait()
		if n != 1026 || !strings.Contains(log.String(), "facts=975") {
			t.Errorf("called %d times: %s", n, log.String())
		}
		began := time.Now()
		stop()
		<-ended
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it stopped after %s", took)
		}
		close(free)
	})
}

// After the end of the process no hook is called, also where facts wait. select takes any of its cases, so
// many callers are stopped.
func TestHooksEnd(t *testing.T) {
	for range 50 {
		n := 0
		c := runs.NewHookCaller(runs.Hooks{Edge: func(context.Context, claybot.RunID, string, string) error { n++; return nil }}, slog.New(slog.DiscardHandler))
		for range 10 {
			c.Event(claybot.EnginePlan, edge("r1", "a", "b"))
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if c.Run(ctx); n > 0 {
			t.Fatalf("%d hooks are called after the end", n)
		}
	}
}

// Where facts are lost, no edge is told between nodes that were not neighbours, and the log says at once
// that it happens.
func TestHooksLose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var edges []string
		free := make(chan bool)
		c := runs.NewHookCaller(runs.Hooks{
			Enter: func(context.Context, claybot.RunID, string, int) error { <-free; return nil },
			Edge: func(_ context.Context, _ claybot.RunID, from, to string) error {
				edges = append(edges, from+">"+to)
				return nil
			},
		}, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go c.Run(ctx)
		c.Event(claybot.EngineReact, runs.NodeBegan("r2", "model", 1))
		synctest.Wait() // it hangs there
		c.Event(claybot.EngineReact, runs.NodeEnded("r1", "model", 1, "ok", 0))
		for range 1023 {
			c.Event(claybot.EnginePlan, runs.NodeEnded("r3", "a", 1, "ok", 0))
		}
		c.Event(claybot.EngineReact, runs.NodeBegan("r1", "tools", 1)) // lost
		if !strings.Contains(log.String(), "facts are lost from now on") {
			t.Errorf("the log says %q", log.String())
		}
		close(free)
		synctest.Wait()
		c.Event(claybot.EngineReact, runs.NodeBegan("r1", "other", 2))
		synctest.Wait()
		if len(edges) > 0 {
			t.Errorf("edges %v", edges)
		}
	})
}

// Without hooks there is no caller, and it can be used all the same.
func TestNoHooks(t *testing.T) {
	c := runs.NewHookCaller(runs.Hooks{}, nil)
	c.Event(claybot.EnginePlan, edge("r1", "a", "b"))
	c.Run(t.Context())
	if c != nil {
		t.Error("there is a caller")
	}
}
