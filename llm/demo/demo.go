// Package demo is the model that answers when none is configured. It says what
// it is, echoes, calls any tool it is asked to, and streams, so that routing,
// tools and streaming can be watched without an account or a network.
//
// The same request gets the same answer, always. Only cmd imports it.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
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
	// default of 8 ms. An answer without a watcher has no pauses.
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

// plans answers the requests of an engine that plans; ok is false for others.
// The demo model plans the calls that the newest message spells out, one on a
// line, and nothing else.
func plans(r llm.Request) (answer llm.Response, ok bool) {
	for _, m := range r.Messages {
		switch m.ID {
		case llm.ClassifyRequest:
			return text(`{"intent":"none","text":"I am the built-in demo model and know no intents."}`), true
		case llm.PlanRequest:
			return text(planned(newest(m.Content))), true
		case llm.PlanSummaryRequest:
			return text(done(m.Content)), true
		}
	}
	return answer, false
}

// newest returns the newest message of a person in a transcript, or the newest task of an agent.
func newest(transcript string) string {
	end := "\n</message>"
	from := strings.LastIndex(transcript, "<message ")
	if task := strings.LastIndex(transcript, "<system_message "); task > from {
		if tag, _, _ := strings.Cut(transcript[task:], ">"); strings.Contains(tag, `kind="task"`) {
			from, end = task, "\n</system_message>"
		}
	}
	if from < 0 {
		return ""
	}
	part, _, closed := strings.Cut(transcript[from:], end)
	if !closed {
		return ""
	}
	return strings.TrimSpace(llm.Unwrap(part + end))
}

func planned(message string) string {
	type step struct {
		ID   string          `json:"id"`
		Tool string          `json:"tool"`
		What string          `json:"what"`
		Args json.RawMessage `json:"args"`
		Risk string          `json:"risk"`
	}
	plan := struct {
		Steps []step `json:"steps"`
		Diff  string `json:"diff"`
	}{Steps: []step{}}
	for line := range strings.Lines(message) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.EqualFold(word, "call") {
			continue
		}
		name, args, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if args = strings.TrimSpace(args); args == "" || !json.Valid([]byte(args)) {
			args = "{}"
		}
		plan.Steps = append(plan.Steps, step{
			ID: fmt.Sprintf("step-%02d", len(plan.Steps)+1), Tool: name, What: "calls " + name, Args: json.RawMessage(args), Risk: "low",
		})
	}
	plan.Diff = fmt.Sprintf("%d calls, as you said.", len(plan.Steps))
	if len(plan.Steps) == 0 {
		plan.Diff = "I am the built-in demo model and plan only what you spell out: one call on each line, such as `call current_time {}`."
	}
	b, _ := json.Marshal(plan) // valid JSON in, valid JSON out
	return string(b)
}

// done tells what came of a plan.
func done(content string) string {
	_, results, _ := strings.Cut(content, "What was done, with its results:")
	return fmt.Sprintf("The demo model's summary: %d done.", strings.Count(results, `outcome="ok"`))
}
