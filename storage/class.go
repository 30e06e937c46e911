package storage

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// A Class is the scope of a fault. It decides which work waits and which
// continues.
type Class int

// The classes, from the narrowest to the widest.
const (
	// ClassNone is no fault: nil, or work that was canceled.
	ClassNone Class = iota
	// ClassMessage: one message cannot be handled. It ends with a recorded reason;
	// the next message of the same agent continues.
	ClassMessage
	// ClassAgent: the files or rows of one agent cannot be used. What is for that
	// agent waits or is parked; every other agent continues.
	ClassAgent
	// ClassMember: this process lacks resources (descriptors, memory, I/O). It
	// takes less work and reports itself not ready; the failure does not count as
	// an attempt of a run.
	ClassMember
	// ClassStore: the whole store is unavailable. Nothing is acknowledged until
	// it works again.
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

// A Fault is an error with a known class.
type Fault struct {
	Class Class
	Err   error
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// Unavailable reports whether a call that failed with err may succeed later for any
// agent: err is of ClassStore or ClassMember.
func Unavailable(err error) bool {
	class := ClassOf(err)
	return class == ClassStore || class == ClassMember
}

// ClassOf returns the class of an error that a call for one agent returned. A
// *Fault has its own class. An error that matches no rule is of ClassAgent: if
// the whole store were at fault, it would refuse to park the message as well.
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

// Texts about a store that is temporarily unavailable: after ErrBusy in an error,
// and for users.
const (
	textSilent = "the database does not answer; trying again"
	textBusy   = "the store is busy; trying again"
	textFull   = "a limit of connections to the database is reached (`claybot doctor` says which); trying again"
)

// codeFull is the SQLSTATE for too many connections.
const codeFull = "53300"

var errSilent = errors.New("the database does not answer")

// Unanswered returns the error of a database that did not respond: ErrBusy with the
// driver's error as its cause.
func Unanswered(cause error) error { return fmt.Errorf("%w: %w: %w", ErrBusy, errSilent, cause) }

// Plain returns the text of an error for users, which fits after a colon. For a store
// that is busy or did not respond, it is one sentence without the driver's names,
// addresses and codes.
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

// InTime returns err, or Unanswered if err only means that the time limit of the
// call expired.
func InTime(err error) error {
	if err == nil || errors.Is(err, ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return Unanswered(err)
}
