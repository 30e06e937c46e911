// Package claybot holds the nouns that every part of claybot shares: who an
// agent is, what reaches it, what it did and what it says back.
//
// The package does no I/O and imports the standard library only. Its types are
// plain values; their JSON forms are the ones on disk and on the wire, so a
// field's JSON name never changes once released. Everything in the tree may
// import it; it imports nothing of the tree.
//
// One message on its way:
//
//	Connector ──Message──▶ inbox ──batch──▶ Run ──Records──▶ history
//	    ▲                                    │
//	    └────────── outbox ◀──Outgoing───────┘
package claybot
