package demo

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claybot/claybot/llm"
)

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

func newest(transcript string) string {
	const open, end = "<message ", "\n</message>"
	from := strings.LastIndex(transcript, open)
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
