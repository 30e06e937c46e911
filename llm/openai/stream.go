package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
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
	grown   bool // the newest event brought content
}

// read gathers a stream to its end and judges it.
func (c *Client) read(x *llm.Exchange, r llm.Request) (llm.Response, *failure) {
	events := llm.NewEventReader(x)
	defer events.Close()
	var a answer
	var end error
	for !a.done && end == nil {
		var data []byte
		if data, end = events.Next(); end == nil {
			finished := a.finish != ""
			a.grown = false
			if fail := c.take(&a, data, r.Delta); fail != nil {
				fail.usage = a.taken(r)
				return llm.Response{}, fail
			}
			switch {
			case !finished && a.finish != "":
				x.Tail()
			case a.grown:
				x.Progress()
			}
		}
	}
	if a.complete() && !errors.Is(end, llm.ErrTooLarge) && !errors.Is(end, llm.ErrLineTooLong) {
		return c.response(&a, r)
	}
	return llm.Response{}, &failure{Error: x.Cut(end, a.chunks == 0), usage: a.taken(r)}
}

// complete reports that a reason of the end was seen. Where the end mark is
// missing, complete arguments are the only sign that the last call is whole.
func (a *answer) complete() bool {
	return a.finish != "" && (a.done || !a.calls.half())
}

// taken is what an answer took that failed: nothing when nothing came.
func (a *answer) taken(r llm.Request) claybot.Usage {
	if a.chunks == 0 {
		return claybot.Usage{}
	}
	u := usageOf(a.usage)
	if u.Input == 0 && u.Output == 0 {
		u = llm.Estimate(r, llm.Response{Text: a.text.String(), Calls: a.calls.finish("", nil)})
	}
	return u
}

// spent is the response beside a failure.
func (c *Client) spent(f *failure) llm.Response {
	return llm.Response{Model: c.cfg.Model, Asked: c.cfg.Model, Usage: f.usage}
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
		a.grown = a.grown || grows(choice.Delta.Content, choice.Delta.Refusal, choice.Delta.ReasoningContent)
		for _, piece := range choice.Delta.ToolCalls {
			if err := a.calls.add(piece); err != nil {
				return failed(llm.Permanent, "%s", err.Error())
			}
			a.grown = a.grown || grows(piece.Function.Name, piece.Function.Arguments)
		}
		switch f := choice.FinishReason; f {
		case "", sdk.FinishReasonNull:
		case "error":
			return failed(llm.Transient, "the provider ended the answer with an error")
		default:
			a.finish = f
		}
	}
	a.grown = a.grown || thinks(data)
	return nil
}

// grows reports whether a piece of an answer is content: blanks alone are not,
// as a model that is stuck may write them without end.
func grows(pieces ...string) bool {
	return slices.ContainsFunc(pieces, func(s string) bool { return strings.TrimSpace(s) != "" })
}

// thinks reports whether an event brings reasoning in the fields that brokers
// give it, which the library does not know.
func thinks(data []byte) bool {
	if !bytes.Contains(data, []byte(`"reasoning`)) {
		return false
	}
	var e struct {
		Choices []struct {
			Delta struct {
				Reasoning string            `json:"reasoning"`
				Details   []json.RawMessage `json:"reasoning_details"`
			} `json:"delta"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return false // fields of another type hold no text
	}
	for _, c := range e.Choices {
		if grows(c.Delta.Reasoning) || len(c.Delta.Details) > 0 {
			return true
		}
	}
	return false
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
	resp := llm.Response{Text: a.text.String(), Model: a.model, Asked: c.cfg.Model, Usage: usageOf(a.usage)}
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
		usage.CachedInput = min(int64(max(d.CachedTokens, 0)), usage.Input)
	}
	if d := u.CompletionTokensDetails; d != nil {
		usage.Reasoning = min(int64(max(d.ReasoningTokens, 0)), usage.Output)
	}
	return usage
}
