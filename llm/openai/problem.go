package openai

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/llm/provider"
)

// A problem is what a server says went wrong, from whichever of the many
// shapes: {"error":{...}}, {"error":"..."}, {"message":...}, {"detail":...}, an
// array of such.
type problem struct {
	status  int
	code    string
	kind    string // "type" on the wire
	param   string
	message string
	loc     string // the field, as pydantic names it
	wait    time.Duration
	body    string // lower case, for signs that have no field of their own
}

func parseProblem(status int, body []byte) problem {
	p := problem{status: status, body: strings.ToLower(string(body))}
	var v any
	if json.Unmarshal(body, &v) != nil {
		return p
	}
	p.read(v)
	return p
}

func (p *problem) read(v any) {
	switch v := v.(type) {
	case string:
		p.message = v
	case []any:
		if len(v) > 0 {
			p.read(v[0])
		}
	case map[string]any:
		for _, inner := range [...]string{"error", "detail"} {
			if in, ok := v[inner]; ok && in != nil {
				p.read(in)
				return
			}
		}
		p.code, p.kind, p.param = text(v["code"]), text(v["type"]), text(v["param"])
		if p.message = text(v["message"]); p.message == "" {
			p.message = text(v["msg"])
		}
		if loc, ok := v["loc"].([]any); ok {
			for _, part := range loc {
				p.loc += text(part) + "."
			}
		}
		p.wait = waitOf(v, time.Now())
	}
}

// waitOf is how long an error asks to wait: by Google's RetryInfo among its details, or by the header of a limit that OpenRouter
// repeats in it, with the milliseconds since 1970 when the limit ends. Google cuts fractions of a second off
// (github.com/googleapis/python-genai/pull/2114, read in November 2026), so a whole number of seconds is too early.
func waitOf(v map[string]any, now time.Time) time.Duration {
	details, _ := v["details"].([]any) // nil has no elements
	for _, d := range details {
		info, _ := d.(map[string]any) // a nil map has no values
		if kind := text(info["@type"]); !strings.HasSuffix(kind, "google.rpc.RetryInfo") {
			continue
		}
		wait, err := time.ParseDuration(text(info["retryDelay"]))
		if err == nil && wait > 0 && wait == wait.Truncate(time.Second) {
			wait += time.Second
		}
		return wait
	}
	metadata, _ := v["metadata"].(map[string]any)
	headers, _ := metadata["headers"].(map[string]any)
	if ms, err := strconv.ParseInt(text(headers["X-RateLimit-Reset"]), 10, 64); err == nil {
		return time.UnixMilli(ms).Sub(now)
	}
	return 0
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// inStream gives a problem that came inside a stream the status that it would
// have had as a response: what its code says, else 500.
func (p *problem) inStream() {
	p.status = http.StatusInternalServerError
	if n, err := strconv.Atoi(p.code); err == nil && n >= 400 && n < 600 {
		p.status = n
		return
	}
	for sign, status := range map[string]int{
		"rate_limit": 429, "insufficient_quota": 429, "invalid_request": 400, "invalid_prompt": 400,
		"context_length": 400, "authentication": 401, "invalid_api_key": 401, "permission": 403,
		"not_found": 404,
	} {
		if strings.Contains(p.code, sign) || strings.Contains(p.kind, sign) {
			p.status = min(p.status, status) // 400 before 429 before 500: the more specific wins
		}
	}
}

var contextSigns = []string{
	"context_length", "context length", "context window", "context size", "maximum context",
	"prompt is too long", "input is too long", "too many input tokens", "reduce the length of the messages",
	"input token count", "exceeded model token limit",
}

var quotaSigns = []string{"insufficient_quota", "billing_hard_limit", "billing_not_active", "exceeded_current_quota"}

func (a *api) Problem(status int, body []byte) provider.Problem {
	p := parseProblem(status, body)
	if status == 0 {
		p.inStream()
	}
	out := provider.Problem{
		Status: p.status, Message: p.message, KeyName: cmp.Or(a.cfg.KeyName, "OPENAI_API_KEY"),
		Account: p.account(), Quota: p.has(quotaSigns...), TooLong: p.status >= 400 && p.has(contextSigns...),
		Wait: p.wait,
	}
	out.Refused, out.Once = p.refused()
	return out
}

func (p *problem) has(signs ...string) bool {
	for _, sign := range signs {
		if strings.Contains(p.code, sign) || strings.Contains(p.body, sign) {
			return true
		}
	}
	return false
}

// account reports a problem of the key or the account, not of the request.
func (p *problem) account() bool {
	switch {
	case p.has(quotaSigns...), p.status == http.StatusUnauthorized, p.status == http.StatusPaymentRequired:
		return true
	}
	return p.status == http.StatusForbidden && !p.has("moderation", "flagged")
}

// Signs of a model without eyes, and of one picture that cannot be shown.
var (
	blindSigns = []string{
		"not support", "n't support", "unsupported", "support image", "vision", "multimodal", "multi-modal", "image_url",
		"expected a string", "expected string", "must be a string", "only text", "text only", "not enabled",
	}
	badImageSigns = []string{
		"invalid image", "unsupported image", "valid image", "process image", "parse image", "image data",
		"image exceeds", "image size", "image too large", "too large", "download",
	}
)

// Signs of a document, as words of their own; of a server that takes none; and of what is said about a part of a content, and not
// about a tool.
var (
	documentPattern = lazyregexp.New(`\b(pdfs?|documents?|input_file|file inputs?|type:? file|file_data)\b|["'` + "`]file[`" + `"']`)
	noReadingSigns  = append([]string{"unknown variant", "unknown part", "unknown content", "invalid value", "no endpoints", "invalid type"}, blindSigns...)
	partSigns       = []string{"input", "content", "modal", "part", "variant", "supported values", "model", "endpoint", "block"}
	toolSigns       = []string{"tool", "function", "schema", "properties"}
)

// documents returns the field of documents if a problem is about them: the server takes none, or not this one. Where it names
// pictures too, the client finds out which of them it is about.
func (p *problem) documents() (always, once uint32) {
	said := strings.ToLower(strings.Join([]string{p.message, p.code, p.kind, p.param, p.loc}, " "))
	has := func(signs ...string) bool {
		return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(said, sign) })
	}
	switch {
	case !documentPattern.MatchString(said):
		return 0, 0
	case has(noReadingSigns...) && has(partSigns...) && !has(toolSigns...) && !has("unsupported file", "unsupported pdf", "corrupt", "encrypted", "password", "too large"):
		return fieldDocuments, 0
	}
	return 0, fieldDocuments
}

