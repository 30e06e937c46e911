package api

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/claybot/claybot/questions"
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

// advise sets headers that state whether and when to retry. The OpenAI libraries check
// x-should-retry before the status.
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

// fail responds with err.
func fail(log *slog.Logger, w http.ResponseWriter, r *http.Request, o operation, err error) {
	p := problemOf(log, r, o, err)
	advise(p, w.Header(), o.openAI)
	if o.openAI {
		web.Answer(w, p.Status, likeOpenAI(p))
		return
	}
	web.Answer(w, p.Status, web.Failure{Error: *p})
}

// problemOf explains err to the client of r and logs it. If the request ended before its
// response, the client disconnected or the daemon stops; a connected client should retry.
func problemOf(log *slog.Logger, r *http.Request, o operation, err error) *web.Problem {
	if r.Context().Err() != nil {
		log.Debug("request ended early", "operation", o.id, "request", web.RequestID(r.Context()), "err", err)
		return &web.Problem{Status: http.StatusServiceUnavailable, Code: "stopping", Wait: 2, Message: "claybot is stopping. What it accepted continues after the next start; send the same request again."}
	}
	p := explain(o, err)
	if p.Status == http.StatusInternalServerError {
		log.Error("request failed", "operation", o.id, "request", web.RequestID(r.Context()), "err", err)
	}
	return p
}

// explain converts an error to a problem. The text of an unexpected error appears only in
// the log.
func explain(o operation, err error) *web.Problem {
	if no, ok := errors.AsType[web.Refusal](err); ok {
		return &web.Problem{Status: http.StatusConflict, Code: "refused", Message: string(no)}
	}
	if wrong, ok := errors.AsType[*questions.AnswerError](err); ok {
		return &web.Problem{Status: http.StatusBadRequest, Code: "values", Message: "Some values are invalid; nothing was changed.", Fields: wrong.Faults}
	}
	p := web.Explain(err)
	switch {
	case p == nil:
		return &web.Problem{Status: http.StatusInternalServerError, Code: "internal", Message: "Request failed; see the log.", Fix: "Try again in a moment."}
	case errors.Is(err, storage.ErrNotFound):
		p.Message, p.Fix = o.missing.message, o.missing.fix
	}
	return p
}
