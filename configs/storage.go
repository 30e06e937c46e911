package configs

import (
	"os"
	"time"

	"go.yaml.in/yaml/v3"
)

// Storage is where everything is kept. Without a URL it is the data directory, for
// one process.
type Storage struct {
	// URL is that of a PostgreSQL database. One that was asked for and cannot be
	// read is named and empty: nothing else is used in its place.
	URL Secret `key:"url" env:"CLAYBOT_STORAGE_URL"`
	// Pooler says that a pooler stands before the server which gives connections
	// away per transaction.
	Pooler      bool `key:"pooler" class:"harmless" env:"CLAYBOT_STORAGE_POOLER"`
	Listen      bool `key:"listen" class:"harmless" env:"CLAYBOT_STORAGE_LISTEN"` // whether members notify each other by LISTEN and NOTIFY
	Connections int  `key:"connections" class:"harmless" limits:"4..500"`         // at most
	// Of a data directory: the time of day at which it is checked and its database is
	// copied, and how many copies are kept; 0: none is made.
	CheckAt string `key:"check_at" class:"harmless" kind:"time of day"`
	Copies  int    `key:"copies" class:"harmless" limits:"0..100"`
	Files   Files  `key:"^files" local:"yes" class:"destination" kind:"files" off:"no file can be kept"`
}

// Shared reports whether several processes may share the store.
func (s Storage) Shared() bool { return s.URL.Named() }

// Node is this process among those that share a store.
type Node struct {
	// Name stays across restarts, so that an operator knows which one is meant; by
	// default that of the machine.
	Name string `key:"name" kind:"member" env:"CLAYBOT_NODE_NAME"`
	// Lease is the time after which others take over what a member has.
	Lease time.Duration `key:"lease" limits:"2s..5m" env:"CLAYBOT_NODE_LEASE"`
	// MaxRuns is how many agents the member works on at the same time. 0, which no file can have:
	// messages are taken in, and wait.
	MaxRuns int `key:"max_runs" class:"narrowing" limits:"1..100000" env:"CLAYBOT_NODE_MAX_RUNS" bad:"1" off:"one agent at a time is at work"`
	// Handover is how long runs in flight may go on at an orderly end before other
	// members resume them.
	Handover time.Duration `key:"handover" limits:"0s..1h" env:"CLAYBOT_NODE_HANDOVER"`
}

// The defaults of Storage and Node.
const (
	DefaultConnections = 16
	DefaultLease       = 10 * time.Second
	DefaultMaxRuns     = 1000
	DefaultHandover    = 5 * time.Second
	DefaultCheckAt     = "03:30"
	DefaultCopies      = 3
)

func defaultNode() Node {
	name, err := os.Hostname()
	if err != nil || !forms["member"].looks.MatchString(name) || len(name) > 63 {
		name = "node"
	}
	return Node{Name: name, Lease: DefaultLease, MaxRuns: DefaultMaxRuns, Handover: DefaultHandover}
}

// setStorage reads the group of keys. A group that cannot be read as a whole asked
// for something: the data directory is not used in its place.
func setStorage(r *reader, at place, n *yaml.Node, s *Storage) {
	if n.Kind != yaml.MappingNode {
		s.URL = NewSecret(at.key, "")
	}
	r.group(at, n, s)
}

// Retention is how long the store keeps finished data; 0: forever.
type Retention struct {
	Events   time.Duration `key:"events" limits:"1d..3650d" words:"0"`   // of ended runs
	Runs     time.Duration `key:"runs" limits:"30d..3650d" words:"0"`    // with their messages and questions
	Outgoing time.Duration `key:"outgoing" limits:"7d..3650d" words:"0"` // messages that were sent, or given up, with their receipts
	Tasks    time.Duration `key:"tasks" limits:"7d..3650d" words:"0"`    // when tasks ran
	Usage    time.Duration `key:"usage" limits:"62d..3650d" words:"0"`   // what was spent
	// Histories is how long what agents do not remember stays in their histories, and whole
	// histories of agents without work.
	Histories time.Duration `key:"histories" limits:"30d..3650d" words:"0"`
}

func defaultRetention() Retention {
	const day = 24 * time.Hour
	return Retention{Events: 7 * day, Runs: 90 * day, Outgoing: 90 * day, Tasks: 90 * day, Usage: 400 * day}
}
