package openaitest

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// key is the key of a request.
func (d Dialect) key(h http.Header) string {
	if d == Azure {
		return h.Get("Api-Key")
	}
	return strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
}

var mistralID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

// strict refuses what only this server refuses, in its words.
func (d Dialect) strict(in *wireRequest) *apiError {
	marks, documents := 0, 0
	for _, m := range in.Messages {
		if marks += m.Content.cached(); m.Content != nil {
			documents += len(m.Content.documents)
		}
	}
	reads := d == "" || d == OpenRouter || d == Azure
	switch {
	case documents > 0 && !reads:
		return refuse("messages", "Failed to deserialize the JSON body: unknown variant `file`, expected `text` or `image_url`")
	case len(in.Plugins) > 0 && d != OpenRouter:
		return refuse("plugins", "Unrecognized request argument supplied: plugins")
	case d == OpenRouter && documents > 0 && (len(in.Plugins) != 1 || in.Plugins[0].ID != "file-parser" || in.Plugins[0].PDF.Engine != "native"):
		return refuse("plugins", "this emulator reads documents only by the engine of the model")
	case marks > 0 && d != OpenRouter || marks > 4:
		return refuse("messages", "messages.0.content.0.cache_control: Extra inputs are not permitted")
	case d == DeepSeek && in.ResponseFormat != nil && in.ResponseFormat.Type != "json_object":
		return refuse("response_format", "This response_format type is unavailable now")
	case d != Mistral:
		return nil
	case in.User != "":
		return forbidden("user")
	case in.StreamOptions != nil:
		return forbidden("stream_options")
	}
	for i, m := range in.Messages {
		if m.Role == "user" && i > 0 && in.Messages[i-1].Role == "tool" {
			e := refuse("", "Unexpected role 'user' after role 'tool'")
			e.Type, e.Code = "invalid_request_message_order", "3230"
			return e
		}
		if slices.ContainsFunc(m.ToolCalls, func(c wireCall) bool { return !mistralID.MatchString(c.ID) }) || m.ToolCallID != "" && !mistralID.MatchString(m.ToolCallID) {
			return refuse("", "Tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9.", m.ToolCallID)
		}
	}
	return nil
}

func forbidden(field string) *apiError {
	e := refuse("", `{"detail":[{"type":"extra_forbidden","loc":["body","%s"],"msg":"Extra inputs are not permitted"}]}`, field)
	e.status = http.StatusUnprocessableEntity
	return e
}

// write sends an error in the shape that the server gives it.
func (d Dialect) write(w http.ResponseWriter, e *apiError) {
	for k, v := range e.header {
		w.Header().Set(k, v)
	}
	type object = map[string]any
	switch {
	case e.reset <= 0:
	case d == "":
		h := w.Header()
		h.Set("X-Ratelimit-Limit-Requests", "60")
		h.Set("X-Ratelimit-Remaining-Requests", "59")
		h.Set("X-Ratelimit-Reset-Requests", "1s")
		h.Set("X-Ratelimit-Limit-Tokens", "150000")
		h.Set("X-Ratelimit-Remaining-Tokens", "12")
		h.Set("X-Ratelimit-Reset-Tokens", e.reset.String())
	case d == Azure:
		w.Header().Set("X-Ratelimit-Remaining-Tokens", "0")
		w.Header().Set("X-Ratelimit-Reset-Tokens", strconv.Itoa(int(e.reset.Seconds())))
	case d == Gemini:
		writeJSON(w, e.status, []object{{"error": object{"code": e.status, "message": e.Message, "status": "RESOURCE_EXHAUSTED", "details": []object{
			{"@type": "type.googleapis.com/google.rpc.Help"},
			{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": strconv.FormatFloat(e.reset.Seconds(), 'f', -1, 64) + "s"},
		}}}})
		return
	case d == OpenRouter:
		at := strconv.FormatInt(time.Now().Add(e.reset).UnixMilli(), 10)
		writeJSON(w, e.status, object{"error": object{"code": e.status, "message": e.Message, "metadata": object{
			"headers": object{"X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": at},
		}}})
		return
	}
	switch d {
	case Gemini:
		status := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}[e.status]
		writeJSON(w, e.status, []object{{"error": object{"code": e.status, "message": e.Message, "status": status}}})
	case Mistral:
		writeJSON(w, e.status, object{"object": "error", "message": e.Message, "type": e.Type, "param": nil, "code": e.Code})
	case OpenRouter, LlamaCPP:
		writeJSON(w, e.status, object{"error": object{"code": e.status, "message": e.Message, "type": e.Type}})
	default:
		writeJSON(w, e.status, object{"error": e})
	}
}

// usage is what an answer took as the server counts it.
func (d Dialect) usage(u Usage) string {
	more := ""
	switch d {
	case DeepSeek:
		more = fmt.Sprintf(`,"prompt_cache_hit_tokens":%d,"prompt_cache_miss_tokens":%d}`, u.Cached, u.Prompt-u.Cached)
	case Kimi:
		more = fmt.Sprintf(`,"cached_tokens":%d}`, u.Cached)
	case OpenRouter:
		more = `,"cost":0.0012,"is_byok":false}`
	default:
		return u.json()
	}
	return strings.TrimSuffix(u.json(), "}") + more
}

// first is what comes before an answer in a stream.
func (d Dialect) first() string {
	switch d {
	case Azure:
		return `data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}` + "\n\n"
	case OpenRouter:
		return ": OPENROUTER PROCESSING\n\n"
	case DeepSeek:
		return ": keep-alive\n\n"
	}
	return ""
}
