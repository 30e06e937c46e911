package web

import (
	"context"

	"github.com/claybot/claybot/nodes"
)

// Nodes shows what is configured, and stops, starts and tests it.
type Nodes interface {
	// Nodes lists the nodes by kind and name.
	Nodes(ctx context.Context) ([]nodes.View, error)
	// CallNode stops, starts, restarts or tests a node. What is stopped stays so after a restart and
	// in all members, until it is started. A call that a node does not have is a Refusal.
	CallNode(ctx context.Context, k nodes.Key, call, by string) (NodeDone, error)
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
