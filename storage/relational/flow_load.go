package relational

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Counters of the unfinished runs of workflows are named flow/NAME/open/SLOT and
// flow/NAME/waiting/SLOT. They change in the transactions that save the inboxes of their
// agents, so they are exact after a crash and for all members. Agents are spread over slots,
// so that transactions of members that share a store seldom wait for each other.
const (
	countFlow    = "flow/"
	countOpen    = "/open/"
	countPaused  = "/waiting/"
	flowSlots    = 8
	flowNearness = 64 // to a limit; see flowRoom
)

// flowOf returns the name of the workflow of an agent, by its descriptor; empty for an agent of none.
func flowOf(descriptor string) string {
	var d claybot.Descriptor
	if descriptor == "" || unmarshal(descriptor, &d) != nil || d.Type != claybot.AgentFlow {
		return ""
	}
	name, _, _ := strings.Cut(d.Name, " ") // of a dry run, a word about it follows
	return name
}

// flowLoad returns what the agent adds to the load of its workflow.
func (a *inboxRow) flowLoad() (l storage.FlowLoad) {
	if a.flow == "" {
		return l
	}
	if a.firstN > 0 {
		l.Open = int(a.waiting)
	}
	switch {
	case a.run == "":
	case a.resumeAt != never:
		l.Waiting++
	default:
		l.Open++
	}
	return l
}

// countFlow adds what has changed of the load of a workflow since a was loaded or saved.
func (a *inboxRow) countFlow(c *Conn, now storage.FlowLoad) {
	if a.flow == "" || now == a.counted {
		return
	}
	slot := 0
	if !c.dialect.Alone {
		h := fnv.New32a()
		_, _ = h.Write([]byte(a.id)) // a hash takes everything
		slot = int(h.Sum32() % flowSlots)
	}
	c.flows[fmt.Sprint(countFlow, a.flow, countOpen, slot)] += int64(now.Open - a.counted.Open)
	c.flows[fmt.Sprint(countFlow, a.flow, countPaused, slot)] += int64(now.Waiting - a.counted.Waiting)
	a.counted = now
}

// FlowLoad implements storage.StatsReader.
func (db upkeep) FlowLoad(ctx context.Context, flow string) (storage.FlowLoad, error) {
	var l storage.FlowLoad
	err := db.read(ctx, func(c *Conn) (err error) {
		l, err = flowLoad(c, flow)
		return err
	})
	return result(l, err, "count the runs of workflow %s", flow)
}

// flowLoad counts the unfinished runs of a workflow, with what the transaction has changed.
func flowLoad(c *Conn, flow string) (l storage.FlowLoad, err error) {
	var names []string
	add := func(name string, n int) {
		if strings.HasPrefix(name, countFlow+flow+countOpen) {
			l.Open += n
		} else {
			l.Waiting += n
		}
	}
	for slot := range flowSlots {
		for _, kind := range []string{countOpen, countPaused} {
			name := fmt.Sprint(countFlow, flow, kind, slot)
			names = append(names, name)
			add(name, int(c.flows[name]))
		}
	}
	list, err := json.Marshal(names)
	if err != nil {
		return l, err
	}
	err = c.each("SELECT name, n FROM counters WHERE name IN (SELECT value FROM json_each(?))",
		func(r Row) error { add(r.Str(0), int(r.Int(1))); return nil }, list)
	return l, err
}

// roomFor returns why a message starts no run of a workflow; empty where there is room for one more.
func roomFor(c *Conn, a *inboxRow, p storage.Posting) (skipped string, err error) {
	switch room, err := flowRoom(c, a, *p.Room); {
	case err != nil || room:
		return "", err
	case p.Refuse:
		return "", storage.ErrFlowFull
	}
	return storage.SkippedFlowFull, nil
}

// flowRoom reports whether the workflow of a has room for one more run. Near a limit, transactions
// of members that share the store count one after another.
func flowRoom(c *Conn, a *inboxRow, room storage.FlowLoad) (bool, error) {
	if a.flow == "" {
		return true, nil
	}
	l, err := flowLoad(c, a.flow)
	if err != nil {
		return false, err
	}
	near := l.Open+flowNearness >= room.Open || l.Waiting+flowNearness >= room.Waiting
	if near && c.dialect.LockName != "" {
		if err := c.lock("flow/" + a.flow); err != nil {
			return false, err
		}
		if l, err = flowLoad(c, a.flow); err != nil {
			return false, err
		}
	}
	return l.Open < room.Open && l.Waiting < room.Waiting, nil
}
