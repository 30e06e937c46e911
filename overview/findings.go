package overview

import (
	"context"
	"slices"

	"github.com/claybot/claybot/texts"
)

// Levels of findings.
const (
	LevelOK      = "ok"      // the part works
	LevelWarning = "warning" // not as well or as safely as it could
	LevelProblem = "problem" // not at all, or data may be lost
)

// A Finding is what is known of one part of the installation: its code, the cause and the next step,
// in the words that the doctor, the status, the page and the chats of operators share. It has no
// secret.
type Finding struct {
	What  string `json:"what"`
	Level string `json:"level"`
	Code  string `json:"code"` // see docs/doctor.md
	Text  string `json:"text"`
	Next  string `json:"next,omitempty"`

	Part texts.Part `json:"-"`
	// Means is what the code means, a text of the catalogue; empty if operators get no notice of
	// the finding in their chats.
	Means string `json:"-"`
}

// Findings returns what is known of all parts, also of those that work. A part of which nothing is
// known is left out.
func (o *Monitor) Findings(ctx context.Context) ([]Finding, error) {
	if o.Reports.Findings == nil {
		return nil, nil
	}
	st, err := o.Status(ctx)
	if err != nil {
		return nil, err
	}
	return o.Reports.Findings(st), nil
}

// faults returns the findings about what does not work.
func faults(all []Finding) []Finding {
	return slices.DeleteFunc(all, func(f Finding) bool { return f.Level == LevelOK })
}
