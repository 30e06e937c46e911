package anthropictest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// A Reply says how a call is answered.
type Reply struct {
	Text     string
	Thinking string // before the text, never shown
	Calls    []claybot.ToolCall
	Stop     string // stop_reason; tool_use or end_turn when empty
	Usage    *Usage // counted from bytes when nil

	Delay  time.Duration // before the answer
	Gap    time.Duration // between two events
	Piece  int           // bytes of text or arguments in one event; all in one when 0
	Border int           // bytes in one write to the network, regardless of events

	Fault      Fault
	CutAt      int           // for FaultCut and FaultStall: after so many bytes
	Drip       string        // for FaultDrip
	RetryAfter string        // a header of faults with an error status
	Reset      time.Duration // for FaultRate: how long the limit of input tokens lasts, told by the headers of limits
	Location   string        // for FaultRedirect
}

// Usage is what an answer says it took. Input is without what the cache took.
type Usage struct{ Input, CacheRead, CacheWrite, Output, Thinking int }

// limits are the headers of rate limits, names and values.
func (r Reply) limits() []string {
	if r.Reset <= 0 {
		return nil
	}
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	return []string{
		"Anthropic-Ratelimit-Requests-Limit", "1000", "Anthropic-Ratelimit-Requests-Remaining", "999", "Anthropic-Ratelimit-Requests-Reset", at(0),
		"Anthropic-Ratelimit-Input-Tokens-Limit", "80000", "Anthropic-Ratelimit-Input-Tokens-Remaining", "0", "Anthropic-Ratelimit-Input-Tokens-Reset", at(r.Reset),
	}
}

