// Package budgets enforces the budgets of the configuration on model calls.
//
// A call reserves the most that it can cost before it is made, and settles what it
// cost afterwards:
//
//	Reserve ── room on every budget ──▶ reserved ── Settle ──▶ charged with the actual cost
//	   │                                    └── the process dies ──▶ charged in full (Recover, Follow)
//	   ├── room as soon as others settle ──▶ wait for at most two minutes
//	   └── no room on a hard budget ──▶ *llm.LimitError; the run asks for an extension
//	                                         └── the limit changes ──▶ the run resumes (Recheck, Watch)
//
// It guarantees that the reservations and the spending of a hard budget together stay
// within its limit, however many runs and members make calls at the same time, as long
// as no call costs more than it reserved; that a reservation counts on all of its
// budgets or on none, and is charged once: with what the call cost, or in full where
// that was never recorded; that an extension counts once for its id; that each warning
// is sent once; and that a run which waits for a budget resumes when its limit changes.
// The sums are the store's: a Limiter holds no amount in memory.
//
// The package starts no goroutines: Follow and Watch work in those of their callers. It
// must not import the AgentSystem or an implementation of a store.
package budgets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Agents finds who an agent is; see storage.Index.
type Agents interface {
	IndexedDescriptor(ctx context.Context, id claybot.AgentID) (claybot.Descriptor, error)
}

// Questions finds the runs that wait for a budget; see storage.Questions.
type Questions interface {
	OpenQuestions(ctx context.Context, agent claybot.AgentID, limit int) ([]storage.OpenQuestion, error)
}

// Runs are the runs that model calls are made for.
type Runs interface {
	// Root returns the run that began the chain of subagents to which a run belongs,
	// and the run itself where it belongs to none.
	Root(run claybot.RunID) claybot.RunID
	// Budgets returns the budgets of the runs of workflows for which a run works.
	Budgets(run claybot.RunID) []claybot.RunBudget
	// Owner returns the person for whom a run and its subagents work, in the form of
	// Descriptor.OwnerID; empty where the run has ended or is unknown.
	Owner(ctx context.Context, run claybot.RunID) (string, error)
	// Resume gives a paused run an answer to its question. Only the first answer to a
	// question counts.
	Resume(ctx context.Context, agent claybot.AgentID, run claybot.RunID, a claybot.Answer) error
}

// People are the users, each named by an owner id, "connector/userId".
type People interface {
	// Identities returns all owner ids of the person who has this one; at least one.
	Identities(owner string) []string
	// IsOperator reports whether a person operates this claybot.
	IsOperator(owner string) bool
	// Notify sends a text to the chat in which a person wrote last, once for each key;
	// storage.ErrNotFound where there is no such chat.
	Notify(ctx context.Context, owner, key string, say func(texts.Voice) string) error
}

// Members is the membership of this process; see cluster.Membership.
type Members interface {
	Term() *cluster.Term
	Changed() <-chan struct{}
	Elsewhere(d time.Duration) <-chan time.Time
	Retries(err error) bool
}

// Config is what New needs.
type Config struct {
	Store     storage.Budgets
	Agents    Agents
	Questions Questions
	Runs      Runs
	People    People
	Members   Members
	// Rules are the budgets of the configuration. The Limiter reads them at every call,
	// so that a change counts at once. nil: budgets are listed and no call is made.
	Rules func() []Rule
	// Operators are who may extend a budget in a chat, as "connector/userId", besides
	// those at the Consoles. nil: only those.
	Operators func() []string
	// Consoles are the chats that only an operator can open, as "connector/userId".
	Consoles []string
	// Profile returns the name of the profile of an agent.
	Profile func(claybot.Descriptor) string
	// Former returns the ids that a chat had before it got a new one: a Match that names one goes
	// on to hold; nil: none.
	Former func(connector, channel string) []string
	// Zone returns the time zone of the users, in which days and months begin.
	Zone func() *time.Location
	// Stopped is called with the key and the limit, extensions included, of a hard budget that
	// is used up and has stopped a run of a person who is no operator, or of no person; nil: no
	// call. Budgets of one run are left out: the next run has its own. An error fails the model
	// call, as errors of the Store do.
	Stopped func(ctx context.Context, key string, limit int64) error
	// NewID makes the id of a reservation.
	NewID func() string
	Log   *slog.Logger
}

// A Limiter reserves the cost of model calls on the budgets that they belong to. Its
// methods are safe for concurrent use.
type Limiter struct {
	cfg Config

	mu     sync.Mutex
	freed  chan struct{}   // closed when there may be more room than before
	warned map[string]bool // the keys of logged warnings; true: delivered as well
}

var _ llm.Limiter = (*Limiter)(nil)

const (
	// patience is how long a call waits for others to release what they reserved and do
	// not need.
	patience = 2 * time.Minute
	// lookElsewhere is how often a waiting call checks whether another member has
	// released some.
	lookElsewhere = 2 * time.Second
	// settleTime is how long Settle retries while the store does not answer.
	settleTime = 30 * time.Second
)

// New makes a Limiter. In a process that has its store for itself, call Recover before
// the first Reserve; a member of a cluster runs Follow.
func New(cfg Config) *Limiter {
	return &Limiter{cfg: cfg, freed: make(chan struct{}), warned: make(map[string]bool)}
}

