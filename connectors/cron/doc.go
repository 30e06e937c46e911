// Package cron is the connector that wakes agents at times. Each task is a
// folder of Config.Tree, which is a directory that people edit or a database that
// several nodes share:
//
//	cron/<slug>/TASK.md     settings between two lines of three dashes, then the prompt
//	cron/<slug>/MEMORY.md   what the task's agent wants to know the next time
//	cron/<slug>/facts.json  since when its instants count, and pauses; a data directory
//	                        keeps these in the mark "cron"
//	cron/.done/<slug>-<time>  tasks that are over
//
// It guarantees that an instant of a task fires at most once, whatever happens
// to the process or to the clock: the message of a firing has an id made of the
// task and the instant, and the message store enters it into the ledger with the
// same commit. What was not fired in time is decided by the task's misfire
// policy, once, from the newest instant the ledger knows.
//
// # Time
//
// Instants are whole seconds. Those of a five-field schedule are wall-clock
// times: one that the spring change leaves out fires at the first moment after
// the gap, and one that the autumn change repeats fires at its first occurrence
// only. An `every` counts from the moment the task was first seen or enabled.
// Nothing adds intervals: each step asks the wall clock anew.
//
// # Nodes
//
// A single process is a cluster of one. Every node fires every task: none leads, so
// none is missed. What keeps it to once:
//
//   - A message has the id of its task and instant, and the ledger one row for it.
//     Whoever comes second finds the row (past.taken) and takes over what it says.
//   - The instants are the same on all nodes: those of an `every` count from a moment
//     in facts.json, which the node that first sees a change of TASK.md decides and the
//     others take over, because it is written by compare-and-set. Pauses are there, too.
//   - Before a node gives up an instant as missed, or runs one late, it reads in the
//     ledger what others did while it slept.
//   - The agent system tells the end of a run on the node that did it. The others ask
//     the ledger every followEvery, while a task waits for an end from which
//     something follows: another attempt, whose message has an id of its own, or the
//     move of its folder to .done, which happens once, and only to the TASK.md that
//     was seen.
//   - A gate is asked by the node that has a claim on it; the others wait for its
//     row, and give nothing up meanwhile.
//   - Notices have keys made of the task and the instant. Problems of files are in
//     the log of each node.
//
// A change made on one node counts on the others within two looks: storage.LookEvery
// and Config.Poll; until then an instant may still fire as before.
//
// # Goroutines
//
// One loop looks at the files, at most every two seconds, and
// takes due tasks from a heap. Workers post them, several at once so that their
// commits share a sync; a task with a gate command has a goroutine of its own for
// as long as its gate runs. While a task is fired it is not in the heap, so a task
// is fired by one goroutine at a time. Run waits for all of them.
//
// The package must not import a store, an agent system or another connector.
package cron
