// Package demo is the model that answers when none is configured. It says what
// it is, echoes, calls any tool it is asked to, and streams, so that routing,
// tools and streaming can be watched without an account or a network.
//
// The same request gets the same answer, always. Only cmd imports it.
package demo

import (
	"context"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// Name is the name of the model in answers and records.
const Name = "demo"

const (
	defaultPace = 8 * time.Millisecond
	maxStream   = 4 * time.Second // of a whole answer, however long
)

// Config holds what may be set; the zero value is fine.
type Config struct {
	// Pace is the pause between two words of a watched answer, 0 for the
	// default of 8 ms. Nobody waits for an answer that nobody watches.
	Pace time.Duration
}

// New makes the model.
func New(cfg Config) llm.Model {
	if cfg.Pace <= 0 {
		cfg.Pace = defaultPace
	}
	return &model{cfg}
}

type model struct{ cfg Config }

func (m *model) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	answer, err := m.answer(r)
	if err != nil {
		return llm.Response{}, err
	}
	if r.Delta != nil {
		if err := m.stream(ctx, answer.Text, r.Delta); err != nil {
			return llm.Response{}, err
		}
	}
	answer.Model = Name
	answer.Usage = usage(r, answer)
	return answer, nil
}

func (m *model) answer(r llm.Request) (llm.Response, error) {
	if n := len(r.Messages); n > 0 && r.Messages[n-1].ID == llm.SummaryRequest {
		return summarize(r.Messages[n-1].Content), nil
	}
	if a, ok := plans(r); ok {
		return a, nil
	}
	return reply(read(r))
}

// stream shows text word by word, in at most maxStream.
func (m *model) stream(ctx context.Context, text string, delta func(int, string)) error {
	words := strings.SplitAfter(text, " ")
	pace := min(m.cfg.Pace, maxStream/time.Duration(len(words)))
	tick := time.NewTicker(max(pace, time.Microsecond))
	defer tick.Stop()
	offset := 0
	for _, word := range words {
		select {
		case <-ctx.Done():
			return &llm.Error{Class: llm.Transient, Text: "the answer was stopped: " + context.Cause(ctx).Error()}
		case <-tick.C:
		}
		if word != "" {
			delta(offset, word)
		}
		offset += len(word)
	}
	return nil
}

func usage(r llm.Request, a llm.Response) claybot.Usage {
	in, out := len(r.System), len(a.Text)
	for _, m := range r.Messages {
		in += len(m.Content)
	}
	for _, c := range a.Calls {
		out += len(c.Args)
	}
	return claybot.Usage{Input: int64(in+3) / 4, Output: int64(out+3) / 4, LLMCalls: 1, Estimated: true}
}
