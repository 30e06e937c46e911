package openai

import (
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/provider"
)

// A chunk is one event of a stream. Errors come as chunks of their own.
type chunk struct {
	sdk.ChatCompletionStreamResponse
	Error json.RawMessage `json:"error"`
}

type stream struct {
	assembler
	keeper
	api   *api
	usage *sdk.Usage
}

func (s *stream) Gathered() *provider.Answer { return s.Answer }

// Complete reports that a reason of the end was seen. Where the end mark is
// missing, complete arguments are the only sign that the last call is whole.
func (s *stream) Complete() bool { return s.Stop != "" && (s.Done || !s.half()) }

func (s *stream) Taken(guess claybot.Usage) claybot.Usage {
	if u := s.Usage(); u.Input != 0 || u.Output != 0 {
		return u
	}
	return guess
}

func (s *stream) Take(data []byte) *provider.Failure {
	if string(data) == "[DONE]" {
		s.Done = true
		return nil
	}
	var ch chunk
	if err := json.Unmarshal(data, &ch); err != nil && !harmless(err) {
		return provider.Failed(llm.Transient, "a part of the answer cannot be read")
	}
	if len(ch.Error) > 0 && string(ch.Error) != "null" {
		return provider.Said(s.api.Problem(0, data))
	}
	s.Events++
	if s.Model == "" {
		s.Model = ch.Model
	}
	if ch.Usage != nil {
		s.usage = ch.Usage
	}
	more := deltaOf(data)
	for i := range ch.Choices {
		choice := &ch.Choices[i]
		if choice.Index != 0 {
			continue
		}
		s.Say(choice.Delta.Content)
		s.Refusal.WriteString(choice.Delta.Refusal)
		s.Grown = s.Grown || provider.Grows(choice.Delta.Content, choice.Delta.Refusal, choice.Delta.ReasoningContent)
		for j, piece := range choice.Delta.ToolCalls {
			at, err := s.add(piece)
			if err != nil {
				return provider.Failed(llm.Permanent, "%s", err.Error())
			}
			if j < len(more.Calls) {
				s.keeper.call(at, more.Calls[j].Extra)
			}
			s.Grown = s.Grown || provider.Grows(piece.Function.Name, piece.Function.Arguments)
		}
		switch f := choice.FinishReason; f {
		case "", sdk.FinishReasonNull:
		case "error":
			return provider.Failed(llm.Transient, "the provider ended the answer with an error")
		default:
			s.Stop = string(f)
		}
	}
	s.Grown = s.keeper.take(&more) || s.Grown
	return nil
}

// harmless reports an error of decoding that does not touch the answer: a field
// outside of the choices has another type than OpenAI gives it.
func harmless(err error) bool {
	var wrong *json.UnmarshalTypeError
	return errors.As(err, &wrong) && wrong.Field != "" && !strings.Contains(wrong.Field, "choices")
}

func (s *stream) Stopped() llm.Stop {
	switch sdk.FinishReason(s.Stop) {
	case sdk.FinishReasonLength, "max_tokens":
		return llm.StopLength
	case sdk.FinishReasonContentFilter, "safety", "refusal":
		return llm.StopFilter
	}
	return llm.StopEnd
}

func (s *stream) Usage() claybot.Usage {
	usage, u := claybot.Usage{LLMCalls: 1}, s.usage
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

// maxCalls bounds what a broken server can make the assembler hold.
const maxCalls = 1024

var errTooManyCalls = errors.New("the answer has too many tool calls")

// An assembler joins the pieces in which tool calls arrive. Pieces belong
// together by index; servers that leave the index out, or give every call the
// same one, begin a new call with a new id.
type assembler struct {
	*provider.Answer
	byIndex map[int]int // index on the wire to position in calls
}

func (a *assembler) add(piece sdk.ToolCall) (at int, err error) {
	at, known := a.find(piece)
	if !known {
		if len(a.Calls) == maxCalls {
			return 0, errTooManyCalls
		}
		at = len(a.Calls)
		a.Calls = append(a.Calls, claybot.ToolCall{ID: piece.ID})
		a.Args = append(a.Args, nil)
		if piece.Index != nil {
			if a.byIndex == nil {
				a.byIndex = map[int]int{}
			}
			a.byIndex[*piece.Index] = at
		}
	}
	c := &a.Calls[at]
	if c.ID == "" {
		c.ID = piece.ID
	}
	if piece.Function.Name != c.Name { // some servers repeat the whole name
		c.Name += piece.Function.Name
	}
	a.Args[at] = append(a.Args[at], piece.Function.Arguments...)
	return at, nil
}

func (a *assembler) find(piece sdk.ToolCall) (at int, known bool) {
	at = len(a.Calls) - 1
	known = at >= 0
	if piece.Index != nil {
		at, known = a.byIndex[*piece.Index]
	}
	if !known {
		return 0, false
	}
	last := a.Calls[at]
	switch {
	case piece.Function.Name == "":
		return at, true
	case piece.ID != "":
		return at, last.ID == "" || last.ID == piece.ID
	}
	return at, piece.Index != nil || last.Name == ""
}

// half reports whether a call's arguments are not complete.
func (a *assembler) half() bool {
	for _, args := range a.Args {
		if len(args) > 0 && !json.Valid(args) {
			return true
		}
	}
	return false
}
