package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot/storage"
)

// Doubts returns what is wrong with the settings of the members that are present, by the id
// of the member to correct: a sentence for the operator. Members need names of their own,
// and the lease that most have, or the oldest where there is no majority: it is how long
// the others wait for a member that is lost.
func Doubts(all []storage.Member) map[string]string {
	there := slices.DeleteFunc(slices.Clone(all), func(n storage.Member) bool { return !n.There() })
	doubts := make(map[string]string)
	lease := common(there)
	for _, n := range there {
		if n.Lease() > 0 && n.Lease() != lease {
			doubts[n.ID] = fmt.Sprintf("its node.lease is %v, and that of others %v: give all members the same.", n.Lease(), lease)
		}
		if slices.ContainsFunc(there, func(o storage.Member) bool { return Namesakes(n, o) }) {
			doubts[n.ID] = fmt.Sprintf("another member is called %s as well: give each a node.name of its own.", n.Name) + joined(doubts[n.ID])
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

// Namesakes reports whether two members had one name at the same time. A process that
// replaces one that was killed is none: the other has not renewed since then, although it
// counts for some seconds more. Nor is one that joined again under a new id.
func Namesakes(a, b storage.Member) bool {
	if a.ID == b.ID || a.Name != b.Name || a.Started == b.Started {
		return false
	}
	if a.Started > b.Started {
		a, b = b, a
	}
	// By the clock of the store, as far as the skew of the member is known.
	return int64(a.Seen) > int64(b.Started)-b.Skew+int64(sameTime/time.Millisecond)
}

// sameTime is by how much two clocks may differ that count as the same.
const sameTime = time.Second

// common returns the lease that most members have; of several such, that of the oldest.
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

// doubt logs, once for each, the other members whose settings conflict with this one's. It
// is called after each renewal. With the first one of a term the skew of this member is not
// known, and so no names are compared.
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
			m.cfg.Log.Warn("another member has a different node.lease; give all members the same",
				"lease", self.Lease(), "other", o.Name, "its_lease", o.Lease())
		}
		if !joined && Namesakes(self, o) && m.first("name/"+o.ID) {
			m.cfg.Log.Warn("another member has the same node.name; give each a name of its own", "name", o.Name, "its_id", o.ID)
		}
	}
}

// first reports whether something was not logged before.
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
