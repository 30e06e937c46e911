package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// What happens to a plan in quiet hours.
const (
	QuietPlanOnly = "plan_only" // it is shown alone
	QuietDefer    = "defer"     // it waits for their end, or for a yes
	QuietBlock    = "block"     // it is refused
)

// Quiet are hours in which nothing runs, in the zone of the person. From and To
// are minutes of the day; where To is before From, it is on the next day. Equal
// ones are no time at all.
type Quiet struct {
	From, To int
	What     string // QuietPlanOnly and the like; anything else blocks
}

// until is when the quiet hours end that hold at a time; ok is false when none
// do.
func (q *Quiet) until(now time.Time) (end time.Time, ok bool) {
	if q == nil || q.From == q.To {
		return end, false
	}
	minute := now.Hour()*60 + now.Minute()
	over := q.From > q.To // midnight lies within
	switch {
	case !over && (minute < q.From || minute >= q.To), over && minute < q.From && minute >= q.To:
		return end, false
	}
	day := now.Day()
	if over && minute >= q.From {
		day++
	}
	end = time.Date(now.Year(), now.Month(), day, q.To/60, q.To%60, 0, 0, now.Location())
	if !end.After(now) { // the clocks are put back in between
		end = now.Add(time.Minute)
	}
	return end, true
}

// QuietHours hold plans back by the Quiet of the policy.
type quietHours struct {
	zone func(*state) *time.Location
}

// settle keeps quiet hours.
func (h *quietHours) settle(ctx context.Context, s *state, p Policy) (string, error) {
	end, quiet := p.Quiet.until(time.Now().In(h.zone(s)))
	if !quiet || s.Scratch.Loud >= claybot.At(end) {
		return "", nil
	}
	at := h.clock(s, end)
	switch p.Quiet.What {
	case QuietPlanOnly:
		s.Scratch.Mode = ModePreview
		if err := tell(ctx, s, runs.Switched(s.Turn.Run.ID, string(p.Mode), string(ModePreview), "quiet hours")); err != nil {
			return "", err
		}
		return hold(s, fmt.Sprintf(texts.PlanQuietUntil, at))
	case QuietDefer:
		return question(ctx, s, p, askQuiet, []claybot.Question{{
			Key: "run_now", Type: claybot.QuestionBoolean, Required: true, Default: "yes",
			Text: texts.Of(ctx).Say(texts.PlanAskNow, at), Expires: claybot.At(end),
		}}, h.hear)
	}
	return fail(s, "quiet hours", texts.Of(ctx).Say(texts.PlanQuiet, at))
}

// clock is a time of day where the person is.
func (h *quietHours) clock(s *state, t time.Time) string { return t.In(h.zone(s)).Format("15:04") }

// hear takes the answer whether the plan runs all the same.
func (h *quietHours) hear(ctx context.Context, s *state, _ Policy, r heard) (string, error) {
	if r.unreachable {
		return fail(s, "quiet hours", texts.Of(ctx).Say(texts.PlanQuiet, h.clock(s, r.questions[0].Expires.Time())))
	}
	var yes bool
	if err := json.Unmarshal(r.answers[0].Value, &yes); err != nil || !yes {
		return hold(s, texts.PlanNotNow)
	}
	s.Scratch.Loud = r.questions[0].Expires
	return "", nil
}
