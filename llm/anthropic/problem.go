package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// statusOverloaded is the status of a provider that has too much to do.
const statusOverloaded = 529

// A failure is a failed attempt.
type failure struct {
	*llm.Error
	refused uint32        // optional fields that the server does not accept
	once    uint32        // optional fields that it does not accept as they are in this request
	usage   claybot.Usage // what was read before it failed
}

func failed(class llm.Class, format string, args ...any) *failure {
	return &failure{Error: llm.Failed(class, format, args...)}
}

// A problem is what the server says went wrong:
// {"type":"error","error":{"type":"…","message":"…"}}.
type problem struct {
	status  int
	kind    string
	message string
	body    string // lower case, for signs that have no field of their own
}

func parseProblem(status int, body []byte) problem {
	p := problem{status: status, body: strings.ToLower(string(body))}
	var v struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &v) != nil || len(v.Error) == 0 {
		return p
	}
	var e struct{ Type, Message string }
	if json.Unmarshal(v.Error, &e) == nil {
		p.kind, p.message = e.Type, e.Message
	} else {
		_ = json.Unmarshal(v.Error, &p.message) // some proxies send a text; anything else says nothing
	}
	return p
}

// inStream gives a problem that came inside a stream the status that it would
// have had as a response.
func (p *problem) inStream() {
	p.status = http.StatusInternalServerError
	if status, ok := map[string]int{
		"invalid_request_error": http.StatusBadRequest,
		"authentication_error":  http.StatusUnauthorized,
		"billing_error":         http.StatusPaymentRequired,
		"permission_error":      http.StatusForbidden,
		"not_found_error":       http.StatusNotFound,
		"request_too_large":     http.StatusRequestEntityTooLarge,
		"rate_limit_error":      http.StatusTooManyRequests,
		"timeout_error":         http.StatusGatewayTimeout,
		"overloaded_error":      statusOverloaded,
	}[p.kind]; ok {
		p.status = status
	}
}

var (
	contextSigns = []string{"prompt is too long", "exceed context limit", "context window", "context length", "too many total text bytes"}
	quotaSigns   = []string{"credit balance", "usage limits", "billing"}
)

func (p *problem) has(signs ...string) bool {
	for _, sign := range signs {
		if strings.Contains(p.body, sign) {
			return true
		}
	}
	return false
}

// class says what can be done about a problem.
func (p *problem) class() llm.Class {
	switch s := p.status; {
	case p.account():
		return llm.Permanent
	case s == http.StatusTooManyRequests:
		return llm.Rate
	case s == http.StatusRequestEntityTooLarge, s == http.StatusBadRequest && p.has(contextSigns...):
		return llm.Context
	case s == http.StatusRequestTimeout, s == http.StatusConflict, s == http.StatusTooEarly, s >= 500:
		return llm.Transient
	}
	return llm.Permanent
}

// account reports a problem of the key or the account, not of the request.
func (p *problem) account() bool {
	switch p.status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		return true
	case http.StatusBadRequest, http.StatusTooManyRequests:
		return p.has(quotaSigns...)
	}
	return false
}

// refused returns the optional fields that a problem is about: those that the
// server never accepts, and those that it does not accept as they are.
func (p *problem) refused() (always, once uint32) {
	switch p.status {
	case http.StatusRequestEntityTooLarge:
		return 0, fieldImages
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
	default:
		return 0, 0
	}
	unknown := p.has("extra inputs", "unknown", "unrecognized", "unexpected", "not support", "unsupported", "not permitted", "extra_forbidden")
	if unknown && p.has("metadata", "user_id") {
		always |= fieldUser
	}
	if unknown && p.has("cache_control") {
		always |= fieldCache
	}
	if p.has("image") && always == 0 {
		if p.has("not support", "n't support", "unsupported content", "vision") && !p.has("media_type", "format") {
			always |= fieldImages
		} else {
			once |= fieldImages
		}
	}
	return always, once
}

// sentence is what the operator reads before the provider's own words.
func (p *problem) sentence() string {
	switch s := p.status; {
	case s == http.StatusUnauthorized:
		return "the provider refuses the key; check ANTHROPIC_API_KEY"
	case s == http.StatusForbidden:
		return "the provider refuses access"
	case p.account():
		return "the account's quota is used up"
	case p.class() == llm.Context:
		return "the conversation is too long for the model"
	case s == http.StatusTooManyRequests:
		return "the provider limits the rate of requests"
	case s == http.StatusNotFound:
		return "the provider does not know the model or the address; check the model's name and the base URL"
	case s == statusOverloaded:
		return "the provider is overloaded"
	case s >= 500:
		return "the provider failed"
	case s >= 300 && s < 400:
		return "the provider redirects in a way that is not followed; check the base URL"
	}
	return "the provider refuses the request"
}

// problem turns what the server says into a failure.
func (c *Client) problem(p problem) *failure {
	text := p.sentence()
	if m := c.caller.Redactor.Short(p.message); m != "" {
		text += ": " + m
	}
	f := &failure{Error: &llm.Error{Class: p.class(), Account: p.account(), Text: text}}
	f.refused, f.once = p.refused()
	return f
}
