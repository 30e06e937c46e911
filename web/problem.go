package web

import (
	"errors"
	"net/http"

	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
)

// A Problem says why a request failed. All errors of the HTTP interface have this shape.
type Problem struct {
	Status  int               `json:"-"` // of the answer
	Wait    int               `json:"-"` // seconds until a retry may succeed; 0: unknown
	Kind    string            `json:"-"` // for OpenAI clients; empty: by the status
	Ended   bool              `json:"-"` // the run has ended: this is its answer
	Code    string            `json:"code" doc:"For programs."`
	Message string            `json:"message" doc:"For people."`
	Fix     string            `json:"fix,omitempty" doc:"What to do about it."`
	Fields  map[string]string `json:"fields,omitempty" doc:"What is wrong with each field or answer."`
}

func (p *Problem) Error() string { return p.Message }

// A Failure is the body of an answer that reports a problem.
type Failure struct {
	Error Problem `json:"error"`
}

// Explain describes err for the caller; nil for an unexpected error, whose text belongs
// into the log alone.
func Explain(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	for _, known := range []struct {
		err error
		is  Problem
	}{
		{questions.ErrApproved, Problem{Status: http.StatusConflict, Code: "approved", Message: "You have already approved this; it still needs another approval.", Fix: "Operators count as one person. The question stays open; deny it to take the approval back."}},
		{agentsystem.ErrUsed, Problem{Status: http.StatusConflict, Code: "key_used", Message: "That idempotency key was used for another message.", Fix: "Use a new key for each message."}},
		{people.ErrCodesLocked, Problem{Status: http.StatusTooManyRequests, Code: "locked", Message: "There were too many wrong codes; try again in some minutes."}},
		{storage.ErrNotFound, Problem{Status: http.StatusNotFound, Code: "not_found", Message: "That is not here, or not any more.", Fix: "It may have been deleted, or be too old. Look in the list."}},
		{storage.ErrState, Problem{Status: http.StatusConflict, Code: "state", Message: "That is not possible any more: it has changed meanwhile.", Fix: "Look at how it stands now."}},
		{storage.ErrBusy, Problem{Status: http.StatusServiceUnavailable, Code: "busy", Wait: 1, Message: "The database does not answer right now, and nothing was stored.", Fix: "Try again in a moment."}},
		{storage.ErrFull, Problem{Status: http.StatusServiceUnavailable, Code: "disk_full", Wait: 30, Message: "Nothing was stored: the data directory is full or read-only.", Fix: "Make room and try again."}},
	} {
		if errors.Is(err, known.err) {
			return &known.is
		}
	}
	return nil
}
