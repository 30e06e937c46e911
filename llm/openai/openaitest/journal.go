package openaitest

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A journal remembers the newest calls and counts all of them.
type journal struct {
	mu       sync.Mutex
	keep     int
	calls    int
	kept     []Request
	refused  []string
	running  map[string]*call
	overlaps []string
	input    int64
	output   int64
}

// A call is an accepted request that is not answered yet.
type call struct {
	journal *journal
	agent   string
	ctx     context.Context
	once    sync.Once
	left    bool          // the client left before the answer was complete
	ended   chan struct{} // closed when the call has ended
}

// begin notes a request. When another call of its agent runs, the agent is
// noted, unless that call's client has left, which is given a moment to show.
func (j *journal) begin(ctx context.Context, r *Request) *call {
	c := &call{journal: j, agent: r.Agent, ctx: ctx, ended: make(chan struct{})}
	j.mu.Lock()
	j.calls++
	r.N = j.calls
	if len(j.kept) >= j.keep {
		j.kept = slices.Delete(j.kept, 0, len(j.kept)-j.keep/2)
	}
	j.kept = append(j.kept, *r)
	if j.running == nil {
		j.running = map[string]*call{}
	}
	var older *call
	if r.Agent != "" {
		older = j.running[r.Agent]
		j.running[r.Agent] = c
	}
	j.mu.Unlock()
	if older != nil && older.overlaps() {
		j.mu.Lock()
		j.overlaps = append(j.overlaps, r.Agent)
		j.mu.Unlock()
	}
	return c
}

// leaving is how long a client that has left may take to show it.
const leaving = 500 * time.Millisecond

// overlaps reports whether a call that runs beside another one is wanted.
func (c *call) overlaps() bool {
	t := time.NewTimer(leaving)
	defer t.Stop()
	select {
	case <-c.ended:
		return !c.left
	case <-c.ctx.Done():
		// The context also ends with the handler, after ended.
		select {
		case <-c.ended:
			return !c.left
		default:
			return false
		}
	case <-t.C:
		return true
	}
}

// end notes that the call is over. It is called before the last bytes of the
// answer leave, so that the next call of a quick client does not count as one
// at the same time.
func (c *call) end() {
	c.once.Do(func() {
		c.left = c.ctx.Err() != nil
		close(c.ended)
		c.journal.mu.Lock()
		defer c.journal.mu.Unlock()
		if c.journal.running[c.agent] == c {
			delete(c.journal.running, c.agent)
		}
	})
}

func (j *journal) refuse(message string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.refused) < j.keep {
		j.refused = append(j.refused, message)
	}
}

func (j *journal) count(input, output int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.input += int64(input)
	j.output += int64(output)
}

// Calls returns how many requests were accepted.
func (s *Server) Calls() int {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return s.journal.calls
}

// Requests returns the newest accepted requests, oldest first: all of them while
// there are no more than Config.Keep, at least half as many after that.
func (s *Server) Requests() []Request {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return slices.Clone(s.journal.kept)
}

// Refused returns why requests were refused for what they contain.
func (s *Server) Refused() []string {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return slices.Clone(s.journal.refused)
}

// Overlaps returns the agents that had two calls at once, once for each time.
func (s *Server) Overlaps() []string {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return slices.Clone(s.journal.overlaps)
}

// Tokens returns the sums of what answers said they took.
func (s *Server) Tokens() (input, output int64) {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return s.journal.input, s.journal.output
}
