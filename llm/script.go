package llm

import (
	"context"
	"slices"
	"sync"

	"github.com/claybot/claybot"
)

// A Script is a model for tests: it gives its replies in order, each once, and
// remembers what it was asked. A request that no provider would accept, and one
// beyond the last reply, get a Permanent error. It is safe for concurrent use.
type Script struct {
	mu       sync.Mutex
	replies  []Reply
	requests []Request
}

// A Reply is what a Script answers: Response, or Err when that is set.
type Reply struct {
	Response
	Err error
}

// NewScript makes a script of replies.
func NewScript(replies ...Reply) *Script { return &Script{replies: replies} }

// Say is a reply of text alone.
func Say(text string) Reply { return Reply{Response: Response{Text: text, Stop: StopEnd}} }

// Use is a reply that calls tools.
func Use(calls ...claybot.ToolCall) Reply {
	return Reply{Response: Response{Calls: calls, Stop: StopTools}}
}

// Chat gives the next reply. A text is told to Delta in two pieces.
func (s *Script) Chat(ctx context.Context, r Request) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, &Error{Class: Transient, Text: err.Error()}
	}
	reply := s.next(r)
	if reply.Err != nil {
		return Response{}, reply.Err
	}
	if half := len(reply.Text) / 2; r.Delta != nil && reply.Text != "" {
		r.Delta(0, reply.Text[:half])
		r.Delta(half, reply.Text[half:])
	}
	return reply.Response, nil
}

func (s *Script) next(r Request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if err := Check(r.Messages); err != nil {
		return Reply{Err: &Error{Class: Permanent, Status: 400, Text: "script: " + err.Error()}}
	}
	if len(s.replies) == 0 {
		return Reply{Err: &Error{Class: Permanent, Text: "script: no more replies"}}
	}
	reply := s.replies[0]
	s.replies = s.replies[1:]
	return reply
}

// Requests are all requests so far, in order.
func (s *Script) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}
