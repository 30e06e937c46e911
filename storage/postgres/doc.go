// Package postgres keeps everything that claybot stores in one PostgreSQL
// database, for any number of processes that share the work.
//
// It guarantees what package storage requires: a method returns nil only after its
// transaction has committed; a method that returns an error has changed nothing, or
// only what is safe to repeat; and the store rejects every write of a lease, claim or
// member that has ended, however late it arrives. Only cmd and tests may import it.
//
// # Statements
//
// The statements are those of package relational; this package translates
// placeholders and a few keywords to PostgreSQL's dialect, once per statement.
// Every method call is one READ COMMITTED transaction on a pooled connection.
// The locks that relational takes make them safe: every transaction that writes for
// an agent first locks the agent's row FOR UPDATE, so an agent's messages, events and
// records are in commit order; adding messages to a destination locks it by name.
// Deadlocks and unique violations between concurrent transactions are retried.
//
// A process that is frozen in the middle of a transaction would hold its locks; the
// server ends transactions that are idle for idleInTransaction.
//
// # Clock
//
// Leases and due times are compared across members, so all of them use the server's
// clock: each member knows the offset of its own monotonic clock and measures it again
// with every renewal.
//
// # Notifications
//
// After a commit, NOTIFY wakes the other members. Notifications of a few milliseconds
// are combined and sent outside of any transaction, because transactions that notify
// commit one after the other. LISTEN does not work behind a pooler that assigns
// connections per transaction; members then only poll.
//
// # Sessions
//
// The connection that listens holds an advisory lock, which the server releases when the
// process dies. The other members see that, and end the membership before its lease; see
// presence for what else must hold.
//
// # Versions
//
// Migrations run once, under an advisory lock, without a time limit; the open timeout
// covers connections only. A migration may have several steps. Each step runs once,
// stops waiting for a lock after lockTime and retries, and is not repeated when a later
// step is interrupted. Each migration names the oldest version that can work with the
// new schema, so old and new binaries run side by side during a rolling upgrade.
package postgres
