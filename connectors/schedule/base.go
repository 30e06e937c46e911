package schedule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

const (
	maxGates = 8 // that run at once
	yielding = 5 * time.Second
)

// NoteForbidden is told to an agent whose gate was not asked.
const NoteForbidden = "Gate commands may not run on this machine, so claybot did not check whether there is anything to do."

// A Base is the part of a connector that does not depend on what its tasks are. It is
// safe for concurrent use.
type Base struct {
	Name   string // of the connector
	What   string // one of its files is called
	Claims storage.Claims
	Node   func() string // the id of this process among those that share the tree
	Log    *slog.Logger
	Pulse  connectors.Pulse

	kick  chan struct{} // holds one
	edits chan struct{}
	gates chan struct{} // one for each gate that runs

	mu       sync.Mutex
	problems []connectors.Problem
}

// New makes a Base whose log is that of a connector; a nil log is none.
func New(name, what string, claims storage.Claims, node func() string, log *slog.Logger) *Base {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Base{
		Name: name, What: what, Claims: claims, Node: node, Log: log.With("connector", name),
		kick: make(chan struct{}, 1), edits: make(chan struct{}, 1), gates: make(chan struct{}, maxGates),
	}
}

// Health is that of the connector. Files with problems do not make it fail: the other
// tasks go on.
func (b *Base) Health() connectors.Health {
	h := b.Pulse.Health()
	files := make(map[string]bool)
	for _, p := range b.Problems() {
		files[p.File] = true
	}
	switch n := len(files); {
	case h.State != connectors.StateLive || n == 0:
	case n == 1:
		h.Err = fmt.Sprintf("1 %s file has a problem; claybot %s shows it", b.What, b.Name)
	default:
		h.Err = fmt.Sprintf("%d %s files have problems; claybot %s shows them", n, b.What, b.Name)
	}
	return h
}

// Problems are those of files, as SetProblems was told.
func (b *Base) Problems() []connectors.Problem {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.problems)
}

// SetProblems replaces the problems of files, and logs those that are new.
func (b *Base) SetProblems(all []connectors.Problem) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range all {
		if !slices.Contains(b.problems, p) {
			b.Log.Warn("a task file has a problem", "file", p.File, "line", p.Line, "problem", p.Text)
		}
	}
	b.problems = all
}

// Kicked receives after Kick, once for any number of calls.
func (b *Base) Kicked() <-chan struct{} { return b.kick }

// Kick wakes the loop of the connector.
func (b *Base) Kick() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// Locked does what reads or writes files, so that the tasks in memory are those of
// the files. The error is the cause of ctx, or that of do.
func (b *Base) Locked(ctx context.Context, do func() error) error {
	select {
	case b.edits <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-b.edits }()
	return do()
}

// Claim makes this process the only one that does something; storage.ErrHeld while
// another one is at it. yield gives it back.
func (b *Base) Claim(ctx context.Context, name string) (yield func(), err error) {
	claim, err := b.Claims.Claim(ctx, b.Node(), name)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", name, err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), yielding)
		defer cancel()
		if err := b.Claims.Yield(ctx, claim); err != nil {
			b.Log.Warn("failed to release a claim; it expires with the lease", "claim", name, "err", err)
		}
	}, nil
}

// Elsewhere reports whether another process has a claim.
func (b *Base) Elsewhere(ctx context.Context, name string) (bool, error) {
	node, err := b.Claims.Holder(ctx, name)
	return node != "" && node != b.Node(), err
}

// Ask asks a gate, when there is room for one more. The error is the cause of ctx.
func (b *Base) Ask(ctx context.Context, g Gate) (Verdict, error) {
	select {
	case b.gates <- struct{}{}:
		defer func() { <-b.gates }()
		return g.Ask(ctx)
	case <-ctx.Done():
		return Verdict{}, context.Cause(ctx)
	}
}

// Reason is an error of a file in words.
func Reason(err error) string {
	var p *fs.PathError
	switch {
	case errors.Is(err, storage.ErrStale):
		return "another change is in progress; try again"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	case errors.Is(err, fs.ErrPermission):
		return "it must not be read"
	case errors.As(err, &p):
		return p.Err.Error()
	}
	return storage.Plain(err)
}
