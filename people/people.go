// Package people manages access (Gate), and the identities of persons, the
// operators, and the chats in which a person reads (Directory).
//
// It guarantees that an unknown user gets nothing but a pairing code, at most one an
// hour, that operators get at most a few notices of such users an hour, without what they wrote,
// and that a notice for a person goes where that person wrote last and still has
// access.
//
// The package must not import what runs agents.
package people

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Index finds agents; see storage.Index.
type Index interface {
	Foreground(ctx context.Context, owners []string) iter.Seq2[storage.IndexEntry, error]
	AgentPage(ctx context.Context, q storage.AgentQuery) ([]storage.IndexEntry, error)
}

// Receipts returns what happened to messages; see storage.Inbox.
type Receipts interface {
	LastReceipt(ctx context.Context, id claybot.AgentID) (storage.Receipt, error)
}

// Agents finds an agent; see storage.Bounded.
type Agents interface {
	Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error)
}

// A Sender sends notices; see delivery.Deliverer.
type Sender interface {
	Send(ctx context.Context, out ...claybot.Outgoing) (int, error)
	// Hand passes on messages that are in the outbox already.
	Hand(out []claybot.Outgoing)
	SendOnce(ctx context.Context, o claybot.Outgoing, key, text string) error
	ComposeOnce(o claybot.Outgoing, key, text string) []claybot.Outgoing
}

// Config is what New needs; only Identities, Operators, Language, Zone, Replaced and Marks may be nil.
type Config struct {
	Gate     *Gate
	Index    Index
	Receipts Receipts
	Agents   Agents
	Sender   Sender
	// Reachable reports whether a message on a route is likely to arrive.
	Reachable func(r claybot.Route) bool
	// Identities lists all owner ids of the person who has this one; nil, as a result as
	// well, means that each stands for itself.
	Identities func(owner string) []string
	// AllOwners reports whether agents may reach those of other people.
	AllOwners func() bool
	// Operators are the people who run this claybot, besides those on the web page and the
	// terminal, as "connector/userId".
	Operators func() []string
	// Language and Zone are those of people of whom neither is known; nil: English, and UTC.
	Language func() texts.Language
	Zone     func() *time.Location
	// Replaced are texts of the operator in place of those of the catalogue; nil: none.
	Replaced func() texts.Replaced
	// Marks keeps the language and the zone of people, and what was decided about their requests
	// for access; nil: that is not kept, and operators are not notified of requests.
	Marks storage.CheckpointSet
	// Connector returns the connector of a name; nil where none is configured.
	Connector func(name string) connectors.Connector
	// Instances returns the configured connectors; nil for those named as their platform.
	Instances func() platforms.Instances
	Log       *slog.Logger
}

// A Directory knows the people who talk to claybot. Its methods are safe for concurrent
// use.
type Directory struct {
	*Gate
	cfg      Config
	changing sync.Mutex // held while a language or a zone is changed
	manners  manners
}

// New returns a Directory.
func New(cfg Config) *Directory {
	if cfg.Instances == nil {
		cfg.Instances = func() platforms.Instances { return nil }
	}
	return &Directory{Gate: cfg.Gate, cfg: cfg}
}
