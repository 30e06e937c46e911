package configs

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot"
)

// Explore says what the explorer walks through. It has neither URL nor Hosts when
// a mistake in the hosts leaves open which ones were meant: nothing is reached
// then.
type Explore struct {
	URL           string   // where it begins when nobody says; may be empty
	Hosts         []string // that it may reach, as "host" or "host:port", "*.host" for all below; none: that of URL
	Goal          string   // what it looks for when nobody says; may be empty
	MaxIterations int      // actions in one run
	NoProgress    int      // actions without anything new, after which it changes its way and then stops
	Screens       bool     // pictures of the screens are kept
}

// The defaults of Explore.
const (
	DefaultIterations = 60
	DefaultNoProgress = 8
	maxIterations     = 1000
)

// setExplore reads a group. What it changes is a copy, as profiles share the
// settings of the default one.
func setExplore(r *reader, at place, n *yaml.Node, p *draft) {
	e := Explore{MaxIterations: DefaultIterations, NoProgress: DefaultNoProgress, Screens: true}
	if p.Engine.Explore != nil {
		e = *p.Engine.Explore
	}
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want a group of keys (%s), found %s; ignored", strings.Join(names(exploreKeys()), ", "), kind(n))
		return
	}
	before := len(r.warnings)
	group(r, at, n, &e, exploreKeys())
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

func exploreKeys() []key[Explore] {
	return []key[Explore]{
		text("url", func(r *reader, at place, v string, e *Explore) {
			u, ok := r.url(at, v)
			store(&e.URL, u, ok)
		}),
		{"hosts", func(r *reader, at place, n *yaml.Node, e *Explore) {
			if items, ok := r.list(at, n); ok {
				e.Hosts = r.reachable(items)
			}
		}},
		text("goal", func(_ *reader, _ place, v string, e *Explore) { e.Goal = v }),
		text("max_iterations", func(r *reader, at place, v string, e *Explore) {
			n, ok := r.number(at, v, 1, maxIterations)
			store(&e.MaxIterations, n, ok)
		}),
		text("no_progress", func(r *reader, at place, v string, e *Explore) {
			n, ok := r.number(at, v, 1, maxIterations)
			store(&e.NoProgress, n, ok)
		}),
		text("screens", func(r *reader, at place, v string, e *Explore) { r.truth(at, v, &e.Screens) }),
	}
}

// reachable reads hosts, and leaves out bad ones with a warning, after which none
// is reached.
func (r *reader) reachable(items []item) []string {
	list := []string{}
	for _, it := range items {
		name := strings.ToLower(it.text)
		if !host.MatchString(strings.TrimPrefix(name, "*.")) {
			r.warn(it.at, "%s is not a host such as shop.example.org, localhost:3000 or *.example.org; ignored", quote(it.text))
			continue
		}
		list = appendNew(list, name)
	}
	return list
}

// setEngine says how the agents of a profile work.
func setEngine(r *reader, at place, v string, p *draft) {
	word, ok := r.word(at, v, claybot.EngineReact, claybot.EnginePlan, claybot.EngineExplore)
	store(&p.Engine.Name, word, ok)
}
