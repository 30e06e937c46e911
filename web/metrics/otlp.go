package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// What follows is the JSON encoding of an ExportTraceServiceRequest of OTLP 1:
// ids are hexadecimal, 64-bit integers are strings, enumerations are numbers.
type (
	otlpRequest struct {
		ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
	}
	otlpResourceSpans struct {
		Resource   otlpResource     `json:"resource"`
		ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeSpans struct {
		Scope otlpScope  `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpScope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		ParentID   string          `json:"parentSpanId,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Events     []otlpEvent     `json:"events,omitempty"`
		Status     *otlpStatus     `json:"status,omitempty"`
	}
	otlpEvent struct {
		Time string `json:"timeUnixNano"`
		Name string `json:"name"`
	}
	otlpStatus struct {
		Code int `json:"code"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		String *string `json:"stringValue,omitempty"`
		Int    *string `json:"intValue,omitempty"`
	}
)

// statusError is STATUS_CODE_ERROR.
const statusError = 2

// otlpBody is the body of a request with the spans of several traces.
func otlpBody(version string, spans []tracedSpan) []byte {
	resource := []attribute{{"service.name", "claybot"}, {"service.instance.id", instance()}}
	if version != "" {
		resource = append(resource, attribute{"service.version", version})
	}
	scope := otlpScopeSpans{Scope: otlpScope{Name: "github.com/claybot/claybot", Version: version}}
	for _, s := range spans {
		scope.Spans = append(scope.Spans, s.encode())
	}
	body, _ := json.Marshal(otlpRequest{[]otlpResourceSpans{{ // the types above always marshal
		Resource: otlpResource{encodeAll(resource)}, ScopeSpans: []otlpScopeSpans{scope},
	}}})
	return body
}

// instance tells processes apart.
func instance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// A tracedSpan is a span with the id of its trace.
type tracedSpan struct {
	trace string
	span
}

func (s tracedSpan) encode() otlpSpan {
	out := otlpSpan{
		TraceID: s.trace, SpanID: s.id, ParentID: s.parent, Name: valid(s.name), Kind: s.kind,
		Start: nanos(s.start), End: nanos(s.end), Attributes: encodeAll(s.attrs),
	}
	for _, e := range s.events {
		out.Events = append(out.Events, otlpEvent{nanos(e.at), e.name})
	}
	if s.err != "" {
		out.Attributes = append(out.Attributes, encodeAll([]attribute{{"error.type", s.err}})...)
		out.Status = &otlpStatus{statusError}
	}
	return out
}

func encodeAll(all []attribute) []otlpAttribute {
	out := make([]otlpAttribute, 0, len(all))
	for _, a := range all {
		var v otlpValue
		switch x := a.value.(type) {
		case int64:
			s := strconv.FormatInt(x, 10)
			v.Int = &s
		case string:
			s := valid(x)
			v.String = &s
		}
		out = append(out, otlpAttribute{a.key, v})
	}
	return out
}

// nanos is a moment in nanoseconds since 1970, which must not be negative.
func nanos(t time.Time) string {
	if t.Before(time.Unix(0, 0)) {
		return "0"
	}
	return strconv.FormatInt(t.UnixNano(), 10)
}

// valid makes a string fit for protocol buffers, which the receiver decodes it
// into.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
