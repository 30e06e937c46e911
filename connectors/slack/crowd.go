package slack

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// explainTime is how long it may take until a socket that Slack counts is known to be
// that of another node: a node learns of one that has come only by its next beat, and
// counts one that was lost no more while Slack still does. crowdEvery is the pause
// between two looks meanwhile.
const (
	explainTime = 30 * time.Second
	crowdEvery  = 5 * time.Second
)

// A crowd finds out whether others have sockets of the app. Slack tells of their number
// with each socket that it opens, and never in between.
type crowd struct {
	nodes func() int              // that use the app together; 0: not known now; nil is one
	told  *atomic.Pointer[string] // what is wrong with the number of sockets
	log   *slog.Logger

	sockets, own int       // when Slack counted
	most         int       // nodes, of those seen since then
	since        time.Time // Slack counted
	again        <-chan time.Time
}

// counted notes how many sockets Slack counts, and how many of them are this node's.
func (c *crowd) counted(sockets, own int) {
	c.sockets, c.own, c.most, c.since = sockets, own, 0, time.Now()
	c.look()
}

// look compares the sockets with those that are claybot's own: of this node, and at
// most two of each other one. Those that the nodes do not explain are named when time
// did not do it either.
func (c *crowd) look() {
	c.again = nil
	nodes := 1
	if c.nodes != nil {
		nodes = c.nodes()
	}
	c.most = max(c.most, nodes)
	ours := c.own + 2*max(0, c.most-1)
	if c.sockets <= ours {
		c.told.Store(nil)
		return
	}
	if c.nodes != nil { // a node that comes may explain them yet
		c.again = time.After(crowdEvery)
		if nodes == 0 || time.Since(c.since) < explainTime {
			return
		}
	}
	if c.told.Load() == nil {
		c.log.Warn("another process may use this slack app: messages are shared out between its sockets",
			"sockets", c.sockets, "own", ours)
	}
	text := fmt.Sprintf("%d sockets use this Slack app, and at most %d are of this claybot: some messages go to another program, perhaps a second claybot; stop it, or make an app of your own", c.sockets, ours)
	c.told.Store(&text)
}
