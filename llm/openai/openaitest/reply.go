package openaitest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/claybot/claybot"
)

// A Reply says how a call is answered.
type Reply struct {
	Text    string
	Calls   []claybot.ToolCall
	Stop    string // finish_reason; tool_calls or stop when empty
	Refusal string
	// Thinking comes before the text, in the field that ThinkingField names;
	// reasoning_content when empty.
	Thinking      string
	ThinkingField string
	Usage         *Usage // counted from bytes when nil

	Until  <-chan struct{} // the answer waits until it is closed; for nothing when nil
	Rest   <-chan struct{} // behind the first piece, a stream waits until it is closed; for nothing when nil
	Delay  time.Duration   // before the answer, on top of Config.Latency
	Gap    time.Duration   // between two chunks
	Piece  int             // bytes of text or arguments in one chunk; all in one when 0
	Border int             // bytes in one write to the network, regardless of chunks
	Ended  func()          // called when a stream was written, or its client has left

	Fault      Fault
	CutAt      int           // for FaultCut and FaultStall: after so many bytes
	RetryAfter string        // for FaultRate, FaultRateMS and FaultUnavailable
	Reset      time.Duration // for FaultRate: how long the limit lasts, told as the server tells it
	Drip       string        // for FaultDrip
	Location   string        // for FaultRedirect
}

// Usage is what an answer says it took.
type Usage struct{ Prompt, Completion, Cached, Reasoning int }

func (u Usage) json() string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		u.Prompt, u.Completion, u.Prompt+u.Completion, u.Cached, u.Reasoning)
}

