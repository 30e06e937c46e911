package runs_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

func TestEncode(t *testing.T) {
	const head = `{"v":1,"runId":"r1","seq":7,"type":"ToolCalled","ts":1700000000000,"source":"outbox","data":`
	tests := map[string]struct{ data, want string }{
		"object":      {`{"tool":"shell"}`, `{"tool":"shell"}`},
		"line breaks": {"{\n \"tool\":\r\n\t\"shell\"}\n", `{"tool":"shell"}`},
		"separator":   {"{\"tool\":\"a\u2028b\"}", `{"tool":"a\u2028b"}`},
		"markup":      {`{"tool":"<script>"}`, `{"tool":"\u003cscript\u003e"}`},
		"none":        {"", "{}"},
		"damaged":     {`{"tool":`, "{}"},
		"two":         {`{}{}`, "{}"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := claybot.Event{V: 1, Run: "r1", Seq: 7, Type: claybot.EventToolCalled, At: 1700000000000, Data: json.RawMessage(tt.data)}
			got := runs.Encode(e)
			if want := head + tt.want + "}"; string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if again := (runs.Update{Event: &e}).Wire(); !bytes.Equal(got, again) {
				t.Errorf("the second time %s", again)
			}
		})
	}
}

func TestDeltaOnTheWire(t *testing.T) {
	u := runs.Update{Delta: &runs.Delta{Run: "r1", Node: "model", Step: 2, Attempt: 1, Offset: 3, Text: "lo\n"}}
	const want = `{"runId":"r1","node":"model","step":2,"attempt":1,"offset":3,"text":"lo\n"}`
	if got := string(u.Wire()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("r", "ToolCalled", []byte(`{"a":"b"}`))
	f.Add("\xff\n", "x\"y", []byte("{\n}"))
	f.Add("", "", []byte(nil))
	f.Fuzz(func(t *testing.T, run, kind string, data []byte) {
		b := runs.Encode(claybot.Event{V: 1, Run: claybot.RunID(run), Seq: 1, Type: claybot.EventType(kind), Data: data})
		if !json.Valid(b) || bytes.ContainsAny(b, "\r\n") {
			t.Fatalf("%q", b)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	e := runs.ToolCalled("r", claybot.ToolCall{ID: "c", Name: "shell", Args: `{"command":"ls -l /some/where"}`}, "once")
	e.Seq = 1
	for b.Loop() {
		runs.Encode(e)
	}
}
