package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// A verdict says what a stream turned out to be when it ended.
type verdict int

const (
	complete verdict = iota // a reason of the end was seen
	cut                     // something came, but no reason of the end
	empty                   // nothing came
)

// A chunk is one event of a stream. Errors come as chunks of their own.
type chunk struct {
	sdk.ChatCompletionStreamResponse
	Error json.RawMessage `json:"error"`
}

// An answer gathers a stream.
type answer struct {
	text    strings.Builder
	refusal strings.Builder
	calls   assembler
	finish  sdk.FinishReason
	model   string
	usage   *sdk.Usage
	chunks  int
	done    bool // the end mark was seen
}

// read gathers a stream to its end and judges it.
func (c *Client) read(ctx context.Context, in *limitedBody, r llm.Request) (llm.Response, *failure) {
	events := newEventReader(in)
	defer events.close()
	var a answer
	var end error
	for !a.done && end == nil {
		var data []byte
		if data, end = events.next(); end == nil {
			finished := a.finish != ""
			if fail := c.take(&a, data, r.Delta); fail != nil {
				return llm.Response{}, fail
			}
			if !finished && a.finish != "" {
				in.idle = 0
				in.watch.next(tailTime, errTail)
			}
		}
	}
	if errors.Is(end, errTooLarge) || errors.Is(end, errLineTooLong) {
		return llm.Response{}, c.broken(ctx, end)
	}
	switch a.verdict() {
	case complete:
		return c.response(&a, r)
	case empty:
		if ctx.Err() == nil && (end == nil || errors.Is(end, io.EOF)) {
			return llm.Response{}, failed(llm.Transient, "the provider's answer was empty")
		}
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTail) {
		return llm.Response{}, c.broken(ctx, end)
	}
	return llm.Response{}, failed(llm.Transient, "the answer was cut off")
}

// verdict judges what was gathered. Where the end mark is missing, complete
// arguments are the only sign that the last call is whole.
func (a *answer) verdict() verdict {
	switch {
	case a.finish != "" && (a.done || !a.calls.half()):
		return complete
	case a.chunks == 0:
		return empty
	}
	return cut
}

// take adds one event.
func (c *Client) take(a *answer, data []byte, delta func(int, string)) *failure {
	if string(data) == "[DONE]" {
		a.done = true
		return nil
	}
	var ch chunk
	if err := json.Unmarshal(data, &ch); err != nil && !harmless(err) {
		return failed(llm.Transient, "a part of the answer cannot be read")
	}
	if len(ch.Error) > 0 && string(ch.Error) != "null" {
		p := parseProblem(0, data)
		p.inStream()
		return c.problem(p)
	}
	a.chunks++
	if a.model == "" {
		a.model = ch.Model
	}
	if ch.Usage != nil {
		a.usage = ch.Usage
	}
	for i := range ch.Choices {
		choice := &ch.Choices[i]
		if choice.Index != 0 {
			continue
		}
		if s := choice.Delta.Content; s != "" {
			offset := a.text.Len()
			a.text.WriteString(s)
			if delta != nil {
				delta(offset, s)
			}
		}
		a.refusal.WriteString(choice.Delta.Refusal)
		for _, piece := range choice.Delta.ToolCalls {
			if err := a.calls.add(piece); err != nil {
				return failed(llm.Permanent, "%s", err.Error())
			}
		}
		switch f := choice.FinishReason; f {
		case "", sdk.FinishReasonNull:
		case "error":
			return failed(llm.Transient, "the provider ended the answer with an error")
		default:
			a.finish = f
		}
	}
	return nil
}

// harmless reports an error of decoding that does not touch the answer: a field
// outside of the choices has another type than OpenAI gives it.
func harmless(err error) bool {
	var wrong *json.UnmarshalTypeError
	return errors.As(err, &wrong) && wrong.Field != "" && !strings.Contains(wrong.Field, "choices")
}

// response makes the answer of a complete stream. An answer that ended by length
// or filter has no calls: the last one may be half, and to act on a part of what
// was meant is worse than to ask again.
func (c *Client) response(a *answer, r llm.Request) (llm.Response, *failure) {
	resp := llm.Response{Text: a.text.String(), Model: a.model, Usage: usageOf(a.usage)}
	if resp.Model == "" {
		resp.Model = c.cfg.Model
	}
	switch a.finish {
	case sdk.FinishReasonLength, "max_tokens":
		resp.Stop = llm.StopLength
	case sdk.FinishReasonContentFilter, "safety", "refusal":
		resp.Stop = llm.StopFilter
	default:
		resp.Calls = a.calls.finish(fmt.Sprintf("%s/%d", r.Run, len(r.Messages)), r.Messages)
		resp.Stop = llm.StopEnd
		if len(resp.Calls) > 0 {
			resp.Stop = llm.StopTools
		}
	}
	if resp.Text == "" && len(resp.Calls) == 0 && a.refusal.Len() > 0 {
		resp.Text, resp.Stop = a.refusal.String(), llm.StopFilter
	}
	if resp.Usage.Input == 0 && resp.Usage.Output == 0 {
		resp.Usage = llm.Estimate(r, resp)
	}
	return resp, nil
}

func usageOf(u *sdk.Usage) claybot.Usage {
	usage := claybot.Usage{LLMCalls: 1}
	if u == nil {
		return usage
	}
	usage.Input, usage.Output = int64(max(u.PromptTokens, 0)), int64(max(u.CompletionTokens, 0))
	if d := u.PromptTokensDetails; d != nil {
		usage.CachedInput = int64(min(max(d.CachedTokens, 0), max(u.PromptTokens, 0)))
	}
	return usage
}
