package openaitest

import (
	"bytes"
	"net/http"
	"strings"
)

// A Fault is something that servers and networks do wrong, or differently.
type Fault string

// Faults that answer with an error status.
const (
	FaultRate          Fault = "rate"           // 429; Reply.RetryAfter is the header's value, or Reply.Reset says how long
	FaultRateMS        Fault = "rate_ms"        // 429; Reply.RetryAfter goes into retry-after-ms
	FaultQuota         Fault = "quota"          // 429 insufficient_quota
	FaultTimeout       Fault = "timeout"        // 408
	FaultConflict      Fault = "conflict"       // 409
	FaultServer        Fault = "server"         // 500
	FaultServerNoRetry Fault = "server_final"   // 500 with x-should-retry: false
	FaultGateway       Fault = "gateway"        // 502 with a web page
	FaultUnavailable   Fault = "unavailable"    // 503; Reply.RetryAfter is the header's value
	FaultBadRequest    Fault = "bad_request"    // 400
	FaultBadRetry      Fault = "bad_retry"      // 400 with x-should-retry: true
	FaultAuth          Fault = "auth"           // 401
	FaultNotFound      Fault = "not_found"      // 404
	FaultContext       Fault = "context"        // 400 context_length_exceeded
	FaultContextText   Fault = "context_text"   // the same, told in words only
	FaultUsageRefused  Fault = "usage_refused"  // 400 as long as stream_options is sent
	FaultUserRefused   Fault = "user_refused"   // 422 as long as user is sent
	FaultSchemaRefused Fault = "schema_refused" // 400 as long as the schema of an answer is sent
	FaultNoImages      Fault = "no_images"      // 400 as long as pictures are sent: the model has no eyes
	FaultNoImagesRoute Fault = "no_images_404"  // the same as a broker says it
	FaultBadImage      Fault = "bad_image"      // 400 as long as pictures are sent: one of them is broken
	FaultNoDocuments   Fault = "no_documents"   // 400 as long as documents are sent: the model reads none
	FaultNoReading     Fault = "no_reading"     // the same, told in words that name no document
	FaultBadDocument   Fault = "bad_document"   // 400 as long as documents are sent: one of them is broken
	FaultRedirect      Fault = "redirect"       // 307 to Reply.Location
	FaultPlainError    Fault = "plain_error"    // 500 {"error":"text"}
	FaultDetailError   Fault = "detail_error"   // 422 {"detail":[{"msg":...}]}
	FaultDrop          Fault = "drop"           // the connection is closed without an answer
	FaultHang          Fault = "hang"           // no answer until the client leaves
)

// Faults of a response with status 200 that is no good stream.
const (
	FaultHTML        Fault = "html"         // a web page
	FaultJSON        Fault = "json"         // one complete JSON object
	FaultJSONError   Fault = "json_error"   // an error as JSON
	FaultPlain       Fault = "plain"        // a good stream called text/plain
	FaultEmpty       Fault = "empty"        // no event
	FaultEarlyDone   Fault = "early_done"   // the end mark and nothing else
	FaultCut         Fault = "cut"          // the connection breaks after Reply.CutAt bytes
	FaultNoFinish    Fault = "no_finish"    // an orderly end without a finish_reason
	FaultDoneOnly    Fault = "done_only"    // the end mark without a finish_reason
	FaultStall       Fault = "stall"        // after Reply.CutAt bytes nothing comes any more
	FaultDrip        Fault = "drip"         // in the place of the end comes Reply.Drip, again and again, Reply.Gap apart
	FaultSlow        Fault = "slow"         // a byte at a time, Reply.Gap apart
	FaultStreamError Fault = "stream_error" // an error object in the place of the end
	FaultStreamRate  Fault = "stream_rate"  // the same, with the code of a 429
	FaultGarbage     Fault = "garbage"      // an event that is not JSON
	FaultGiantLine   Fault = "giant_line"   // one line that does not end
	FaultEndless     Fault = "endless"      // text that does not end
)

