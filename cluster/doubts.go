package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot/storage"
)

// Doubts are what is wrong with how the nodes that are there are set up, by the id of
// each node that has something to mend: a sentence for whoever runs them. A node whose
// name another one has, and one whose lease differs from that of most (of the oldest
// node where there is no most), which is what others wait for when it is lost.
func Doubts(all []storage.Member) map[string]string {
	there := slices.DeleteFunc(slices.Clone(all), func(n storage.Member) bool { return !n.There() })
	doubts := make(map[string]string)
	lease := common(there)
	for _, n := range there {
		if n.Lease() > 0 && n.Lease() != lease {
			doubts[n.ID] = fmt.Sprintf("its node.lease is %v, and that of others %v: give all nodes the same.", n.Lease(), lease)
		}
		if slices.ContainsFunc(there, func(o storage.Member) bool { return Namesakes(n, o) }) {
			doubts[n.ID] = fmt.Sprintf("another node is called %s as well: give each a node.name of its own.", n.Name) + joined(doubts[n.ID])
		}
	}
	return doubts
}

func joined(more string) string {
	if more == "" {
		return ""
	}
	return " And " + more
}

// Namesakes reports whether two nodes have one name and were there at the same time. A
// process that was started in the place of one which was killed is none: the other has
// given no beat since then, although it counts for some seconds more. Nor is one that
// joined again under a new id.
func Namesakes(a, b storage.Member) bool {
	if a.ID == b.ID || a.Name != b.Name || a.Started == b.Started {
		return false
	}
	if a.Started > b.Started {
		a, b = b, a
	}
	// By the clock of the store, as far as that of the node is known to be off.
	return int64(a.Seen) > int64(b.Started)-b.Skew+int64(sameTime/time.Millisecond)
}

// sameTime is how far off two clocks may be that are taken for the same.
const sameTime = time.Second

// common is the lease that most nodes have; of several such, that of the oldest node.
func common(there []storage.Member) time.Duration {
	slices.SortStableFunc(there, func(a, b storage.Member) int { return int(a.Started - b.Started) })
	count := make(map[time.Duration]int)
	for _, n := range there {
		count[n.Lease()]++
	}
	best := time.Duration(0)
	for _, n := range there {
		if d := n.Lease(); d > 0 && count[d] > count[best] || best == 0 {
			best = d
		}
	}
	return best
}

// doubt tells the log, once for each, of other nodes that are not set up as this one
// is. It is called after each good beat. With the first one of a term the skew of this
// node is not known, and so no name is compared.
func (m *Membership) doubt(id string, alive []storage.Member, joined bool) {
	i := slices.IndexFunc(alive, func(n storage.Member) bool { return n.ID == id })
	if i < 0 {
		return
	}
	self := alive[i]
	for _, o := range alive {
		if o.ID == id || o.Started == self.Started && o.Name == self.Name { // this process, before it joined again
			continue
		}
		if o.Lease() > 0 && o.Lease() != self.Lease() && m.first(fmt.Sprintf("lease/%v/%s", o.Lease(), o.Name)) {
			m.cfg.Log.Warn("another node has a different node.lease; give all nodes the same",
				"lease", self.Lease(), "other", o.Name, "its_lease", o.Lease())
		}
		if !joined && Namesakes(self, o) && m.first("name/"+o.ID) {
			m.cfg.Log.Warn("another node has the same node.name; give each a name of its own", "name", o.Name, "its_id", o.ID)
		}
	}
}

// first reports whether something was not told before.
func (m *Membership) first(what string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.doubted[what]
	if m.doubted == nil {
		m.doubted = make(map[string]bool)
	}
	m.doubted[what] = true
	return !known
}
