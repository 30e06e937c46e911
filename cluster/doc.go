// Package cluster is the membership of this process among those that share a
// store, and what rests on it: claims.
//
// A process is a member for a *term*. A term has an id that no other term ever
// had, in no process; whatever the store gives to a node, it gives to a term. A
// term is kept by beats: each prolongs it by the ttl, and one is made every third
// of it, or of the default ttl where that is shorter.
//
//	        the first beat is good               the store says that it has run out,
//	joining ────────────────────────▶ member ──┬─ or trust ends: no good beat since
//	   ▲                              │  ▲     │  (start of the last good one + ttl - margin)
//	   │                              └──┘     ▼
//	   │                         a good beat   over ─── everything that stands on the term
//	   │                                       │        stops, with a cause
//	   └────────── a new id ◀──────────────────┘
//
//	member, joining ── Run's context is done ──▶ left: the claims of the term are free at once
//
// Trust ends before the store's view of the term does, for three reasons. The
// window is anchored where an attempt began and not where it ended, because the
// store may have counted from any moment in between. A margin of a fifth of the
// ttl covers the time that work needs to stop, and a clock that runs a little
// slow. And the clock is the monotonic one of this process: a process that was
// stopped, or starved of CPU, finds out by looking at the clock before it acts,
// whether or not its timers have fired. That is what Term.Trusted is for. Against
// what happens between the look and the act there are fencing tokens in the store,
// and against what leaves for a platform in that moment nothing; so look last.
//
// A store that does not answer ends nothing by itself: a beat that fails is made
// again after a second, or after a tenth of a short ttl, until trust ends. Then
// the term is over even if the store would still know it: the process takes a new
// id, and asks again and again until the store answers. The old term is ended in
// the store as well when that works, so that nobody waits for it to run out.
//
// A process that has a store for itself (Alone) is in one term without end, gets
// every claim at once, and writes nothing.
//
// The package must not import a store, a connector or agentsystem.
package cluster
