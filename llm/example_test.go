package llm_test

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// echo is a Model that repeats what the user said last.
type echo struct{}

// Chat reports the text as it grows, and returns it when it is complete.
func (echo) Chat(_ context.Context, r llm.Request) (llm.Response, error) {
	text := llm.Unwrap(r.Messages[len(r.Messages)-1].Content)
	if r.Delta != nil {
		r.Delta(0, text)
	}
	return llm.Response{Text: text, Stop: llm.StopEnd, Model: "echo-1", Asked: "echo"}, nil
}

// down is a Model whose provider is unreachable. The class of an error says whether
// another try, key or route may help.
type down struct{}

func (down) Chat(context.Context, llm.Request) (llm.Response, error) {
	return llm.Response{}, llm.Failed(llm.Transient, "the provider cannot be reached")
}

// A Model answers one chat. Metering, retries, keys and fallbacks are decorators, so a
// client of a provider does none of that itself.
func Example() {
	prices := llm.Prices{"echo": {Input: 1, Output: 2}}
	model := llm.Fallback(nil,
		llm.Route{Name: "primary", Model: llm.Metered(down{}, prices)},
		llm.Route{Name: "secondary", Model: llm.Metered(echo{}, prices)},
	)
	history := []claybot.Record{{Type: claybot.RecordUser, Text: "Hello!"}}
	resp, err := model.Chat(context.Background(), llm.Request{
		Messages: llm.Messages(history),
		Failed:   func(a llm.Attempt) { fmt.Printf("%s failed, asking %s\n", a.Route, a.Next) },
	})
	fmt.Println(resp.Text, resp.Model, resp.Usage.LLMCalls, resp.Usage.Unpriced, err)
	// Output:
	// primary failed, asking secondary
	// Hello! echo-1 1 0 <nil>
}