func (r Reply) stop() string {
	switch {
	case r.Stop != "":
		return r.Stop
	case len(r.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func (r Reply) size() int {
	n := len(r.Text) + len(r.Thinking)
	for _, c := range r.Calls {
		n += len(c.Name) + len(c.Args)
	}
	return n
}

// A Fault is something that servers and networks do wrong, or differently.
type Fault string

// Faults that answer with an error status.
const (
	FaultRate         Fault = "rate"          // 429 rate_limit_error
	FaultOverloaded   Fault = "overloaded"    // 529 overloaded_error
	FaultServer       Fault = "server"        // 500 api_error
	FaultTimeout      Fault = "timeout"       // 504 timeout_error
	FaultUnavailable  Fault = "unavailable"   // 503 with a web page
	FaultBadRequest   Fault = "bad_request"   // 400
	FaultAuth         Fault = "auth"          // 401
	FaultBilling      Fault = "billing"       // 402
	FaultCredit       Fault = "credit"        // 400 that is about money
	FaultPermission   Fault = "permission"    // 403
	FaultNotFound     Fault = "not_found"     // 404
	FaultTooLarge     Fault = "too_large"     // 413
	FaultContext      Fault = "context"       // 400 prompt is too long
	FaultNoImages     Fault = "no_images"     // 400 as long as pictures are sent: the model has no eyes
	FaultBadImage     Fault = "bad_image"     // 400 as long as pictures are sent: one of them is broken
	FaultNoDocuments  Fault = "no_documents"  // 400 as long as documents are sent: the model reads none
	FaultBadDocument  Fault = "bad_document"  // 400 as long as documents are sent: one of them is broken
	FaultNoCache      Fault = "no_cache"      // 400 as long as cache_control is sent
	FaultNoMetadata   Fault = "no_metadata"   // 400 as long as metadata is sent
	FaultNoFormat     Fault = "no_format"     // 400 as long as output_config is sent
	FaultShouldRetry  Fault = "should_retry"  // 400 with x-should-retry: true
	FaultNotRetryable Fault = "not_retryable" // 500 with x-should-retry: false
)

// Faults of the connection, and of a response with status 200.
const (
	FaultDrop        Fault = "drop"     // the connection is closed without an answer
	FaultHang        Fault = "hang"     // no answer until the client leaves
	FaultRedirect    Fault = "redirect" // 307 to Reply.Location
	FaultHTML        Fault = "html"
	FaultJSONError   Fault = "json_error"    // an error as JSON with status 200
	FaultEmpty       Fault = "empty"         // no event
	FaultCut         Fault = "cut"           // the connection breaks after Reply.CutAt bytes
	FaultStall       Fault = "stall"         // after Reply.CutAt bytes nothing comes any more
	FaultDrip        Fault = "drip"          // in the place of the end comes Reply.Drip, again and again, Reply.Gap apart
	FaultNoStop      Fault = "no_stop"       // an orderly end without a stop_reason
	FaultHalfBlock   Fault = "half_block"    // a stop_reason, but the last block does not end
	FaultStreamError Fault = "stream_error"  // overloaded_error in the place of the end
	FaultStreamRate  Fault = "stream_rate"   // rate_limit_error in the place of the end
	FaultStreamBad   Fault = "stream_bad"    // invalid_request_error in the place of the end
	FaultGarbage     Fault = "garbage"       // an event that is not JSON
	FaultEndless     Fault = "endless"       // text that does not end
	FaultNoEnd       Fault = "no_end"        // a good stream without message_stop
	FaultPings       Fault = "pings"         // a good stream with many pings
	FaultUnknown     Fault = "unknown_event" // a good stream with events of the future
	FaultCRLF        Fault = "crlf"
	FaultNoNames     Fault = "no_names" // a good stream without event lines
	FaultNoUsage     Fault = "no_usage"
	FaultWholeInput  Fault = "whole_input" // arguments come with the start of their block
)

// status returns the error that a fault answers with, nil when it is another
// kind of fault.
func (f Fault) status(r Request, reply Reply) *apiError {
	e := func(status int, kind, message string, header ...string) *apiError {
		out := &apiError{status: status, Type: kind, Message: message, header: map[string]string{}}
		for i := 0; i+1 < len(header); i += 2 {
			out.header[header[i]] = header[i+1]
		}
		if reply.RetryAfter != "" {
			out.header["Retry-After"] = reply.RetryAfter
		}
		return out
	}
	const invalid = "invalid_request_error"
	if why := f.refuses(r); why != "" {
		return e(400, invalid, why)
	}
	switch f {
	case FaultRate:
		return e(429, "rate_limit_error", "This request would exceed your organization's rate limit.", reply.limits()...)
	case FaultOverloaded:
		return e(529, "overloaded_error", "Overloaded")
	case FaultServer:
		return e(500, "api_error", "Internal server error")
	case FaultTimeout:
		return e(504, "timeout_error", "The request timed out.")
	case FaultBadRequest:
		return e(400, invalid, "Something about this request is wrong.")
	case FaultAuth:
		return e(401, "authentication_error", "invalid x-api-key")
	case FaultBilling:
		return e(402, "billing_error", "There is an issue with your billing.")
	case FaultCredit:
		return e(400, invalid, "Your credit balance is too low to access the Anthropic API.")
	case FaultPermission:
		return e(403, "permission_error", "Your API key does not have permission to use the specified resource.")
	case FaultNotFound:
		return e(404, "not_found_error", "model: "+r.Model)
	case FaultTooLarge:
		return e(413, "request_too_large", "Request exceeds the maximum size")
	case FaultContext:
		return e(400, invalid, "prompt is too long: 250000 tokens > 200000 maximum")
	case FaultShouldRetry:
		return e(400, invalid, "Try that again.", "X-Should-Retry", "true")
	case FaultNotRetryable:
		return e(500, "api_error", "This will not work.", "X-Should-Retry", "false")
	}
	return nil
}

// refuses is why a server with a fault does not take what is in a request; empty
// when it does.
func (f Fault) refuses(r Request) string {
	pictures := slices.ContainsFunc(r.Messages, func(m llm.Message) bool { return len(m.Images) > 0 })
	documents := slices.ContainsFunc(r.Messages, func(m llm.Message) bool { return len(m.Documents) > 0 })
	switch {
	case f == FaultNoImages && pictures:
		return "messages.0.content.0: this model does not support image input"
	case f == FaultBadImage && pictures:
		return "Could not process image"
	case f == FaultNoDocuments && documents:
		return "messages.0.content.0: this model does not support document blocks"
	case f == FaultBadDocument && documents:
		return "A maximum of 100 PDF pages may be provided."
	case f == FaultNoCache && r.Marks > 0:
		return "system.0.cache_control: Extra inputs are not permitted"
	case f == FaultNoFormat && r.Format != "":
		return "output_config: Extra inputs are not permitted"
	case f == FaultNoMetadata && r.Agent != "":
		return "metadata: Extra inputs are not permitted"
	}
	return ""
}

// answer writes a reply.
func (s *Server) answer(w http.ResponseWriter, hr *http.Request, req Request, reply Reply) {
	if e := reply.Fault.status(req, reply); e != nil {
		e.write(w)
		return
	}
	const page = "<!DOCTYPE html><html><body><h1>Welcome</h1></body></html>"
	switch reply.Fault {
	case FaultHang:
		<-hr.Context().Done()
		return
	case FaultDrop:
		panic(http.ErrAbortHandler)
	case FaultRedirect:
		http.Redirect(w, hr, reply.Location, http.StatusTemporaryRedirect)
		return
	case FaultHTML, FaultUnavailable:
		w.Header().Set("Content-Type", "text/html")
		if reply.Fault == FaultUnavailable {
			if reply.RetryAfter != "" {
				w.Header().Set("Retry-After", reply.RetryAfter)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte(page)) // the client may have left
		return
	case FaultJSONError:
		e := refuse("Overloaded")
		e.status, e.Type = http.StatusOK, "overloaded_error"
		e.write(w)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	send(hr.Context(), w, reply, reply.Fault.form(s.stream(req, reply, s.count(req, reply))))
}

// stream returns the bytes of a good stream.
func (s *Server) stream(req Request, reply Reply, u Usage) []byte {
	var b bytes.Buffer
	event := func(name, data string) {
		_, _ = fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q%s}\n\n", name, name, data) // a buffer takes everything
	}
	start, end := "", ""
	if reply.Fault != FaultNoUsage {
		start = fmt.Sprintf(`,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":1}`, u.Input, u.CacheWrite, u.CacheRead)
		end = fmt.Sprintf(`,"usage":{"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d}}`, u.Output, u.Thinking)
	}
	event("message_start", fmt.Sprintf(`,"message":{"id":"msg_%d","type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null%s}`, req.N, quote(req.Model), start))
	event("ping", "")
	index := 0
	block := func(head, kind, field string, parts []string) {
		event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, index, head))
		for _, p := range parts {
			event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{"type":%q,%q:%s}`, index, kind, field, quote(p)))
		}
		event("content_block_stop", fmt.Sprintf(`,"index":%d`, index))
		index++
	}
	for _, t := range s.think(req) {
		event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, index, t.start))
		for _, delta := range t.deltas {
			event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, index, delta))
		}
		event("content_block_stop", fmt.Sprintf(`,"index":%d`, index))
		index++
	}
	if reply.Thinking != "" {
		block(`{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", "thinking", pieces(reply.Thinking, reply.Piece))
	}
	if reply.Text != "" {
		block(`{"type":"text","text":""}`, "text_delta", "text", pieces(reply.Text, reply.Piece))
	}
	for _, c := range reply.Calls {
		head := fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":`, quote(c.ID), quote(c.Name))
		if reply.Fault == FaultWholeInput {
			block(head+c.Args+"}", "", "", nil)
			continue
		}
		block(head+"{}}", "input_json_delta", "partial_json", append([]string{""}, pieces(c.Args, reply.Piece)...))
	}
	event("message_delta", `,"delta":{"stop_reason":`+quote(reply.stop())+`,"stop_sequence":null}`+end)
	event("message_stop", "")
	return b.Bytes()
}

// form rewrites a good stream.
func (f Fault) form(b []byte) []byte {
	replace := func(from, to string) []byte { return bytes.ReplaceAll(b, []byte(from), []byte(to)) }
	before := func(sign string) []byte { return bytes.Clone(b[:max(0, bytes.LastIndex(b, []byte(sign)))]) }
	broken := func(kind string) []byte {
		e := &apiError{Type: kind, Message: "It broke."}
		return fmt.Appendf(before("event: message_delta"), "event: error\ndata: %s\n\n", e.body())
	}
	switch f {
	case FaultEmpty:
		return nil
	case FaultNoStop:
		return before("event: message_delta")
	case FaultHalfBlock:
		at := bytes.LastIndex(b, []byte("event: content_block_stop"))
		return append(bytes.Clone(b[:at]), b[bytes.LastIndex(b, []byte("event: message_delta")):]...)
	case FaultStreamError:
		return broken("overloaded_error")
	case FaultStreamRate:
		return broken("rate_limit_error")
	case FaultStreamBad:
		return broken("invalid_request_error")
	case FaultGarbage:
		return append([]byte("data: {\"type\":[}\n\n"), b...)
	case FaultNoEnd:
		return before("event: message_stop")
	case FaultPings:
		return replace("event: content_block_delta", strings.Repeat("event: ping\ndata: {\"type\": \"ping\"}\n\n", 20)+"event: content_block_delta")
	case FaultUnknown:
		return replace("event: content_block_stop", "event: news\ndata: {\"type\":\"news\",\"index\":0,\"x\":{}}\n\nevent: content_block_stop")
	case FaultCRLF:
		return replace("\n", "\r\n")
	case FaultNoNames:
		var out []byte
		for line := range bytes.Lines(b) {
			if !bytes.HasPrefix(line, []byte("event: ")) {
				out = append(out, line...)
			}
		}
		return out
	}
	return b
}

// send writes a stream the way a reply wants it.
func send(ctx context.Context, w http.ResponseWriter, reply Reply, b []byte) {
	write := func(p []byte) bool {
		if _, err := w.Write(p); err != nil {
			return false // the client has left
		}
		return http.NewResponseController(w).Flush() == nil
	}
	switch reply.Fault {
	case FaultCut, FaultStall:
		if !write(b[:min(reply.CutAt, len(b))]) {
			return
		}
		if reply.Fault == FaultStall {
			<-ctx.Done()
			return
		}
		panic(http.ErrAbortHandler)
	case FaultDrip:
		if write(b[:bytes.LastIndex(b, []byte("event: content_block_stop"))]) {
			for pause(ctx, reply.Gap) && write([]byte(reply.Drip)) {
			}
		}
		return
	case FaultEndless:
		at := bytes.LastIndex(b, []byte("event: content_block_stop"))
		piece := []byte(`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + strings.Repeat("x", 60<<10) + "\"}}\n\n")
		for ok, n := write(b[:at]), 0; ok && n < 1<<30; n += len(piece) {
			ok = write(piece)
		}
		return
	}
	parts := [][]byte{b}
	switch {
	case reply.Border > 0:
		parts = split(b, reply.Border)
	case reply.Gap > 0:
		parts = bytes.SplitAfter(b, []byte("\n\n"))
	}
	for i, p := range parts {
		if i > 0 && !pause(ctx, reply.Gap) || len(p) > 0 && !write(p) {
			return
		}
	}
}

// split cuts b into parts of n bytes.
func split(b []byte, n int) [][]byte {
	var out [][]byte
	for len(b) > n {
		out = append(out, b[:n])
		b = b[n:]
	}
	return append(out, b)
}

// pieces cuts s into parts of about n bytes that end between characters.
func pieces(s string, n int) []string {
	if s == "" {
		return nil
	}
	if n <= 0 {
		return []string{s}
	}
	var out []string
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
		if b.Len() >= n {
			out = append(out, b.String())
			b.Reset()
		}
	}
	if b.Len() > 0 {
		out = append(out, b.String())
	}
	return out
}

func quote(s string) string {
	b, _ := json.Marshal(s) // strings always marshal
	return string(b)
}
