package configs

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/idna"
)

// Web says what agents may read of the web. The zero Web lets them fetch every
// public page, and has no search.
type Web struct {
	// NoFetch: agents fetch nothing. It is set as well when nobody can tell what
	// was meant.
	NoFetch bool
	// Allow are the only hosts that are fetched from, as "host", "*.host" or
	// "host:port"; nil: every public one.
	Allow []string
	// Private are pairs "host:port" that may be on this machine or in its network.
	Private []string
	// PerMinute is how many pages each agent may fetch in a minute.
	PerMinute int
	Search    []SearchEngine // asked in this order
}

// DefaultPerMinute is how many pages an agent fetches in a minute at most, where
// nobody says.
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
	Provider string
	Key      Secret
	BaseURL  string // empty: the provider's own
}

func webKeys() []key[Config] {
	return []key[Config]{
		{"fetch", setFetch},
		{"private", func(r *reader, at place, n *yaml.Node, c *Config) {
			items, _ := r.list(at, n)
			for _, it := range items {
				if pair, why := privatePair(it.text); why != "" {
					r.warn(it.at, "%s %s; ignored", quote(it.text), why)
				} else {
					c.Tools.Web.Private = appendNew(c.Tools.Web.Private, pair)
				}
			}
		}},
		text("fetches_per_minute", func(r *reader, at place, v string, c *Config) {
			n, ok := r.number(at, v, 1, 1000)
			store(&c.Tools.Web.PerMinute, n, ok)
		}),
		{"search", setSearch},
	}
}

// setFetch reads public, off, or a group with the list of hosts. After a mistake
// nothing is fetched: it may have been meant to be less.
func setFetch(r *reader, at place, n *yaml.Node, c *Config) {
	const none = "; nothing is fetched until that is right"
	before := len(r.warnings)
	var word string
	var list struct{ allow []string }
	switch n.Kind {
	case yaml.ScalarNode:
		word = strings.TrimSpace(n.Value)
		if word == "false" {
			word = Off
		}
		word, _ = r.word(at, word, "public", Off)
	case yaml.MappingNode:
		list.allow = []string{}
		group(r, at, n, &list, []key[struct{ allow []string }]{{"allow", func(r *reader, at place, n *yaml.Node, to *struct{ allow []string }) {
			items, _ := r.list(at, n)
			for _, it := range items {
				if name, why := webHost(it.text); why != "" {
					r.warn(it.at, "%s %s; ignored", quote(it.text), why)
				} else {
					to.allow = appendNew(to.allow, name)
				}
			}
		}}})
	default:
		r.warn(at, "want public, off, or a group with the key allow, found %s; ignored", kind(n))
	}
	c.Tools.Web.Allow, c.Tools.Web.NoFetch = list.allow, word == Off
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		if text, _ := ignored(*w); text != noValue && w.Key == at.sub("allow", 0).key && list.allow != nil && !strings.Contains(w.Text, "want a list") {
			continue // the other hosts of the list were meant as they are
		}
		text, _ := ignored(*w)
		w.Text, w.Off, c.Tools.Web.NoFetch = text+none, true, true
	}
}

// webHost is an entry of a list of hosts, or why it is none.
func webHost(text string) (entry, why string) {
	const example = `is not a host such as docs.example.org, "*.example.org" or example.org:8443`
	entry = strings.ToLower(strings.TrimSpace(text))
	name, below := strings.CutPrefix(entry, "*.")
	if h, port, err := net.SplitHostPort(name); err == nil {
		if !portNumber(port) {
			return "", example
		}
		name = h
	}
	name = strings.TrimSuffix(name, ".")
	switch {
	case below && !strings.Contains(name, "."):
		return "", "stands for too much of the web; name a host below it"
	case !hostLabels(name):
		return "", example
	}
	return entry, ""
}

// privatePair is a host with its port, or why it is none.
func privatePair(text string) (pair, why string) {
	const example = `is not a host with its port, such as wiki.internal:8080 or 10.0.0.5:80`
	h, port, err := net.SplitHostPort(strings.ToLower(strings.TrimSpace(text)))
	if err != nil || !portNumber(port) {
		return "", example
	}
	if a, err := netip.ParseAddr(h); err == nil {
		a = a.Unmap()
		if a.Zone() != "" || !a.IsLoopback() && !a.IsPrivate() && !carrier.Contains(a) || slices.Contains(metadata, a) {
			return "", "is no address of a private network"
		}
		return net.JoinHostPort(a.String(), port), ""
	}
	if !hostLabels(strings.TrimSuffix(h, ".")) {
		return "", example
	}
	return net.JoinHostPort(strings.TrimSuffix(h, "."), port), ""
}

var (
	carrier  = netip.MustParsePrefix("100.64.0.0/10")
	metadata = []netip.Addr{netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("fd00:ec2::254")}
)

func portNumber(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0 && strconv.FormatUint(n, 10) == text
}

// lookup is how names of hosts are looked up.
var lookup = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.BidiRule())

// hostLabels reports a name of the domain name system that nobody takes for an
// address. One with other letters is written in its form of xn--.
func hostLabels(name string) bool {
	if ascii, err := lookup.ToASCII(name); err != nil || ascii != name {
		return false
	}
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	if rest, ok := strings.CutPrefix(last, "0x"); ok {
		return len(name) <= 253 && strings.Trim(rest, "0123456789abcdef") != ""
	}
	return len(name) <= 253 && strings.Trim(last, "0123456789") != ""
}

// setSearch reads the list of search engines and leaves out bad ones, whole.
func setSearch(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind != yaml.SequenceNode {
		r.warn(at, "want a list of search engines, found %s; ignored", kind(n))
		return
	}
	c.Tools.Web.Search = nil
	for i, e := range n.Content {
		where := place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i)}
		if s, ok := r.searchEngine(where, e); ok {
			c.Tools.Web.Search = append(c.Tools.Web.Search, s)
		}
	}
}

// searchEngine reads one entry, and returns false after a warning about it.
func (r *reader) searchEngine(at place, n *yaml.Node) (s SearchEngine, ok bool) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want a group of keys (%s), found %s; ignored", strings.Join(names(searchKeys()), ", "), kind(n))
		instead(r, len(r.warnings)-1, "the search engine is left out")
		return s, false
	}
	before := len(r.warnings)
	group(r, at, n, &s, searchKeys())
	if len(r.warnings) == before {
		switch {
		case s.Provider == "":
			r.warn(at, "has no provider; ignored")
		case s.Provider == SearchSearXNG && s.BaseURL == "":
			r.warn(at, "has no base_url, and searxng is everywhere else; ignored")
		case s.Provider != SearchSearXNG && s.Key.Value() == "":
			r.warn(at, "has no key, which %s wants; ignored", s.Provider)
		default:
			return s, true
		}
	}
	instead(r, before, "the search engine is left out")
	return s, false
}

func searchKeys() []key[SearchEngine] {
	return []key[SearchEngine]{
		text("provider", func(r *reader, at place, v string, s *SearchEngine) {
			word, ok := r.word(at, v, SearchBrave, SearchTavily, SearchSearXNG)
			store(&s.Provider, word, ok)
		}),
		text("key", func(r *reader, at place, v string, s *SearchEngine) { s.Key = r.reference(at, v) }),
		text("base_url", func(r *reader, at place, v string, s *SearchEngine) {
			u, ok := r.url(at, v)
			store(&s.BaseURL, strings.TrimRight(u, "/"), ok)
		}),
	}
}
