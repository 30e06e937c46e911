package storage

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// A Class says how far a fault reaches, and so which work waits for it to pass
// and which continues.
type Class int

// The classes, from the narrowest to the widest.
const (
	// ClassNone is no fault: nil, or work that was ended on purpose.
	ClassNone Class = iota
	// ClassMessage: one message cannot be handled. It ends with a recorded reason;
	// the next message of the same agent continues.
	ClassMessage
	// ClassAgent: the files or rows of one agent cannot be used. What is for that
	// agent waits or is parked; every other agent continues.
	ClassAgent
	// ClassMember: this process is unwell (descriptors, memory, I/O). It takes less
	// work and reports itself not ready; no run is charged a try for it.
	ClassMember
	// ClassStore: the store refuses as a whole. Nothing is acknowledged until it
	// answers again.
	ClassStore
)

// String returns the name of the class, as logs and status show it.
func (c Class) String() string {
	switch c {
	case ClassMessage:
		return "message"
	case ClassAgent:
		return "agent"
	case ClassMember:
		return "member"
	case ClassStore:
		return "store"
	}
	return "none"
}

// A Fault is an error whose class the place that met it knows.
type Fault struct {
	Class Class
	Err   error
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// Unavailable reports whether a call that failed with err may succeed later, whatever
// agent it is for: the store refuses as a whole, or this member is unwell.
func Unavailable(err error) bool {
	class := ClassOf(err)
	return class == ClassStore || class == ClassMember
}

// ClassOf returns the class of an error that a call for one agent returned. A
// *Fault says it itself. An error that no rule names is the agent's: if the store
// were at fault as a whole, it would refuse to park the message as well.
func ClassOf(err error) Class {
	var fault *Fault
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, ErrLeaseLost):
		return ClassNone
	case errors.As(err, &fault):
		return fault.Class
	case errors.Is(err, ErrFull), errors.Is(err, ErrBusy), errors.Is(err, context.DeadlineExceeded):
		return ClassStore
	}
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if errors.Is(err, errno) {
			return ClassStore
		}
	}
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO} {
		if errors.Is(err, errno) {
			return ClassMember
		}
	}
	return ClassAgent
}

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
