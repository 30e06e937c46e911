package react_test

import (
	"context"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

type instant struct{}

func (instant) Chat(context.Context, llm.Request) (llm.Response, error) {
	return llm.Response{Text: "ok", Stop: llm.StopEnd}, nil
}

// BenchmarkAnswer is the loop's own part of one message in a chat of 100
// messages.
func BenchmarkAnswer(b *testing.B) {
	var c counter
	set := c.set(b)
	j := newJournal()
	for range 50 {
		r := user("m", "a message of some words")
		r.Run = "earlier"
		j.records = append(j.records, r, claybot.Record{Type: claybot.RecordAssistant, Run: "earlier", Text: "an answer of some words"})
	}
	j.records = append(j.records, user("m2", "one more"))
	l := loop(instant{}, set)
	turn := j.turn()
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range l.Run(b.Context(), turn) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
