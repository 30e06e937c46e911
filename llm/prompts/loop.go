package prompts

// A loop is {% for %} with its optional condition and {% else %}.
type loop struct {
	line  int
	names []string // one or two
	over  *expr
	only  *expr // nil: all
	body  []part
	empty []part
}

func (p *parser) loop(t token) part {
	const form = "a loop is written {%% for name in list %%} or {%% for key, value in object %%}"
	l := &loop{line: t.line}
	for len(l.names) == 0 || p.take(",") {
		if p.now().kind != word {
			stop(t.line, form)
		}
		l.names = append(l.names, p.next().text)
	}
	if len(l.names) > 2 || !p.take("in") {
		stop(t.line, form)
	}
	l.over = p.expression()
	if p.takeWord("if") {
		l.only = p.expression()
	}
	p.want("%}", "the loop's list does not end here")
	var end string
	if l.body, end = p.body(t, "for", "else", "endfor"); end == "else" {
		l.empty, _ = p.body(t, "for", "endfor")
	}
	return l.render
}

func (l *loop) render(r *renderer) {
	r.line = l.line
	turns := l.turns(r, r.eval(l.over))
	outer := len(r.scopes)
	defer func() { r.scopes = r.scopes[:outer] }()
	if l.only != nil {
		kept := turns[:0]
		for _, names := range turns {
			r.spendTurn()
			r.scopes = append(r.scopes[:outer], names)
			if r.truth(r.eval(l.only)) {
				kept = append(kept, names)
			}
		}
		r.scopes = r.scopes[:outer]
		turns = kept
	}
	if len(turns) == 0 {
		r.render(l.empty)
		return
	}
	for i, names := range turns {
		if l.only == nil {
			r.spendTurn()
		}
		names["loop"] = &turn{i, len(turns)}
		r.scopes = append(r.scopes[:outer], names)
		r.render(l.body)
	}
}

func (l *loop) turns(r *renderer, over any) []map[string]any {
	if m, ok := over.(map[string]any); ok && len(l.names) == 2 {
		over = r.pairs(m)
	}
	list := r.items(over)
	if len(list) > MaxTurns {
		stop(r.line, "the loops have more than %d turns in all", MaxTurns)
	}
	r.spend(len(list))
	turns := make([]map[string]any, len(list))
	for i, v := range list {
		if len(l.names) == 1 {
			turns[i] = map[string]any{l.names[0]: v}
			continue
		}
		pair, ok := v.([]any)
		if !ok || len(pair) != 2 {
			stop(r.line, "a loop with two names needs an object, or a list of pairs")
		}
		turns[i] = map[string]any{l.names[0]: pair[0], l.names[1]: pair[1]}
	}
	return turns
}

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
