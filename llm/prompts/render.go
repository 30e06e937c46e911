package prompts

import "fmt"

// maxWarnings is how many warnings name an expression.
const maxWarnings = 20

// A renderer fills one template once. What stops it panics with an *Error.
type renderer struct {
	name   string
	strict bool
	data   Data
	roots  map[string]any // of data, as far as they were asked for
	scopes []map[string]any
	out    *sheet
	line   int // of what is evaluated

	work, turns int
	warnings    []string
	reported    map[undefined]bool
}

func (r *renderer) spend(n int) {
	if r.work += n; r.work > maxWork || n < 0 {
		stop(r.line, "the template takes too long")
	}
}

func (r *renderer) spendTurn() {
	if r.turns++; r.turns > MaxTurns {
		stop(r.line, "the loops have more than %d turns in all", MaxTurns)
	}
}

func (r *renderer) report(u *undefined) {
	if r.strict {
		stop(u.line, "%s is not defined", u.what)
	}
	if r.reported == nil {
		r.reported = make(map[undefined]bool)
	}
	if r.reported[*u] {
		return
	}
	r.reported[*u] = true
	switch {
	case len(r.warnings) < maxWarnings:
		e := Error{r.name, u.line, fmt.Sprintf("%s is not defined; it is left empty", u.what)}
		r.warnings = append(r.warnings, e.Error())
	case len(r.warnings) == maxWarnings:
		r.warnings = append(r.warnings, r.name+": more names are not defined")
	}
}

func (r *renderer) render(parts []part) {
	for _, p := range parts {
		r.spend(1)
		p(r)
	}
}
