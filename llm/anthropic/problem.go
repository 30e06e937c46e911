package anthropic

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/llm/provider"
)

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
		"overloaded_error":      provider.StatusOverloaded,
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

func (a *api) Problem(status int, body []byte) provider.Problem {
	p := parseProblem(status, body)
	if status == 0 {
		p.inStream()
	}
	out := provider.Problem{
		Status: p.status, Message: p.message, KeyName: cmp.Or(a.cfg.KeyName, "ANTHROPIC_API_KEY"), Account: p.account(),
		TooLong: p.status == http.StatusRequestEntityTooLarge || p.status == http.StatusBadRequest && p.has(contextSigns...),
	}
	out.Quota = out.Account && p.status != http.StatusUnauthorized && p.status != http.StatusForbidden
	out.Refused, out.Once = p.refused()
	return out
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

// documentPattern finds words for documents, not parts of names.
var documentPattern = lazyregexp.New(`\b(pdfs?|documents?)\b`)

// refused returns the optional fields that a problem is about: those that the
// server never accepts, and those that it does not accept as they are.
func (p *problem) refused() (always, once uint32) {
	switch p.status {
	case http.StatusRequestEntityTooLarge:
		return 0, fieldImages | fieldDocuments
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
	if p.has("output_config", "structured output", "output format") {
		if p.has("schema") { // it is about this one
			once |= fieldFormat
		} else {
			always |= fieldFormat
		}
		return always, once
	}
	if p.has("thinking", "signature") && always == 0 {
		switch {
		case p.has("expected `thinking`", "must start with a thinking block"):
			once |= fieldState | fieldUnreasoned
		case unknown:
			always |= fieldState
		default:
			once |= fieldState
		}
	}
	if documentPattern.MatchString(strings.ToLower(p.message)) {
		if p.has("not support", "n't support", "does not match any of the expected tags", "not enabled") && !p.has("password", "encrypted", "tools.", "schema") {
			always |= fieldDocuments
		} else {
			once |= fieldDocuments
		}
	}
	if p.has("image") && always&^fieldDocuments == 0 {
		if p.has("not support", "n't support", "unsupported content", "vision") && !p.has("media_type", "format") {
			always |= fieldImages
		} else {
			once |= fieldImages
		}
	}
	return always, once
}
