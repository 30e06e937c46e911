package explore

import (
	"github.com/claybot/claybot/devices"
)

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
	depth := m.Map.depths(m.Now.Start)
	for _, id := range m.Map.ids() {
		if len(m.Map.untried(id)) == 0 {
			continue
		}
		n := 0
		switch m.Progress.Policy {
		case policies[1]:
			n = -m.Map.Screens[id].N
		case policies[2]:
			n = m.Map.distance(m.Now.At, id)
		default:
			n = depth[id]
		}
		if best == "" || n < score || n == score && id == m.Now.At {
			best, score = id, n
		}
	}
	if best == "" {
		return nil
	}
	a := m.Map.untried(best)[0]
	return &intent{Screen: best, Action: a, Value: fitting(a)}
}

// fitting returns the value for a field when no text names one.
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