func (r Reply) stop() string {
	switch {
	case r.Stop != "":
		return r.Stop
	case len(r.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (r Reply) usage(req Request) Usage {
	if r.Usage != nil {
		return *r.Usage
	}
	out := len(r.Text) + len(r.Refusal)
	for _, c := range r.Calls {
		out += len(c.Name) + len(c.Args)
	}
	return Usage{Prompt: (req.Size + 3) / 4, Completion: (out + 3) / 4}
}

// answer writes a reply and ends the call before the last bytes.
func (s *Server) answer(w http.ResponseWriter, hr *http.Request, req Request, reply Reply, c *call) {
	if e := reply.Fault.status(req, reply); e != nil {
		c.end()
		s.cfg.Dialect.write(w, e)
		return
	}
	if status, kind, body, ok := reply.Fault.raw(); ok {
		c.end()
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may have left
		return
	}
	switch reply.Fault {
	case FaultHang:
		<-hr.Context().Done()
		return
	case FaultDrop:
		c.end()
		panic(http.ErrAbortHandler)
	case FaultRedirect:
		c.end()
		http.Redirect(w, hr, reply.Location, http.StatusTemporaryRedirect)
		return
	}
	usage := reply.usage(req)
	s.journal.count(usage.Prompt, usage.Completion)
	if !req.Stream || reply.Fault == FaultJSON {
		c.end()
		writeJSON(w, http.StatusOK, completion(req, reply, usage))
		return
	}
	kind := "text/event-stream"
	if reply.Fault == FaultPlain {
		kind = "text/plain"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	out := &output{w: w, ctx: hr.Context(), call: c}
	out.stream(reply, reply.Fault.form(s.stream(req, reply, usage)))
	if reply.Ended != nil {
		reply.Ended()
	}
}

// stream returns the bytes of a good stream.
func (s *Server) stream(req Request, reply Reply, usage Usage) []byte {
	var b bytes.Buffer
	head := fmt.Sprintf(`data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1751000000,"model":%s,`, req.N, quote(req.Model))
	chunk := func(delta, finish string) {
		b.WriteString(head)
		b.WriteString(`"choices":[{"index":0,"delta":`)
		b.WriteString(delta)
		b.WriteString(`,"logprobs":null,"finish_reason":`)
		b.WriteString(finish)
		b.WriteString("}]}\n\n")
	}
	b.WriteString(s.cfg.Dialect.first())
	chunk(`{"role":"assistant","content":""}`, "null")
	for _, delta := range s.cfg.Dialect.chunks(&s.given, req) {
		chunk(delta, "null")
	}
	for _, piece := range pieces(reply.Thinking, reply.Piece) {
		chunk(`{`+quote(cmp.Or(reply.ThinkingField, "reasoning_content"))+`:`+quote(piece)+`}`, "null")
	}
	for _, piece := range pieces(reply.Text, reply.Piece) {
		chunk(`{"content":`+quote(piece)+`}`, "null")
	}
	if reply.Refusal != "" {
		chunk(`{"refusal":`+quote(reply.Refusal)+`}`, "null")
	}
	for i, c := range reply.Calls {
		id := `"id":` + quote(c.ID) + `,`
		index := fmt.Sprintf(`"index":%d,`, i)
		switch reply.Fault {
		case FaultNoIDs:
			id = ""
		case FaultSameIDs:
			id = `"id":"call_0",`
		case FaultNoIndex:
			index = ""
		}
		chunk(`{"tool_calls":[{`+index+id+s.cfg.Dialect.extra(&s.given, req, i, c.Name)+`"type":"function","function":{"name":`+quote(c.Name)+`,"arguments":""}}]}`, "null")
		for _, piece := range pieces(c.Args, reply.Piece) {
			chunk(`{"tool_calls":[{`+index+`"function":{"arguments":`+quote(piece)+`}}]}`, "null")
		}
	}
	chunk("{}", quote(reply.stop()))
	if (req.Usage || s.cfg.Dialect == Mistral) && reply.Fault != FaultNoUsage {
		b.WriteString(head)
		b.WriteString(`"choices":[],"usage":` + s.cfg.Dialect.usage(usage) + "}\n\n")
	}
	b.WriteString(doneEvent)
	return b.Bytes()
}

// completion is the answer to a request without a stream.
func completion(req Request, reply Reply, usage Usage) any {
	type object = map[string]any
	message := object{"role": "assistant", "content": reply.Text}
	if reply.Refusal != "" {
		message["refusal"] = reply.Refusal
	}
	var calls []object
	for _, c := range reply.Calls {
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Args}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return object{
		"id": fmt.Sprintf("chatcmpl-%d", req.N), "object": "chat.completion", "created": 1751000000, "model": req.Model,
		"choices": []object{{"index": 0, "message": message, "finish_reason": reply.stop()}},
		"usage":   json.RawMessage(usage.json()),
	}
}

// pieces cuts s into parts of about n bytes that end between characters.
func pieces(s string, n int) []string {
	if s == "" {
		return nil
	}
	if n <= 0 || n >= len(s) {
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

// An output writes a stream the way a reply wants it.
type output struct {
	w    http.ResponseWriter
	ctx  context.Context
	call *call
}

func (o *output) stream(reply Reply, body []byte) {
	switch reply.Fault {
	case FaultCut:
		o.call.end()
		o.write(body[:min(reply.CutAt, len(body))])
		panic(http.ErrAbortHandler)
	case FaultStall:
		begun := [][]byte{body[:min(reply.CutAt, len(body))]}
		if reply.Gap > 0 {
			begun = events(begun[0])
		}
		for i, p := range begun {
			if i > 0 && !pause(o.ctx, reply.Gap) || !o.write(p) {
				return
			}
		}
		<-o.ctx.Done()
	case FaultDrip:
		if o.write(body[:finishAt(body)]) {
			for pause(o.ctx, reply.Gap) && o.write([]byte(reply.Drip)) {
			}
		}
	case FaultSlow:
		o.parts(split(body, 1), max(reply.Gap, time.Millisecond))
	case FaultGiantLine:
		o.repeat("data: ", strings.Repeat("x", 64<<10), 1<<30)
	case FaultEndless:
		o.repeat("", `data: {"choices":[{"index":0,"delta":{"content":"la la "}}]}`+"\n\n: "+strings.Repeat("-", 32<<10)+"\n", 1<<30)
	default:
		switch {
		case reply.Rest != nil:
			all := events(body) // the first one is the role
			if first := min(2, len(all)); o.write(bytes.Join(all[:first], nil)) && wait(o.ctx, reply.Rest) {
				o.parts(all[first:], reply.Gap)
			}
		case reply.Border > 0:
			o.parts(split(body, reply.Border), reply.Gap)
		case reply.Gap > 0:
			o.parts(events(body), reply.Gap)
		default:
			o.call.end()
			_, _ = o.w.Write(body) // the client may have left
		}
	}
}

// write sends b at once and reports whether the client is still there.
func (o *output) write(b []byte) bool {
	if _, err := o.w.Write(b); err != nil {
		return false
	}
	return http.NewResponseController(o.w).Flush() == nil
}

// parts writes one part after another, gap apart.
func (o *output) parts(parts [][]byte, gap time.Duration) {
	for i, p := range parts {
		if i > 0 && !pause(o.ctx, gap) {
			return
		}
		if i == len(parts)-1 {
			o.call.end()
		}
		if len(p) > 0 && !o.write(p) {
			return
		}
	}
}

// repeat writes head, then part again and again, until the client leaves or
// limit bytes are written.
func (o *output) repeat(head, part string, limit int) {
	ok := o.write([]byte(head))
	for n := 0; ok && n < limit; n += len(part) {
		ok = o.write([]byte(part))
	}
}

// events cuts a stream behind each event.
func events(b []byte) [][]byte {
	return bytes.SplitAfter(bytes.TrimSuffix(b, []byte("\n")), []byte("\n\n"))
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
