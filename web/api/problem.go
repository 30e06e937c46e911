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

func bad(message, fix string) error {
	return &web.Problem{Status: http.StatusBadRequest, Code: "bad_request", Message: message, Fix: fix}
}

func conflict(message, fix string) error {
	return &web.Problem{Status: http.StatusConflict, Code: "state", Message: message, Fix: fix}
}

// canRetry reports whether the same request may succeed later.
func canRetry(p *web.Problem) bool {
	return p.Status == http.StatusTooManyRequests || p.Status >= http.StatusInternalServerError
}

// advise says in the head of an answer whether and when to retry. The libraries of
// OpenAI obey x-should-retry before they look at the status.
func advise(p *web.Problem, h http.Header, openAI bool) {
	if p.Wait > 0 {
		h.Set("Retry-After", strconv.Itoa(p.Wait))
	}
	if openAI {
		h.Set("X-Should-Retry", strconv.FormatBool(canRetry(p)))
	}
}

func forbidden(message, fix string) error {
	return &web.Problem{Status: http.StatusForbidden, Code: "scope", Message: message, Fix: fix}
}

// fail answers with err in words.
func fail(log *slog.Logger, w http.ResponseWriter, r *http.Request, o operation, err error) {
	p := problemOf(log, r, o, err)
	advise(p, w.Header(), o.openAI)
	if o.openAI {
		web.Answer(w, p.Status, likeOpenAI(p))
		return
	}
	web.Answer(w, p.Status, web.Failure{Error: *p})
}

// problemOf explains err to the client of r and logs it. When the request ended before
// its answer, the client is gone or the daemon stops; a client that is still connected
// is told to retry.
func problemOf(log *slog.Logger, r *http.Request, o operation, err error) *web.Problem {
	if r.Context().Err() != nil {
		log.Debug("request ended early", "operation", o.id, "err", err)
		return &web.Problem{Status: http.StatusServiceUnavailable, Code: "stopping", Wait: 2, Message: "claybot is stopping. What it accepted continues after the next start; send the same request again."}
	}
	p := explain(o, err)
	if p.Status == http.StatusInternalServerError {
		log.Error("request failed", "operation", o.id, "err", err)
	}
	return p
}

// explain reads an error as what is told about it. The text of one that nobody
// expected stays in the log.
func explain(o operation, err error) *web.Problem {
	var p *web.Problem
	var no web.Refusal
	var wrong *agentsystem.AnswerError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &no):
		return &web.Problem{Status: http.StatusConflict, Code: "refused", Message: string(no)}
	case errors.As(err, &wrong):
		return &web.Problem{Status: http.StatusBadRequest, Code: "values", Message: "Some values do not fit; nothing was changed.", Fields: wrong.Faults}
	case errors.Is(err, agentsystem.ErrApproved):
		return &web.Problem{Status: http.StatusConflict, Code: "approved", Message: "You have approved this already; it waits for somebody else.", Fix: "Operators count as one person. The question stays open; deny it to take the approval back."}
	case errors.Is(err, agentsystem.ErrUsed):
		return &web.Problem{Status: http.StatusConflict, Code: "key_used", Message: "That idempotency key was used for another message.", Fix: "Use a new key for each message."}
	case errors.Is(err, storage.ErrNotFound):
		return &web.Problem{Status: http.StatusNotFound, Code: "not_found", Message: o.missing.message, Fix: o.missing.fix}
	case errors.Is(err, storage.ErrState):
		return &web.Problem{Status: http.StatusConflict, Code: "state", Message: "That is not possible in the state it is in.", Fix: "Look at it again; it may have changed."}
	case errors.Is(err, agentsystem.ErrCodesLocked):
		return &web.Problem{Status: http.StatusTooManyRequests, Code: "locked", Message: "There were too many wrong codes; try again in some minutes."}
	case errors.Is(err, storage.ErrBusy):
		return &web.Problem{Status: http.StatusServiceUnavailable, Code: "busy", Wait: 1, Message: "The store does not answer right now, and nothing was stored. Try again in a moment."}
	case errors.Is(err, storage.ErrFull):
		return &web.Problem{Status: http.StatusServiceUnavailable, Code: "disk_full", Wait: 30, Message: "The data directory is full or read-only. Try again when there is space."}
	}
	return &web.Problem{Status: http.StatusInternalServerError, Code: "internal", Message: "That did not work; the log says why.", Fix: "Try again in a moment."}
}
