package react

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// What a model reads of the format of its answer.
const (
	askObject = "[claybot] Your final answer must be one JSON object and nothing else: no introduction, no code fence."
	askSchema = "[claybot] Your final answer must be one JSON value and nothing else, no introduction and no code fence. It must match this JSON schema:\n"
	askAgain  = "[claybot] Your answer is not the JSON that was asked for: "
	askOnly   = ". Answer with the corrected JSON alone."
)

// formatOf returns what the answer of a turn must be; nil: a text.
func formatOf(t *runs.Turn) *claybot.AnswerFormat {
	for _, m := range t.Messages {
		if m.Format != nil {
			return m.Format
		}
	}
	return nil
}

// formatPrompt tells a model of a format, for providers that do not.
func formatPrompt(f *claybot.AnswerFormat) string {
	switch {
	case f == nil:
		return ""
	case len(f.Schema) == 0:
		return askObject
	}
	return askSchema + string(f.Schema)
}

// inFormat returns the answer without what is around its JSON. If it is not what was asked for,
// inFormat asks the model once more, within the step: then it returns that answer, and the usage of
// both. The error says that ctx ended.
func (a *answerer) inFormat(ctx context.Context, messages []llm.Message, resp llm.Response, last, all claybot.Usage) (_ llm.Response, now, sum claybot.Usage, _ error) {
	format := a.chat.format
	if format == nil || len(resp.Calls) > 0 {
		return resp, last, all, nil
	}
	resp.Text = unfenced(resp.Text)
	wrong := tools.CheckJSON(format.Schema, resp.Text)
	if wrong == nil {
		return resp, last, all, nil
	}
	a.log.Info("answer is not in the requested format; asking once more", "error", wrong)
	said := cmp.Or(resp.Text, "(nothing)") // providers accept no empty message
	messages = append(messages, llm.Message{Role: llm.RoleAssistant, Content: said, State: resp.State},
		llm.Message{Role: llm.RoleUser, Content: askAgain + wrong.Error() + askOnly})
	more, err := a.chat.call(ctx, a.talk.progress.steps+1, messages, "")
	switch {
	case err != nil && ctx.Err() != nil:
		a.costs.Lost(resp.Model, last)
		return resp, last, all, err
	case err != nil:
		a.log.Warn("answer not asked for again", "error", err)
		return resp, last, all, nil
	}
	a.costs.Used(last)
	last = counted(more.Usage)
	more.Text = unfenced(more.Text)
	return more, last, all.Add(last), nil
}

// answered returns the error of a final answer that is not what was asked for.
func (p *pass) answered() error {
	format := p.answers.chat.format
	if format == nil {
		return nil
	}
	for _, r := range slices.Backward(p.talk.all()) {
		if r.Type != claybot.RecordAssistant {
			continue
		}
		if err := tools.CheckJSON(format.Schema, r.Text); err != nil {
			return &runs.Error{Code: runs.CodeFormat, Text: "the answer is not the JSON that was asked for: " + err.Error()}
		}
		return nil
	}
	return nil
}

// unfenced returns a text without the code fence around it.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	body, ok := strings.CutSuffix(rest, "```")
	if _, code, more := strings.Cut(body, "\n"); ok && more {
		return strings.TrimSpace(code)
	}
	return text
}
