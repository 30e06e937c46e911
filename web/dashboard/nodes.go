package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/storage"
)

// skewNoted is how far a clock may be off before the page says so.
const skewNoted = time.Second

// A nodesView is who shares the store.
type nodesView struct {
	viewer
	Tone, Verdict string
	Nodes         []nodeView
}

// A nodeView is one of them.
type nodeView struct {
	storage.Member
	Tone, Words string
	Load        int    // percent
	Clock       string // how far it is off
	ClockTone   string
	Claims      []string // in words
	Doubt       string   // what is wrong with how it is set up beside the others
}

func (b *healthPages) nodes(r *http.Request) (any, error) {
	all, err := b.system.Members(r.Context())
	if err != nil {
		return nil, err
	}
	return viewNodes(viewerOf(r), all), nil
}

func viewNodes(who viewer, all []storage.Member) nodesView {
	v := nodesView{viewer: who, Tone: "good"}
	there, versions := 0, make(map[string]bool)
	doubts := cluster.Doubts(all)
	twice, off, lease, leases := "", "", time.Duration(0), false
	for _, n := range all {
		x := viewNode(n)
		x.Doubt = doubts[n.ID]
		v.Nodes = append(v.Nodes, x)
		if !n.There() {
			continue
		}
		there++
		versions[n.Version] = true
		if slices.ContainsFunc(all, func(o storage.Member) bool { return o.There() && cluster.Namesakes(n, o) }) {
			twice = n.Name
		}
		leases = leases || n.Lease() > 0 && lease > 0 && n.Lease() != lease
		lease = max(lease, n.Lease())
		if x.ClockTone == "warn" {
			off = n.Name
		}
	}
	v.Verdict = plural(there, "node is there.", "nodes are there.")
	var more []string
	if twice != "" {
		more = append(more, "Several are called "+twice+": give each a node.name of its own.")
	}
	if leases {
		more = append(more, "They have different leases: give all the same node.lease.")
	}
	if len(versions) > 1 {
		more = append(more, "They run different versions: finish the upgrade.")
	}
	if off != "" {
		more = append(more, "The clock of "+off+" is off: synchronise it with NTP.")
	}
	if len(more) > 0 {
		v.Tone, v.Verdict = "warn", v.Verdict+" "+strings.Join(more, " ")
	}
	if there == 0 { // whoever answers is one of them
		v.Tone, v.Verdict = "bad", "No node is known to be there: the beat of this one is not kept."
	}
	return v
}

func viewNode(n storage.Member) nodeView {
	v := nodeView{Member: n}
	switch n.State {
	case storage.MemberLive:
		v.Words, v.Tone = "works", "good"
	case storage.MemberDraining:
		v.Words, v.Tone = "is leaving", "busy"
	case storage.MemberGone:
		v.Words, v.Tone = "has left", "calm"
	case storage.MemberLost:
		v.Words, v.Tone = "was lost", "bad"
	default:
		v.Words, v.Tone = string(n.State), "calm"
	}
	if n.MaxRuns > 0 {
		v.Load = min(100, n.Working*100/n.MaxRuns)
	}
	v.Clock, v.ClockTone = "as the database's", "calm"
	switch skew := time.Duration(n.Skew) * time.Millisecond; {
	case skew >= skewNoted:
		v.Clock, v.ClockTone = fmt.Sprintf("%v ahead", skew.Round(100*time.Millisecond)), "warn"
	case skew <= -skewNoted:
		v.Clock, v.ClockTone = fmt.Sprintf("%v behind", -skew.Round(100*time.Millisecond)), "warn"
	}
	v.Claims = n.Claims
	return v
}
