package explore

import (
	"bytes"
	"encoding/json"

	"github.com/claybot/claybot/devices"
)

// memory is what a walk knows: the scratch of the graph. Its parts are one object in
// JSON, with their members in this order.
type memory struct {
	Target   target
	Now      situation
	Progress progress
	Map      chart
}

// A target is what is explored.
type target struct {
	URL  string `json:"url,omitempty"`
	Goal string `json:"goal,omitempty"`
}

// A situation is where the walk is, and what it is doing.
type situation struct {
	Start   string    `json:"start,omitempty"`  // the first screen
	At      string    `json:"at,omitempty"`     // the screen of the device
	Seen    *sighting `json:"seen,omitempty"`   // that was seen last
	Intent  *intent   `json:"intent,omitempty"` // what is done next
	Outcome *outcome  `json:"outcome,omitempty"`
	New     bool      `json:"new,omitempty"`    // the last action led to a new screen
	Filled  []intent  `json:"filled,omitempty"` // what was typed into the screen since it is shown
}

// A progress is what decides whether and how the walk goes on.
type progress struct {
	Policy     string `json:"policy,omitempty"`
	Iterations int    `json:"iterations,omitempty"` // actions begun
	Idle       int    `json:"idle,omitempty"`       // actions since something new was seen
	Crashed    bool   `json:"crashed,omitempty"`    // the device is gone
	Crashes    int    `json:"crashes,omitempty"`    // in a row
	Exhausted  bool   `json:"exhausted,omitempty"`  // nothing is left to try
	Reached    bool   `json:"reached,omitempty"`    // the goal, as the model says
	Why        string `json:"why,omitempty"`        // it says so
	Spent      int64  `json:"spent,omitempty"`      // for the model, in millionths of a US dollar
	Garbled    int    `json:"garbled,omitempty"`    // answers in a row that the model did not give
	Stop       string `json:"stop,omitempty"`       // the reason of the end
}

// A sighting is a screen as it was seen; of a known one, only its ID and faults.
type sighting struct {
	ID     string   `json:"id"`
	Screen *screen  `json:"screen,omitempty"`
	Faults []string `json:"faults,omitempty"`
}

// An intent is an action to be done.
type intent struct {
	Screen string         `json:"screen"`
	Action devices.Action `json:"action"`
	Value  string         `json:"value,omitempty"`
}

// An outcome is what came of an intent.
type outcome struct {
	There bool      `json:"there,omitempty"` // the device was at the screen of the intent
	Seen  *sighting `json:"seen,omitempty"`
	Fault string    `json:"fault,omitempty"`
	Crash bool      `json:"crash,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (m memory) MarshalJSON() ([]byte, error) {
	var all [][]byte
	for _, part := range []any{m.Target, m.Now, m.Progress, m.Map} {
		b, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		if b = b[1 : len(b)-1]; len(b) > 0 {
			all = append(all, b)
		}
	}
	return append(append([]byte{'{'}, bytes.Join(all, []byte{','})...), '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *memory) UnmarshalJSON(b []byte) error {
	*m = memory{}
	for _, part := range []any{&m.Target, &m.Now, &m.Progress, &m.Map} {
		if err := json.Unmarshal(b, part); err != nil {
			return err
		}
	}
	return nil
}
