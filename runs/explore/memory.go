package explore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot/devices"
)

// memory is what a walk knows: the scratch of the graph. Screens and moves are
// members of their own in JSON, so that a node's record has only those that are
// new.
type memory struct {
	URL  string `json:"url,omitempty"`
	Goal string `json:"goal,omitempty"`

	Start   string    `json:"start,omitempty"`  // the first screen
	At      string    `json:"at,omitempty"`     // the screen of the device
	Seen    *sighting `json:"seen,omitempty"`   // that was seen last
	Intent  *intent   `json:"intent,omitempty"` // what is done next
	Outcome *outcome  `json:"outcome,omitempty"`
	New     bool      `json:"new,omitempty"`    // the last action led to a new screen
	Filled  []intent  `json:"filled,omitempty"` // what was typed into the screen since it is shown

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

	Screens map[string]*screen `json:"-"`
	Moves   []move             `json:"-"`

	index index // of Moves
}

// An index is what is asked of the moves again and again. It is good for the
// first known of them, and only grows.
type index struct {
	known int
	tried map[[2]string]bool // screen and action
	leads map[string]bool    // screens from which something leads to another one
}

func (m *memory) indexed() *index {
	x := &m.index
	if x.tried == nil {
		x.tried, x.leads = make(map[[2]string]bool), make(map[string]bool)
	}
	for _, v := range m.Moves[x.known:] {
		x.tried[[2]string{v.From, v.Action}] = true
		if v.To != "" && v.To != v.From && v.Kind != devices.Back {
			x.leads[v.From] = true
		}
	}
	x.known = len(m.Moves)
	return x
}

// A screen is one that was seen.
type screen struct {
	N       int              `json:"n"` // in the order in which they were found, from 1
	Title   string           `json:"title"`
	URL     string           `json:"url,omitempty"`
	File    string           `json:"file,omitempty"`
	Actions []devices.Action `json:"actions,omitempty"`
	Lost    bool             `json:"lost,omitempty"` // no way leads back to it
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

// A move is an action that was done, and the screen it led to; none where it
// failed.
type move struct {
	From   string       `json:"from"`
	Action string       `json:"action"`
	To     string       `json:"to,omitempty"`
	Kind   devices.Kind `json:"kind"`
	Label  string       `json:"label"`
	Once   bool         `json:"once,omitempty"`
}

// The prefixes of members that are one screen, one move.
const (
	screenMember = "screen/"
	moveMember   = "move/"
)

// plainMemory has the members that memory itself has, and no methods.
type plainMemory memory

// MarshalJSON implements json.Marshaler.
func (m memory) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(plainMemory(m))
	if err != nil {
		return nil, err
	}
	add := func(name string, v any) error {
		value, err := json.Marshal(v)
		if err != nil {
			return err
		}
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		if b = b[:len(b)-1]; len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(append(b, key...), ':'), value...), '}')
		return nil
	}
	for _, id := range m.ids() {
		if err := add(screenMember+id, m.Screens[id]); err != nil {
			return nil, err
		}
	}
	for i, v := range m.Moves {
		if err := add(fmt.Sprintf(moveMember+"%06d", i), v); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *memory) UnmarshalJSON(b []byte) error {
	var p plainMemory
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	p.Screens = make(map[string]*screen)
	var moves []string
	for name, raw := range all {
		if id, ok := strings.CutPrefix(name, screenMember); ok {
			s := new(screen)
			if err := json.Unmarshal(raw, s); err != nil {
				return err
			}
			p.Screens[id] = s
		} else if strings.HasPrefix(name, moveMember) {
			moves = append(moves, name)
		}
	}
	slices.Sort(moves)
	p.Moves = make([]move, len(moves))
	for i, name := range moves {
		if err := json.Unmarshal(all[name], &p.Moves[i]); err != nil {
			return err
		}
	}
	*m = memory(p)
	return nil
}

// admit takes a screen into the map. It reports whether it is new; what is beyond
// the limit is not taken.
func (m *memory) admit(s *sighting) bool {
	if s == nil || s.Screen == nil || m.Screens[s.ID] != nil || len(m.Screens) >= maxScreens {
		return false
	}
	if m.Screens == nil {
		m.Screens = make(map[string]*screen)
	}
	added := *s.Screen
	added.N = len(m.Screens) + 1
	m.Screens[s.ID] = &added
	return true
}

// moved notes what an action led to, once.
func (m *memory) moved(in intent, to string) {
	v := move{From: in.Screen, Action: in.Action.ID, To: to, Kind: in.Action.Kind, Label: in.Action.Label, Once: in.Action.Once}
	if !slices.Contains(m.Moves, v) {
		m.Moves = append(m.Moves, v)
	}
}

// ids are the screens in the order in which they were found.
func (m *memory) ids() []string {
	all := make([]string, 0, len(m.Screens))
	for id := range m.Screens {
		all = append(all, id)
	}
	slices.SortFunc(all, func(a, b string) int { return m.Screens[a].N - m.Screens[b].N })
	return all
}

// untried are the actions of a screen that were not done yet: first those that
// change nothing, then fields, and last what may change something beyond the
// device, so that a form is filled when it is sent.
func (m *memory) untried(id string) []devices.Action {
	s := m.Screens[id]
	if s == nil || s.Lost {
		return nil
	}
	var left []devices.Action
	tried := m.indexed().tried
	for _, a := range s.Actions {
		if !tried[[2]string{id, a.ID}] && a.Kind != devices.Back {
			left = append(left, a)
		}
	}
	slices.SortStableFunc(left, func(a, b devices.Action) int { return rank(a) - rank(b) })
	return left
}

func rank(a devices.Action) int {
	switch {
	case a.Once:
		return 2
	case a.Kind == devices.Type || a.Kind == devices.Select:
		return 1
	}
	return 0
}

// leads reports whether something leads from a screen to another one.
func (m *memory) leads(id string) bool { return m.indexed().leads[id] }

// dead reports whether a screen is a dead end: everything was tried, and nothing
// leads on.
func (m *memory) dead(id string) bool {
	return !m.Screens[id].Lost && len(m.untried(id)) == 0 && !m.leads(id)
}

// depths are how many actions each screen is away from the first one; those to
// which no known way leads are not in it.
func (m *memory) depths() map[string]int {
	depth := map[string]int{m.Start: 0}
	for queue := []string{m.Start}; len(queue) > 0; queue = queue[1:] {
		for _, v := range m.Moves {
			if _, known := depth[v.To]; v.From == queue[0] && v.To != "" && !known {
				depth[v.To] = depth[v.From] + 1
				queue = append(queue, v.To)
			}
		}
	}
	return depth
}

// route is the shortest way between two screens by what may be repeated; nil when
// there is none or nothing to go.
func (m *memory) route(from, to string) []move {
	type step struct {
		move
		before *step
	}
	seen := map[string]bool{from: true}
	queue := []*step{{move: move{To: from}}}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at.To == to {
			var way []move
			for ; at.before != nil; at = at.before {
				way = append(way, at.move)
			}
			slices.Reverse(way)
			return way
		}
		for _, v := range m.Moves {
			if v.From == at.To && v.To != "" && !v.Once && v.Kind != devices.Back && !seen[v.To] {
				seen[v.To] = true
				queue = append(queue, &step{move: v, before: at})
			}
		}
	}
	return nil
}
