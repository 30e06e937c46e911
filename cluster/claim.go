package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot/storage"
)

// yieldTime bounds a yield, which is made also when everything ends.
const yieldTime = 3 * time.Second

// A Hold is a claim together with the term that it stands on.
type Hold struct {
	storage.Claim
	m    *Membership
	term *Term
}

// Claim asks for a claim on behalf of the present term. The error is
// storage.ErrHeld while another node has it, one that says so while there is no
// term (ErrLapsed), or the store's. A process that is alone gets it at once.
func (m *Membership) Claim(ctx context.Context, name string) (*Hold, error) {
	if m.alone != nil {
		return &Hold{Claim: storage.Claim{Name: name, Member: m.alone.id}, m: m, term: m.alone}, nil
	}
	t := m.Term()
	if t == nil {
		return nil, fmt.Errorf("claim %q: %w", name, ErrLapsed)
	}
	c, err := m.cfg.Claims.Claim(ctx, t.id, name)
	if errors.Is(err, storage.ErrLeaseLost) {
		t.close(ErrExpired) // a new one begins
	}
	if err != nil {
		return nil, fmt.Errorf("claim %q: %w", name, err)
	}
	return &Hold{Claim: c, m: m, term: t}, nil
}

// Holder is the id of the node that has a claim; empty for nobody.
func (m *Membership) Holder(ctx context.Context, name string) (string, error) {
	if m.alone != nil {
		return m.alone.id, nil
	}
	return m.cfg.Claims.Holder(ctx, name)
}

// Notify passes a hint on to the other nodes, where there are such.
func (m *Membership) Notify(h storage.Notification) {
	if m.cfg.Hints != nil {
		m.cfg.Hints.Notify(h)
	}
}

// Trusted is nil while the claim is trusted to be this node's, at this moment.
func (h *Hold) Trusted() error { return h.term.Trusted() }

// Context is ctx, done as well when the term of the claim is over, with its
// cause. The function frees what it took.
func (h *Hold) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.term.ctx, func() { cancel(context.Cause(h.term.ctx)) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// Yield gives the claim back; tell says so to the other nodes, for those that
// wait for it. Of a term that is over it does nothing, as the claim ended with it.
// Where the store does not answer, the claim ends with the beat.
func (h *Hold) Yield(ctx context.Context, tell bool) error {
	if h.m.alone != nil || h.term.ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), yieldTime)
	defer cancel()
	if err := h.m.cfg.Claims.Yield(ctx, h.Claim); err != nil {
		return fmt.Errorf("yield %q: %w", h.Name, err)
	}
	if tell {
		h.m.Notify(storage.Notification{Freed: []string{h.Name}})
	}
	return nil
}
