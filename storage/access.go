package storage

import (
	"context"

	"github.com/claybot/claybot"
)

// Access stores who may use claybot, and pending pairing requests.
type Access interface {
	// Grants lists all grants.
	Grants(ctx context.Context) ([]Grant, error)
	// Grant stores a grant, removes the pairing request of its user, and adds notice to the
	// outbox in the same commit. It is idempotent, apart from a grant that uses up an invitation:
	// ErrNotFound when the connector has none with this code.
	Grant(ctx context.Context, g Grant, notice ...claybot.Outgoing) ([]claybot.Outgoing, error)
	// Revoke removes a grant and the role of its user, also where there is only one of them; ErrNotFound
	// where there is neither.
	Revoke(ctx context.Context, connector, subject string) error
	// Pairings lists all requests, also expired ones, oldest first.
	Pairings(ctx context.Context) ([]Pairing, error)
	// SavePairing adds or replaces the request of (Connector, UserID) and adds
	// reply to the outbox in the same commit.
	SavePairing(ctx context.Context, p Pairing, reply ...claybot.Outgoing) ([]claybot.Outgoing, error)
	// DropPairing removes a request, and stores checkpoints in the same commit; ErrNotFound: then it
	// stores none.
	DropPairing(ctx context.Context, code string, notes ...Checkpoint) error
}

// A Grant gives access to one user (direct chats) or one channel (groups).
// Subject is the platform's user or channel id.
type Grant struct {
	Connector string       `json:"connector"`
	Subject   string       `json:"subject"`
	Name      string       `json:"name,omitempty"` // display name on the platform; unverified
	At        claybot.Time `json:"at"`
	// Invitation is the code of the invitation that Grant uses up; it is not stored with the grant.
	Invitation string `json:"-"`
	// Anew says that the user had no access until now: a role that they still have from before ends.
	Anew bool `json:"-"`
}

// A Pairing is the access request of an unknown user. Without a UserID it is an invitation: its
// code gives access to any one user.
type Pairing struct {
	Code      string       `json:"code"`
	Connector string       `json:"connector"`
	ChannelID string       `json:"channelId"`
	UserID    string       `json:"userId"`
	Name      string       `json:"name,omitempty"`
	At        claybot.Time `json:"at"`
	Expires   claybot.Time `json:"expires"`
}

// Versions detects changes of data that processes cache. Only shared stores
// need it.
type Versions interface {
	// Versions makes one small query. Each number grows with every change of its
	// data, in the same transaction: a process that reads the numbers first and
	// the data afterwards misses no change.
	Versions(ctx context.Context) (Version, error)
}

// A Version counts the changes of cached data.
type Version struct {
	Access   int64 // Access.Grants and Access.Roles
	Settings int64 // Settings.AgentSettings; the end of an agent does not count
	Voices   int64 // the checkpoints below CheckpointVoices; that they are removed does not count
	// DeadRoutes counts the changes of checkpoints under CheckpointDead and CheckpointMoved.
	DeadRoutes int64
}
