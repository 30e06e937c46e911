package claybot

import (
	"context"
	"encoding/hex"
	"strings"
)

// A Trace is a place in a distributed trace: a span that later work belongs to. The zero Trace
// is none.
type Trace struct {
	ID   string // of the whole trace: 32 lower-case hexadecimal digits
	Span string // 16 of them
	// Unsampled says that the caller does not record the trace.
	Unsampled bool
}

// ParseTrace reads a traceparent header as W3C Trace Context, level 1, has it
// (https://www.w3.org/TR/trace-context/#traceparent-header, 2021-11-23): version, id of the
// trace, id of the span and flags. Of a later version, it reads these four. What is malformed
// is none.
func ParseTrace(traceparent string) Trace {
	const version, trace, span, flags = 2, 35, 52, 55 // where each part ends
	s := traceparent
	if len(s) < flags || len(s) > flags && (s[:version] == "00" || s[flags] != '-') || len(s) > 512 {
		return Trace{}
	}
	if s[version] != '-' || s[trace] != '-' || s[span] != '-' || s[:version] == "ff" {
		return Trace{}
	}
	id, parent := s[version+1:trace], s[trace+1:span]
	flag, err := hex.DecodeString(s[span+1 : flags])
	if err != nil || !hexadecimal(s[:version]) || !hexadecimal(id) || !hexadecimal(parent) || !hexadecimal(s[span+1:flags]) {
		return Trace{}
	}
	if strings.Trim(id, "0") == "" || strings.Trim(parent, "0") == "" {
		return Trace{}
	}
	return Trace{ID: id, Span: parent, Unsampled: flag[0]&1 == 0}
}

func hexadecimal(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// String returns the traceparent header; empty for none.
func (t Trace) String() string {
	switch {
	case t.ID == "" || t.Span == "":
		return ""
	case t.Unsampled:
		return "00-" + t.ID + "-" + t.Span + "-00"
	}
	return "00-" + t.ID + "-" + t.Span + "-01"
}

// In returns the place of a span of the same trace.
func (t Trace) In(span string) Trace {
	t.Span = span
	return t
}

type traceKey struct{}

// WithTrace returns a context of work that belongs to t.
func WithTrace(ctx context.Context, t Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceOf returns what the work of a context belongs to; none where nothing said so.
func TraceOf(ctx context.Context) Trace {
	t, _ := ctx.Value(traceKey{}).(Trace)
	return t
}
