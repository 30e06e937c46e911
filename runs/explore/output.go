package explore

import (
	"slices"

	"github.com/claybot/claybot/devices"
)

// The reasons for which a walk ended.
const (
	// ReasonUnfinished: the walk is under way, or was cut off: by a person, a
	// deadline or an error. The state of its run says which.
	ReasonUnfinished = "unfinished"
	ReasonGoal       = "goal"        // it is reached
	ReasonExhausted  = "exhausted"   // everything was tried
	ReasonNoProgress = "no_progress" // nothing new was found, by any policy
	ReasonIterations = "iterations"  // their limit
	ReasonBudget     = "budget"
	ReasonScreens    = "screens" // their limit
	ReasonDevice     = "device"  // it crashed again and again
	ReasonRefused    = "refused" // what was asked for is not allowed
)

// Output is what a walk has found, in the JSON of its run. Files are ids of files
// of the agent.
type Output struct {
	URL         string        `json:"url,omitempty"`
	Goal        string        `json:"goal,omitempty"`
	Screens     []FoundScreen `json:"screens"`
	Transitions []Transition  `json:"transitions"`
	DeadEnds    []string      `json:"deadEnds"` // ids of screens
	Errors      []Fault       `json:"errors"`
	Policy      string        `json:"policy,omitempty"`
	Iterations  int           `json:"iterations"` // actions that were tried
	Reason      string        `json:"reason"`
	Map         string        `json:"map,omitempty"`    // the file of the picture, an SVG; at the end
	Report      string        `json:"report,omitempty"` // Markdown, at the end
}

// A FoundScreen is one screen of the map.
type FoundScreen struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	URL     string `json:"url,omitempty"`     // without query and fragment, which may be secret
	Depth   int    `json:"depth"`             // actions from the first screen
	File    string `json:"file,omitempty"`    // its picture, PNG
	Actions int    `json:"actions"`           // how many it has
	Dead    bool   `json:"dead,omitempty"`    // nothing leads on
	Untried int    `json:"untried,omitempty"` // at the end
}

// A Transition is an action that led from one screen to another, or back to the
// same.
type Transition struct {
	From   string       `json:"from"`
	Action string       `json:"action"`
	Label  string       `json:"label"`
	Kind   devices.Kind `json:"kind"`
	To     string       `json:"to"`
}

// A Fault is what went wrong at a screen.
type Fault struct {
	Screen string `json:"screen,omitempty"`
	Action string `json:"action,omitempty"` // its label
	Text   string `json:"text"`
}

// wrong adds a fault, once for each screen and text.
func (o *Output) wrong(f Fault) {
	known := slices.ContainsFunc(o.Errors, func(x Fault) bool { return x.Screen == f.Screen && x.Text == f.Text })
	if !known && len(o.Errors) < maxErrors {
		o.Errors = append(o.Errors, f)
	}
}

// wholeMoves is how many moves are shown at once; of more, every tenth action, for
// each time all of them are recorded.
const wholeMoves = 100

// show brings what people see up to date. All of it is right at the end.
func (o *Output) show(m *memory, end bool) {
	o.Iterations, o.Policy = m.Progress.Iterations, m.Progress.Policy
	if !end && len(m.Map.Moves) > wholeMoves && m.Progress.Iterations%10 != 0 {
		return
	}
	depth := m.Map.depths(m.Now.Start)
	o.Screens, o.Transitions, o.DeadEnds = []FoundScreen{}, []Transition{}, []string{}
	for _, id := range m.Map.ids() {
		s := m.Map.Screens[id]
		far, known := depth[id]
		if !known {
			far = 1 // it came by itself
		}
		f := FoundScreen{ID: id, Title: s.Title, URL: devices.Plain(s.URL), Depth: far, File: s.File, Actions: len(s.Actions), Dead: m.Map.dead(id)}
		if end {
			f.Untried = len(m.Map.untried(id))
		}
		if f.Dead {
			o.DeadEnds = append(o.DeadEnds, id)
		}
		o.Screens = append(o.Screens, f)
	}
	for _, v := range m.Map.Moves {
		if v.To != "" {
			o.Transitions = append(o.Transitions, Transition{From: v.From, Action: v.Action, Label: v.Label, Kind: v.Kind, To: v.To})
		}
	}
}
