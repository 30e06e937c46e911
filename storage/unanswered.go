package storage

import (
	"context"
	"errors"
	"fmt"
)

// What is said of a store that did not do its work for now, behind ErrBusy in the
// text of an error, and to people.
const (
	textSilent = "the database does not answer; trying again"
	textBusy   = "the store is busy; trying again"
	textFull   = "a limit of connections to the database is reached (`claybot doctor` says which); trying again"
)

// codeFull is the SQLSTATE of a database to which no connection is left.
const codeFull = "53300"

var errSilent = errors.New("the database does not answer")

// Unanswered is the error of a database that did not answer: ErrBusy, with what the
// driver says as its cause.
func Unanswered(cause error) error { return fmt.Errorf("%w: %w: %w", ErrBusy, errSilent, cause) }

// Plain is an error in words for people. Of one that the store gave because it did
// not answer, or was busy, it is one sentence, which goes without the names, addresses
// and codes that its driver puts into it; of any other it is its text. It fits behind
// a colon.
func Plain(err error) string {
	var coded interface{ SQLState() string }
	switch {
	case !errors.Is(err, ErrBusy):
		return err.Error()
	case errors.As(err, &coded) && coded.SQLState() == codeFull:
		return textFull
	case errors.Is(err, errSilent):
		return textSilent
	}
	return textBusy
}

// InTime is err, but Unanswered where it is only that the time ended which a caller
// had given the store.
func InTime(err error) error {
	if err == nil || errors.Is(err, ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return Unanswered(err)
}
