package claybot

// An Undo is one effect of a run, and how it is taken back.
type Undo struct {
	Step string `json:"step"` // of the plan, or the id of the call
	Tool string `json:"tool"` // that had the effect
	What string `json:"what"` // the effect in a few words, for people
	// Call takes it back; nil when nothing does.
	Call *ToolCall `json:"call,omitempty"`
}

// An Undoing is what a run takes back: the effects of another run, in the order
// in which they happened.
type Undoing struct {
	Run     RunID  `json:"run"`
	Effects []Undo `json:"effects"`
}
