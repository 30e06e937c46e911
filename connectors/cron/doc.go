// Package cron is the connector that wakes agents at scheduled times. Each task is a
// folder of Config.Tree, which is a directory that users edit or a database that
// cluster members share:
//
//	cron/<slug>/TASK.md     settings between two lines of three dashes, then the prompt
//	cron/<slug>/MEMORY.md   what the task's agent wants to remember
//	cron/<slug>/facts.json  since when its instants count, and pauses; a data directory
//	                        keeps these in the mark "cron"
//	cron/.done/<slug>-<time>  tasks that are over
//
// It guarantees that an instant of a task runs at most once, despite crashes and
// clock changes: the id of a run's message is derived from the task and the instant,
// and the message store enters the instant into the ledger in the same commit. The
// task's misfire rule decides once about missed instants, starting from the newest
// instant in the ledger.
//
// # Time
//
// Instants are whole seconds. Those of a five-field schedule are wall-clock
// times: one that the spring change leaves out runs at the first moment after
// the gap, and one that the autumn change repeats runs at its first occurrence
// only. An `every` counts from the moment the task was first seen or enabled.
// No step adds up intervals: each one reads the wall clock.
//
// # Members
//
// A single process is a cluster of one. There is no leader: every member schedules
// every task. These rules make each instant run once:
//
//   - A message has the id of its task and instant, and the ledger one row for it.
//     The member that comes second finds the row (past.taken) and adopts what it says.
//   - The instants are the same on all members: those of an `every` count from a moment
//     in facts.json, which the member that first sees a change of TASK.md decides and the
//     others adopt, because it is written by compare-and-set. Pauses are there, too.
//   - Before a member gives up an instant as missed, or runs one late, it reads in the
//     ledger what others did while it slept.
//   - The agent system reports the end of a run on the member that did it. The others
//     read the ledger every followEvery, while a task waits for an end from which
//     something follows: another attempt, whose message has an id of its own, or the
//     move of its folder to .done, which happens once, and only to the TASK.md that
//     was seen.
//   - The member that has a claim on a gate asks it; the others wait for its
//     row, and give nothing up meanwhile.
//   - Notices have keys made of the task and the instant. Each member logs problems of
//     files.
//
// A change made on one member counts on the others within two looks: storage.LookEvery
// and Config.Poll; until then an instant may still run as before.
//
// # Parts
//
// schedule.Scheduler has the loop, the queue and the lock. table has the tasks in
// memory as their files say, facts their durable state, runner handles due instants
// and posts them, and loop does the rest. Cron is the API for users and agents.
//
// The package must not import a store, an agent system or another connector.
package cron
