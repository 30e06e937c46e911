package anthropictest

import (
	"fmt"
	"slices"
)

func (b *wireBlock) reasoning() bool { return b.Type == "thinking" || b.Type == "redacted_thinking" }

// thought names a block of reasoning.
func (b *wireBlock) thought() string {
	text := ""
	if b.Thinking != nil {
		text = *b.Thinking
	}
	return text + "\x00" + b.Signature + "\x00" + b.Data
}

// A thought is a block of reasoning in a stream.
type thought struct {
	start  string
	deltas []string
}

// think returns the reasoning that comes with an answer: one block that can be read, and for every other
// request one that cannot.
func (s *Server) think(req Request) (all []thought) {
	if !s.cfg.Thinks || req.calm {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, signature := fmt.Sprintf("I think of request %d: <what> is it?", req.N), fmt.Sprintf("c2lnbmVk+%d==", req.N)
	t := thought{start: `{"type":"thinking","thinking":"","signature":""}`}
	for _, p := range pieces(text, 7) {
		t.deltas = append(t.deltas, `{"type":"thinking_delta","thinking":`+quote(p)+`}`)
	}
	t.deltas = append(t.deltas, `{"type":"signature_delta","signature":`+quote(signature)+`}`)
	s.thoughts[(&wireBlock{Thinking: &text, Signature: signature}).thought()] = true
	if all = append(all, t); req.N%2 == 0 {
		data := fmt.Sprintf("ZW5jcnlwdGVk%d", req.N)
		s.thoughts[(&wireBlock{Data: data}).thought()] = true
		all = append(all, thought{start: `{"type":"redacted_thinking","data":` + quote(data) + `}`})
	}
	return all
}

// checkThoughts refuses reasoning that the server did not give, and calls without any, in the words of the
// real service.
func (s *Server) checkThoughts(r *Request) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, blocks := range r.turns {
		for j := range blocks {
			switch b := &blocks[j]; {
			case b.reasoning() && !s.thoughts[b.thought()]:
				return refuse("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, j)
			case s.cfg.Thinks && !r.calm && b.Type == "tool_use" && !slices.ContainsFunc(blocks[:j], func(b wireBlock) bool { return b.reasoning() }):
				return refuse("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final "+
					"`assistant` message must start with a thinking block", i)
			}
		}
	}
	return nil
}