// Variants that are no errors; the answer is the same.
const (
	FaultBOM         Fault = "bom"
	FaultCRLF        Fault = "crlf"
	FaultCR          Fault = "cr"
	FaultComments    Fault = "comments"
	FaultNoSpace     Fault = "no_space"   // "data:" without a blank
	FaultManyLines   Fault = "many_lines" // data in several lines
	FaultKeepAlive   Fault = "keep_alive" // a thousand comments first
	FaultEventNames  Fault = "event_names"
	FaultNoDone      Fault = "no_done"
	FaultNoLastBlank Fault = "no_last_blank"
	FaultNoIDs       Fault = "no_ids"   // calls without ids
	FaultSameIDs     Fault = "same_ids" // calls that share one id
	FaultNoIndex     Fault = "no_index" // calls without index
	FaultNoUsage     Fault = "no_usage"
)

// status returns the error that a fault answers with, nil when it is another
// kind of fault.
func (f Fault) status(r Request, reply Reply) *apiError {
	e := func(status int, kind, code, message string, header ...string) *apiError {
		out := &apiError{status: status, Type: kind, Message: message, header: map[string]string{}}
		if code != "" {
			out.Code = code
		}
		for i := 0; i+1 < len(header); i += 2 {
			if header[i+1] != "" {
				out.header[header[i]] = header[i+1]
			}
		}
		return out
	}
	const invalid, failed = "invalid_request_error", "server_error"
	switch f {
	case FaultRate:
		out := e(429, "requests", "rate_limit_exceeded", "Rate limit reached.", "Retry-After", reply.RetryAfter)
		out.reset = reply.Reset
		return out
	case FaultRateMS:
		return e(429, "requests", "rate_limit_exceeded", "Rate limit reached.", "Retry-After-Ms", reply.RetryAfter)
	case FaultQuota:
		return e(429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.")
	case FaultTimeout:
		return e(408, failed, "", "Request timed out.")
	case FaultConflict:
		return e(409, failed, "", "The resource is busy.")
	case FaultServer:
		return e(500, failed, "", "The server had an error while processing your request.")
	case FaultServerNoRetry:
		return e(500, failed, "", "This will not work.", "X-Should-Retry", "false")
	case FaultUnavailable:
		return e(503, failed, "", "The engine is currently overloaded.", "Retry-After", reply.RetryAfter)
	case FaultBadRequest:
		return e(400, invalid, "", "Something about this request is wrong.")
	case FaultBadRetry:
		return e(400, invalid, "", "Try that again.", "X-Should-Retry", "true")
	case FaultAuth:
		return e(401, invalid, "invalid_api_key", "Incorrect API key provided.")
	case FaultNotFound:
		return e(404, invalid, "model_not_found", "The model does not exist.")
	case FaultContext:
		return e(400, invalid, "context_length_exceeded", "This model's maximum context length is 8192 tokens.")
	case FaultContextText:
		return e(400, "BadRequestError", "", "The prompt is too long: it has more tokens than the context window.")
	}
	if status, why := f.refuses(r); why != "" {
		return e(status, invalid, "", why)
	}
	return nil
}

// refuses is why a server with a fault does not take what is in a request; empty
// when it does.
func (f Fault) refuses(r Request) (status int, why string) {
	switch {
	case f == FaultUsageRefused && r.Usage:
		return 400, "Unknown parameter: 'stream_options'."
	case f == FaultNoImages && r.pictures() > 0:
		return 400, "Failed to deserialize the JSON body: messages[1]: unknown variant `image_url`, expected `text`"
	case f == FaultNoImagesRoute && r.pictures() > 0:
		return 404, "No endpoints found that support image input"
	case f == FaultBadImage && r.pictures() > 0:
		return 400, "You uploaded an unsupported image. Please make sure your image is valid."
	case f == FaultNoDocuments && r.documents() > 0:
		return 400, "Invalid value: 'file'. Supported values are: 'text', 'image_url'."
	case f == FaultNoReading && r.documents() > 0:
		return 400, "invalid message format"
	case f == FaultBadDocument && r.documents() > 0:
		return 400, "The PDF file is encrypted and cannot be read."
	case f == FaultSchemaRefused && strings.Contains(r.Format, "schema"):
		return 400, "Invalid schema for response_format 'answer': 'required' is required to be supplied."
	case f == FaultUserRefused && r.Agent != "":
		return 422, "[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"user\"]}]"
	}
	return 0, ""
}

// raw returns a fault's whole response where it is neither a stream nor an
// error in the usual shape.
func (f Fault) raw() (status int, kind, body string, ok bool) {
	const page = "<!DOCTYPE html><html><body><h1>Welcome</h1></body></html>"
	switch f {
	case FaultGateway:
		return http.StatusBadGateway, "text/html", page, true
	case FaultHTML:
		return http.StatusOK, "text/html; charset=utf-8", page, true
	case FaultJSONError:
		return http.StatusOK, "application/json", `{"error":{"message":"no capacity","code":503}}`, true
	case FaultPlainError:
		return http.StatusInternalServerError, "application/json", `{"error":"model runner has stopped"}`, true
	case FaultDetailError:
		return http.StatusUnprocessableEntity, "application/json", `{"detail":[{"msg":"field required","loc":["body","x"]}]}`, true
	}
	return 0, "", "", false
}

const (
	doneEvent  = "data: [DONE]\n\n"
	errorEvent = `data: {"error":{"message":"The model crashed.","type":"server_error","code":null}}` + "\n\n"
	rateEvent  = `data: {"error":{"message":"Too many requests.","type":"requests","code":"rate_limit_exceeded"}}` + "\n\n"
)

// form rewrites a good stream.
func (f Fault) form(stream []byte) []byte {
	replace := func(from, to string) []byte { return bytes.ReplaceAll(stream, []byte(from), []byte(to)) }
	before := func(head string) []byte { return append([]byte(head), stream...) }
	switch f {
	case FaultBOM:
		return before("\xEF\xBB\xBF")
	case FaultCRLF:
		return replace("\n", "\r\n")
	case FaultCR:
		return replace("\n", "\r")
	case FaultComments:
		return append([]byte(": hello\n\n"), replace("\n\n", "\n: ping\n\n")...)
	case FaultNoSpace:
		return replace("data: ", "data:")
	case FaultManyLines:
		return replace("data: {", "data: {\ndata: ")
	case FaultKeepAlive:
		return before(strings.Repeat(": keep-alive\n\n", 1000))
	case FaultEventNames:
		return replace("data: ", "event: chunk\nid: 7\nretry: 10\ndata: ")
	case FaultNoDone:
		return replace(doneEvent, "")
	case FaultNoLastBlank:
		return bytes.TrimRight(stream, "\n")
	case FaultEmpty:
		return nil
	case FaultEarlyDone:
		return []byte(doneEvent)
	case FaultGarbage:
		return before("data: {\"choices\":[{]}\n\n")
	case FaultNoFinish:
		return stream[:finishAt(stream)]
	case FaultDoneOnly:
		return append(stream[:finishAt(stream):finishAt(stream)], doneEvent...)
	case FaultStreamError:
		return append(stream[:finishAt(stream):finishAt(stream)], errorEvent...)
	case FaultStreamRate:
		return append(stream[:finishAt(stream):finishAt(stream)], rateEvent...)
	}
	return stream
}

// finishAt is where the event with the reason of the end begins.
func finishAt(stream []byte) int {
	at := bytes.LastIndex(stream, []byte(`"finish_reason":"`))
	return bytes.LastIndex(stream[:max(at, 0)], []byte("data: "))
}