// Reserve implements llm.Limiter. Where a call would fit as soon as others release what
// they do not need, it waits for that, for at most two minutes.
func (l *Limiter) Reserve(ctx context.Context, c llm.Charge) (llm.Reservation, error) {
	on, err := l.levels(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(on.levels) == 0 {
		return unlimited{}, nil
	}
	r := storage.Reservation{
		ID: l.cfg.NewID(), Run: c.Run, Levels: on.levels,
		Amount: storage.Amount{Tokens: c.Tokens, MicroUSD: c.CostMicroUSD},
	}
	held := &reservation{limiter: l, id: r.ID, payer: on.payer, names: on.names}
	for _, level := range on.levels {
		held.binding = held.binding || level.Hard
		if !c.Priced && level.Unit == storage.UnitMicroUSD {
			if level.Hard {
				return nil, llm.PriceMissing(c.Model, on.names[level.Key])
			}
			r.Amount.Unpriced = 1
		}
	}
	tired := time.NewTimer(patience)
	defer tired.Stop()
	for {
		freed := l.nextFreed()
		err := l.reserve(ctx, r)
		over, full := errors.AsType[*storage.OverBudgetError](err)
		switch {
		case err == nil:
			return held, nil
		case !full && !l.cfg.Members.Retries(err):
			return nil, fmt.Errorf("set money aside: %w", err)
		case full && over.Left()+over.Reserved < over.Asked:
			return nil, l.stopped(ctx, over, on, c)
		}
		select {
		case <-freed:
		case <-l.cfg.Members.Elsewhere(lookElsewhere):
		case <-tired.C:
			if !full {
				return nil, fmt.Errorf("set money aside: %w", err)
			}
			return nil, limitError(texts.Of(ctx), over, on, c) // calls under way reserved what is missing
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// reserve stores a reservation of this member. Between two terms there is none: Recover
// of another member would take it for that of a member that left.
func (l *Limiter) reserve(ctx context.Context, r storage.Reservation) error {
	t := l.cfg.Members.Term()
	if t == nil {
		return fmt.Errorf("this node is not there at the moment: %w", storage.ErrBusy)
	}
	r.Node = t.ID()
	return l.cfg.Store.Reserve(ctx, r)
}

// unlimited is the reservation of a call that belongs to no budget.
type unlimited struct{}

func (unlimited) Settle(context.Context, claybot.Usage) error { return nil }
func (unlimited) Binding() bool                               { return false }

// A reservation is what one call reserved.
type reservation struct {
	limiter *Limiter
	id      string
	payer   payer
	names   map[string]string // of its budgets for the payer, by key
	binding bool
}

// Binding implements llm.Reservation.
func (r *reservation) Binding() bool { return r.binding }

// Settle implements llm.Reservation.
func (r *reservation) Settle(ctx context.Context, u claybot.Usage) error {
	l := r.limiter
	took := storage.Amount{Tokens: u.Input + u.Output, MicroUSD: u.CostMicroUSD, Unpriced: min(u.Unpriced, 1)}
	list, err := l.book(ctx, r.id, took)
	if err != nil {
		l.cfg.Log.Error("failed to record the cost of a model call; it counts as reserved", "agent", r.payer.id, "err", err)
		return err
	}
	l.free()
	for _, b := range list {
		l.warn(ctx, r.payer, r.names[b.Key], b)
	}
	return nil
}

// book records what a call took. To record it again changes nothing.
func (l *Limiter) book(ctx context.Context, id string, took storage.Amount) ([]storage.Budget, error) {
	for until := time.Now().Add(settleTime); ; {
		list, err := l.cfg.Store.Book(ctx, id, took)
		if err == nil || !l.cfg.Members.Retries(err) || ctx.Err() != nil || time.Now().After(until) {
			return list, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// nextFreed returns the channel that closes when there may be more room than now.
func (l *Limiter) nextFreed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.freed
}

// free wakes the calls that wait for room.
func (l *Limiter) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.freed)
	l.freed = make(chan struct{})
}

// Recover charges the reservations of processes that are gone, in full.
func (l *Limiter) Recover(ctx context.Context) error {
	member := ""
	if t := l.cfg.Members.Term(); t != nil {
		member = t.ID()
	}
	n, err := l.cfg.Store.Abandoned(ctx, member)
	if n > 0 {
		l.cfg.Log.Info("charged a crashed process's reservations in full", "count", n)
		l.free() // calls that wait for their release look again
	}
	return err
}

// Follow recovers when this process has joined the cluster, and whenever a member has
// left, until ctx is done.
func (l *Limiter) Follow(ctx context.Context) error {
	for ctx.Err() == nil {
		changed := l.cfg.Members.Changed()
		var later <-chan time.Time
		if l.cfg.Members.Term() != nil {
			if err := l.Recover(ctx); err != nil && ctx.Err() == nil {
				l.cfg.Log.Warn("failed to charge the reservations of members that left; retrying", "err", err)
				later = time.After(lookElsewhere)
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-later:
		}
	}
	return context.Cause(ctx)
}
