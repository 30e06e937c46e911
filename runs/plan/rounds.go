package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// What rounds of questions are about.
const (
	askInputs  = "inputs"
	askQuiet   = "quiet"
	askApprove = "approve"
)

// A hearer takes the answers of a round. It returns where to go instead, empty for on.
type hearer func(ctx context.Context, s *state, p Policy, r heard) (string, error)

// What was heard in a round: an answer for each question, unless there is no person to
// ask.
type heard struct {
	questions   []claybot.Question
	answers     []claybot.Answer
	unreachable bool
}

// question opens a round of questions, and goes on when it is answered already.
func question(ctx context.Context, s *state, p Policy, kind string, qs []claybot.Question, take hearer) (string, error) {
	rounds := maps.Clone(s.Scratch.Rounds)
	if rounds == nil {
		rounds = make(map[string]int)
	}
	rounds[kind]++
	s.Scratch.Rounds = rounds
	s.Scratch.Asking = &Asking{Kind: kind, Round: fmt.Sprintf("%s/%d", kind, rounds[kind]), Questions: qs}
	return hear(ctx, s, p, take)
}

// hear takes the answers of the open round; until they are there, the run waits.
func hear(ctx context.Context, s *state, p Policy, take hearer) (string, error) {
	open := *s.Scratch.Asking
	answers, wait, err := s.Turn.Ask(ctx, open.Round, slices.Clone(open.Questions))
	unreachable := errors.Is(err, runs.ErrNobody)
	switch {
	case err != nil && !unreachable:
		return "", fmt.Errorf("ask: %w", err)
	case wait != nil:
		s.Output.Awaiting = &Awaiting{Reason: wait.Reason, Questions: wait.Questions, At: claybot.Now()}
		return "", &runs.WaitError{Awaiting: *wait}
	case !unreachable && len(answers) != len(open.Questions):
		return "", fmt.Errorf("ask: %d questions have %d answers", len(open.Questions), len(answers))
	}
	s.Scratch.Asking = nil
	return take(ctx, s, p, heard{open.Questions, answers, unreachable})
}
