package jsonlines

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/claybot/claybot"
)

// While a batch hangs, others give up when their time is over, and an end of a relay leaves the file open. What comes
// later goes on.
func TestWaitsForABatch(t *testing.T) {
	s := New(filepath.Join(t.TempDir(), "events.jsonl"))
	batch := []claybot.Event{{V: 1, Run: "a", Seq: 1, Type: claybot.EventRunCanceled, At: 5}}
	if err := s.Publish(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	s.turn <- struct{}{} // as a batch that hangs
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() { done <- s.Publish(ctx, batch) }()
	cancel(over)
	if err := <-done; !errors.Is(err, over) {
		t.Errorf("the batch behind it ends with %v", err)
	}
	if err := s.Close(); err != nil || s.file == nil {
		t.Errorf("closed while it is written: %v", err)
	}
	s.end()
	if err := s.Publish(t.Context(), batch); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil || s.file != nil {
		t.Errorf("not closed: %v", err)
	}
	if st, err := os.Stat(s.path); err != nil || st.Size() == 0 {
		t.Errorf("%v, %v", st, err)
	}
}
