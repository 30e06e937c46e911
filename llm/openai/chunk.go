package openai

import (
	"encoding/json"
	"errors"
	"math"
	"strings"

	sdk "github.com/sashabaranov/go-openai"
)

// A chunk is one event of a stream. Errors come as chunks of their own.
type chunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Index        int        `json:"index"`
		Delta        delta      `json:"delta"`
		FinishReason string     `json:"finish_reason"`
		Usage        *wireUsage `json:"usage"` // Kimi
	} `json:"choices"`
	Usage *wireUsage      `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// A completion is an answer that is no stream.
type completion struct {
	Model   string `json:"model"`
	Choices []struct {
		Message      delta  `json:"message"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *wireUsage      `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// A wireUsage is what a server counted. What it read from its cache is where OpenAI has it, or where DeepSeek and Kimi have it;
// what it wrote to it is where OpenRouter has it.
type wireUsage struct {
	Prompt        int64 `json:"prompt_tokens"`
	Completion    int64 `json:"completion_tokens"`
	PromptDetails struct {
		Cached  int64 `json:"cached_tokens"`
		Written int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Hit    int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached int64 `json:"cached_tokens"`           // Kimi
	// What OpenRouter charged. Others may mean something else by these names.
	Cost    json.RawMessage `json:"cost"`
	OwnKey  json.RawMessage `json:"is_byok"`
	Details json.RawMessage `json:"cost_details"`
}

// maxCost is the highest cost of a call that is believed, in US dollars.
const maxCost = 1e6

// charged is what the provider says that it charged, in millionths of a US dollar; ok is false where it does not say all. With a
// key of the operator's own, another provider charges the rest.
func (u *wireUsage) charged() (microUSD int64, ok bool) {
	var dollars *float64
	if json.Unmarshal(u.Cost, &dollars) != nil || dollars == nil {
		return 0, false
	}
	cost := *dollars
	if string(u.OwnKey) == "true" {
		var details struct {
			Upstream *float64 `json:"upstream_inference_cost"`
		}
		if json.Unmarshal(u.Details, &details) != nil || details.Upstream == nil {
			return 0, false
		}
		cost += *details.Upstream
	}
	if cost < 0 || cost > maxCost {
		return 0, false
	}
	return int64(math.Round(cost * 1e6)), true
}

// A delta is a piece of an answer, with the fields in which servers give reasoning, and what they want
// back with it.
type delta struct {
	Content   content     `json:"content"`
	Refusal   string      `json:"refusal"`
	ToolCalls []wirePiece `json:"tool_calls"`

	Reasoning        loose           `json:"reasoning"`
	ReasoningContent loose           `json:"reasoning_content"`
	Details          json.RawMessage `json:"reasoning_details"`
	Extra            json.RawMessage `json:"extra_content"`
}

// A wirePiece is a piece of a call.
type wirePiece struct {
	sdk.ToolCall
	Extra json.RawMessage `json:"extra_content"`
}

// A loose text is set where the field is a text; anything else is none.
type loose struct {
	text string
	set  bool
}

func (l *loose) UnmarshalJSON(b []byte) error {
	l.set = len(b) > 0 && b[0] == '"' && json.Unmarshal(b, &l.text) == nil
	return nil
}

// content is a text, or a list of parts, as Mistral sends it with reasoning
// (docs.mistral.ai/capabilities/reasoning, read in November 2026).
type content struct{ text, thought string }

func (c *content) UnmarshalJSON(b []byte) error {
	if string(b) == "null" || json.Unmarshal(b, &c.text) == nil {
		return nil
	}
	type part struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"` // a text, or parts that are texts
	}
	var parts []part
	if json.Unmarshal(b, &parts) != nil {
		return errors.New("the content is neither a text nor a list of parts")
	}
	var said, thought strings.Builder
	for _, p := range parts {
		switch p.Type {
		case "text":
			said.WriteString(p.Text)
		case "thinking":
			var text string
			var texts []part
			if json.Unmarshal(p.Thinking, &text) != nil && json.Unmarshal(p.Thinking, &texts) != nil {
				continue // of another form, and not for people in any
			}
			thought.WriteString(text)
			for _, t := range texts {
				thought.WriteString(t.Text)
			}
		}
	}
	c.text, c.thought = said.String(), thought.String()
	return nil
}

// A splitter keeps reasoning apart that stands at the beginning of a text, between <think> and </think>:
// models whose server does not know that they reason write it so.
type splitter struct {
	held string // of which it is not known yet what it is
	in   place
}

type place int

const (
	atStart place = iota
	inThought
	afterThought // blanks
	inText
)

const (
	thinkBegin = "<think>"
	thinkEnd   = "</think>"
	maxBlanks  = 1 << 10 // before the tag
)

// split takes the next piece, and returns what is known to be text or reasoning.
func (s *splitter) split(piece string) (said, thought string) {
	s.held += piece
	if s.in == atStart {
		switch begun := strings.TrimLeft(s.held, " \t\r\n"); {
		case strings.HasPrefix(begun, thinkBegin):
			s.in, s.held = inThought, begun[len(thinkBegin):]
		case strings.HasPrefix(thinkBegin, begun) && len(s.held) < maxBlanks:
			return "", ""
		default:
			s.in = inText
		}
	}
	if s.in == inThought {
		var ended bool
		thought, s.held, ended = strings.Cut(s.held, thinkEnd)
		if !ended { // the end of it may be the beginning of the tag
			keep := min(len(thought), len(thinkEnd)-1)
			s.held, thought = thought[len(thought)-keep:], thought[:len(thought)-keep]
			return "", thought
		}
		s.in = afterThought
	}
	if s.in == afterThought {
		if s.held = strings.TrimLeft(s.held, " \t\r\n"); s.held == "" {
			return "", thought
		}
		s.in = inText
	}
	said, s.held = s.held, ""
	return said, thought
}

// rest returns the text that is left at the end.
func (s *splitter) rest() (said string) {
	if s.in == atStart {
		said, s.held, s.in = s.held, "", inText
	}
	return said
}
