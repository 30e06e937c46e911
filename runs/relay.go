package runs

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A Sink is the end of a relay of the configuration: it hands events to something outside. What people read calls
// the whole a relay.
type Sink interface {
	// Publish hands on events of one run, in the order of their seq, and
	// returns nil when all of them have arrived for good. After an error the
	// same events come again later, so that a receiver may see some more than
	// once: run and seq tell them apart. It returns soon after ctx is done. The
	// text of an error is logged and shown, and has no secrets; a *SinkError
	// says more.
	Publish(ctx context.Context, events []claybot.Event) error
}

// A SinkError says why a Sink did not take events, in words for the operator
// and without addresses or secrets.
type SinkError struct {
	Text string
	// After is how long the receiver asks to be left alone.
	After time.Duration
	// Refused says that the same request will be refused again until a person
	// changes something. It is tried again all the same, seldom.
	Refused bool
	// Batch says that the fault is with these events, or with their number:
	// others may be taken, or fewer. The first half of them comes at once, and
	// the half of that, until the sink takes it or one event is left.
	Batch bool
}

func (e *SinkError) Error() string { return e.Text }

// An OffSink has the place of a sink that can take nothing at present, and says why: its events wait.
type OffSink string

// Publish implements Sink.
func (s OffSink) Publish(context.Context, []claybot.Event) error { return s.fault() }

func (s OffSink) fault() *SinkError { return &SinkError{Text: string(s), Refused: true} }

// The limits of a Relay.
const (
	batchEvents    = 200
	batchBytes     = 1 << 20 // of data
	growAfter      = 8       // batches that are taken, one that was made smaller grows
	relayEvery     = 200 * time.Millisecond
	sharedEvery    = 2 * time.Second // where several nodes share the store
	shortestPause  = 200 * time.Millisecond
	longestPause   = time.Minute
	longestAsked   = time.Hour // of a Retry-After
	publishTimeout = 30 * time.Second
)

// A Relay tells sinks outside of events: the one publisher of a store. Each
// sink gets the events of each run in the order of their seq, none left
// out, each at least once. A sink that fails or hangs stalls itself alone; a
// run that a sink does not take waits, with all its later events, while other
// runs go on.
//
// All fields are set before Run and not changed after, but for what Replace changes.
type Relay struct {
	Store interface {
		storage.Relays
		Store
	}
	Hub *Hub
	// Nodes have the sinks work, each by Work: a nodes.Set.
	Nodes interface {
		Run(ctx context.Context) error
		Reconcile(ctx context.Context, next map[string]Sink) (changed []string)
	}
	Sinks map[string]Sink // by a name that stays the same across restarts; comparable
	// Partial says that Sinks may lack some, whose settings are invalid at present: what
	// the store keeps for others is not forgotten.
	Partial bool
	// Stopped is asked before each batch why an operator has stopped a sink; empty: none has. Until
	// then, what the sink is to be told waits in the store. nil: none is ever stopped.
	Stopped func(sink string) string
	Log     *slog.Logger // nil: silent
	// Turn is asked before each round where several nodes share the store: one of
	// them may tell a sink at a time (SinkClaim). It claims the right and returns a
	// context that is done when that ends, and a function that lets the context go;
	// while another node has the right, the error is storage.ErrHeld. nil: there
	// are no others.
	Turn func(ctx context.Context, claim string) (context.Context, func(), error)
	// Yield gives the right back when a sink goes: other nodes may have it still. It is set where Turn is.
	Yield func(ctx context.Context, claim string) error

	settled settlement

	mu      sync.Mutex // held to read Sinks, and with settled to change them
	whole   context.Context
	working map[string]*publisher
	unnamed string        // why the store does not take the names; empty: it does
	again   chan struct{} // closed by the next Retry
}

// A settlement says how far the store and the nodes have the sinks. It is held while they change.
type settlement struct {
	sync.Mutex
	done  bool     // Sinks are those that the store knows, and that work
	known []string // names that the store has
}

// SinkClaim is the name of the claim of the relay of a sink.
func SinkClaim(sink string) string { return "sink/" + sink }

// A SinkHealth is how a sink is doing.
type SinkHealth struct {
	Name string `json:"name"`
	// Success is when it last took events, 0 for not since the start.
	Success claybot.Time `json:"lastSuccess,omitempty"`
	// Backlog is how many runs have events that it was not told of, when the
	// relay last looked, and Oldest when the oldest of these events was
	// committed. Beyond a hundred, Backlog may be too low.
	Backlog int          `json:"backlog"`
	Oldest  claybot.Time `json:"oldest,omitempty"`
	// Error is what is wrong, in words; empty when nothing is.
	Error string `json:"error,omitempty"`
	// Stopped is by whom the sink was stopped, and how it is started; empty: by none.
	Stopped string `json:"stopped,omitempty"`
	// Standby: another node tells the sink, and knows the rest.
	Standby bool `json:"standby,omitempty"`
}

