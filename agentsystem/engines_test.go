package agentsystem_test

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// A stubborn engine works for a while whatever its context says, then answers.
type stubborn struct {
	r *rig
	d time.Duration
}

func (s stubborn) Run(_ context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		time.Sleep(s.d)
		yield(claybot.Record{Type: claybot.RecordAssistant, Step: 1, Text: "stubborn"}, nil)
	}
}

// An engine of a function.
type engineFunc func(ctx context.Context, t *runs.Turn, yield func(claybot.Record, error) bool)

func (f engineFunc) Run(ctx context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) { f(ctx, t, yield) }
}

var errOdd = errors.New("an error without a code, and with a secret")

var errBroken = errors.New("the store is broken")

// A drip answers word by word.
type drip struct {
	r     *rig
	pause time.Duration
	words []string
}

func (d drip) Run(_ context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		text := ""
		for _, w := range d.words {
			text += w + " "
			t.Journal.Grow(1, text)
			time.Sleep(d.pause)
		}
		yield(claybot.Record{Type: claybot.RecordAssistant, Step: 1, Text: text}, nil)
	}
}
