package plan

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// A summarizer tells the person what came of a plan.
type summarizer struct {
	log   func(*state) *slog.Logger
	model interface {
		ask(ctx context.Context, s *state, j job) (llm.Response, error)
	}
}

// summarize tells the person what was done, or what the plan is.
func (z *summarizer) summarize(ctx context.Context, s *state) (string, error) {
	v := texts.Of(ctx)
	return say(s, func() (claybot.Record, error) {
		switch {
		case len(s.Scratch.Steps) == 0:
			return claybot.Record{Text: orElse(s.Output.Diff, v.In(texts.PlanNothing))}, nil
		case s.Scratch.Held != "":
			return claybot.Record{Text: heldText(v, s)}, nil
		case len(s.Output.Commits) == 0:
			return claybot.Record{Text: strings.TrimSpace(v.In(texts.PlanNoneRan) + leftText(v, s))}, nil
		}
		return z.summary(ctx, s)
	})
}

// say records the final text of the run, once.
func say(s *state, make func() (claybot.Record, error)) (string, error) {
	if text, said := lastWords(s); said {
		s.Output.Summary = text
		return runs.End, nil
	}
	r, err := make()
	if err != nil {
		return "", err
	}
	r.Type = claybot.RecordAssistant
	r.Step = 1 + waves(s)
	s.Output.Summary = r.Text
	return runs.End, s.Record(r)
}

// lastWords are what an earlier pass said at the end, if it did.
func lastWords(s *state) (text string, said bool) {
	for _, r := range slices.Backward(s.Records()) {
		if r.Type == claybot.RecordAssistant {
			return r.Text, len(r.ToolCalls) == 0
		}
	}
	return "", false
}

// waves counts how often steps were called.
func waves(s *state) (n int) {
	for _, r := range s.Records() {
		if r.Type == claybot.RecordAssistant {
			n++
		}
	}
	return n
}

// summary is what the model makes of the results; a model that fails is done
// without. What was not run is told in any case.
func (z *summarizer) summary(ctx context.Context, s *state) (claybot.Record, error) {
	began, v := time.Now(), texts.Of(ctx)
	j := job{id: llm.PlanSummaryRequest, system: summarizeSystem, task: summarizeTask(s)}
	resp, err := z.model.ask(ctx, s, j)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			s.Turn.Lost(resp.Model, resp.Usage)
		}
		return claybot.Record{}, runs.Ended(ctx)
	case err != nil:
		z.log(s).Warn("failed to get a summary from the model", "error", runs.Explain(err).Code)
		return claybot.Record{Text: doneText(v, s)}, nil
	}
	usage := resp.Usage
	usage.LLMCalls = max(usage.LLMCalls, 1)
	s.Turn.Used(usage)
	r := claybot.Record{
		Text: doneText(v, s), Tokens: &usage, Model: resp.Model, Stop: string(resp.Stop),
		MS: time.Since(began).Milliseconds(),
	}
	if text := strings.TrimSpace(resp.Text); text != "" {
		r.Text = text + leftText(v, s)
	}
	return r, nil
}

// heldText shows a plan of which nothing was run.
func heldText(v texts.Voice, s *state) string {
	text := planText(v, s.Scratch.Steps) + "\n\n" + v.Say(texts.PlanHeld, v.PlanReason(s.Scratch.Held))
	return strings.TrimSpace(s.Output.Diff + text)
}

// doneText tells what was done without a model.
func doneText(v texts.Voice, s *state) string {
	return strings.TrimSpace(s.Output.Diff + doneList(v, s) + leftText(v, s))
}

func doneList(v texts.Voice, s *state) string {
	var lines []string
	for _, c := range s.Output.Commits {
		lines = append(lines, stepNamed(s, c.Step).name(v)+": "+result(v, c.Text))
	}
	return list(v.In(texts.PlanDone), lines)
}

// leftText tells what failed and what was not run.
func leftText(v texts.Voice, s *state) string {
	text := ""
	if s.Output.Error != "" {
		text = "\n\n" + plain(s.Output.Error)
	}
	return text + skippedList(v, s)
}

func skippedList(v texts.Voice, s *state) string {
	var lines []string
	for _, k := range s.Output.Skipped {
		lines = append(lines, stepNamed(s, k.Step).name(v)+": "+v.PlanReason(k.Why))
	}
	return list(v.In(texts.PlanSkipped), lines)
}

func stepNamed(s *state, id string) Step {
	i := slices.IndexFunc(s.Scratch.Steps, func(st Step) bool { return st.ID == id })
	if i < 0 {
		return Step{PlannedStep: runs.PlannedStep{ID: id}}
	}
	return s.Scratch.Steps[i]
}

func orElse(text, other string) string {
	if strings.TrimSpace(text) == "" {
		return other
	}
	return text
}

// fallback tells why the plan failed, what was done all the same, and what can
// be taken back. The agent remembers the text as its own; the run has failed.
func fallback(ctx context.Context, s *state) (string, error) {
	text := fallbackText(texts.Of(ctx), s)
	if _, said := lastWords(s); !said {
		if err := s.Emit(ctx, false, runs.FellBack(s.Turn.Run.ID, s.Scratch.Fault)); err != nil {
			return "", err
		}
		if err := s.Record(claybot.Record{Type: claybot.RecordAssistant, Step: 1 + waves(s), Text: text}); err != nil {
			return "", err
		}
	}
	return "", &runs.Error{Code: runs.CodePlan, Text: s.Scratch.Cause, Say: text}
}

func fallbackText(v texts.Voice, s *state) string {
	text := plain(s.Scratch.Fault)
	if len(s.Output.Commits)+len(s.Output.Skipped) > 0 {
		text = v.Say(texts.PlanStopped, text)
	}
	text += doneList(v, s) + skippedList(v, s)
	var back []string
	lasting := 0
	for _, u := range s.Output.Undo {
		if u.Call == nil {
			lasting++
			continue
		}
		back = append(back, v.Effect(u))
	}
	if len(back) > 0 {
		text += list(v.In(texts.PlanUndo), back)
	}
	if lasting > 0 {
		text += "\n\n" + v.Count(int64(lasting), texts.PlanLasting)
	}
	return text
}
