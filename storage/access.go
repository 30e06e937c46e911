package storage

import (
	"context"

	"github.com/claybot/claybot"
)

// Access keeps who may speak and who asked to.
type Access interface {
	// Grants lists everyone who was let in.
	Grants(ctx context.Context) ([]Grant, error)
	// Grant lets somebody in and removes his pairing. Twice is once.
	Grant(ctx context.Context, g Grant) error
	// Revoke takes a grant back; ErrNotFound.
	Revoke(ctx context.Context, connector, subject string) error
	// Pairings lists all requests, also expired ones, oldest first.
	Pairings(ctx context.Context) ([]Pairing, error)
	// SavePairing adds or replaces the request of (Connector, UserID); reply is
	// put into the outbox with it.
	SavePairing(ctx context.Context, p Pairing, reply ...claybot.Outgoing) ([]claybot.Outgoing, error)
	// DropPairing removes a request; ErrNotFound.
	DropPairing(ctx context.Context, code string) error
}

// A Grant lets one person (direct chats) or one channel (groups) in. Subject is
// the platform's user or channel id.
type Grant struct {
	Connector string       `json:"connector"`
	Subject   string       `json:"subject"`
	Name      string       `json:"name,omitempty"` // as the platform showed it; unverified
	At        claybot.Time `json:"at"`
}

// A Pairing is the request of a stranger.
type Pairing struct {
	Code      string       `json:"code"`
	Connector string       `json:"connector"`
	ChannelID string       `json:"channelId"`
	UserID    string       `json:"userId"`
	Name      string       `json:"name,omitempty"`
	At        claybot.Time `json:"at"`
	Expires   claybot.Time `json:"expires"`
}

// Versions tells cheaply whether something was changed that processes keep in
// memory. Only stores that several nodes share need it.
type Versions interface {
	// Versions is one small query. Each number grows with every change of what it
	// stands for, in the same transaction; a process that reads the numbers first
	// and then what they stand for misses nothing.
	Versions(ctx context.Context) (Version, error)
}

// A Version says how often what processes keep in memory was changed.
type Version struct {
	Access   int64 // Access.Grants
	Settings int64 // Settings.AgentSettings; the end of an agent does not count
}
