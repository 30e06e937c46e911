package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// What rounds of questions are about.
const (
	askInputs  = "inputs"
	askQuiet   = "quiet"
	askApprove = "approve"
)

// A stage settles one thing before the plan runs. It returns where to go
// instead, empty for on.
type stage func(ctx context.Context, s *state, p Policy) (string, error)

// confirm settles what is missing, what the policy says and who approves. It is
// entered again after each pause, with the same plan.
func (e *engine) confirm(ctx context.Context, s *state) (string, error) {
	return e.settle(ctx, s, nodeExecutor, e.inputs, e.filled, e.modes, e.hours, e.budget, e.approvals)
}

func (e *engine) settle(ctx context.Context, s *state, on string, stages ...stage) (string, error) {
	s.Output.Awaiting = nil
	p := e.policy(s)
	if err := e.follow(ctx, s, p.Mode); err != nil {
		return "", err
	}
	if len(s.Scratch.Steps) == 0 {
		s.Because("nothing to do")
		return nodeSummarize, nil
	}
	if s.Scratch.Asking != nil {
		if next, err := e.hear(ctx, s, p); err != nil || next != "" {
			return next, err
		}
	}
	for _, stage := range stages {
		if next, err := stage(ctx, s, p); err != nil || next != "" {
			return next, err
		}
	}
	return on, nil
}

// follow goes by another mode when the settings have changed.
func (e *engine) follow(ctx context.Context, s *state, mode Mode) error {
	before := s.Scratch.Mode
	if before == mode {
		return nil
	}
	s.Scratch.Mode = mode
	if before == "" {
		return nil
	}
	return tell(ctx, s, runs.Switched(s.Turn.Run.ID, string(before), string(mode), "settings"))
}

// question opens a round of questions, and goes on when it is answered already.
func (e *engine) question(ctx context.Context, s *state, p Policy, kind string, qs []claybot.Question) (string, error) {
	rounds := maps.Clone(s.Scratch.Rounds)
	if rounds == nil {
		rounds = make(map[string]int)
	}
	rounds[kind]++
	s.Scratch.Rounds = rounds
	s.Scratch.Asking = &Asking{Kind: kind, Round: fmt.Sprintf("%s/%d", kind, rounds[kind]), Questions: qs}
	return e.hear(ctx, s, p)
}

// hear takes the answers of the open round; until they are there, the run waits.
func (e *engine) hear(ctx context.Context, s *state, p Policy) (string, error) {
	open := *s.Scratch.Asking
	answers, wait, err := s.Turn.Ask(ctx, open.Round, slices.Clone(open.Questions))
	nobody := errors.Is(err, runs.ErrNobody)
	switch {
	case err != nil && !nobody:
		return "", fmt.Errorf("ask: %w", err)
	case wait != nil:
		s.Output.Awaiting = &Awaiting{Reason: wait.Reason, Questions: wait.Questions, At: claybot.Now()}
		return "", &runs.WaitError{Awaiting: *wait}
	case !nobody && len(answers) != len(open.Questions):
		return "", fmt.Errorf("ask: %d questions have %d answers", len(open.Questions), len(answers))
	}
	s.Scratch.Asking = nil
	switch open.Kind {
	case askInputs:
		if nobody {
			return e.fail(s, "nobody can be asked", fmt.Sprintf(sayNobodyKnows, keysOf(open.Questions)))
		}
		return e.hearInputs(s, open.Questions, answers)
	case askQuiet:
		if nobody {
			return e.fail(s, "quiet hours", fmt.Sprintf(sayQuiet, e.clock(s, open.Questions[0].Expires.Time())))
		}
		return e.hearQuiet(s, open.Questions[0], answers[0])
	}
	if nobody {
		for _, q := range open.Questions {
			e.vote(s, stepOf(q.ToolCallID)).Denied = whyNobody
		}
		return "", nil
	}
	if !e.hearVotes(s, p, open.Questions, answers) {
		return "", nil
	}
	return "", tell(ctx, s, runs.Planned(s.Turn.Run.ID, planned(s.Scratch.Steps), s.Output.Diff, string(s.Scratch.Mode)))
}

// inputs asks for what is required and unknown.
func (e *engine) inputs(ctx context.Context, s *state, p Policy) (string, error) {
	for {
		intent, ok := e.intent(s)
		if !ok {
			return e.fail(s, "the intent is gone", fmt.Sprintf(sayIntentGone, quoted(s.Scratch.Intent)))
		}
		open := missing(intent, s.Scratch)
		if len(open) == 0 || s.Scratch.Filled {
			return "", nil
		}
		var qs []claybot.Question
		for _, q := range intent.Inputs {
			if slices.Contains(open, q.Key) {
				q.Required = true
				qs = append(qs, q)
			}
		}
		if next, err := e.question(ctx, s, p, askInputs, qs); err != nil || next != "" {
			return next, err
		}
	}
}

