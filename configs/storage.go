package configs

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Storage is where everything is kept. Without a URL it is the data directory, for
// one process.
type Storage struct {
	// URL is that of a PostgreSQL database. One that was asked for and cannot be
	// read is named and empty: nothing else is used in its place.
	URL Secret
	// Pooler says that a pooler stands before the server which gives connections
	// away per transaction.
	Pooler      bool
	Listen      bool // whether nodes tell each other by LISTEN and NOTIFY
	Connections int  // at most
	// Of a data directory: the time of day at which it is checked and its database is
	// copied, and how many copies are kept; 0: none is made.
	CheckAt string // "03:30"
	Copies  int
	Files   Files
}

// Shared reports whether several processes may share the store.
func (s Storage) Shared() bool { return s.URL.Named() }

// Node is this process among those that share a store.
type Node struct {
	// Name stays across restarts, so that an operator knows which one is meant; by
	// default that of the machine.
	Name  string
	Lease time.Duration // after which others take over what a node has
	// MaxRuns is how many agents the node works on at the same time.
	MaxRuns int
	// Handover is how long runs in flight may go on at an orderly end before other
	// nodes go on with them.
	Handover time.Duration
}

// The bounds of Storage and Node.
const (
	DefaultConnections = 16
	mostConnections    = 500
	DefaultLease       = 10 * time.Second
	leastLease         = 2 * time.Second
	mostLease          = 5 * time.Minute
	DefaultMaxRuns     = 1000
	mostMaxRuns        = 100_000
	DefaultHandover    = 5 * time.Second
	mostHandover       = time.Hour
	DefaultCheckAt     = "03:30"
	DefaultCopies      = 3
	mostCopies         = 100
)

func defaultNode() Node {
	name, err := os.Hostname()
	if err != nil || !nodeName.MatchString(name) {
		name = "node"
	}
	return Node{Name: name, Lease: DefaultLease, MaxRuns: DefaultMaxRuns, Handover: DefaultHandover}
}

// nodeName is what a node may be called.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func storageKeys() []key[Storage] {
	return []key[Storage]{
		text("url", func(r *reader, at place, v string, s *Storage) { s.URL = r.reference(at, v) }),
		text("pooler", func(r *reader, at place, v string, s *Storage) { r.truth(at, v, &s.Pooler) }),
		text("listen", func(r *reader, at place, v string, s *Storage) { r.truth(at, v, &s.Listen) }),
		text("connections", func(r *reader, at place, v string, s *Storage) {
			n, ok := r.number(at, v, 4, mostConnections)
			store(&s.Connections, n, ok)
		}),
		text("check_at", func(r *reader, at place, v string, s *Storage) {
			if _, err := time.Parse("15:04", v); err != nil {
				r.warn(at, "%s is not a time of day such as 03:30; ignored", quote(v))
				return
			}
			s.CheckAt = v
		}),
		text("copies", func(r *reader, at place, v string, s *Storage) {
			n, ok := r.number(at, v, 0, mostCopies)
			store(&s.Copies, n, ok)
		}),
	}
}

func nodeKeys() []key[Node] {
	return []key[Node]{
		text("name", func(r *reader, at place, v string, n *Node) { r.nodeName(at, v, n) }),
		text("lease", func(r *reader, at place, v string, n *Node) { r.span(at, v, leastLease, mostLease, &n.Lease) }),
		text("max_runs", func(r *reader, at place, v string, n *Node) {
			most, ok := r.number(at, v, 1, mostMaxRuns)
			store(&n.MaxRuns, most, ok)
		}),
		text("handover", func(r *reader, at place, v string, n *Node) { r.span(at, v, 0, mostHandover, &n.Handover) }),
	}
}

// setStorage reads the group of keys. A group that cannot be read as a whole asked
// for something: the data directory is not used in its place.
func setStorage(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind != yaml.MappingNode {
		c.Storage.URL = NewSecret(at.key, "")
	}
	group(r, at, n, &c.Storage, storageKeys())
}

func (r *reader) nodeName(at place, v string, n *Node) {
	if !nodeName.MatchString(v) {
		r.warn(at, "%s is not a name of letters, digits and ._- of at most 63; ignored", quote(v))
		return
	}
	n.Name = v
}

func (r *reader) span(at place, v string, least, most time.Duration, to *time.Duration) {
	d, err := time.ParseDuration(v)
	if err != nil || d < least || d > most {
		r.warn(at, "%s is not a duration such as 10s, from %v to %v; ignored", quote(v), least, most)
		return
	}
	*to = d
}

// storageVariables are those of the store and of this node in it. A value of them that
// is not understood is an error and no warning: they are what makes a process one of
// several, which must agree on them, and whoever set one for this process meant it.
func storageVariables() []variable {
	all := []variable{
		{"CLAYBOT_STORAGE_URL", func(_ *reader, at place, v string, c *Config) {
			c.Storage.URL = NewSecret(at.key, strings.TrimSpace(v))
		}},
		{"CLAYBOT_STORAGE_POOLER", func(r *reader, at place, v string, c *Config) { r.truth(at, v, &c.Storage.Pooler) }},
		{"CLAYBOT_STORAGE_LISTEN", func(r *reader, at place, v string, c *Config) { r.truth(at, v, &c.Storage.Listen) }},
		{"CLAYBOT_NODE_NAME", func(r *reader, at place, v string, c *Config) { r.nodeName(at, v, &c.Node) }},
		{"CLAYBOT_NODE_LEASE", func(r *reader, at place, v string, c *Config) { r.span(at, v, leastLease, mostLease, &c.Node.Lease) }},
		{"CLAYBOT_NODE_MAX_RUNS", func(r *reader, at place, v string, c *Config) {
			most, ok := r.number(at, v, 1, mostMaxRuns)
			store(&c.Node.MaxRuns, most, ok)
		}},
		{"CLAYBOT_NODE_HANDOVER", func(r *reader, at place, v string, c *Config) { r.span(at, v, 0, mostHandover, &c.Node.Handover) }},
	}
	for i, v := range all {
		all[i].set = func(r *reader, at place, value string, c *Config) {
			before := len(r.warnings)
			v.set(r, at, value, c)
			for _, w := range r.warnings[before:] {
				text, _ := ignored(w)
				r.reject(fmt.Errorf("%s: %s", w.Key, text))
			}
			r.warnings = r.warnings[:before]
		}
	}
	return all
}
