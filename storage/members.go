package storage

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/claybot/claybot"
)

// ErrHeld means that another member has the claim.
var ErrHeld = errors.New("another member has it")

// Members stores which processes share the store. Each member has a lease, which
// it renews; its claims and agent leases end with it.
type Members interface {
	// RenewMember extends the lease of a member by ttl and returns all live members,
	// itself included, by id. ErrLeaseLost when the lease has expired or the member
	// has left: its id never comes back.
	RenewMember(ctx context.Context, m Member, ttl time.Duration) ([]Member, error)
	// Leave ends the lease of a member and all its claims. A second call changes nothing.
	Leave(ctx context.Context, id string) error
	// EndMember ends a member with a name whose process is known to be dead: its lease, its
	// claims, and the leases of its agents, which are due at once. It changes nothing for
	// an unknown id, or where the member has another name.
	EndMember(ctx context.Context, id, name string) error
	// Members lists all members of the last day, including those that are gone,
	// newest first.
	Members(ctx context.Context) ([]Member, error)
	// HeldBy returns the id of the live member that has the lease of an agent at this
	// moment; empty for none, and for an unknown agent.
	HeldBy(ctx context.Context, id claybot.AgentID) (member string, err error)
}

// A Member is one process that shares the store.
type Member struct {
	ID      string       `json:"id"`             // new for every process
	Name    string       `json:"name"`           // what an operator calls it; stays across restarts
	Addr    string       `json:"addr,omitempty"` // of its web page
	Version string       `json:"version"`
	Started claybot.Time `json:"startedAt"`
	Seen    claybot.Time `json:"seenAt"`                 // its last renewal, by the clock of the store
	Until   claybot.Time `json:"until"`                  // the end of its lease; 0 when it has left
	State   MemberState  `json:"state,omitempty"`        // set by Members
	Working int          `json:"working"`                // agents that it works on
	MaxRuns int          `json:"maxRuns"`                // at most
	Skew    int64        `json:"skewMs"`                 // milliseconds that its clock is ahead of the store's
	Claims  []string     `json:"claims,omitempty"`       // except those of destinations
	Dests   int          `json:"destinations,omitempty"` // that it has claimed
}

// Lease returns how long a renewal lasts, which the member chooses; 0 when unknown.
func (m Member) Lease() time.Duration {
	return time.Duration(max(0, m.Until-m.Seen)) * time.Millisecond
}

// RenewalInterval returns how often a member renews a lease: five times per lease, and at
// least every two seconds, so that others notice soon that a member is silent.
func RenewalInterval(lease time.Duration) time.Duration { return min(lease, usualLease) / 5 }

// usualLease is the longest lease that RenewalInterval divides.
const usualLease = 10 * time.Second

// There reports whether the member is live or draining.
func (m Member) There() bool { return m.State == MemberLive || m.State == MemberDraining }

// A MemberState is whether a member is live.
type MemberState string

// The states of members.
const (
	MemberLive     MemberState = "live"
	MemberDraining MemberState = "draining" // it takes no more work and leaves soon
	MemberGone     MemberState = "gone"     // it left in order
	MemberLost     MemberState = "lost"     // its lease expired
)

// Claims assign exclusive work to members, such as polling for a bot or sending to a
// destination. A claim lasts until its member yields it or loses its lease. A store
// that one process uses alone grants every claim and writes nothing.
type Claims interface {
	// Claim gives name to a member. The error is ErrHeld while another member has it.
	// A member that has it already gets a larger token. A claim of a destination
	// (DestClaim) makes ambiguous what another member was sending there.
	Claim(ctx context.Context, member, name string) (Claim, error)
	// Yield ends a claim; yielding a lost claim changes nothing.
	Yield(ctx context.Context, c Claim) error
	// Holder returns the id of the member that has a claim; empty for none.
	Holder(ctx context.Context, name string) (member string, err error)
}

// A Claim is the right of one member to something. Each new holder gets a larger
// Token; a write with an older one fails with ErrLeaseLost.
type Claim struct {
	Name   string
	Member string
	Token  int64
}

// DestClaim returns the name of the claim to send to a destination (Route.Dest).
func DestClaim(dest string) string { return destClaims + dest }

const destClaims = "out/"

// ClaimedDest returns the destination of a claim that DestClaim has named; false for
// other claims.
func ClaimedDest(claim string) (dest string, ok bool) { return strings.CutPrefix(claim, destClaims) }

// A Notification tells other members what to look for in the store. Losing one costs
// time only: its recipients also poll, every second or two.
type Notification struct {
	Member string          `json:"n,omitempty"` // that sends it
	Due    bool            `json:"d,omitempty"` // an agent became due
	Dests  []string        `json:"o,omitempty"` // have something to send
	Sent   []string        `json:"s,omitempty"` // destinations that were sent to
	Freed  []string        `json:"f,omitempty"` // claims that were yielded
	Runs   []claybot.RunID `json:"r,omitempty"` // have new events, or their ids lead elsewhere
	Cancel []CancelRequest `json:"c,omitempty"`
	// Ended are members whose memberships another member has ended. Due is set as well,
	// because the agents of those members are due.
	Ended []string `json:"e,omitempty"`
	// Watched are runs whose growing text a watcher reads on this member; the member
	// that works on such a run then sends Grown for some seconds.
	Watched []claybot.RunID `json:"w,omitempty"`
	Grown   []Growth        `json:"g,omitempty"`
}

// IsEmpty reports whether n has no content, which means that notifications may have
// been lost.
func (n Notification) IsEmpty() bool {
	return !n.Due && len(n.Dests)+len(n.Sent)+len(n.Freed)+len(n.Runs)+len(n.Cancel)+len(n.Watched)+len(n.Grown)+len(n.Ended) == 0
}

// A CancelRequest asks the member that works on a run to cancel it.
type CancelRequest struct {
	Agent claybot.AgentID `json:"a"`
	Run   claybot.RunID   `json:"r"`
	By    string          `json:"b"`
}

// A Growth is a piece of the text that a run is writing.
type Growth struct {
	Run  claybot.RunID `json:"r"`
	Node string        `json:"n,omitempty"` // of a graph
	Step int           `json:"s"`
	// Attempt is that of the member that sends it, at this step: consecutive pieces
	// have the same member and attempt.
	Attempt int    `json:"a,omitempty"`
	Offset  int    `json:"o"` // bytes before the piece; 0 starts the text again
	Text    string `json:"t"`
}

// Notifications carries notifications between the members.
type Notifications interface {
	// Notify sends a notification to all other members, soon and perhaps merged with
	// others. It does not block. A store that one process uses alone drops it.
	Notify(n Notification)
}
