package explore

import (
	"context"
	"fmt"

	"github.com/claybot/claybot/devices"
)

// enumerate takes what was seen into the map.
func enumerate(_ context.Context, s *state) (string, error) {
	m := &s.Scratch
	if m.Now.Seen == nil {
		return nodeChoose, nil // the device is gone
	}
	for _, f := range m.Now.Seen.Faults {
		s.Output.wrong(Fault{Screen: m.Now.Seen.ID, Text: f})
	}
	m.Map.admit(m.Now.Seen)
	if m.Now.At != m.Now.Seen.ID {
		m.Now.At, m.Now.Filled = m.Now.Seen.ID, nil
	}
	if m.Now.Start == "" {
		m.Now.Start = m.Now.At
	}
	s.Because(fmt.Sprintf("%d to try", len(m.Map.untried(m.Now.At))))
	m.Now.Seen = &sighting{ID: m.Now.Seen.ID}
	return nodeChoose, nil
}

// verify judges where the action led.
func verify(_ context.Context, s *state) (string, error) {
	m := &s.Scratch
	in, to := m.Now.Intent, m.Now.Outcome.Seen
	m.Progress.Crashes = 0
	m.Now.New = m.Map.Screens[to.ID] == nil && len(m.Map.Screens) < maxScreens
	switch {
	case m.Now.New:
		s.Because("a new screen")
	case to.ID == in.Screen:
		s.Because("the same screen")
	default:
		s.Because("a known screen")
	}
	for _, f := range to.Faults {
		s.Output.wrong(Fault{Screen: to.ID, Action: in.Action.Label, Text: f})
	}
	return nodePersist, nil
}

// persist takes screen and move into the map.
func persist(_ context.Context, s *state) (string, error) {
	m := &s.Scratch
	in, to := *m.Now.Intent, m.Now.Outcome.Seen
	m.Map.admit(to)
	if m.Map.Screens[to.ID] == nil {
		m.Map.moved(in, "") // beyond the limit
	} else {
		m.Map.moved(in, to.ID)
	}
	if kind := in.Action.Kind; to.ID != in.Screen {
		m.Now.Filled = nil
	} else if kind == devices.Type || kind == devices.Select {
		m.Now.Filled = append(m.Now.Filled, in)
	}
	m.Now.At, m.Now.Seen, m.Now.Outcome = to.ID, &sighting{ID: to.ID}, nil
	s.Output.show(m, false)
	return nodeProgress, nil
}

// countProgress counts actions that led to nothing new.
func countProgress(_ context.Context, s *state) (string, error) {
	if s.Scratch.Now.New {
		s.Scratch.Progress.Idle = 0
		s.Because("something new")
	} else {
		s.Scratch.Progress.Idle++
		s.Because(fmt.Sprintf("nothing new for %d actions", s.Scratch.Progress.Idle))
	}
	return nodeContinue, nil
}
