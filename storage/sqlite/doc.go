// Package sqlite stores everything that package storage names, except agents and their
// histories, in one SQLite file, claybot.db, for one process.
//
// It guarantees what package storage requires: a method returns nil only after the
// commit that carries its effect was synced, and a method that returns an error has
// changed nothing. Only cmd and tests may import it; the caller must hold the lock of
// the data directory, because Open releases every lease.
//
// Tables and statements are those of package relational, which documents them; the
// schema is in migrations. This package manages the file, the one connection that
// writes, and those that read.
//
// # Damage
//
// Every page of the file ends in a checksum (sums.go). Reading a page with a wrong
// checksum fails: the call returns a storage.Fault of the whole store, its transaction
// is rolled back, Config.Damaged is called once, and all later calls fail. Open rejects a
// damaged file of up to 64 MiB; Check reads one of any size; Backup makes verified
// copies.
//
// # Group commit
//
// One goroutine owns the only connection that writes. It runs all queued calls in one
// transaction and answers them after its commit. It never waits for more calls: while
// one commit syncs, the next batch gathers. A call that is rejected (a lost lease, a
// duplicate) has written nothing and costs the others nothing; if one fails after it
// wrote, the batch is rolled back and its calls run again one by one. A call whose
// context ends in the queue is withdrawn; once it runs, its caller waits for the commit,
// so an error always means that nothing changed.
//
// # Reads
//
// Reads use up to two connections of their own and see committed data only; reports,
// which may read very many rows, use a third one. A read ends when its context does.
//
// # One process
//
// There is one member. It acquires every claim without a write, locks no rows, and drops
// notifications to other members. Open releases the leases of the last process and marks
// its unfinished sends as ambiguous.
package sqlite
