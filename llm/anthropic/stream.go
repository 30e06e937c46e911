package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/provider"
)

// maxBlocks bounds what a broken server can make the answer hold.
const maxBlocks = 4096

// An event is one event of a stream. Which fields are set depends on Type.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message *struct {
		Model string    `json:"model"`
		Usage *apiUsage `json:"usage"`
	} `json:"message"`
	Block *struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`

		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		Data      string `json:"data"` // of redacted_thinking
	} `json:"content_block"`
	Delta struct {
		Type       string  `json:"type"`
		Text       string  `json:"text"`
		Partial    string  `json:"partial_json"`
		Thinking   string  `json:"thinking"`
		Signature  string  `json:"signature"` // of reasoning that is not shown
		StopReason *string `json:"stop_reason"`
	} `json:"delta"`
	Usage *apiUsage       `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// apiUsage is what the API counts. Later events have newer counts, and leave out
// what they have nothing new of.
type apiUsage struct {
	Input      *int64 `json:"input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	Output     *int64 `json:"output_tokens"`
	Details    *struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// A counted usage is the sum of what events said.
type counted struct{ input, cacheWrite, cacheRead, output, thinking int64 }

func (c *counted) take(u *apiUsage) {
	if u == nil {
		return
	}
	set := func(to *int64, from *int64) {
		if from != nil && *from >= 0 {
			*to = *from
		}
	}
	set(&c.input, u.Input)
	set(&c.cacheWrite, u.CacheWrite)
	set(&c.cacheRead, u.CacheRead)
	set(&c.output, u.Output)
	if u.Details != nil {
		set(&c.thinking, u.Details.Thinking)
	}
}

// usage counts input as others do: what was read from the cache and written to
// it is a part of it.
func (c *counted) usage() claybot.Usage {
	return claybot.Usage{
		Input: c.input + c.cacheRead + c.cacheWrite, CachedInput: c.cacheRead, CacheWrite: c.cacheWrite,
		Output: c.output, Reasoning: min(c.thinking, c.output), LLMCalls: 1,
	}
}

// A block is a part of an answer while it is gathered.
type block struct {
	*piece
	thoughts, signature strings.Builder
	call                int // its position among the calls, -1 for text and what is not shown
	text                bool
	done                bool
}

type stream struct {
	provider.Answer
	api    *api
	blocks map[int]*block
	pieces []*piece
	count  counted
}

// Whole implements provider.Stream: servers with this API send streams.
func (*stream) Whole([]byte) (fail *provider.Failure, ok bool) { return nil, false }

// complete reports that a reason of the end was seen, and the end of each block.
func (s *stream) complete() bool {
	if s.Stop == "" {
		return false
	}
	for _, b := range s.blocks {
		if !b.done {
			return false
		}
	}
	return true
}

func (s *stream) Usage() claybot.Usage { return s.count.usage() }

func (s *stream) Taken(guess claybot.Usage) claybot.Usage {
	u := s.Usage()
	if u.Input == 0 {
		return guess
	}
	if s.Stop == "" && (guess.Output > u.Output || s.unseen()) { // the count of the output comes at the end
		u.Output, u.Estimated = max(guess.Output, u.Output), true
	}
	return u
}

// Stopped implements provider.Stream. A turn that the provider paused goes on like one
// that was too long.
func (s *stream) Stopped() (why llm.Stop, whole bool) {
	switch s.Stop {
	case "max_tokens", "model_context_window_exceeded", "pause_turn":
		return llm.StopLength, s.complete()
	case "refusal":
		return llm.StopFilter, s.complete()
	}
	return llm.StopEnd, s.complete()
}

// unseen reports whether the model wrote something that is not shown, which
// counts all the same.
func (s *stream) unseen() bool {
	for _, b := range s.blocks {
		if b.call < 0 && !b.text {
			return true
		}
	}
	return false
}

func (s *stream) Take(data []byte) *provider.Failure {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return provider.Failed(llm.Transient, "a part of the answer cannot be read")
	}
	if e.Type == "error" || len(e.Error) > 0 && string(e.Error) != "null" {
		return provider.Said(s.api.Problem(0, data))
	}
	if e.Type == "ping" {
		return nil
	}
	s.Events++
	switch e.Type {
	case "message_start":
		if e.Message != nil {
			s.Model = e.Message.Model
			s.count.take(e.Message.Usage)
		}
	case "content_block_start":
		return s.begin(&e)
	case "content_block_delta":
		return s.grow(&e)
	case "content_block_stop":
		if b := s.blocks[e.Index]; b != nil && !b.done {
			b.done = true
			b.Thinking += b.thoughts.String()
			b.Signature += b.signature.String()
		}
	case "message_delta":
		if e.Delta.StopReason != nil && *e.Delta.StopReason != "" {
			s.Stop = *e.Delta.StopReason
		}
		s.count.take(e.Usage)
	case "message_stop":
		s.Done = true
	}
	return nil // other events may come at any time
}

func (s *stream) begin(e *event) *provider.Failure {
	if e.Block == nil || s.blocks[e.Index] != nil {
		return provider.Failed(llm.Transient, "a part of the answer cannot be read")
	}
	if len(s.blocks) == maxBlocks {
		return provider.Failed(llm.Permanent, "the answer has too many parts")
	}
	s.Grown = true
	b := &block{call: -1, piece: &piece{Type: e.Block.Type, Thinking: e.Block.Thinking, Signature: e.Block.Signature, Data: e.Block.Data}}
	s.pieces = append(s.pieces, b.piece)
	s.blocks[e.Index] = b
	switch e.Block.Type {
	case "text":
		b.text = true
		b.Bytes += len(e.Block.Text)
		s.Say(e.Block.Text)
	case "tool_use":
		b.call = len(s.Calls)
		s.Calls = append(s.Calls, claybot.ToolCall{ID: e.Block.ID, Name: e.Block.Name})
		var args []byte
		if in := e.Block.Input; len(in) > 0 && string(in) != "{}" && string(in) != "null" { // some servers send all at once
			args = append(args, in...)
		}
		s.Args = append(s.Args, args)
	}
	return nil
}

func (s *stream) grow(e *event) *provider.Failure {
	b := s.blocks[e.Index]
	if b == nil || b.done {
		return provider.Failed(llm.Transient, "a part of the answer cannot be read")
	}
	s.Hidden += len(e.Delta.Thinking)
	s.Grown = provider.Grows(e.Delta.Text, e.Delta.Partial, e.Delta.Thinking, e.Delta.Signature)
	switch e.Delta.Type {
	case "text_delta":
		if b.text {
			b.Bytes += len(e.Delta.Text)
			s.Say(e.Delta.Text)
		}
	case "thinking_delta":
		if b.thoughts.Len() <= provider.MaxState {
			b.thoughts.WriteString(e.Delta.Thinking)
		}
	case "signature_delta":
		if b.signature.Len() <= provider.MaxState {
			b.signature.WriteString(e.Delta.Signature)
		}
	case "input_json_delta":
		if b.call >= 0 {
			s.Args[b.call] = append(s.Args[b.call], e.Delta.Partial...)
		}
	}
	return nil
}
