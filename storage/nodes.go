package storage

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/claybot/claybot"
)

// ErrHeld: another node has the claim that was asked for.
var ErrHeld = errors.New("another node has it")

// Nodes keeps which processes share the store. Each has a lease of its own, its
// beat; what it claims and holds ends with that.
type Nodes interface {
	// Beat says that a node is there for another ttl, and returns all nodes that
	// are there now, itself included, by id. ErrLeaseLost when the beat of the node
	// has run out or the node has left: its id never comes back.
	Beat(ctx context.Context, n Node, ttl time.Duration) ([]Node, error)
	// Leave ends the beat of a node and all its claims. Twice is once.
	Leave(ctx context.Context, id string) error
	// Nodes lists all nodes of the last day, those that are gone included, the
	// newest first.
	Nodes(ctx context.Context) ([]Node, error)
	// HeldBy is the id of the node that has the lease of an agent, and is there, at
	// this moment; empty for nobody, and for an agent that is not known.
	HeldBy(ctx context.Context, id claybot.AgentID) (node string, err error)
}

// A Node is one process that shares the store.
type Node struct {
	ID      string       `json:"id"`             // new for every process
	Name    string       `json:"name"`           // what an operator calls it; stays across restarts
	Addr    string       `json:"addr,omitempty"` // of its web page
	Version string       `json:"version"`
	Started claybot.Time `json:"startedAt"`
	Seen    claybot.Time `json:"seenAt"`                 // its last beat, by the clock of the store
	Until   claybot.Time `json:"until"`                  // the end of its beat; 0 when it has left
	State   NodeState    `json:"state,omitempty"`        // as Nodes finds it
	Working int          `json:"working"`                // agents that it works on
	MaxRuns int          `json:"maxRuns"`                // at most
	Skew    int64        `json:"skewMs"`                 // milliseconds that its clock is ahead of the store's
	Claims  []string     `json:"claims,omitempty"`       // but for those of destinations
	Dests   int          `json:"destinations,omitempty"` // that it has claimed
}

// Lease is how long a beat of the node counts, which it sets itself; 0 when it is not
// known.
func (n Node) Lease() time.Duration {
	return time.Duration(max(0, n.Until-n.Seen)) * time.Millisecond
}

// There reports whether the node is there, for some time at least.
func (n Node) There() bool { return n.State == NodeLive || n.State == NodeDraining }

// A NodeState is whether a node is there.
type NodeState string

// The states of nodes.
const (
	NodeLive     NodeState = "live"
	NodeDraining NodeState = "draining" // it takes no more work and leaves soon
	NodeGone     NodeState = "gone"     // it has left in order
	NodeLost     NodeState = "lost"     // its beat has run out
)

// Claims divides among nodes what only one may do at a time: to poll for a bot, to
// send to a destination. A claim lasts until it is yielded, or until the beat
// of its node has run out. A store that one process uses alone gives every claim at
// once and writes nothing.
type Claims interface {
	// Claim gives name to a node. The error is ErrHeld while another node
	// has it. A node that has it gets it anew, with a larger token. With the claim of a destination (DestClaim), what another
	// node had under way there becomes ambiguous.
	Claim(ctx context.Context, node, name string) (Claim, error)
	// Yield ends a claim; one that is lost already changes nothing.
	Yield(ctx context.Context, c Claim) error
	// Holder is the id of the node that has a claim; empty for nobody.
	Holder(ctx context.Context, name string) (node string, err error)
}

// A Claim is the right of one node to something. Token is larger for every new
// holder; a write with an older one fails with ErrLeaseLost.
type Claim struct {
	Name  string
	Node  string
	Token int64
}

// DestClaim is the name of the claim of whoever sends to a destination
// (Route.Dest).
func DestClaim(dest string) string { return destClaims + dest }

const destClaims = "out/"

// ClaimedDest returns the destination of a claim that DestClaim has named; false for
// other claims.
func ClaimedDest(claim string) (dest string, ok bool) { return strings.CutPrefix(claim, destClaims) }

// A Hint tells other nodes that a look into the store is worth while. A hint that
// is lost costs time and nothing else: whoever depends on one also looks by himself
// within a second or two.
type Hint struct {
	Node   string          `json:"n,omitempty"` // that gives it
	Due    bool            `json:"d,omitempty"` // an agent became due
	Dests  []string        `json:"o,omitempty"` // have something to send
	Sent   []string        `json:"s,omitempty"` // destinations that were sent to
	Freed  []string        `json:"f,omitempty"` // claims that were yielded
	Runs   []claybot.RunID `json:"r,omitempty"` // have new events, or their ids lead elsewhere
	Cancel []CancelHint    `json:"c,omitempty"`
	// Watched are runs whose growing text is read on the node; the node that
	// has such a run tells Grown for some seconds then.
	Watched []claybot.RunID `json:"w,omitempty"`
	Grown   []Growth        `json:"g,omitempty"`
}

// IsEmpty reports whether h has no content: hints may have been lost.
func (h Hint) IsEmpty() bool {
	return !h.Due && len(h.Dests)+len(h.Sent)+len(h.Freed)+len(h.Runs)+len(h.Cancel)+len(h.Watched)+len(h.Grown) == 0
}

// A CancelHint says that somebody wants a run to end.
type CancelHint struct {
	Agent claybot.AgentID `json:"a"`
	Run   claybot.RunID   `json:"r"`
	By    string          `json:"b"`
}

// A Growth is a piece of the text that a run is writing.
type Growth struct {
	Run  claybot.RunID `json:"r"`
	Node string        `json:"n,omitempty"` // of a graph
	Step int           `json:"s"`
	// Attempt is that of the node which tells it, at this step: what follows on a
	// piece is of the same node and attempt.
	Attempt int    `json:"a,omitempty"`
	Offset  int    `json:"o"` // bytes before the piece; 0 begins the text anew
	Text    string `json:"t"`
}

// Hints carries hints between the nodes.
type Hints interface {
	// Tell passes a hint on to all other nodes, soon and perhaps together with
	// others. It does not block. A store that one process uses alone drops it.
	Tell(h Hint)
}
