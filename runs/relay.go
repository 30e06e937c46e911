package runs

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A Sink hands events to something outside.
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
// sink is told of the events of each run in the order of their seq, none left
// out, each at least once. A sink that fails or hangs stalls itself alone; a
// run that a sink does not take waits, with all its later events, while other
// runs go on.
//
// All fields are set before Run and not changed after.
type Relay struct {
	Store interface {
		storage.Relays
		Store
	}
	Hub   *Hub
	Sinks map[string]Sink // by a name that stays the same across restarts
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

	mu     sync.Mutex
	health map[string]SinkHealth
	again  chan struct{} // closed by the next Retry
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
	log := r.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	names := slices.Sorted(maps.Keys(r.Sinks))
	for fails := 1; ; fails++ {
		err := r.Store.Sinks(ctx, !r.Partial, names...)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if fails == 1 {
			log.Error("failed to store the names of the sinks", "err", err)
		}
		for _, name := range names {
			r.report(name, func(h *SinkHealth) { h.Error = "the store does not take its name: " + storage.Plain(err) })
		}
		if !rest(ctx, pauseAfter(fails), nil) {
			return context.Cause(ctx)
		}
	}
	var all sync.WaitGroup
	for _, name := range names {
		r.report(name, func(h *SinkHealth) { h.Error = "" })
		p := &publisher{relay: r, name: name, sink: r.Sinks[name], log: log.With("sink", name), held: make(map[claybot.RunID]*heldRun)}
		all.Go(func() { p.run(ctx) })
	}
	<-ctx.Done()
	all.Wait()
	return context.Cause(ctx)
}

// Health tells how each sink is doing, by name.
func (r *Relay) Health() []SinkHealth {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]SinkHealth, 0, len(r.Sinks))
	for name := range r.Sinks {
		h := r.health[name]
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

func (r *Relay) report(name string, change func(*SinkHealth)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.health == nil {
		r.health = make(map[string]SinkHealth)
	}
	h := r.health[name]
	change(&h)
	r.health[name] = h
}

// words says in a sentence what became of a try.
func words(err error) string {
	text := strings.TrimSuffix(err.Error(), ".")
	if e, ok := errors.AsType[*SinkError](err); ok && e.Refused {
		return text + ". Nothing is skipped: it is tried again every minute until it is taken."
	}
	return text + ". It is tried again; nothing is skipped."
}
