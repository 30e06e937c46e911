package anthropic

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot/llm"
)

// A recorded answer is one of the API, as its pages show it; the last one of a shape is repeated.
type recorded struct {
	status int
	header []string // names and values
	body   string
}

// A playing transport answers with recorded answers, and counts those that are paid for.
type playing struct {
	all            []recorded
	requests, paid int
}

func (p *playing) RoundTrip(*http.Request) (*http.Response, error) {
	a := p.all[min(p.requests, len(p.all)-1)]
	p.requests++
	h := http.Header{"Content-Type": {"application/json"}, "Request-Id": {"req_011CSHoEeqs5C35K2UUqR7Fy"}}
	if a.status == http.StatusOK {
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		if !strings.Contains(a.body, "event: error") {
			p.paid++
		}
	}
	for i := 0; i+1 < len(a.header); i += 2 {
		h.Set(a.header[i], a.header[i+1])
	}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

// streamed is a stream of events, from message_start on; each event is its data, which has the name of the event as its type.
func streamed(all ...string) recorded {
	var b strings.Builder
	for _, data := range append([]string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":1}}}`,
	}, all...) {
		name, _, _ := strings.Cut(strings.TrimPrefix(data, `{"type":"`), `"`)
		b.WriteString("event: " + name + "\ndata: " + data + "\n\n")
	}
	return recorded{status: http.StatusOK, body: b.String()}
}

// Events of a block of text, and of the end.
const (
	textStart = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	textHi    = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`
	blockStop = `{"type":"content_block_stop","index":0}`
	stop      = `{"type":"message_stop"}`
)

func endOf(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":15}}`
}

func failedWith(status int, kind, message string, header ...string) recorded {
	return recorded{status, header, `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}`}
}

// The pages, as read in November 2026; each row says on which one its shape is.
const (
	errorsPage   = "platform.claude.com/docs/en/api/errors"
	streamPage   = "platform.claude.com/docs/en/build-with-claude/streaming"
	stopsPage    = "platform.claude.com/docs/en/build-with-claude/handling-stop-reasons"
	thinkingPage = "platform.claude.com/docs/en/build-with-claude/extended-thinking"
	limitsPage   = "docs.aws.amazon.com/claude-platform/latest/userguide/rate-limits.html"
)

