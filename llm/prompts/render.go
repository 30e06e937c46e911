package prompts

import (
	"fmt"
)

// maxWarnings is how many are told; the rest are counted.
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

// spend counts n units of work.
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

// report tells that something undefined was used.
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

func (r *renderer) nodes(list []node) {
	for _, n := range list {
		r.spend(1)
		switch n := n.(type) {
		case text:
			r.out.put(string(n))
		case *output:
			if v, ok := r.output(n); ok {
				r.out.put(r.text(v))
			}
		case *branches:
			r.branches(n)
		case *loop:
			r.loop(n)
		case *set:
			r.set(n)
		}
	}
}

// output is the value of {{ a if b else c }}; false for none.
func (r *renderer) output(n *output) (v any, ok bool) {
	switch {
	case n.when == nil || r.truth(r.eval(n.when)):
		return r.eval(n.value), true
	case n.otherwise != nil:
		return r.eval(n.otherwise), true
	}
	return nil, false
}

func (r *renderer) branches(n *branches) {
	for _, a := range n.arms {
		if r.line = n.line; r.truth(r.eval(a.when)) {
			r.nodes(a.body)
			return
		}
	}
	r.nodes(n.otherwise)
}

// set gives a name to a value, up to the end of the loop around it.
func (r *renderer) set(t *set) {
	r.line = t.line
	var v any
	if t.value != nil {
		v, _ = r.output(t.value)
	} else {
		outer := r.out
		r.out = r.sheet()
		r.nodes(t.body)
		v, r.out = r.out.String(), outer
	}
	if len(r.scopes) == 0 {
		r.scopes = append(r.scopes, make(map[string]any))
	}
	r.scopes[len(r.scopes)-1][t.name] = v
}

// A turn is what loop means within a loop.
type turn struct{ index, length int }

func (t *turn) attribute(name string) (any, bool) {
	switch name {
	case "index":
		return int64(t.index + 1), true
	case "index0":
		return int64(t.index), true
	case "revindex":
		return int64(t.length - t.index), true
	case "revindex0":
		return int64(t.length - t.index - 1), true
	case "first":
		return t.index == 0, true
	case "last":
		return t.index == t.length-1, true
	case "length":
		return int64(t.length), true
	}
	return nil, false
}

func (r *renderer) loop(t *loop) {
	r.line = t.line
	rows := r.rows(t, r.eval(t.over))
	outer := len(r.scopes)
	defer func() { r.scopes = r.scopes[:outer] }()
	if t.only != nil {
		kept := rows[:0:0]
		for _, row := range rows {
			r.spendTurn()
			r.scopes = append(r.scopes[:outer], scope(t, row))
			if r.truth(r.eval(t.only)) {
				kept = append(kept, row)
			}
		}
		r.scopes = r.scopes[:outer]
		rows = kept
	}
	if len(rows) == 0 {
		r.nodes(t.empty)
		return
	}
	for i, row := range rows {
		if t.only == nil {
			r.spendTurn()
		}
		names := scope(t, row)
		names["loop"] = &turn{i, len(rows)}
		r.scopes = append(r.scopes[:outer], names)
		r.nodes(t.body)
	}
}

func scope(t *loop, row []any) map[string]any {
	names := make(map[string]any, len(row)+1)
	for i, v := range row {
		names[t.names[i]] = v
	}
	return names
}

// rows are the values of a loop's names, turn by turn.
func (r *renderer) rows(t *loop, over any) [][]any {
	if m, ok := over.(map[string]any); ok && len(t.names) == 2 {
		over = r.pairs(m)
	}
	list := r.items(over)
	if len(list) > MaxTurns {
		stop(r.line, "the loops have more than %d turns in all", MaxTurns)
	}
	r.spend(len(list))
	rows := make([][]any, len(list))
	for i, v := range list {
		if len(t.names) == 1 {
			rows[i] = []any{v}
			continue
		}
		pair, ok := v.([]any)
		if !ok || len(pair) != len(t.names) {
			stop(r.line, "a loop with two names needs an object, or a list of pairs")
		}
		rows[i] = pair
	}
	return rows
}
