package explore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot/devices"
)

// A chart is the map of what was found. Screens and moves are members of their own in
// JSON, so that a node's record has only those that are new.
type chart struct {
	Screens map[string]*screen
	Moves   []move

	index index // of Moves
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

// An index is what is asked of the moves again and again. It is good for the
// first known of them, and only grows.
type index struct {
	known int
	tried map[[2]string]bool // screen and action
	leads map[string]bool    // screens from which something leads to another one
}

func (c *chart) indexed() *index {
	x := &c.index
	if x.tried == nil {
		x.tried, x.leads = make(map[[2]string]bool), make(map[string]bool)
	}
	for _, v := range c.Moves[x.known:] {
		x.tried[[2]string{v.From, v.Action}] = true
		if v.To != "" && v.To != v.From && v.Kind != devices.Back {
			x.leads[v.From] = true
		}
	}
	x.known = len(c.Moves)
	return x
}

// The prefixes of members that are one screen, one move.
const (
	screenMember = "screen/"
	moveMember   = "move/"
)

// MarshalJSON implements json.Marshaler: the screens in the order in which they were
// found, and then the moves.
func (c chart) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	add := func(name string, v any) error {
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		value, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, key...), ':'), value...)
		return nil
	}
	for _, id := range c.ids() {
		if err := add(screenMember+id, c.Screens[id]); err != nil {
			return nil, err
		}
	}
	for i, v := range c.Moves {
		if err := add(fmt.Sprintf(moveMember+"%06d", i), v); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler. Members that are no screen and no move are
// left out.
func (c *chart) UnmarshalJSON(b []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	*c = chart{Screens: make(map[string]*screen)}
	var moves []string
	for name, raw := range all {
		if id, ok := strings.CutPrefix(name, screenMember); ok {
			s := new(screen)
			if err := json.Unmarshal(raw, s); err != nil {
				return err
			}
			c.Screens[id] = s
		} else if strings.HasPrefix(name, moveMember) {
			moves = append(moves, name)
		}
	}
	slices.Sort(moves)
	c.Moves = make([]move, len(moves))
	for i, name := range moves {
		if err := json.Unmarshal(all[name], &c.Moves[i]); err != nil {
			return err
		}
	}
	return nil
}

// admit takes a screen into the map. It reports whether it is new; what is beyond
// the limit is not taken.
func (c *chart) admit(s *sighting) bool {
	if s == nil || s.Screen == nil || c.Screens[s.ID] != nil || len(c.Screens) >= maxScreens {
		return false
	}
	if c.Screens == nil {
		c.Screens = make(map[string]*screen)
	}
	added := *s.Screen
	added.N = len(c.Screens) + 1
	c.Screens[s.ID] = &added
	return true
}

// moved notes what an action led to, once.
func (c *chart) moved(in intent, to string) {
	v := move{From: in.Screen, Action: in.Action.ID, To: to, Kind: in.Action.Kind, Label: in.Action.Label, Once: in.Action.Once}
	if !slices.Contains(c.Moves, v) {
		c.Moves = append(c.Moves, v)
	}
}

// ids are the screens in the order in which they were found.
func (c *chart) ids() []string {
	all := make([]string, 0, len(c.Screens))
	for id := range c.Screens {
		all = append(all, id)
	}
	slices.SortFunc(all, func(a, b string) int { return c.Screens[a].N - c.Screens[b].N })
	return all
}

// untried are the actions of a screen that were not done yet: first those that
// change nothing, then fields, and last what may change something beyond the
// device, so that a form is filled when it is sent.
func (c *chart) untried(id string) []devices.Action {
	s := c.Screens[id]
	if s == nil || s.Lost {
		return nil
	}
	var left []devices.Action
	tried := c.indexed().tried
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
func (c *chart) leads(id string) bool { return c.indexed().leads[id] }

// dead reports whether a screen is a dead end: everything was tried, and nothing
// leads on.
func (c *chart) dead(id string) bool {
	return !c.Screens[id].Lost && len(c.untried(id)) == 0 && !c.leads(id)
}

// depths are how many actions each screen is away from a first one; those to
// which no known way leads are not in it.
func (c *chart) depths(start string) map[string]int {
	depth := map[string]int{start: 0}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		for _, v := range c.Moves {
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
func (c *chart) route(from, to string) []move {
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
		for _, v := range c.Moves {
			if v.From == at.To && v.To != "" && !v.Once && v.Kind != devices.Back && !seen[v.To] {
				seen[v.To] = true
				queue = append(queue, &step{move: v, before: at})
			}
		}
	}
	return nil
}

// action is the action of a move.
func (c *chart) action(v move) (devices.Action, bool) {
	if s := c.Screens[v.From]; s != nil {
		for _, a := range s.Actions {
			if a.ID == v.Action {
				return a, true
			}
		}
	}
	return devices.Action{}, false
}

// distance is how many steps lead between two screens; many where none do.
func (c *chart) distance(at, id string) int {
	if id == at {
		return 0
	}
	if way := c.route(at, id); way != nil {
		return len(way)
	}
	return maxScreens + c.Screens[id].N
}
