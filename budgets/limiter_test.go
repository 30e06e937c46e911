package budgets_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

// store is the contract under a name that none of its methods hides.
type store = storage.Budgets

// A reluctant store refuses so many calls before it does its work; negative: all.
type reluctant struct {
	store
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
	return s.try(func() error { return s.store.Reserve(ctx, r) })
}

func (s *reluctant) Book(ctx context.Context, id string, a storage.Amount) (list []storage.Budget, err error) {
	err = s.try(func() error { list, err = s.store.Book(ctx, id, a); return err })
	return list, err
}

var errGone = errors.New("the run was canceled for the test")

// A member of a cluster retries while the store is busy, for a while and no longer than
// the caller wants: what is reserved and settled counts once, also where only the
// answers were lost.
func TestMemberRetriesABusyStore(t *testing.T) {
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
			bubble(t, func(r *rig) {
				member, _ := r.join("a")
				store := &reluctant{store: r.db}
				limiter := r.limiter(member, store, allTokens(1000))
				until := func() (context.Context, context.CancelCauseFunc) {
					ctx, cancel := context.WithCancelCause(r.Context())
					if tt.cancel > 0 {
						time.AfterFunc(tt.cancel, func() { cancel(errGone) })
					}
					return ctx, cancel
				}
				ended := func(what string, began time.Time, err, want error, most time.Duration, least int) {
					r.Helper()
					took := time.Since(began)
					if !errors.Is(err, want) || took > most || want != nil && took < most-time.Second {
						r.Errorf("%s: %v after %v, want %v after %v", what, err, took, want, most)
					}
					store.mu.Lock()
					defer store.mu.Unlock()
					if store.calls < least || least == 1 && store.calls > 1 {
						r.Errorf("%s: the store was asked %d times, want %d", what, store.calls, least)
					}
				}

				store.refuse(tt.refused, tt.err, tt.done)
				ctx, cancel := until()
				defer cancel(nil)
				began := time.Now()
				held, err := limiter.Reserve(ctx, llm.Charge{Tokens: 80})
				ended("reserve", began, err, tt.reserve, tt.reserved, tt.asked)
				if err != nil {
					r.stands(0, 0)
					store.refuse(0, nil, false)
					if held, err = limiter.Reserve(r.Context(), llm.Charge{Tokens: 80}); err != nil {
						r.Fatal(err)
					}
				}
				r.stands(80, 0)

				store.refuse(tt.refused, tt.err, tt.done)
				ctx, cancel = until()
				defer cancel(nil)
				began = time.Now()
				err = held.Settle(ctx, claybot.Usage{Input: 3, Output: 2})
				ended("book", began, err, tt.book, tt.took, tt.booked)
				if err != nil { // it counts as it was set aside, until it is booked after all
					r.stands(80, 0)
					store.refuse(0, nil, false)
					if err := held.Settle(r.Context(), claybot.Usage{Input: 3, Output: 2}); err != nil {
						r.Error(err)
					}
				}
				r.stands(0, 5)
			})
		})
	}
}

// A budget counts as used up where it stops a run until its period ends, not where calls under
// way reserved what is missing, and not where one run reached its own limit.
func TestStoppedByABudgetThatIsUsedUp(t *testing.T) {
	for _, tt := range []struct {
		name string
		rule budgets.Rule
		held int64 // by another call
		want int   // calls of Stopped
	}{
		{"used up", allTokens(10), 0, 1},
		{"reserved", allTokens(100), 80, 0},
		{"one run", budgets.Rule{Per: budgets.PerRun, Every: budgets.EveryRun, Unit: storage.UnitTokens, Limit: 10, Hard: true}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				limiter := r.limiter(alone(), r.db, tt.rule)
				if tt.held > 0 {
					if _, err := limiter.Reserve(r.Context(), llm.Charge{Tokens: tt.held}); err != nil {
						r.Fatal(err)
					}
				}
				_, err := limiter.Reserve(r.Context(), llm.Charge{Run: "r1", Tokens: 80})
				if _, limit := errors.AsType[*llm.LimitError](err); !limit || len(r.stops) != tt.want {
					r.Errorf("%v, and %q count as used up, want %d", err, r.stops, tt.want)
				}
			})
		})
	}
}

