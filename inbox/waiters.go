package inbox

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/claybot/claybot"
)

// A RunFailedError says that the run of a message failed.
type RunFailedError struct {
	Run  claybot.RunID
	Code string
}

// A Result is how one message of an Invoke ended.
type Result struct {
	Message claybot.MessageID
	Run     claybot.RunID
	State   claybot.RunState
	Text    string // the last reply of the run
	Err     error
}

// A Token is a set of messages that settle together.
type Token struct {
	ids     []claybot.MessageID
	results map[claybot.MessageID]Result
	err     error         // of the first message that did not succeed; read after settled is closed
	Settled chan struct{} // closed when the token is settled
}

// Waiters are the tokens of all calls of Invoke, by message. The zero value is
// ready.
type Waiters struct {
	mu     sync.Mutex
	tokens map[claybot.MessageID][]*Token
	down   bool
}

func (e *RunFailedError) Error() string { return fmt.Sprintf("run %s failed: %s", e.Run, e.Code) }

// Rejected reports whether the token has been turned down already.
func (t *Token) Rejected() bool {
	select {
	case <-t.Settled:
		return t.err != nil && !errors.Is(t.err, ErrShutdown)
	default:
		return false
	}
}

// Add makes tokens for messages: one for all of them together, or one each.
func (w *Waiters) Add(together bool, ms []claybot.AgentMessage) []*Token {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tokens == nil {
		w.tokens = make(map[claybot.MessageID][]*Token)
	}
	var all []*Token
	for _, m := range ms {
		if len(all) == 0 || !together {
			all = append(all, &Token{results: make(map[claybot.MessageID]Result), Settled: make(chan struct{})})
		}
		t := all[len(all)-1]
		if !slices.Contains(w.tokens[m.ID], t) {
			t.ids = append(t.ids, m.ID)
			w.tokens[m.ID] = append(w.tokens[m.ID], t)
		}
		if w.down {
			t.settle(ErrShutdown)
		}
	}
	return all
}

// Remove forgets tokens.
func (w *Waiters) Remove(tokens []*Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range tokens {
		for _, id := range t.ids {
			left := slices.DeleteFunc(w.tokens[id], func(o *Token) bool { return o == t })
			if w.tokens[id] = left; len(left) == 0 {
				delete(w.tokens, id)
			}
		}
	}
}

// Beside returns the messages without a result that share a token with one of
// ids.
func (w *Waiters) Beside(ids []claybot.MessageID) (others []claybot.MessageID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		for _, t := range w.tokens[id] {
			for _, other := range t.ids {
				if _, known := t.results[other]; !known && !slices.Contains(ids, other) {
					others = append(others, other)
				}
			}
		}
	}
	return others
}

// Ended notes how messages ended and settles the tokens that this decides.
func (w *Waiters) Ended(r Result, ids ...claybot.MessageID) {
	w.EndedWith(r, ids, nil)
}

// EndedWith is Ended for messages that failed and the messages that were dropped for it. It
// notes both before it settles a token, so that a call never finds only one of them.
func (w *Waiters) EndedWith(r Result, ids, dropped []claybot.MessageID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(r, ids)
	w.note(Result{Err: ErrDropped}, dropped)
	w.decide(r.Err, ids)
	w.decide(ErrDropped, dropped)
}

// note keeps the first result of each message. It is called under the lock.
func (w *Waiters) note(r Result, ids []claybot.MessageID) {
	for _, id := range ids {
		for _, t := range w.tokens[id] {
			if _, known := t.results[id]; !known {
				r.Message = id
				t.results[id] = r
			}
		}
	}
}

// decide settles the tokens of messages that ended. It is called under the lock.
func (w *Waiters) decide(err error, ids []claybot.MessageID) {
	for _, id := range ids {
		for _, t := range w.tokens[id] {
			if err != nil || len(t.results) == len(t.ids) {
				t.settle(err)
			}
		}
	}
}

// Shutdown settles everything: what waits runs after the next start.
func (w *Waiters) Shutdown() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	for _, tokens := range w.tokens {
		for _, t := range tokens {
			t.settle(ErrShutdown)
		}
	}
}

// settle decides about a token once and for all. It is called under the lock of
// the waiters.
func (t *Token) settle(err error) {
	select {
	case <-t.Settled:
	default:
		t.err = err
		close(t.Settled)
	}
}

// Collect puts the results of settled tokens into the order of the messages.
func (w *Waiters) Collect(ms []claybot.AgentMessage, tokens []*Token) ([]Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	byID := make(map[claybot.MessageID]Result)
	for _, t := range tokens {
		for _, id := range t.ids {
			r, ok := t.results[id]
			if !ok {
				r.Err = t.err
			}
			r.Message = id
			byID[id] = r
		}
	}
	results := make([]Result, len(ms))
	var first error
	for i, m := range ms {
		results[i] = byID[m.ID]
		if first == nil {
			first = results[i].Err
		}
	}
	return results, first
}

// The causes with which work ends from inside, and the errors of waiters.
var (
	// ErrShutdown: the process ends; the message stays and runs later.
	ErrShutdown = errors.New("claybot is shutting down")
	// ErrReset: a reset discarded the message or ended its run.
	ErrReset = errors.New("the conversation was reset")
	// ErrCanceled says that the run was stopped.
	ErrCanceled = errors.New("the run was canceled")
	// ErrDropped: an operator discarded the waiting message.
	ErrDropped = errors.New("the message was dropped")
)

// MaxFile is the most bytes that one file may have.
const MaxFile = 50 << 20

// MaxFiles is the most files that one message may have.
const MaxFiles = 10

// Open are the messages of a token that have no result yet.
func (w *Waiters) Open(t *Token) (ids []claybot.MessageID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range t.ids {
		if _, known := t.results[id]; !known {
			ids = append(ids, id)
		}
	}
	return ids
}