func (e *engine) hearInputs(s *state, qs []claybot.Question, answers []claybot.Answer) (string, error) {
	said := maps.Clone(s.Scratch.Answers)
	if said == nil {
		said = make(map[string]json.RawMessage)
	}
	for i, q := range qs {
		v := answers[i].Value
		if absent(v) {
			return e.fail(s, "a question has no answer", fmt.Sprintf(sayUnanswered, quoted(q.Text)))
		}
		setNested(said, q.Key, v)
	}
	s.Scratch.Answers = said
	return "", nil
}

func keysOf(qs []claybot.Question) string {
	var all []string
	for _, q := range qs {
		all = append(all, q.Key)
	}
	return strings.Join(all, ", ")
}

// filled puts the inputs into the arguments, and checks the steps once more: the
// inputs are new, and tools and policy may have changed since the plan was made.
func (e *engine) filled(ctx context.Context, s *state, _ Policy) (string, error) {
	if intent, ok := e.intent(s); ok && e.fill(s, intent) { // the plan is another one to those who watch
		err := tell(ctx, s, runs.Planned(s.Turn.Run.ID, planned(s.Scratch.Steps), s.Output.Diff, string(s.Scratch.Mode)))
		if err != nil {
			return "", err
		}
	}
	if faults := e.faults(s, s.Scratch.Steps); len(faults) > 0 {
		return e.fail(s, fmt.Sprintf("the plan has faults: %d", len(faults)), fmt.Sprintf(sayBadPlan, told(faults)))
	}
	return "", nil
}

// modes holds the plan back where plans are only shown.
func (e *engine) modes(_ context.Context, s *state, p Policy) (string, error) {
	if p.Mode == ModePreview {
		return e.hold(s, whyPreview)
	}
	return "", nil
}

// hold leads to the summary without running anything.
func (e *engine) hold(s *state, why string) (string, error) {
	s.Scratch.Held = why
	s.Because(why)
	return nodeSummarize, nil
}

// hours keeps quiet hours.
func (e *engine) hours(ctx context.Context, s *state, p Policy) (string, error) {
	end, quiet := p.Quiet.until(time.Now().In(e.zone(s)))
	if !quiet || s.Scratch.Loud >= claybot.At(end) {
		return "", nil
	}
	at := e.clock(s, end)
	switch p.Quiet.What {
	case QuietPlanOnly:
		s.Scratch.Mode = ModePreview
		if err := tell(ctx, s, runs.Switched(s.Turn.Run.ID, string(p.Mode), string(ModePreview), "quiet hours")); err != nil {
			return "", err
		}
		return e.hold(s, fmt.Sprintf(whyQuiet, at))
	case QuietDefer:
		return e.question(ctx, s, p, askQuiet, []claybot.Question{{
			Key: "run_now", Type: claybot.QuestionBoolean, Required: true, Default: "yes",
			Text: fmt.Sprintf(askNow, at, at), Expires: claybot.At(end),
		}})
	}
	return e.fail(s, "quiet hours", fmt.Sprintf(sayQuiet, at))
}

// clock is a time of day where the person is.
func (e *engine) clock(s *state, t time.Time) string { return t.In(e.zone(s)).Format("15:04") }

func (e *engine) hearQuiet(s *state, q claybot.Question, a claybot.Answer) (string, error) {
	var yes bool
	if err := json.Unmarshal(a.Value, &yes); err != nil || !yes {
		return e.hold(s, whyNotNow)
	}
	s.Scratch.Loud = q.Expires
	return "", nil
}

// budget holds back what would cost too much by its own guess.
func (e *engine) budget(ctx context.Context, s *state, p Policy) (string, error) {
	var cost int64
	for _, st := range s.Scratch.Steps {
		cost += st.CostMicroUSD
	}
	if p.Budget <= 0 || cost <= p.Budget {
		return "", nil
	}
	reached := runs.BudgetReached{Scope: runs.ScopePlan, Name: "the budget of a plan", Limit: usd(p.Budget), Spent: usd(cost), TooSmall: true}
	err := tell(ctx, s, claybot.Event{
		V: 1, Run: s.Turn.Run.ID, Type: claybot.EventBudgetReached, At: claybot.Now(), Data: encode(reached),
	})
	if err != nil {
		return "", err
	}
	return e.hold(s, fmt.Sprintf(whyBudget, usd(cost), usd(p.Budget)))
}

func usd(micro int64) string { return fmt.Sprintf("$%.2f", float64(micro)/1e6) }
