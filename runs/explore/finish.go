package explore

import (
	"context"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// An ending decides when a walk ends.
type ending struct{ set Settings }

// goOn decides whether, and how, the walk goes on.
func (e ending) goOn(_ context.Context, s *state) (string, error) {
	m := &s.Scratch
	if reason := e.reason(m); reason != "" {
		s.Because(reason)
		m.Progress.Stop = reason
		return nodeStop, nil
	}
	switch {
	case m.Progress.Crashed:
		s.Because("the device crashed")
		return nodeRestart, nil
	case m.Progress.Idle >= e.set.NoProgress:
		s.Because("no progress")
		return nodeSwitch, nil
	case stranded(m):
		s.Because("nothing leads on from here")
		return nodeRestart, nil
	}
	return nodePerceive, nil
}

// reason is why the walk ends; empty when it does not.
func (e ending) reason(m *memory) string {
	switch {
	case m.Progress.Reached:
		return ReasonGoal
	case e.set.poor(m):
		return ReasonBudget
	case len(m.Map.Screens) >= maxScreens:
		return ReasonScreens
	case m.Progress.Iterations >= e.set.MaxIterations:
		return ReasonIterations
	case m.Progress.Crashed && m.Progress.Crashes > maxCrashes:
		return ReasonDevice
	case m.Progress.Exhausted:
		return ReasonExhausted
	case m.Progress.Idle >= e.set.NoProgress && m.Progress.Policy == policies[len(policies)-1]:
		return ReasonNoProgress
	}
	return ""
}

// stranded reports whether only a new beginning leads to what is left to try.
func stranded(m *memory) bool {
	if m.Now.At == m.Now.Start || len(m.Map.untried(m.Now.At)) > 0 || m.Map.leads(m.Now.At) {
		return false
	}
	return slices.ContainsFunc(m.Map.ids(), func(id string) bool { return len(m.Map.untried(id)) > 0 && m.Map.Screens[id].URL == "" })
}

// switchPolicy looks in another order.
func switchPolicy(ctx context.Context, s *state) (string, error) {
	m := &s.Scratch
	from := m.Progress.Policy
	m.Progress.Policy = policies[min(slices.Index(policies, from)+1, len(policies)-1)]
	why := fmt.Sprintf("nothing new for %d actions", m.Progress.Idle)
	m.Progress.Idle = 0
	s.Output.Policy = m.Progress.Policy
	s.Because(m.Progress.Policy)
	return nodePerceive, s.Emit(ctx, false, runs.Switched(s.Turn.Run.ID, from, m.Progress.Policy, why))
}

// stop draws the map and writes the report.
func stop(ctx context.Context, s *state) (string, error) {
	m, out := &s.Scratch, &s.Output
	out.Reason = m.Progress.Stop
	s.Because(m.Progress.Stop)
	if m.Progress.Stop != ReasonRefused {
		out.show(m, true)
		if s.Turn.Files != nil && len(out.Screens) > 0 {
			f, err := s.Turn.Files.SaveFile(ctx, "map.svg", "image/svg+xml", Picture(*out))
			if err != nil {
				return "", fmt.Errorf("keep the map: %w", err)
			}
			out.Map = f.ID
		}
	}
	out.Report = report(texts.Of(ctx), *out, m.Progress.Why)
	for _, r := range s.Records() { // of an earlier pass that was cut off right here
		if r.Type == claybot.RecordAssistant && r.Run == s.Turn.Run.ID {
			return runs.End, nil
		}
	}
	return runs.End, s.Record(claybot.Record{Type: claybot.RecordAssistant, Text: out.Report, Step: 1, Stop: "stop"})
}
