package prompts

import "slices"

// A Use is a name that a template reads of its data, and what of it: the parts of its path. The
// template works without it where it is Optional: it has a default, or is tested for being
// defined.
type Use struct {
	Path     []string
	Line     int // from 1
	Optional bool
}

// Uses lists the names that the template reads, each path as often as it is read. Names that the
// template gives itself are not among them.
func (t *Template) Uses() []Use { return t.uses }

// reads notes that a name is read.
func (p *parser) reads(t token) *Use {
	u := &Use{Path: []string{t.text}, Line: t.line}
	p.uses = append(p.uses, u)
	return u
}

// gives notes that the template gives a name.
func (p *parser) gives(name string) {
	if p.own == nil {
		p.own = make(map[string]bool)
	}
	p.own[name] = true
}

// more notes that an attribute of what is used is read; nil where its name is not known, so that
// what follows is not part of the path.
func (u *Use) more(key any) *Use {
	name, ok := key.(string)
	if u == nil || !ok {
		return nil
	}
	u.Path = append(u.Path, name)
	return u
}

// less takes the last part back: it is a function.
func (u *Use) less() {
	if u != nil && len(u.Path) > 1 {
		u.Path = u.Path[:len(u.Path)-1]
	}
}

func (u *Use) optional() {
	if u != nil {
		u.Optional = true
	}
}

// settled are the uses of a whole template.
func (p *parser) settled() (all []Use) {
	var tested [][]string
	for _, u := range p.uses {
		if u.Optional {
			tested = append(tested, u.Path)
		}
	}
	for _, u := range p.uses {
		name := u.Path[0]
		if p.own[name] || name == "loop" || name == "range" || name == "none" || name == "null" {
			continue
		}
		within := func(path []string) bool { return len(path) <= len(u.Path) && slices.Equal(path, u.Path[:len(path)]) }
		u.Optional = u.Optional || slices.ContainsFunc(tested, within)
		all = append(all, *u)
	}
	return all
}
