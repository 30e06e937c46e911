// Package postgres keeps everything that claybot stores in one PostgreSQL
// database, for any number of processes that share the work.
//
// It guarantees what package storage asks: a method returns nil only after its
// transaction has committed, one that returns an error has changed nothing, or
// something whose repetition is harmless, and no write of a lease, claim or node
// that has ended is accepted, however late it comes. Only cmd and tests may import it.
//
// # Statements
//
// The statements are those of package relational; this package brings them to the
// server: placeholders and a handful of words are translated once per statement.
// Every call of a method is a transaction of its own, READ COMMITTED, on a
// connection of a pool. What relational locks is what makes them safe:
// an agent's row comes first, FOR UPDATE, in every transaction that writes for it,
// so the order of an agent's messages, of its events and of its records is the
// order of their commits; a destination is locked by name while messages are added
// to it. Deadlocks and unique keys that two transactions wanted at once are
// tried again.
//
// A process that is frozen in the middle of a transaction would hold its locks for
// as long as it is frozen: the server ends transactions that are idle for
// idleInTransaction.
//
// # Clock
//
// Leases, beats and due times of all nodes are compared with each other, so all of
// them are told by the clock of the server: each node knows how far its own
// monotonic clock is from that, and measures again with every beat.
//
// # Hints
//
// After a commit, other nodes are told by NOTIFY that a look is worth while; hints of
// some milliseconds go together, outside of any transaction, because
// transactions that notify commit one after the other. Behind a pooler that gives
// connections away per transaction there is no LISTEN: then nodes only
// poll.
//
// # Versions
//
// Migrations run once, under an advisory lock, and take as long as they take; the open
// time-out is for connections. A migration may have several steps: each is done once,
// gives up a lock that it waits for after lockTime and tries again, and is not repeated
// when a later one is interrupted. Each migration says from which version on a binary
// can work with what it leaves behind, so that during a rolling upgrade old and new
// ones work side by side.
package postgres
