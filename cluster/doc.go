// Package cluster is the membership of this process in its cluster, and what rests on it:
// claims. The members of a cluster are the processes that share a store.
//
// A process is a member for a *term*. A term has an id that no other term ever had, in no
// process; what the store grants to a member, it grants to a term. Renewals keep a term:
// each prolongs it by the ttl, and the next one follows after a fifth of the ttl, or of the
// default ttl where that is shorter.
//
//	        the first renewal succeeds           the store says that it has expired,
//	joining ────────────────────────▶ member ──┬─ or trust ends: no renewal since
//	   ▲                              │  ▲     │  (start of the last good one + ttl - margin)
//	   │                              └──┘     ▼
//	   │                        a good renewal  over ── everything that stands on the term
//	   │                                       │        stops, with a cause
//	   └────────── a new id ◀──────────────────┘
//
//	member, joining ── Run's context is done ──▶ left: the claims of the term are free at once
//
// Trust ends before the store's view of the term does, for three reasons. The window begins
// where an attempt began and not where it ended, because the store may have counted from
// any moment in between. A margin of a fifth of the ttl covers the time that work needs to
// stop, and a clock that runs a little slow. And the clock is the monotonic one of this
// process: a process that was stopped, or starved of CPU, finds out when it looks at the
// clock before it acts, whether or not its timers have fired; see Term.Trusted. Against
// what happens between the look and the act there are fencing tokens in the store, and
// against what leaves for a platform in that moment nothing; so look last.
//
// A store that does not answer ends nothing by itself: a renewal that fails is retried
// after a second, or after a tenth of a short ttl, until trust ends. Then the term is over
// even if the store would still know it: the process takes a new id, and retries until the
// store answers. It ends the old term in the store as well when that works, so that the
// others need not wait for it to expire.
//
// The store may end the term of another process before its ttl is over, when it has proof
// that the process is dead; Ended then renews at once. If that proof is wrong, the term is
// trusted until its next renewal, and the fencing tokens of the store reject its writes.
//
// A single machine is a cluster of one (Alone): its term never ends, it gets every claim at
// once, nothing changes elsewhere, and it writes nothing.
//
// The package must not import a store, a connector or agentsystem.
package cluster
