package configs

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Web says what agents may read of the web. The zero Web lets them fetch every
// public page, and has no search.
type Web struct {
	// NoFetch: agents fetch nothing. It is set as well when it is not known what
	// was meant.
	NoFetch bool `key:"fetch" local:"yes" kind:"fetch"`
	// Allow are the only hosts that are fetched from, as "host", "*.host" or
	// "host:port"; nil: every public one.
	Allow []string
	// Unlisted is what happens when agents reach for addresses that no list has and no
	// person wrote; empty is UnlistedAuto.
	Unlisted string `key:"unlisted" local:"yes" words:"auto,ask,allow,deny" default:"auto"`
	// Private are pairs "host:port" that may be on this machine or in its network.
	Private []string `key:"private" local:"yes" kind:"private hosts" off:"-"`
	// PerMinute is how many pages each agent may fetch in a minute; 0: DefaultPerMinute.
	PerMinute int            `key:"fetches_per_minute" limits:"1..1000" default:"20"`
	Search    []SearchEngine `key:"search" class:"destination" kind:"search" bad:"zero" off:"nothing is searched for"` // asked in this order

	faults // why nothing is fetched
}

// The values of Web.Unlisted.
const (
	UnlistedAuto  = "auto"  // a run that has read nothing untrusted or private goes on, others ask
	UnlistedAsk   = "ask"   // a person is asked
	UnlistedAllow = "allow" // all runs go on
	UnlistedDeny  = "deny"  // they are refused
)

// Public reports whether agents may fetch from hosts that no list has.
func (w Web) Public() bool { return w.Allow == nil && w.Unlisted != UnlistedDeny }

// Open reports whether a run may reach addresses that are not listed without asking;
// clean: it has read nothing untrusted, and nothing that not everybody may read.
func (w Web) Open(clean bool) bool {
	if !w.Public() || w.Unlisted == UnlistedAsk {
		return false
	}
	return clean || w.Unlisted == UnlistedAllow
}

// DefaultPerMinute is how many pages an agent fetches in a minute at most, by default.
const DefaultPerMinute = 20

// FetchPerMinute is PerMinute, or the default.
func (w Web) FetchPerMinute() int {
	if w.PerMinute == 0 {
		return DefaultPerMinute
	}
	return w.PerMinute
}

// The values of SearchEngine.Provider.
const (
	SearchBrave   = "brave"
	SearchTavily  = "tavily"
	SearchSearXNG = "searxng"
)

// A SearchEngine is one that web_search asks.
type SearchEngine struct {
	Provider string `key:"provider" words:"brave,tavily,searxng"`
	Key      Secret `key:"key"`
	BaseURL  string `key:"base_url" kind:"url without slash"` // empty: the provider's own
}

func (s *SearchEngine) fault() string {
	switch {
	case s.Provider == "":
		return "has no provider"
	case s.Provider == SearchSearXNG && s.BaseURL == "":
		return "has no base_url, and searxng is everywhere else"
	case s.Provider != SearchSearXNG && s.Key.Value() == "":
		return "has no key, which " + s.Provider + " wants"
	}
	return ""
}

func setSearch(r *reader, at place, n *yaml.Node, w *Web) {
	if list, ok := entries(r, at, n, "search engine", (*SearchEngine).fault, func(SearchEngine) string { return "" }); ok {
		w.Search = list
	}
}

// setFetch reads public, off, or a group with the list of hosts. After a mistake
// nothing is fetched: it may have been meant to be less.
func setFetch(r *reader, at place, n *yaml.Node, web *Web) {
	const none = "; nothing is fetched until that is right"
	before := len(r.warnings)
	var word string
	var hosts struct {
		Allow []string `key:"allow" kind:"public hosts"`
	}
	switch n.Kind {
	case yaml.ScalarNode:
		var err error
		if word, err = (key{words: "public," + Off}).word(strings.TrimSpace(n.Value)); err != nil {
			r.refuse(at, err)
		}
	case yaml.MappingNode:
		hosts.Allow = []string{}
		r.group(at, n, &hosts)
	default:
		r.warn(at, "want public, off, or a group with the key allow, found %s; ignored", kindOf(n))
	}
	web.Allow, web.NoFetch = hosts.Allow, word == Off
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		if text, _ := ignored(*w); text != noValue && w.Key == at.sub("allow", 0).key && hosts.Allow != nil && !strings.Contains(w.Text, "want a list") {
			continue // the other hosts of the list were meant as they are
		}
		text, _ := ignored(*w)
		w.Text, w.Off, web.NoFetch = text+none, true, true
	}
}