// Run names the sinks to the store and publishes until ctx is done. It returns
// the cause of that, after all sinks have let go.
func (r *Relay) Run(ctx context.Context) error {
	r.mu.Lock()
	r.whole = ctx
	r.mu.Unlock()
	var names sync.WaitGroup
	names.Go(func() { r.keepSettled(ctx) })
	err := r.Nodes.Run(ctx)
	names.Wait()
	return err
}

// Replace puts other sinks in force, and has what failed tried now, as Retry does. Sinks that are the same go on.
// One that goes, or that another one replaces, ends once its batch has; one that is new gets what commits from
// here on. While the store does not take the names, sinks that it does not know wait.
func (r *Relay) Replace(ctx context.Context, sinks map[string]Sink, partial bool) {
	r.settled.Lock()
	if !maps.Equal(r.Sinks, sinks) || r.Partial != partial {
		r.mu.Lock()
		r.Sinks, r.Partial = sinks, partial
		r.mu.Unlock()
		r.settled.done = false
	}
	_ = r.settle(ctx) // Run tries again
	r.settled.Unlock()
	r.Retry()
}

// keepSettled has the sinks settled until ctx is done, again after each failure.
func (r *Relay) keepSettled(ctx context.Context) {
	for fails := 0; ctx.Err() == nil; {
		again := r.retried()
		r.settled.Lock()
		err := r.settle(ctx)
		r.settled.Unlock()
		if err == nil {
			fails = 0
			select {
			case <-ctx.Done():
			case <-again:
			}
			continue
		}
		if fails++; fails == 1 && ctx.Err() == nil {
			r.logger().Error("failed to store the names of the relays", "err", err)
		}
		rest(ctx, pauseAfter(fails), nil)
	}
}

// settle names the sinks to the store, and has them work: all of them, or those whose names it knows. The caller
// holds settled.
func (r *Relay) settle(ctx context.Context) error {
	if r.settled.done {
		return nil
	}
	next, names := maps.Clone(r.Sinks), slices.Sorted(maps.Keys(r.Sinks))
	unnamed := ""
	err := r.Store.Sinks(ctx, !r.Partial, names...)
	if err == nil {
		r.settled.done, r.settled.known = true, names
	} else {
		unnamed = "the store does not take its name: " + storage.Plain(err)
		maps.DeleteFunc(next, func(name string, _ Sink) bool { return !slices.Contains(r.settled.known, name) })
	}
	r.mu.Lock()
	r.unnamed = unnamed
	r.mu.Unlock()
	r.Nodes.Reconcile(ctx, next)
	return err
}

// Work tells a sink of events until ctx is done: the work of one of Nodes. A batch that is under way comes to its end,
// unless Run ends. It closes a sink that is an io.Closer; a later Work may publish to it again.
func (r *Relay) Work(ctx context.Context, name string, sink Sink, up func()) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p := &publisher{relay: r, name: name, sink: sink, log: r.logger().With("relay", name), over: ctx.Done(), held: make(map[claybot.RunID]*heldRun)}
	r.mu.Lock()
	whole := r.whole
	if r.working == nil {
		r.working = make(map[string]*publisher)
	}
	r.working[name] = p
	r.mu.Unlock()
	up()
	p.run(ctx, whole)
	r.mu.Lock()
	delete(r.working, name)
	r.mu.Unlock()
	if c, ok := sink.(io.Closer); ok {
		if err := c.Close(); err != nil {
			p.log.Warn("failed to close a relay", "err", err)
		}
	}
	if r.Yield != nil && whole.Err() == nil {
		if err := r.Yield(whole, SinkClaim(name)); err != nil {
			p.log.Warn("failed to release the claim of a relay; it stays until this member leaves", "err", err)
		}
	}
	return nil
}

func (r *Relay) logger() *slog.Logger {
	if r.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.Log
}

// Health tells how each sink is doing, by name.
func (r *Relay) Health() []SinkHealth {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]SinkHealth, 0, len(r.Sinks))
	for name, sink := range r.Sinks {
		h := SinkHealth{Error: r.unnamed}
		if p := r.working[name]; p != nil && p.sink == sink {
			h = p.health
		}
		if off, is := sink.(OffSink); is {
			h.Error = words(off.fault())
		}
		h.Name, h.Stopped = name, r.stopped(name)
		if h.Stopped != "" {
			h.Error = ""
		}
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b SinkHealth) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Retry has what failed tried now: all sinks end their pauses, also those that they asked for.
func (r *Relay) Retry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.again != nil {
		close(r.again)
		r.again = nil
	}
}

// retried returns a channel that the next Retry closes.
func (r *Relay) retried() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.again == nil {
		r.again = make(chan struct{})
	}
	return r.again
}

// stopped returns why a sink is stopped; empty: it is not.
func (r *Relay) stopped(sink string) string {
	if r.Stopped == nil {
		return ""
	}
	return r.Stopped(sink)
}

// words says in a sentence what became of a try.
func words(err error) string {
	text := strings.TrimSuffix(err.Error(), ".")
	if e, ok := errors.AsType[*SinkError](err); ok && e.Refused {
		return text + ". Nothing is skipped: it is tried again every minute until it is taken."
	}
	return text + ". It is tried again; nothing is skipped."
}
