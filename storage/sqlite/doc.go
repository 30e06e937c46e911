// Package sqlite keeps everything that package storage names but agents and their
// histories in one SQLite file, claybot.db, for one process.
//
// It guarantees what package storage asks: a method returns nil only after the
// commit that carries its effect was synced, and one that returns an error has
// changed nothing. Only cmd and tests may import it; whoever opens the file
// holds the lock of the data directory, because Open takes every lease back.
//
// Tables and statements are those of package relational, which says what is in them;
// the schema is in migrations. This package is the file, the one connection that
// writes, and those that read.
//
// # Damage
//
// Every page of the file ends in a checksum (sums.go). A page whose checksum is wrong is
// not read: the call fails with a storage.Fault of the whole store, nothing of its
// transaction is committed, Config.Damaged is called once, and all later calls are
// refused. Open refuses a damaged file of up to 64 MiB; Check reads one of any size;
// Backup makes verified copies.
//
// # Group commit
//
// One goroutine owns the only connection that writes. It takes whatever calls
// have queued up, runs them in one transaction, and answers all of them after
// its commit. Nothing ever waits for company: while one commit syncs, the next
// batch gathers. A call that refuses (a lost lease, a repeat) has written
// nothing, so it costs the others nothing; when one fails after it wrote, the
// batch is rolled back and its calls run again one by one. A call whose context
// ends while it queues is withdrawn; once it runs, its caller waits for the
// commit, so an error always means that nothing changed.
//
// # Reads
//
// Reads use up to two connections of their own and see committed data only;
// reports, which may have to read very many rows, use a third one. A read ends
// when its context does.
//
// # One process
//
// There is one node. It has every claim at once and nothing of it is written, no row
// is ever locked, and hints for other nodes are dropped. What the last process
// held when it ended, Open takes back: leases, and sends, with an unknown outcome.
package sqlite
