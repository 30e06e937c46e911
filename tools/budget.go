package tools

import (
	"cmp"
	"fmt"
	"time"

	"github.com/claybot/claybot"
)

// The default Limits.
const (
	DefaultStepCalls = 64
	DefaultRunCalls  = 200
	DefaultRunTime   = 2 * time.Hour
	DefaultRunOutput = 8 << 20
)

// Limits bound what the calls of one run may take. What is zero, or below, is
// the default.
type Limits struct {
	StepCalls int           // calls of one answer of the model
	RunCalls  int           // calls of one run
	Time      time.Duration // that tools work in one run, added up
	Output    int64         // bytes of results in the history of one run
}

// WithDefaults fills in what is not set.
func (l Limits) WithDefaults() Limits {
	return Limits{
		StepCalls: cmp.Or(max(l.StepCalls, 0), DefaultStepCalls),
		RunCalls:  cmp.Or(max(l.RunCalls, 0), DefaultRunCalls),
		Time:      cmp.Or(max(l.Time, 0), DefaultRunTime),
		Output:    cmp.Or(max(l.Output, 0), DefaultRunOutput),
	}
}

// Spent is what the calls of a run have taken. It is a fold over the results in
// its history; the zero Spent is that of a run without any.
type Spent struct {
	Time   time.Duration
	Output int64
}

// Add counts a result.
func (s *Spent) Add(r claybot.Record) {
	s.Time += time.Duration(max(r.MS, 0)) * time.Millisecond
	s.Output += int64(len(r.Text))
}

// Over says why no further call may be made, in words for the model; empty while
// it may.
func (s Spent) Over(l Limits) string {
	l = l.WithDefaults()
	switch {
	case s.Time >= l.Time:
		return fmt.Sprintf("the tools of this run have used up their %s; answer now with what you have", l.Time)
	case s.Output >= l.Output:
		return fmt.Sprintf("the tools of this run have put out their %d bytes; answer now with what you have", l.Output)
	}
	return ""
}