// A process that has its store for itself returns an error at once, as no other process
// keeps the store busy.
func TestProcessAloneDoesNotRetry(t *testing.T) {
	bubble(t, func(r *rig) {
		store := &reluctant{store: r.db}
		limiter := r.limiter(alone(), store, allTokens(1000))
		began := time.Now()
		store.refuse(1, storage.ErrBusy, false)
		if _, err := limiter.Reserve(r.Context(), llm.Charge{Tokens: 80}); !errors.Is(err, storage.ErrBusy) || store.calls != 1 {
			t.Errorf("reserve: %v after %d calls", err, store.calls)
		}
		held, err := limiter.Reserve(r.Context(), llm.Charge{Tokens: 80})
		if err != nil {
			t.Fatal(err)
		}
		store.refuse(1, storage.ErrBusy, false)
		if err := held.Settle(r.Context(), claybot.Usage{Input: 5}); !errors.Is(err, storage.ErrBusy) || store.calls != 1 {
			t.Errorf("book: %v after %d calls", err, store.calls)
		}
		r.stands(80, 0)
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// In a process that has its store for itself, a call that waits for room asks the store
// again only when something was released.
func TestProcessAloneDoesNotPoll(t *testing.T) {
	bubble(t, func(r *rig) {
		store := &reluctant{store: r.db}
		limiter := r.limiter(alone(), store, allTokens(100))
		held, err := limiter.Reserve(r.Context(), llm.Charge{Tokens: 80})
		if err != nil {
			t.Fatal(err)
		}
		store.refuse(0, nil, false)
		done := make(chan error, 1)
		go func() {
			_, err := limiter.Reserve(r.Context(), llm.Charge{Tokens: 80})
			done <- err
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(done) > 0 || store.calls != 1 {
			t.Fatalf("the store was asked %d times, the call has ended: %v", store.calls, len(done) > 0)
		}
		if err := held.Settle(r.Context(), claybot.Usage{Input: 5}); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil || store.calls != 3 { // reserve, book, reserve
			t.Errorf("%v after %d calls", err, store.calls)
		}
	})
}

// Between two terms a member reserves nothing, and keeps trying.
func TestNoReservationBetweenTerms(t *testing.T) {
	bubble(t, func(r *rig) {
		member, leave := r.join("a")
		limiter := r.limiter(member, r.db, allTokens(100))
		leave()
		began := time.Now()
		if _, err := limiter.Reserve(r.Context(), llm.Charge{Tokens: 80}); !errors.Is(err, storage.ErrBusy) || time.Since(began) != 2*time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		r.stands(0, 0)
	})
}

// A call waits for what another member has reserved, and gets it when that member
// releases it.
func TestRoomElsewhere(t *testing.T) {
	bubble(t, func(r *rig) {
		a, _ := r.join("a")
		b, _ := r.join("b")
		here, there := r.limiter(a, r.db, allTokens(100)), r.limiter(b, r.db, allTokens(100))
		call := llm.Charge{Tokens: 80}
		held, err := there.Reserve(r.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		got := make(chan error, 1)
		go func() {
			_, err := here.Reserve(r.Context(), call)
			got <- err
		}()
		time.Sleep(10 * time.Second)
		if err := held.Settle(r.Context(), claybot.Usage{Input: 5}); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil || time.Since(began) > 12*time.Second {
			t.Errorf("room comes after %v: %v", time.Since(began), err)
		}
	})
}

// Follow charges the reservations of earlier processes in full, and none of a process
// that is there.
func TestFollowChargesWhatIsAbandoned(t *testing.T) {
	bubble(t, func(r *rig) {
		gone := r.limiter(cluster.Alone(storage.Member{ID: "gone"}), r.db, allTokens(1000))
		if _, err := gone.Reserve(r.Context(), llm.Charge{Tokens: 80}); err != nil {
			t.Fatal(err)
		}
		member, _ := r.join("a")
		limiter := r.limiter(member, r.db, allTokens(1000))
		held, err := limiter.Reserve(r.Context(), llm.Charge{Tokens: 7})
		if err != nil {
			t.Fatal(err)
		}
		r.stands(87, 0)
		ctx, cancel := context.WithCancelCause(r.Context())
		done := make(chan error, 1)
		go func() { done <- limiter.Follow(ctx) }()
		synctest.Wait()
		r.stands(7, 80)
		if err := held.Settle(r.Context(), claybot.Usage{Output: 3}); err != nil {
			t.Error(err)
		}
		r.stands(0, 83)
		cancel(errGone)
		if err := <-done; !errors.Is(err, errGone) {
			t.Error(err)
		}
	})
}
