package web

import (
	"errors"
	"net/http"

	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
)

// A Problem describes why a request failed. All errors of the HTTP API have this format.
type Problem struct {
	Status  int               `json:"-"` // of the answer
	Wait    int               `json:"-"` // seconds until a retry may succeed; 0: unknown
	Kind    string            `json:"-"` // for OpenAI clients; empty: by the status
	Ended   bool              `json:"-"` // the run has ended: this is its answer
	Code    string            `json:"code" doc:"For programs."`
	Message string            `json:"message" doc:"For people."`
	Fix     string            `json:"fix,omitempty" doc:"How to fix it."`
	Fields  map[string]string `json:"fields,omitempty" doc:"The error of each field or answer."`
}

func (p *Problem) Error() string { return p.Message }

// A Failure is the body of an answer that reports a problem.
type Failure struct {
	Error Problem `json:"error"`
}

// Explain describes err for the caller; nil for an unexpected error, whose text only
// belongs in the log.
func Explain(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if wrong, ok := errors.AsType[*flows.InputError](err); ok {
		return &Problem{
			Status: http.StatusUnprocessableEntity, Code: "input", Message: "The input of the workflow is not valid: " + wrong.Field + " " + wrong.Text + ". Nothing was stored.",
			Fix: "The key input in the file of the workflow says what it needs.", Fields: map[string]string{wrong.Field: wrong.Text},
		}
	}
	for _, known := range []struct {
		err error
		is  Problem
	}{
		{questions.ErrApproved, Problem{Status: http.StatusConflict, Code: "approved", Message: "You have already approved this; it still needs another approval.", Fix: "Operators count as one person. The question stays open; deny it to take the approval back."}},
		{questions.ErrReserved, Problem{Status: http.StatusForbidden, Code: "scope", Message: "Answering approvals and questions for approvers needs the scope approve.", Fix: "Use a token with the scope approve."}},
		{agentsystem.ErrUsed, Problem{Status: http.StatusConflict, Code: "key_used", Message: "This idempotency key was used for another message.", Fix: "Use a new key for each message."}},
		{people.ErrCodesLocked, Problem{Status: http.StatusTooManyRequests, Code: "locked", Message: "Too many invalid codes; try again in a few minutes."}},
		{storage.ErrFlowFull, Problem{Status: http.StatusTooManyRequests, Code: "flow_full", Wait: 30, Message: "The workflow has as many unfinished runs as it may have, and nothing was stored.", Fix: "Send the same request again later, or raise limits in the file of the workflow."}},
		{storage.ErrNotFound, Problem{Status: http.StatusNotFound, Code: "not_found", Message: "Not found.", Fix: "It may have been deleted, or have expired."}},
		{connectors.ErrNotRunning, Problem{Status: http.StatusServiceUnavailable, Code: "not_running", Message: "Not possible now: the connector starts or ends, or an operator has stopped it.", Fix: "claybot nodes shows it, and claybot nodes start starts it."}},
		{storage.ErrState, Problem{Status: http.StatusConflict, Code: "state", Message: "Not possible any more: the state has changed.", Fix: "Reload to see the current state."}},
		{storage.ErrQuota, Problem{Status: http.StatusRequestEntityTooLarge, Code: "quota", Message: "The file was not stored: the files that were sent for this owner take all the space that they may take.", Fix: "Raise limits.files_per_owner, or delete agents that are no longer needed."}},
		{storage.ErrBusy, Problem{Status: http.StatusServiceUnavailable, Code: "busy", Wait: 1, Message: "The database does not respond, and nothing was stored.", Fix: "Try again in a moment."}},
		{storage.ErrFull, Problem{Status: http.StatusServiceUnavailable, Code: "disk_full", Wait: 30, Message: "Nothing was stored: the data directory is full or read-only.", Fix: "Free up space and try again."}},
	} {
		if errors.Is(err, known.err) {
			return &known.is
		}
	}
	return nil
}
