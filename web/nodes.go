package web

import (
	"context"
	"time"

	"github.com/claybot/claybot/nodes"
)

// Nodes shows what is configured, and stops, starts and tests it.
type Nodes interface {
	// Nodes lists the nodes by kind and name.
	Nodes(ctx context.Context) ([]nodes.View, error)
	// CallNode stops, starts, restarts or tests a node. What is stopped stays so after a restart and
	// in all members, until it is started. A call that a node does not have is a Refusal.
	CallNode(ctx context.Context, k nodes.Key, call, by string) (NodeDone, error)
	// NodeTraffic lists the links between nodes on which messages flow now, or did a moment ago, at this member.
	NodeTraffic(ctx context.Context) ([]NodeLink, error)
	// NodeLog returns the last lines of the log of this member about a node, the newest first, without secrets.
	NodeLog(ctx context.Context, k nodes.Key) ([]NodeLine, error)
}

// A NodeLink leads from a node to another.
type NodeLink struct{ From, To nodes.Key }

// A NodeLine is a line of the log about a node.
type NodeLine struct {
	At    time.Time // the last time
	Level string    // debug, info, warn or error
	Text  string
	Times int // that it was logged
}

// A NodeList is the nodes of the installation.
type NodeList struct {
	Nodes []nodes.View `json:"nodes"`
}

// A NodeDone is the result of a call.
type NodeDone struct {
	OK   bool   `json:"ok" doc:"false: the test failed."`
	Text string `json:"text" doc:"What holds now, or what the test found, in words."`
}
