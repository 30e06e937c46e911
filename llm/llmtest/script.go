// Package llmtest has a model for tests, which gives the replies it was made with.
package llmtest

import (
	"context"
	"slices"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// A Script is a model for tests: it gives its replies in order, each once, and
// remembers what it was asked. A request that no provider would accept, and one
// beyond the last reply, get a llm.Permanent error. It is safe for concurrent use.
type Script struct {
	mu       sync.Mutex
	replies  []Reply
	requests []llm.Request
}

// A Reply is what a Script answers: Response, or Err when that is set.
type Reply struct {
	llm.Response
	Err error
}

// NewScript makes a script of replies.
func NewScript(replies ...Reply) *Script { return &Script{replies: replies} }

// Say is a reply of text alone.
func Say(text string) Reply { return Reply{Response: llm.Response{Text: text, Stop: llm.StopEnd}} }

// Use is a reply that calls tools.
func Use(calls ...claybot.ToolCall) Reply {
	return Reply{Response: llm.Response{Calls: calls, Stop: llm.StopTools}}
}

// Chat gives the next reply. A text is told to Delta in two pieces.
func (s *Script) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	if err := ctx.Err(); err != nil {
		return llm.Response{}, &llm.Error{Class: llm.Transient, Text: err.Error()}
	}
	reply := s.next(r)
	if reply.Err != nil {
		return llm.Response{}, reply.Err
	}
	if half := len(reply.Text) / 2; r.Delta != nil && reply.Text != "" {
		r.Delta(0, reply.Text[:half])
		r.Delta(half, reply.Text[half:])
	}
	return reply.Response, nil
}

func (s *Script) next(r llm.Request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Keep())
	if err := llm.Check(r.Messages); err != nil {
		return Reply{Err: &llm.Error{Class: llm.Permanent, Status: 400, Text: "script: " + err.Error()}}
	}
	if len(s.replies) == 0 {
		return Reply{Err: &llm.Error{Class: llm.Permanent, Text: "script: no more replies"}}
	}
	reply := s.replies[0]
	s.replies = s.replies[1:]
	return reply
}

// Requests are all requests so far, in order.
func (s *Script) Requests() []llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}
