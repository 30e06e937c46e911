package agentsystem_test

import (
	"fmt"
	"sync/atomic"

	"github.com/claybot/claybot"
)

// A toll is what sequences of faults have cost.
type toll struct {
	messages, once, twice, more, none, failed, notices, kills atomic.Int64
}

// count adds a message that has ended and is visible so many times.
func (s *toll) count(o claybot.Outgoing, visible int) {
	s.messages.Add(1)
	if o.State == claybot.SendFailed {
		s.failed.Add(1)
	}
	switch visible {
	case 0:
		s.none.Add(1)
	case 1:
		s.once.Add(1)
	case 2:
		s.twice.Add(1)
	default:
		s.more.Add(1)
	}
}

func (s *toll) String() string {
	return fmt.Sprintf("%d messages, visible once %d, twice %d, more often %d, not %d; failed %d, notices %d, kills %d",
		s.messages.Load(), s.once.Load(), s.twice.Load(), s.more.Load(), s.none.Load(), s.failed.Load(), s.notices.Load(), s.kills.Load())
}
