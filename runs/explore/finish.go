package explore

import (
	"context"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/runs"
)

// goOn decides whether, and how, the walk goes on.
func (w *walk) goOn(_ context.Context, s *state) (string, error) {
	m := &s.Scratch
	if reason := w.reason(m); reason != "" {
		s.Because(reason)
		m.Stop = reason
		return nodeStop, nil
	}
	switch {
	case m.Crashed:
		s.Because("the device crashed")
		return nodeRestart, nil
	case m.Idle >= w.set.NoProgress:
		s.Because("no progress")
		return nodeSwitch, nil
	case w.stranded(m):
		s.Because("nothing leads on from here")
		return nodeRestart, nil
	}
	return nodePerceive, nil
}

// reason is why the walk ends; empty when it does not.
func (w *walk) reason(m *memory) string {
	switch {
	case m.Reached:
		return ReasonGoal
	case w.poor(m):
		return ReasonBudget
	case len(m.Screens) >= maxScreens:
		return ReasonScreens
	case m.Iterations >= w.set.MaxIterations:
		return ReasonIterations
	case m.Crashed && m.Crashes > maxCrashes:
		return ReasonDevice
	case m.Exhausted:
		return ReasonExhausted
	case m.Idle >= w.set.NoProgress && m.Policy == policies[len(policies)-1]:
		return ReasonNoProgress
	}
	return ""
}

// stranded reports whether only a new beginning leads to what is left to try.
func (w *walk) stranded(m *memory) bool {
	if m.At == m.Start || len(m.untried(m.At)) > 0 || m.leads(m.At) {
		return false
	}
	return slices.ContainsFunc(m.ids(), func(id string) bool { return len(m.untried(id)) > 0 && m.Screens[id].URL == "" })
}

// switchPolicy looks in another order.
func (w *walk) switchPolicy(ctx context.Context, s *state) (string, error) {
	m := &s.Scratch
	from := m.Policy
	m.Policy = policies[min(slices.Index(policies, from)+1, len(policies)-1)]
	why := fmt.Sprintf("nothing new for %d actions", m.Idle)
	m.Idle = 0
	s.Output.Policy = m.Policy
	s.Because(m.Policy)
	return nodePerceive, s.Emit(ctx, false, runs.Switched(s.Turn.Run.ID, from, m.Policy, why))
}

// stop draws the map and writes the report.
func (w *walk) stop(ctx context.Context, s *state) (string, error) {
	m, out := &s.Scratch, &s.Output
	out.Reason = m.Stop
	s.Because(m.Stop)
	if m.Stop != ReasonRefused {
		out.show(m, true)
		if s.Turn.Files != nil && len(out.Screens) > 0 {
			f, err := s.Turn.Files.SaveFile(ctx, "map.svg", "image/svg+xml", Picture(*out))
			if err != nil {
				return "", fmt.Errorf("keep the map: %w", err)
			}
			out.Map = f.ID
		}
	}
	out.Report = report(*out, m.Why)
	for _, r := range s.Records() { // of an earlier pass that was cut off right here
		if r.Type == claybot.RecordAssistant && r.Run == s.Turn.Run.ID {
			return runs.End, nil
		}
	}
	return runs.End, s.Record(claybot.Record{Type: claybot.RecordAssistant, Text: out.Report, Step: 1, Stop: "stop"})
}

// The policies, in the order in which they are tried: which screen with something
// left to try is next.
var policies = []string{
	"breadth", // the one nearest to the first screen
	"depth",   // the newest
	"nearest", // the one to which the fewest steps lead from here
}

// rule is what is done when no model decides: the first untried action of the
// screen that the policy prefers; nil when nothing is left.
func rule(m *memory) *intent {
	best, score := "", 0
	depth := m.depths()
	for _, id := range m.ids() {
		if len(m.untried(id)) == 0 {
			continue
		}
		n := 0
		switch m.Policy {
		case policies[1]:
			n = -m.Screens[id].N
		case policies[2]:
			n = m.distance(id)
		default:
			n = depth[id]
		}
		if best == "" || n < score || n == score && id == m.At {
			best, score = id, n
		}
	}
	if best == "" {
		return nil
	}
	a := m.untried(best)[0]
	return &intent{Screen: best, Action: a, Value: fitting(a)}
}

// distance is how many steps lead from here to a screen; many where none do.
func (m *memory) distance(id string) int {
	if id == m.At {
		return 0
	}
	if way := m.route(m.At, id); way != nil {
		return len(way)
	}
	return maxScreens + m.Screens[id].N
}

// fitting is what a field is filled with where nobody says it.
func fitting(a devices.Action) string {
	switch {
	case a.Kind == devices.Select && len(a.Options) > 0:
		return a.Options[0]
	case a.Kind != devices.Type:
		return ""
	}
	if v, ok := fills[a.Input]; ok {
		return v
	}
	return "example"
}

// fills are values by the kinds of fields that HTML knows.
var fills = map[string]string{
	"email": "explorer@example.com", "number": "1", "range": "1", "tel": "+15550100", "url": "https://example.com/",
	"date": "2026-01-02", "time": "12:00", "datetime-local": "2026-01-02T12:00", "month": "2026-01", "week": "2026-W02",
	"color": "#336699", "password": "Example-1234",
}
