package api

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A problem is an error that is told to whoever asked.
type problem struct {
	status  int
	wait    int               // seconds until a retry may succeed; 0: unknown
	kind    string            // for OpenAI clients; empty: by the status
	ended   bool              // the run has ended: this is its answer
	Code    string            `json:"code" doc:"For programs."`
	Message string            `json:"message" doc:"For people."`
	Fix     string            `json:"fix,omitempty" doc:"What to do about it."`
	Fields  map[string]string `json:"fields,omitempty" doc:"What is wrong with each field or answer."`
}

func (p *problem) Error() string { return p.Message }

// A failure is the one shape of errors.
type failure struct {
	Error problem `json:"error"`
}

func bad(message, fix string) error {
	return &problem{status: http.StatusBadRequest, Code: "bad_request", Message: message, Fix: fix}
}

func conflict(message, fix string) error {
	return &problem{status: http.StatusConflict, Code: "state", Message: message, Fix: fix}
}

// canRetry reports whether the same request may succeed later.
func (p *problem) canRetry() bool {
	return p.status == http.StatusTooManyRequests || p.status >= http.StatusInternalServerError
}

// advise says in the head of an answer whether and when to retry. The libraries of
// OpenAI obey x-should-retry before they look at the status.
func (p *problem) advise(h http.Header, openAI bool) {
	if p.wait > 0 {
		h.Set("Retry-After", strconv.Itoa(p.wait))
	}
	if openAI {
		h.Set("X-Should-Retry", strconv.FormatBool(p.canRetry()))
	}
}

func forbidden(message, fix string) error {
	return &problem{status: http.StatusForbidden, Code: "scope", Message: message, Fix: fix}
}

// fail answers with err in words.
func fail(log *slog.Logger, w http.ResponseWriter, r *http.Request, o operation, err error) {
	p := problemOf(log, r, o, err)
	p.advise(w.Header(), o.openAI)
	if o.openAI {
		web.Answer(w, p.status, likeOpenAI(p))
		return
	}
	web.Answer(w, p.status, failure{*p})
}

// problemOf explains err to the client of r and logs it. When the request ended before
// its answer, the client is gone or the daemon stops; a client that is still connected
// is told to retry.
func problemOf(log *slog.Logger, r *http.Request, o operation, err error) *problem {
	if r.Context().Err() != nil {
		log.Debug("request ended early", "operation", o.id, "err", err)
		return &problem{status: http.StatusServiceUnavailable, Code: "stopping", wait: 2, Message: "claybot is stopping. What it accepted continues after the next start; send the same request again."}
	}
	p := explain(o, err)
	if p.status == http.StatusInternalServerError {
		log.Error("request failed", "operation", o.id, "err", err)
	}
	return p
}

// explain reads an error as what is told about it. The text of one that nobody
// expected stays in the log.
func explain(o operation, err error) *problem {
	var p *problem
	var no web.Refusal
	var wrong *agentsystem.AnswerError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &no):
		return &problem{status: http.StatusConflict, Code: "refused", Message: string(no)}
	case errors.As(err, &wrong):
		return &problem{status: http.StatusBadRequest, Code: "values", Message: "Some values do not fit; nothing was changed.", Fields: wrong.Faults}
	case errors.Is(err, agentsystem.ErrApproved):
		return &problem{status: http.StatusConflict, Code: "approved", Message: "You have approved this already; it waits for somebody else.", Fix: "Operators count as one person. The question stays open; deny it to take the approval back."}
	case errors.Is(err, agentsystem.ErrUsed):
		return &problem{status: http.StatusConflict, Code: "key_used", Message: "That idempotency key was used for another message.", Fix: "Use a new key for each message."}
	case errors.Is(err, storage.ErrNotFound):
		return &problem{status: http.StatusNotFound, Code: "not_found", Message: o.missing.message, Fix: o.missing.fix}
	case errors.Is(err, storage.ErrState):
		return &problem{status: http.StatusConflict, Code: "state", Message: "That is not possible in the state it is in.", Fix: "Look at it again; it may have changed."}
	case errors.Is(err, agentsystem.ErrCodesLocked):
		return &problem{status: http.StatusTooManyRequests, Code: "locked", Message: "There were too many wrong codes; try again in some minutes."}
	case errors.Is(err, storage.ErrBusy):
		return &problem{status: http.StatusServiceUnavailable, Code: "busy", wait: 1, Message: "The store does not answer right now, and nothing was stored. Try again in a moment."}
	case errors.Is(err, storage.ErrFull):
		return &problem{status: http.StatusServiceUnavailable, Code: "disk_full", wait: 30, Message: "The data directory is full or read-only. Try again when there is space."}
	}
	return &problem{status: http.StatusInternalServerError, Code: "internal", Message: "That did not work; the log says why.", Fix: "Try again in a moment."}
}
