package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// A piece is a part of an answer in the order in which it came. Reasoning is kept whole and signed; of
// the others only their place is.
//
// Source, read in November 2026: platform.claude.com/docs/en/build-with-claude/extended-thinking
// (blocks of type thinking and redacted_thinking go back unmodified, in their order, with the tool use
// that follows them).
type piece struct {
	Type      string `json:"type"` // thinking, redacted_thinking, text or tool_use
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
	Bytes     int    `json:"bytes,omitempty"` // of text
}

func (p *piece) reasoning() bool { return p.Type == "thinking" || p.Type == "redacted_thinking" }

// State implements provider.Stream.
func (s *stream) State([]claybot.ToolCall) (json.RawMessage, error) {
	if s.Stop == "max_tokens" || !slices.ContainsFunc(s.pieces, (*piece).reasoning) {
		return nil, nil // reasoning that was cut off has no signature
	}
	return json.Marshal(s.pieces)
}

// restored returns the blocks of an answer with the reasoning in its place, given those of its text and
// of its calls. Where they are not those that came, the reasoning stands before them.
func restored(state *claybot.ModelState, text []wireBlock, calls []wireBlock) []wireBlock {
	var pieces []*piece
	if json.Unmarshal(state.Data, &pieces) != nil || slices.Contains(pieces, nil) {
		return append(text, calls...) // another version may have written it
	}
	whole := ""
	for _, b := range text {
		whole += b.Text
	}
	bytes, made := 0, 0
	same := true
	for _, p := range pieces {
		switch p.Type {
		case "text":
			bytes += p.Bytes
			same = same && p.Bytes >= 0
		case "tool_use":
			made++
		}
	}
	same = same && bytes == len(whole) && made == len(calls)
	var out []wireBlock
	blank := "" // a block of blanks alone is refused
	for _, p := range pieces {
		switch {
		case p.reasoning():
			out = append(out, wireBlock{Type: p.Type, Thinking: p.thinking(), Signature: p.Signature, Data: p.Data})
		case !same:
		case p.Type == "tool_use":
			out, calls = append(out, calls[0]), calls[1:]
		case p.Type == "text":
			blank, whole = blank+whole[:p.Bytes], whole[p.Bytes:]
			if strings.TrimSpace(blank) != "" {
				out, blank = append(out, wireBlock{Type: "text", Text: blank}), ""
			}
		}
	}
	if !same {
		out = append(append(out, text...), calls...)
	}
	return out
}

// thinking is the text of a thinking block, which has one even if it is empty.
func (p *piece) thinking() *string {
	if p.Type != "thinking" {
		return nil
	}
	return &p.Thinking
}

func (a *api) own(m *llm.Message) bool { return m.State != nil && m.State.Of == a.of }
