package slack

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// explainTime is how long it may take to attribute a socket that Slack counts to
// another cluster member: a member learns of a new one with its next lease renewal,
// and drops a lost one while Slack still counts its sockets. crowdEvery is the
// interval of the checks in that time.
const (
	explainTime = 30 * time.Second
	crowdEvery  = 5 * time.Second
)

// A crowd detects sockets of the app that are not claybot's own. Slack reports their
// number only when it opens a socket.
type crowd struct {
	nodes func() int              // cluster members that share the app; 0: unknown; nil: one
	told  *atomic.Pointer[string] // what is wrong with the number of sockets
	log   *slog.Logger

	sockets, own int       // when Slack counted
	most         int       // most members seen since then
	since        time.Time // Slack counted
	again        <-chan time.Time
}

// counted records how many sockets Slack counts, and how many of them belong to this
// member.
func (c *crowd) counted(sockets, own int) {
	c.sockets, c.own, c.most, c.since = sockets, own, 0, time.Now()
	c.look()
}

// look compares the number of sockets with claybot's own: those of this member, and
// at most two of each other one. It reports unexplained sockets after explainTime.
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
	if c.nodes != nil { // a member that joins may explain them
		c.again = time.After(crowdEvery)
		if nodes == 0 || time.Since(c.since) < explainTime {
			return
		}
	}
	if c.told.Load() == nil {
		c.log.Warn("another process may use this slack app: slack distributes messages among all open sockets",
			"sockets", c.sockets, "own", ours)
	}
	text := fmt.Sprintf("%d sockets use this Slack app, and at most %d are of this claybot: some messages go to another program, perhaps a second claybot; stop it, or make an app of your own", c.sockets, ours)
	c.told.Store(&text)
}
