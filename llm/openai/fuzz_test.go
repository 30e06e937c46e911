package openai

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// Whatever a server streams, what comes of it is a whole answer or an error.
func FuzzStream(f *testing.F) {
	f.Add(transcript(f, openaitest.Reply{Text: "a b c", Calls: twoCalls, Piece: 9}))
	f.Add([]byte("\xEF\xBB\xBFdata:{\"choices\":[{\"finish_reason\":\"stop\"}]}\r\n\r\n: c\rdata"))
	f.Add([]byte("data: {\"error\":{\"message\":\"no\"}}\n\n"))
	f.Fuzz(readAnything)
}

// readAnything checks what holds for any stream: success has a reason, and no
// call that could be half.
func readAnything(t *testing.T, in []byte) {
	c := New(Config{Model: "m", HTTP: bodyTransport{"text/event-stream", func() io.Reader { return bytes.NewReader(in) }}})
	r := ask("x")
	resp, err := c.Chat(t.Context(), r)
	if err != nil {
		var e *llm.Error
		if !errors.As(err, &e) || e.Class == "" || e.Text == "" {
			t.Fatalf("failure %v says nothing", err)
		}
		return
	}
	if !bytes.Contains(in, []byte("finish_reason")) && !bytes.Contains(bytes.ToLower(in), []byte("finish_")) && !bytes.Contains(in, []byte(`\u`)) {
		t.Fatalf("success %+v without a reason of the end", resp)
	}
	chat := append(r.Messages, llm.Message{Role: llm.RoleAssistant, Content: resp.Text, Calls: resp.Calls})
	ids := map[string]bool{}
	for _, call := range chat[len(chat)-1].Calls {
		if call.ID == "" || len(call.ID) > 40 || ids[call.ID] {
			t.Fatalf("call id %q", call.ID)
		}
		ids[call.ID] = true
	}
}

// Any stream of the Responses API ends as an answer that has its end, or as an error that says something.
func FuzzResponses(f *testing.F) {
	f.Add([]byte("data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\"}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n"))
	f.Add([]byte("data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"reasoning\",\"encrypted_content\":\"x\"}}\n\ndata: {\"type\":\"error\",\"code\":\"server_error\"}\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		c := New(Config{Model: "m", Quirks: &responding, HTTP: bodyTransport{"text/event-stream", func() io.Reader { return bytes.NewReader(in) }}})
		resp, err := c.Chat(t.Context(), ask("x"))
		var e *llm.Error
		switch {
		case err == nil && !bytes.Contains(bytes.ToLower(in), []byte("status")) && !bytes.Contains(in, []byte(`\u`)):
			t.Fatalf("success %+v without an end", resp)
		case err != nil && (!errors.As(err, &e) || e.Class == "" || e.Text == ""):
			t.Fatalf("failure %v says nothing", err)
		}
	})
}
