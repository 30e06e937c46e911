package tools_test

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// A tool is a Spec and a function of its arguments, whose schema New infers from the
// struct. A Set checks arguments before the function runs and turns every error into a
// result that the model can read.
func Example() {
	type input struct {
		City string `json:"city" jsonschema:"the name of a city"`
	}
	weather := tools.New(tools.Spec{
		Tool:   llm.Tool{Name: "weather", Description: "Tells the weather in a city."},
		Effect: tools.ReadOnly, // an interrupted call may run again
		Class:  tools.Outward,  // it reaches the network, so Rules may ask a person first
		Scopes: []string{"web"},
	}, func(_ context.Context, _ tools.Env, in input) (tools.Result, error) {
		if in.City != "Berlin" {
			return tools.Result{}, &tools.Fault{Code: "not_found", Text: "no weather is known for " + in.City}
		}
		return tools.Result{Text: "sunny", What: "looked up the weather"}, nil
	})
	set, err := tools.NewSet(weather)
	if err != nil {
		fmt.Println(err)
		return
	}
	env := tools.Env{Run: "run", CallID: "step"}
	for _, args := range []string{`{"city": "Berlin"}`, `{"city": "Atlantis"}`, `{"city": 7}`} {
		o := set.Do(context.Background(), env, claybot.ToolCall{ID: "call", Name: "weather", Args: args})
		fmt.Println(o.Record.OK, o.Record.Text)
	}
	// Output:
	// true sunny
	// false error: no weather is known for Atlantis
	// false error: invalid arguments: field city: type: 7 has type "integer", want "string"
}
