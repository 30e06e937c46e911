package inbox

import (
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// WhenBusy says what a message does that arrives during a run.
type WhenBusy string

// ProcessBuffer says how many waiting messages one run takes.
type ProcessBuffer string

// The values of a Policy's words, as they stand in the configuration.
const (
	Wait             WhenBusy      = "wait"
	InjectAfterTools WhenBusy      = "injectAfterTools"
	AllTogether      ProcessBuffer = "allTogether"
	OneByOne         ProcessBuffer = "oneByOne"
)

// DefaultMaxBatch is the most messages that one run takes.
const DefaultMaxBatch = 100

// A Policy says when the messages of an agent may start a run and how many of
// them it takes. The zero value is the default: at once, wait, allTogether.
type Policy struct {
	Debounce      time.Duration // quiet time before a run starts; every arrival starts it anew
	DebounceMax   time.Duration // the longest the oldest message is held back; 0: 10 × Debounce
	WhenBusy      WhenBusy
	ProcessBuffer ProcessBuffer
	MaxBatch      int // 0: DefaultMaxBatch
}

// Validate names the first value that is out of its range.
func (p Policy) Validate() error {
	switch {
	case p.Debounce < 0:
		return fmt.Errorf("debounceMs: %d is negative", p.Debounce.Milliseconds())
	case p.DebounceMax != 0 && p.DebounceMax < p.Debounce:
		return fmt.Errorf("debounceMaxMs: %d is less than debounceMs", p.DebounceMax.Milliseconds())
	case p.WhenBusy != "" && p.WhenBusy != Wait && p.WhenBusy != InjectAfterTools:
		return fmt.Errorf("whenBusy: %.80q is neither wait nor injectAfterTools", string(p.WhenBusy))
	case p.ProcessBuffer != "" && p.ProcessBuffer != AllTogether && p.ProcessBuffer != OneByOne:
		return fmt.Errorf("processBuffer: %.80q is neither allTogether nor oneByOne", string(p.ProcessBuffer))
	case p.MaxBatch < 0 || p.MaxBatch > 1000:
		return fmt.Errorf("maxBatch: %d is not within 1 to 1000", p.MaxBatch)
	}
	return nil
}

// Wait is the debounce in the form the store computes with.
func (p Policy) Wait() storage.Wait {
	w := storage.Wait{Quiet: p.Debounce, Max: p.DebounceMax}
	if w.Max == 0 {
		w.Max = 10 * p.Debounce
	}
	return w
}

// Limit is the most messages that one batch holds, parts of an album apart.
func (p Policy) Limit() int {
	if p.MaxBatch == 0 {
		return DefaultMaxBatch
	}
	return p.MaxBatch
}

// Batch returns the waiting messages that one run takes, oldest first. What the
// system handles itself, a reset for example, is a batch of its own, and so is
// what has an end of its own, like a cron task. Silent messages go with the
// next one that is not. Messages of different threads are never put together,
// because one answer goes to one thread, nor are those of different people; the parts of an album are one message.
func (p Policy) Batch(waiting []claybot.AgentMessage) []claybot.AgentMessage {
	n := 0
	for n < len(waiting) && waiting[n].Silent {
		n++ // they go with whatever comes after them
	}
	if n == len(waiting) {
		return waiting
	}
	first := n
	n++
	for n < len(waiting) && p.joins(waiting[first], waiting[n-1], waiting[n], n) && OnePerson(waiting[:n], waiting[n]) {
		n++
	}
	return waiting[:n]
}

// joins reports whether m, the n-th message, belongs to the batch that began
// with first and holds prev last.
func (p Policy) joins(first, prev, m claybot.AgentMessage, n int) bool {
	if !Together(first, m) {
		return false
	}
	if album := m.Context.GroupID; album != "" && album == prev.Context.GroupID {
		return true
	}
	return p.ProcessBuffer != OneByOne && n < p.Limit()
}

// Together reports whether m may be answered with the answer to first. A command of a skill begins
// a run, because the skill may narrow what the run may do.
func Together(first, m claybot.AgentMessage) bool {
	switch {
	case first.Flow != nil && m.Flow != nil && m.Silent && m.Context.GroupID != "" && m.Context.GroupID == first.Context.GroupID:
		return true // parts of one album, which a flow took
	case alone(first) || alone(m):
		return false
	case m.Silent:
		return true
	case (first.Route == nil) != (m.Route == nil) || m.Route != nil && *m.Route != *first.Route:
		return false
	}
	return m.Context.ThreadID == first.Context.ThreadID && m.Engine == first.Engine && m.Skill == ""
}

// OnePerson reports whether m may join a run of messages: no two people of a group wrote them.
// Where they share an agent, its run answers one of them, who alone approves what it does.
func OnePerson(all []claybot.AgentMessage, m claybot.AgentMessage) bool {
	return m.Type != claybot.MessageUser || !slices.ContainsFunc(all, func(x claybot.AgentMessage) bool {
		return x.Type == claybot.MessageUser && (x.Context.Group || m.Context.Group) && x.From.UserID != m.From.UserID
	})
}

// alone reports whether nothing may share a run with m.
func alone(m claybot.AgentMessage) bool {
	switch m.Type {
	case claybot.MessageUser, claybot.MessageSystem:
		return m.Alone || m.Stateless || m.Format != nil || m.Awaited != nil || m.Firing != nil || m.Report != "" || m.Deadline != 0 || m.Undo != nil
	}
	return true
}

// The bounds of what one message and one inbox may hold.
const (
	MaxText    = 100_000 // characters
	MaxWaiting = 10_000  // messages of one agent
)
