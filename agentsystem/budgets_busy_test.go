package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

// budgets is the contract under a name that its own method does not hide.
type budgets = storage.Budgets

// A reluctant store refuses so many calls before it does its work; negative: all.
type reluctant struct {
	budgets
	mu    sync.Mutex
	left  int
	err   error
	done  bool // the work is done all the same, and only the answer is lost
	calls int
}

func (s *reluctant) refuse(n int, err error, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.err, s.done, s.calls = n, err, done, 0
}

// try does one call.
func (s *reluctant) try(do func() error) error {
	s.mu.Lock()
	s.calls++
	refused := s.left != 0
	if s.left > 0 {
		s.left--
	}
	err, done := s.err, s.done
	s.mu.Unlock()
	if refused && !done {
		return fmt.Errorf("for the test: %w", err)
	}
	if err := do(); err != nil || !refused {
		return err
	}
	return fmt.Errorf("for the test: %w", err)
}

func (s *reluctant) Reserve(ctx context.Context, r storage.Reservation) error {
	return s.try(func() error { return s.budgets.Reserve(ctx, r) })
}

func (s *reluctant) Book(ctx context.Context, id string, a storage.Amount) (list []storage.Budget, err error) {
	err = s.try(func() error { list, err = s.budgets.Book(ctx, id, a); return err })
	return list, err
}

var (
	errGone    = errors.New("the run was canceled for the test")
	allTokens  = agentsystem.BudgetRule{Per: agentsystem.PerAll, Every: agentsystem.EveryAlways, Unit: storage.UnitTokens, Limit: 1000, Hard: true}
	purseRules = func() []agentsystem.BudgetRule { return []agentsystem.BudgetRule{allTokens} }
)

// stands compares what is set aside on the budget and what is spent.
func stands(t *testing.T, store storage.Budgets, reserved, spent int64) {
	t.Helper()
	list, err := store.Budgets(t.Context(), 10)
	if err != nil || len(list) > 1 {
		t.Fatal(list, err)
	}
	var b storage.Budget
	if len(list) == 1 {
		b = list[0]
	}
	if b.Reserved != reserved || b.Spent != spent {
		t.Errorf("%d are set aside and %d spent, want %d and %d", b.Reserved, b.Spent, reserved, spent)
	}
}

// A purse of several nodes asks a store that is busy again, for a while and no longer
// than its caller wants: what is set aside and booked counts once, also where only
// the answers were lost.
func TestPurseOfABusyStore(t *testing.T) {
	for _, tt := range []struct {
		name           string
		refused        int
		err            error
		done           bool
		cancel         time.Duration // 0: never
		reserve, book  error         // nil: it works in the end
		reserved, took time.Duration // how long the two take at most
		asked, booked  int           // calls at least; exactly where it is one
		spent          int64         // when the booking was given up
	}{
		{name: "a moment", refused: 3, err: storage.ErrBusy, reserved: 6 * time.Second, took: 3 * time.Second, asked: 4, booked: 4},
		{name: "a full disk", refused: 3, err: storage.ErrFull, reserved: 6 * time.Second, took: 3 * time.Second, asked: 4, booked: 4},
		{name: "lost answers", refused: 3, err: storage.ErrBusy, done: true, reserved: 6 * time.Second, took: 3 * time.Second, asked: 4, booked: 4},
		{name: "for ever", refused: -1, err: storage.ErrBusy, reserve: storage.ErrBusy, book: storage.ErrBusy, reserved: 2 * time.Minute, took: 31 * time.Second, asked: 50, booked: 25},
		{name: "canceled", refused: -1, err: storage.ErrBusy, cancel: 5 * time.Second, reserve: errGone, book: storage.ErrBusy, reserved: 5 * time.Second, took: 5 * time.Second, asked: 2, booked: 4},
		{name: "another error", refused: -1, err: storage.ErrDamaged, reserve: storage.ErrDamaged, book: storage.ErrDamaged, asked: 1, booked: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inPair(t, 1, func(p *pair) {
				store := &reluctant{budgets: p.db}
				purse := agentsystem.NewPurse(p.desk, agentsystem.PurseConfig{Store: store, Rules: purseRules})
				until := func() (context.Context, context.CancelCauseFunc) {
					ctx, cancel := context.WithCancelCause(p.Context())
					if tt.cancel > 0 {
						time.AfterFunc(tt.cancel, func() { cancel(errGone) })
					}
					return ctx, cancel
				}
				ended := func(what string, began time.Time, err, want error, most time.Duration, least int) {
					p.Helper()
					took := time.Since(began)
					if !errors.Is(err, want) || took > most || want != nil && took < most-time.Second {
						p.Errorf("%s: %v after %v, want %v after %v", what, err, took, want, most)
					}
					store.mu.Lock()
					defer store.mu.Unlock()
					if store.calls < least || least == 1 && store.calls > 1 {
						p.Errorf("%s: the store was asked %d times, want %d", what, store.calls, least)
					}
				}

				store.refuse(tt.refused, tt.err, tt.done)
				ctx, cancel := until()
				defer cancel(nil)
				began := time.Now()
				held, err := purse.Reserve(ctx, llm.Charge{Tokens: 80})
				ended("reserve", began, err, tt.reserve, tt.reserved, tt.asked)
				if err != nil {
					stands(p.T, p.db, 0, 0)
					store.refuse(0, nil, false)
					if held, err = purse.Reserve(p.Context(), llm.Charge{Tokens: 80}); err != nil {
						p.Fatal(err)
					}
				}
				stands(p.T, p.db, 80, 0)

				store.refuse(tt.refused, tt.err, tt.done)
				ctx, cancel = until()
				defer cancel(nil)
				began = time.Now()
				err = held.Settle(ctx, claybot.Usage{Input: 3, Output: 2})
				ended("book", began, err, tt.book, tt.took, tt.booked)
				if err != nil { // it counts as it was set aside, until it is booked after all
					stands(p.T, p.db, 80, 0)
					store.refuse(0, nil, false)
					if err := held.Settle(p.Context(), claybot.Usage{Input: 3, Output: 2}); err != nil {
						p.Error(err)
					}
				}
				stands(p.T, p.db, 0, 5)
			})
		})
	}
}

// A process that has its store for itself hears of an error at once, as there is
// nobody who could keep the store busy.
func TestPurseOfAProcessAlone(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		store := &reluctant{budgets: r.db}
		purse := agentsystem.NewPurse(r.system, agentsystem.PurseConfig{Store: store, Rules: purseRules})
		began := time.Now()
		store.refuse(1, storage.ErrBusy, false)
		if _, err := purse.Reserve(r.Context(), llm.Charge{Tokens: 80}); !errors.Is(err, storage.ErrBusy) || store.calls != 1 {
			t.Errorf("reserve: %v after %d calls", err, store.calls)
		}
		held, err := purse.Reserve(r.Context(), llm.Charge{Tokens: 80})
		if err != nil {
			t.Fatal(err)
		}
		store.refuse(1, storage.ErrBusy, false)
		if err := held.Settle(r.Context(), claybot.Usage{Input: 5}); !errors.Is(err, storage.ErrBusy) || store.calls != 1 {
			t.Errorf("book: %v after %d calls", err, store.calls)
		}
		stands(r.T, r.db, 80, 0)
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}
