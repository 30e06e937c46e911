package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/claybot/claybot"
)

// Ids of traces and spans are hashes of what they stand for, so that a trace that is exported
// again is the same, and work in other programs can name a span before it has ended.

// TraceOf is the span of a run as a whole, in the trace of what asked for it: the trace of
// the oldest of its messages, else a trace of its own. The id of that is the first 16 bytes of
// the SHA-256 of `"trace""<run id>"`.
func TraceOf(run claybot.RunID, messages []claybot.AgentMessage) claybot.Trace {
	if caller := claybot.ParseTrace(Caller(messages)); caller.ID != "" {
		return caller.In(RootSpan(run))
	}
	return claybot.Trace{ID: SpanID(16, "trace", string(run)), Span: RootSpan(run)}
}

// Caller is the span that asked for a run with messages, see claybot.Trace.String: that of the oldest,
// so that no message that joins the run later changes its trace; empty where that belongs to none.
func Caller(messages []claybot.AgentMessage) string {
	if len(messages) == 0 {
		return ""
	}
	return claybot.ParseTrace(messages[0].Traceparent).String()
}

// RootSpan is the id of the span of a run as a whole.
func RootSpan(run claybot.RunID) string { return SpanID(8, "run", string(run)) }

// ChatSpan is the id of the span of a model call of the loop, with all its tries.
func ChatSpan(run claybot.RunID, step int) string {
	return SpanID(8, "chat", string(run), strconv.Itoa(step))
}

// ToolSpan is the id of the span of a tool call.
func ToolSpan(run claybot.RunID, call string) string { return SpanID(8, "tool", string(run), call) }

// SpanID makes an id of size bytes of parts, in hexadecimal.
func SpanID(size int, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Quote(p))) // no part can be taken for two
	}
	return hex.EncodeToString(h.Sum(nil)[:size])
}
