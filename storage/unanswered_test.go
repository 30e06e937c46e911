package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/claybot/claybot/storage"
)

// coded is an error of a database server.
type coded string

func (c coded) Error() string    { return "FATAL (" + string(c) + ")" }
func (c coded) SQLState() string { return string(c) }

// What a driver says is for the log; people read one sentence.
func TestPlain(t *testing.T) {
	raw := errors.New("failed to connect to `user=claybot database=bots`: 10.1.2.3:5432 (db): dial error: connection refused (SQLSTATE 57P01)")
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"not there", storage.Unanswered(raw), "the database does not answer; trying again"},
		{"with what was done", fmt.Errorf("changes of files: %w", storage.Unanswered(raw)), "the database does not answer; trying again"},
		{"busy", fmt.Errorf("renew: %w: %w", storage.ErrBusy, raw), "the store is busy; trying again"},
		{"no connection left", fmt.Errorf("renew: %w: %w", storage.ErrBusy, coded("53300")), "a limit of connections to the database is reached (`claybot doctor` says which); trying again"},
		{"another code", fmt.Errorf("renew: %w: %w", storage.ErrBusy, coded("40001")), "the store is busy; trying again"},
		{"not busy", coded("53300"), "FATAL (53300)"},
		{"busy alone", storage.ErrBusy, "the store is busy; trying again"},
		{"too late", storage.InTime(context.DeadlineExceeded), "the database does not answer; trying again"},
		{"something else", fmt.Errorf("agent a: %w", storage.ErrNotFound), "agent a: not found"},
		{"a text that only looks like it", errors.New("the store is busy: the database does not answer: x"), "the store is busy: the database does not answer: x"},
	}
	for _, tt := range tests {
		if got := storage.Plain(tt.err); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	for _, err := range []error{storage.Unanswered(raw), storage.InTime(fmt.Errorf("renewal: %w", context.DeadlineExceeded))} {
		if !errors.Is(err, storage.ErrBusy) {
			t.Errorf("%v is not told from one that will not go away", err)
		}
	}
	if err := storage.Unanswered(raw); !errors.Is(err, raw) || !strings.Contains(err.Error(), "10.1.2.3") {
		t.Errorf("the cause is lost: %v", err)
	}
	if storage.InTime(nil) != nil || storage.InTime(storage.ErrNotFound) != storage.ErrNotFound { //nolint:errorlint // it is to be the same
		t.Error("other errors are changed")
	}
}
