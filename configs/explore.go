package configs

import (
	"go.yaml.in/yaml/v3"
)

// Explore says what the explorer walks through. It has neither URL nor Hosts when
// a mistake in the hosts leaves open which ones were meant: nothing is reached
// then.
type Explore struct {
	URL           string   `key:"url" kind:"url"`                                    // where it starts by default; may be empty
	Hosts         []string `key:"hosts" kind:"explored hosts"`                       // that it may reach, as "host" or "host:port", "*.host" for all below; none: that of URL
	Goal          string   `key:"goal" class:"harmless"`                             // what it looks for by default; may be empty
	MaxIterations int      `key:"max_iterations" class:"narrowing" limits:"1..1000"` // actions in one run
	NoProgress    int      `key:"no_progress" class:"narrowing" limits:"1..1000"`    // actions without anything new, after which it changes its way and then stops
	Screens       bool     `key:"screens" class:"harmless"`                          // pictures of the screens are kept
}

// The defaults of Explore.
const (
	DefaultIterations = 60
	DefaultNoProgress = 8
)

// plainExplore is the Explore in which nothing was set.
func plainExplore() Explore {
	return Explore{MaxIterations: DefaultIterations, NoProgress: DefaultNoProgress, Screens: true}
}

// setExplore reads a group. What it changes is a copy, as profiles share the
// settings of the default one.
func setExplore(r *reader, at place, n *yaml.Node, p *draft) {
	e := plainExplore()
	if p.Engine.Explore != nil {
		e = *p.Engine.Explore
	}
	if !isGroup[Explore](r, at, n) {
		return
	}
	before := len(r.warnings)
	r.group(at, n, &e)
	p.Engine.Explore = &e
	faulty := false
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		if text, ok := ignored(*w); ok && w.Key != at.sub("goal", 0).key && w.Key != at.sub("screens", 0).key {
			w.Text, w.Off, faulty = text+"; "+noHost, true, true
		}
	}
	if faulty || has(n, "hosts") {
		p.doubts.hosts = faulty
	}
}