// refused returns the optional fields that a problem is about: those that the
// server never accepts, and those that it does not accept as they are.
func (p *problem) refused() (always, once uint32) {
	switch p.status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
	case http.StatusNotFound, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		// How some servers say that a model has no eyes.
		always, _ = p.documents()
		if p.has("image") && p.has(blindSigns...) {
			always |= fieldImages
		}
		if always != 0 {
			return always, 0
		}
		return 0, p.lost()
	case http.StatusInternalServerError:
		_, once = p.documents()
		if p.has("image") {
			once |= fieldImages
		}
		return 0, once
	default:
		return 0, 0
	}
	if p.has("stream_options", "include_usage") {
		always |= fieldUsage
	}
	unknown := p.has(unknownSigns...)
	if p.param == "user" || p.param == "prompt_cache_key" || unknown && !p.has("role") && p.has(`"user"`, `\"user\"`, "'user'", "`user`", ": user", "prompt_cache_key") {
		always |= fieldUser
	}
	if unknown && p.has("cache_control") {
		always |= fieldMarks
	}
	switch {
	case !p.has("response_format", "json_schema", "json_object", "text.format"):
	case p.has("unrecognized", "unknown", "not permitted", "extra_forbidden", "unsupported_parameter"):
		always |= fieldFormat
	default: // it is about this schema, maybe
		once |= fieldFormat
	}
	set, not := p.state()
	always, once = always|set, once|not
	set, not = p.documents()
	always, once = always|set, once|not
	if p.has("image") {
		if p.has(badImageSigns...) || !p.has(blindSigns...) {
			once |= fieldImages
		} else {
			always |= fieldImages
		}
	}
	return always, once
}

// Signs of a field that the server does not know.
var unknownSigns = []string{"unrecognized", "unknown", "unexpected", "unsupported", "not supported", "not permitted", "extra_forbidden"}

// Signs of an answer that lacks what the server wants back.
var missingSigns = []string{"missing", "must be passed back", "must be provided", "must include", "is required", "field required"}

// state returns the fields that a problem with what belongs to answers is about: an answer lacks it, the
// server does not know it, or it is not what the server made. Only what the server says counts: some
// repeat the request, with words of the model.
func (p *problem) state() (always, once uint32) {
	said := strings.ToLower(strings.Join([]string{p.message, p.code, p.kind, p.param, p.loc}, " "))
	has := func(signs ...string) bool {
		return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(said, sign) })
	}
	once = p.lost()
	signature := has("thought signature", "thought_signature")
	switch {
	case has("encrypted content is not supported") || has("'include'") && has(unknownSigns...):
		return fieldInclude, 0
	case once != 0, has("encrypted content", "encrypted_content", "of type 'reasoning'"):
		return 0, fieldState
	case has("'input[") && has(unknownSigns...):
		return fieldState, 0
	case !signature && !has("reasoning_content", "reasoning_details"):
		return 0, 0
	case has(unknownSigns...):
		return fieldState, 0
	case has(missingSigns...) && signature:
		return fieldUnsigned, 0
	case has(missingSigns...):
		return fieldUnreasoned, 0
	}
	return 0, fieldState
}

// lost returns fieldState for a problem with an item of an answer that the server does not have; with status 404, it is no unknown
// address.
func (p *problem) lost() uint32 {
	if strings.Contains(strings.ToLower(p.message), "items are not persisted") {
		return fieldState
	}
	return 0
}
