package inbox_test

import (
	"errors"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
)

// As soon as a call is settled, each of its messages has its own result: the one that failed
// and those that were dropped for it.
func TestDroppedWithTheFailed(t *testing.T) {
	ms := []claybot.AgentMessage{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	failed := &inbox.RunFailedError{Run: "r", Code: "model_refused"}
	for range 1000 {
		var w inbox.Waiters
		tokens := w.Add(true, ms)
		got := make(chan []inbox.Result)
		go func() {
			<-tokens[0].Settled
			results, err := w.Collect(ms, tokens)
			if !errors.Is(err, failed) {
				t.Errorf("the call's error is %v", err)
			}
			got <- results
		}()
		w.Ended(inbox.Result{Run: "q"}, "a")
		w.EndedWith(inbox.Result{Run: "r", Err: failed}, []claybot.MessageID{"b"}, w.Beside([]claybot.MessageID{"b"}))
		results := <-got
		for i, want := range []error{nil, failed, inbox.ErrDropped} {
			if !errors.Is(results[i].Err, want) {
				t.Fatalf("message %s: %v, want %v", ms[i].ID, results[i].Err, want)
			}
		}
	}
}
