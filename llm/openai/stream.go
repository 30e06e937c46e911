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

type stream struct {
	assembler
	keeper
	splitter
	api   *api
	usage *wireUsage
}

// complete reports that a reason of the end was seen. Where the end mark is missing, complete arguments
// are the only sign that the last call is whole.
//
// Some servers never give a reason. The end mark alone is not enough: gateways write it when the answer was
// cut off, too. So it needs another sign, the count of what was used, or that the server gives no reasons.
func (s *stream) complete() bool {
	if s.Stop != "" {
		return s.Done || !s.half()
	}
	for _, args := range s.Args {
		if !json.Valid(args) {
			return false
		}
	}
	return s.Done && (s.Text() != "" || len(s.Calls) > 0) && (s.usage != nil || !s.api.reasons.Load())
}

func (s *stream) Taken(guess claybot.Usage) claybot.Usage {
	u := s.Usage()
	if u.Input != 0 || u.Output != 0 {
		return u
	}
	guess.CostMicroUSD = u.CostMicroUSD
	return guess
}

func (s *stream) Take(data []byte) *provider.Failure {
	if string(data) == "[DONE]" {
		s.Done = true
		s.Say(s.rest())
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
	for i := range ch.Choices {
		if choice := &ch.Choices[i]; choice.Index == 0 {
			if fail := s.add(&choice.Delta); fail != nil {
				return fail
			}
			if fail := s.finish(choice.FinishReason); fail != nil {
				return fail
			}
			if s.usage == nil {
				s.usage = choice.Usage
			}
		}
	}
	return nil
}

// Whole implements provider.Stream: the answer of a server that sends no stream.
func (s *stream) Whole(body []byte) (fail *provider.Failure, ok bool) {
	var whole completion
	if err := json.Unmarshal(body, &whole); err != nil && !harmless(err) || set(whole.Error) || len(whole.Choices) == 0 {
		return nil, false
	}
	s.Events, s.Model, s.usage, s.Done = 1, whole.Model, whole.Usage, true
	choice := &whole.Choices[0]
	if fail = s.add(&choice.Message); fail == nil {
		fail = s.finish(choice.FinishReason)
	}
	s.Say(s.rest())
	return fail, true
}

// add adds a piece of the answer.
func (s *stream) add(d *delta) *provider.Failure {
	said, thought := s.split(d.Content.text)
	s.Say(said)
	s.Refusal.WriteString(d.Refusal)
	s.Hidden += len(thought) + len(d.Content.thought) + len(d.ReasoningContent.text) + len(d.Reasoning.text)
	s.Grown = s.keeper.take(d) || s.Grown || provider.Grows(said, thought, d.Content.thought, d.Refusal)
	for _, piece := range d.ToolCalls {
		at, err := s.assemble(piece.ToolCall)
		if err != nil {
			return provider.Failed(llm.Permanent, "%s", err.Error())
		}
		s.keeper.call(at, piece.Extra)
		s.Grown = s.Grown || provider.Grows(piece.Function.Name, piece.Function.Arguments)
	}
	return nil
}

// finish notes the reason of the end, if there is any.
func (s *stream) finish(reason string) *provider.Failure {
	switch reason {
	case "", string(sdk.FinishReasonNull):
	case "error", "insufficient_system_resource": // the latter is DeepSeek's
		return provider.Failed(llm.Transient, "the provider ended the answer with an error")
	default:
		s.Stop = reason
		s.api.reasons.Store(true)
		s.Say(s.rest())
	}
	return nil
}

// harmless reports an error of decoding that does not touch the answer: a field
// outside of the choices has another type than OpenAI gives it.
func harmless(err error) bool {
	var wrong *json.UnmarshalTypeError
	return errors.As(err, &wrong) && wrong.Field != "" && !strings.Contains(wrong.Field, "choices")
}

func (s *stream) Stopped() (why llm.Stop, whole bool) {
	switch sdk.FinishReason(s.Stop) {
	case sdk.FinishReasonLength, "max_tokens", "model_length": // the last one is Mistral's
		return llm.StopLength, s.complete()
	case sdk.FinishReasonContentFilter, "safety", "refusal":
		return llm.StopFilter, s.complete()
	}
	return llm.StopEnd, s.complete()
}

func (s *stream) Usage() claybot.Usage {
	usage, u := claybot.Usage{LLMCalls: 1}, s.usage
	if u == nil {
		return usage
	}
	usage.Input, usage.Output = max(u.Prompt, 0), max(u.Completion, 0)
	usage.CachedInput = min(max(u.PromptDetails.Cached, u.Hit, u.Cached, 0), usage.Input)
	usage.CacheWrite = min(max(u.PromptDetails.Written, 0), usage.Input-usage.CachedInput)
	usage.Reasoning = min(max(u.CompletionDetails.Reasoning, 0), usage.Output)
	if s.api.quirks.Charges {
		usage.CostMicroUSD, s.Charged = u.charged()
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

func (a *assembler) assemble(piece sdk.ToolCall) (at int, err error) {
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
