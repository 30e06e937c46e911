package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot/storage"
)

// yieldTime bounds a release, which also happens at the end of the process.
const yieldTime = 3 * time.Second

// A Hold is a claim together with the term that it stands on.
type Hold struct {
	storage.Claim
	m    *Membership
	term *Term
}

// Claim acquires a claim for the present term. The error is storage.ErrHeld while another
// member has it, ErrLapsed while there is no term, or the store's.
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

// Holder returns the id of the member that has a claim; empty for none.
func (m *Membership) Holder(ctx context.Context, name string) (string, error) {
	if m.alone != nil {
		return m.alone.id, nil
	}
	return m.cfg.Claims.Holder(ctx, name)
}

// Notify passes a hint on to the other members.
func (m *Membership) Notify(h storage.Notification) {
	if m.cfg.Hints != nil {
		m.cfg.Hints.Notify(h)
	}
}

// Trusted returns nil while the claim is trusted to be this member's, at this moment.
func (h *Hold) Trusted() error { return h.term.Trusted() }

// Context returns ctx, done as well when the term of the claim is over, with its cause. The
// function releases the resources of the context, not the claim.
func (h *Hold) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.term.ctx, func() { cancel(context.Cause(h.term.ctx)) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// Yield releases the claim; tell notifies the other members, some of which may wait for it.
// After the end of its term it does nothing, as the claim ended with it. If the store does
// not answer, the claim expires with the term.
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
