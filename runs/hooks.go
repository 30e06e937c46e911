package runs

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
)

// Hooks are functions that are called for the nodes of runs and the edges between them, whatever the engine: of graphs, of
// workflows, and of the loop of model and tools, whose nodes are model and tools. They are given facts that
// are stored, in the order of the run, each at most once, and change nothing. nil: it is not called.
//
// An error or a panic is only logged. A hook that is slow keeps no run waiting: facts wait for it, up
// to 1,024, and later ones are lost.
type Hooks struct {
	// Enter is node.enter: the node begins its nth turn in the run, counted from 1.
	Enter func(ctx context.Context, run claybot.RunID, node string, n int) error
	// Exit is node.exit, with what came of the turn in a few words.
	Exit func(ctx context.Context, run claybot.RunID, node string, n int, result string) error
	// Edge is edge.taken; to is End where the run is at its end.
	Edge func(ctx context.Context, run claybot.RunID, from, to string) error
}

// How much waits for hooks, and for how long a hook that does not end keeps the process from stopping.
const (
	hookQueue = 1024
	hookGrace = 2 * time.Second
)

// A HookCaller calls hooks, one after another, away from the runs. The nil *HookCaller calls none.
type HookCaller struct {
	hooks Hooks
	log   *slog.Logger
	facts chan hooked
	lost  atomic.Int64
	left  map[claybot.RunID]string // the node that a run of the loop left last, unless facts were lost since
}

// A hooked is an event of a run, and the engine of that run.
type hooked struct {
	engine string
	event  claybot.Event
	lost   int64 // facts before it, of any run
}

// NewHookCaller returns the caller of hooks; nil where there are none.
func NewHookCaller(h Hooks, log *slog.Logger) *HookCaller {
	if h.Enter == nil && h.Exit == nil && h.Edge == nil {
		return nil
	}
	return &HookCaller{hooks: h, log: log, facts: make(chan hooked, hookQueue), left: make(map[claybot.RunID]string)}
}

// Event takes an event that was stored. It never blocks.
func (c *HookCaller) Event(engine string, e claybot.Event) {
	if c == nil {
		return
	}
	lost := c.lost.Swap(0)
	select {
	case c.facts <- hooked{engine, e, lost}:
	default:
		if c.lost.Add(lost+1) == 1 {
			c.log.Warn("hooks are too slow; facts are lost from now on")
		}
	}
}

// Run calls the hooks until ctx ends. A hook that does not end then is left behind after two seconds.
func (c *HookCaller) Run(ctx context.Context) {
	if c == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil { // else select might take a fact that waits
			select {
			case <-ctx.Done():
			case f := <-c.facts:
				c.tell(ctx, f)
			}
		}
	}()
	<-ctx.Done()
	late := time.NewTimer(hookGrace)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		c.log.Warn("hook does not stop, abandoned")
	}
}

// tell calls the hooks for an event.
func (c *HookCaller) tell(ctx context.Context, f hooked) {
	if f.lost > 0 {
		c.log.Warn("hooks are too slow; facts were lost", "facts", f.lost)
		clear(c.left) // what a run entered or left since may be among them
	}
	e := f.event
	switch e.Type {
	case claybot.EventNodeStarted:
		d := DataOf[NodeStarted](e)
		if from := c.left[e.Run]; from != "" {
			delete(c.left, e.Run)
			c.edge(ctx, e.Run, from, d.Node)
		}
		c.call("node.enter", c.hooks.Enter != nil, func() error { return c.hooks.Enter(ctx, e.Run, d.Node, d.Iteration) })
	case claybot.EventNodeFinished:
		d := DataOf[NodeFinished](e)
		c.call("node.exit", c.hooks.Exit != nil, func() error { return c.hooks.Exit(ctx, e.Run, d.Node, d.Iteration, d.Result) })
		if f.engine == claybot.EngineReact { // it has no edges of its own
			c.left[e.Run] = d.Node
		}
	case claybot.EventEdgeTaken:
		d := DataOf[EdgeTaken](e)
		c.edge(ctx, e.Run, d.From, d.To)
	default:
		if from := c.left[e.Run]; from != "" && e.Type == claybot.EventRunFinished {
			c.edge(ctx, e.Run, from, End)
		}
		if e.Type.Ends() || e.Type == claybot.EventAwaitingInput {
			delete(c.left, e.Run)
		}
	}
}

func (c *HookCaller) edge(ctx context.Context, run claybot.RunID, from, to string) {
	c.call("edge.taken", c.hooks.Edge != nil && from != to, func() error { return c.hooks.Edge(ctx, run, from, to) })
}

// call calls a hook that is there, and logs what goes wrong in it.
func (c *HookCaller) call(name string, there bool, hook func() error) {
	if !there {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("hook panicked", "hook", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if err := hook(); err != nil {
		c.log.Warn("hook failed", "hook", name, "err", err)
	}
}