var (
	good = streamed(textStart, textHi, blockStop, endOf("end_turn"), stop)
	// shapes were written after the pages; none was recorded from a live account. want is the text and the calls, with the reason of
	// an end that is not usual, or ! and the class of the error.
	shapes = []struct {
		name, source string
		answers      []recorded
		want         string
		requests     int
	}{
		{"text and a ping", streamPage, []recorded{streamed(textStart, `{"type":"ping"}`, textHi, blockStop, endOf("end_turn"), stop)}, "hi", 1},
		{"an event of the future", streamPage, []recorded{streamed(textStart, textHi, `{"type":"content_block_note","index":0}`, blockStop, endOf("end_turn"), stop)}, "hi", 1},
		{"a call in pieces", streamPage, []recorded{streamed(
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_01T1x1fJ34qAmk2tNTrN7Up6","name":"look","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"at\":"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":" 1}"}}`, blockStop, endOf("tool_use"), stop)}, ` look{"at": 1}`, 1},
		{"thinking", thinkingPage, []recorded{streamed(
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM"}}`, blockStop,
			strings.Replace(textStart, `"index":0`, `"index":1`, 1), strings.Replace(textHi, `"index":0`, `"index":1`, 1), strings.Replace(blockStop, `"index":0`, `"index":1`, 1), endOf("end_turn"), stop)}, "hi", 1},
		{"overloaded in the stream", streamPage, []recorded{streamed(textStart, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), good}, "hi", 2},
		{"the end of the tokens", stopsPage, []recorded{streamed(textStart, textHi, blockStop, endOf("max_tokens"), stop)}, "hi (length)", 1},
		{"the end of the window", stopsPage, []recorded{streamed(textStart, textHi, blockStop, endOf("model_context_window_exceeded"), stop)}, "hi (length)", 1},
		{"a stop sequence", stopsPage, []recorded{streamed(textStart, textHi, blockStop, endOf("stop_sequence"), stop)}, "hi", 1},
		{"a refusal", stopsPage, []recorded{streamed(textStart, textHi, blockStop, endOf("refusal"), stop)}, "hi (content_filter)", 1},
		{"a paused turn", stopsPage, []recorded{streamed(textStart, textHi, blockStop, endOf("pause_turn"), stop)}, "hi (length)", 1},
		{"an empty answer", stopsPage, []recorded{streamed(endOf("end_turn"), stop)}, "", 1},
		{"an invalid request", errorsPage, []recorded{failedWith(400, "invalid_request_error", "messages: roles must alternate")}, "!permanent", 1},
		{"a wrong key", errorsPage, []recorded{failedWith(401, "authentication_error", "invalid x-api-key")}, "!permanent", 1},
		{"no money", errorsPage, []recorded{failedWith(402, "billing_error", "There is an issue with your billing.")}, "!permanent", 1},
		{"no permission", errorsPage, []recorded{failedWith(403, "permission_error", "Your API key does not have permission to use the specified resource.")}, "!permanent", 1},
		{"not found", errorsPage, []recorded{failedWith(404, "not_found_error", "The requested resource could not be found.")}, "!permanent", 1},
		{"a conflict", errorsPage, []recorded{failedWith(409, "conflict_error", "The resource was modified."), good}, "hi", 2},
		{"too large", errorsPage, []recorded{failedWith(413, "request_too_large", "Request exceeds the maximum allowed number of bytes.")}, "!context", 1},
		{"a rate with a time", errorsPage, []recorded{failedWith(429, "rate_limit_error", "Your account has hit a rate limit.", "Retry-After", "12"), good}, "hi", 2},
		{"a rate for an hour", errorsPage, []recorded{failedWith(429, "rate_limit_error", "Your account has hit a rate limit.", "Retry-After", "3600")}, "!rate", 1},
		{"a rate with limits", limitsPage, []recorded{failedWith(429, "rate_limit_error", "Your account has hit a rate limit.",
			"anthropic-ratelimit-requests-remaining", "0", "anthropic-ratelimit-requests-reset", "2026-11-30T05:00:00Z"), good}, "hi", 2},
		{"an error of its own", errorsPage, []recorded{failedWith(500, "api_error", "Internal server error"), good}, "hi", 2},
		{"a time-out", errorsPage, []recorded{failedWith(504, "timeout_error", "Request timeout"), good}, "hi", 2},
		{"overloaded", errorsPage, []recorded{failedWith(529, "overloaded_error", "Overloaded"), good}, "hi", 2},
	}
)

// The table of docs/models.md says how many shapes were tried, and with which version.
func TestTableOfShapes(t *testing.T) {
	doc, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	if row := fmt.Sprintf("\n| `anthropic` | %d | `anthropic-version: %s` |", len(shapes), version); !strings.Contains(string(doc), row) {
		t.Errorf("docs/models.md has no row %q", row)
	}
}

// Each shape is understood at once, or refused once; none is paid for more than once.
func TestRecordedShapes(t *testing.T) {
	for _, tt := range shapes {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := &playing{all: tt.answers}
				resp, err := llm.Retried(New(Config{BaseURL: "http://model.invalid", Model: "m", HTTP: rt}), llm.Retries{}).Chat(t.Context(), ask("x"))
				got := resp.Text
				for _, c := range resp.Calls {
					got += " " + c.Name + c.Args
				}
				if resp.Stop == llm.StopLength || resp.Stop == llm.StopFilter {
					got += " (" + string(resp.Stop) + ")"
				}
				if e, failed := errors.AsType[*llm.Error](err); failed {
					got = "!" + string(e.Class)
				}
				if got != tt.want || rt.requests != tt.requests || rt.paid > 1 {
					t.Errorf("%q after %d requests, of which %d were paid for, want %q after %d (%s); %v", got, rt.requests, rt.paid, tt.want, tt.requests, tt.source, err)
				}
			})
		})
	}
}
