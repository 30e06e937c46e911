package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/runstest"
)

// A Greeter is an Engine: it asks the reader for a name, and answers with it. All that it
// knows of earlier passes it reads from the turn.
type Greeter struct{}

// Run yields one answer.
func (Greeter) Run(ctx context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		for _, r := range t.History {
			if r.Run == t.Run.ID && r.Type == claybot.RecordAssistant {
				return // an earlier pass has answered
			}
		}
		name, err := askName(ctx, t)
		if err != nil {
			yield(claybot.Record{}, err)
			return
		}
		// The record is durable when yield returns true.
		yield(claybot.Record{Type: claybot.RecordAssistant, At: claybot.Now(), Run: t.Run.ID, Step: 1, Text: "Hello, " + name + "!"}, nil)
	}
}

func askName(ctx context.Context, t *runs.Turn) (name string, err error) {
	answers, wait, err := t.Ask(ctx, "name", []claybot.Question{
		{Key: "name", Type: claybot.QuestionText, Text: "What is your name?", Required: true},
	})
	switch {
	case errors.Is(err, runs.ErrNobody):
		return "friend", nil
	case err != nil:
		return "", fmt.Errorf("ask for the name: %w", err)
	case wait != nil: // the next pass asks the same, and has the answer
		return "", &runs.WaitError{Awaiting: *wait}
	}
	return name, json.Unmarshal(answers[0].Value, &name)
}

var _ runs.Engine = Greeter{}

// An Engine is run again on the same history until it is done: here it waits for an
// answer, then answers, and then has nothing left to do.
func Example() {
	var history []claybot.Record
	var answers []claybot.Answer
	person := &runstest.Fake{
		AskFunc: func(_ context.Context, _ string, qs []claybot.Question) ([]claybot.Answer, *claybot.Awaiting, error) {
			if answers == nil {
				fmt.Println("asked:", qs[0].Text)
				return nil, &claybot.Awaiting{Reason: claybot.AwaitInfo}, nil
			}
			return answers, nil, nil
		},
	}
	for pass := 1; pass <= 3; pass++ {
		turn := person.Turn(runs.Turn{Run: claybot.Run{ID: "run-1"}, History: history})
		for r, err := range (Greeter{}).Run(context.Background(), turn) {
			if wait, ok := errors.AsType[*runs.WaitError](err); ok {
				fmt.Printf("pass %d waits: %s\n", pass, wait.Reason)
				answers = []claybot.Answer{{Value: json.RawMessage(`"Ann"`)}}
				break
			}
			if err != nil {
				fmt.Println(err)
				return
			}
			history = append(history, r)
			event, _ := runs.EventOf(r)
			fmt.Printf("pass %d: %s (%s)\n", pass, r.Text, event.Type)
		}
	}
	// Output:
	// asked: What is your name?
	// pass 1 waits: missing_info
	// pass 2: Hello, Ann! (AssistantMessage)
}
