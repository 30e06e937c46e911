package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// An object is one of the JSON encoding of an ExportTraceServiceRequest of OTLP 1: ids are
// hexadecimal, 64-bit integers are strings, enumerations are numbers.
type object = map[string]any

// statusError is STATUS_CODE_ERROR.
const statusError = 2

// otlpBody is the body of a request with the spans of several traces.
func otlpBody(version string, spans []tracedSpan) []byte {
	resource := []attribute{{"service.name", "claybot"}, {"service.instance.id", instance()}}
	scope := object{"name": "github.com/claybot/claybot"}
	if version != "" {
		resource = append(resource, attribute{"service.version", version})
		scope["version"] = version
	}
	encoded := make([]object, len(spans))
	for i, s := range spans {
		encoded[i] = s.encode()
	}
	body, _ := json.Marshal(object{"resourceSpans": []object{{ // texts, numbers and lists of them always marshal
		"resource": object{"attributes": encodeAll(resource)}, "scopeSpans": []object{{"scope": scope, "spans": encoded}},
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

func (s tracedSpan) encode() object {
	out := object{
		"traceId": s.trace, "spanId": s.id, "name": valid(s.name), "kind": s.kind,
		"startTimeUnixNano": nanos(s.start), "endTimeUnixNano": nanos(s.end),
	}
	if s.parent != "" {
		out["parentSpanId"] = s.parent
	}
	if len(s.events) > 0 {
		events := make([]object, len(s.events))
		for i, e := range s.events {
			events[i] = object{"timeUnixNano": nanos(e.at), "name": e.name}
		}
		out["events"] = events
	}
	attrs := s.attrs
	if s.err != "" {
		attrs = append(attrs[:len(attrs):len(attrs)], attribute{"error.type", s.err})
		out["status"] = object{"code": statusError}
	}
	out["attributes"] = encodeAll(attrs)
	return out
}

func encodeAll(all []attribute) []object {
	out := make([]object, len(all))
	for i, a := range all {
		value := object{}
		switch x := a.value.(type) {
		case int64:
			value["intValue"] = strconv.FormatInt(x, 10)
		case string:
			value["stringValue"] = valid(x)
		}
		out[i] = object{"key": a.key, "value": value}
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
