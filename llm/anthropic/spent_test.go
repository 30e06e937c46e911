package anthropic

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// What a broken stream took is told as it was counted; an output whose count had
// not come yet is marked, also where the model only thought.
func TestLostIsWhatWasCounted(t *testing.T) {
	const start = `{"type":"message_start","message":{"model":"claude-sonnet-4-5","usage":{"input_tokens":50000,"output_tokens":1}}}`
	const broken = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	for _, tt := range []struct {
		name   string
		events []string
		output int64
		marked bool
	}{
		{"before anything", []string{start, broken}, 1, false},
		{"in a thought", []string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}`, broken}, 1, true},
		{"in a call", []string{
			start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"x","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":\"long long long"}}`, broken,
		}, 6, true},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, e := range tt.events {
				fmt.Fprintf(w, "data: %s\n\n", e)
			}
		}))
		var lost []claybot.Usage
		c := New(Config{BaseURL: s.URL, Model: "claude-sonnet-4-5"})
		_, err := llm.Metered(c, llm.DefaultPrices()).Chat(t.Context(), llm.Request{
			Messages: []llm.Message{{Role: llm.RoleUser, Content: "hi"}},
			Lost:     func(_ string, u claybot.Usage) { lost = append(lost, u) },
		})
		c.CloseIdleConnections()
		s.Close()
		if err == nil || len(lost) != 1 || lost[0].Input != 50_000 || lost[0].Output != tt.output || lost[0].Estimated != tt.marked || lost[0].CostMicroUSD == 0 {
			t.Errorf("%s: %v, lost %+v, want %d tokens of output, marked %v", tt.name, err, lost, tt.output, tt.marked)
		}
	}
}
