// Package cron is the connector that wakes agents at times. Each task is a
// folder below Config.Dir:
//
//	<slug>/TASK.md     settings between two lines of three dashes, then the prompt
//	<slug>/MEMORY.md   what the task's agent wants to know the next time
//	<slug>/files/      where its gate command runs
//	.done/<slug>-<time>  tasks that are over
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
// # Goroutines
//
// One loop looks at the files, at most every two seconds and by stat alone, and
// takes due tasks from a heap. Workers post them, several at once so that their
// commits share a sync; a task with a gate command has a goroutine of its own for
// as long as its gate runs. While a task is fired it is not in the heap, so a task
// is fired by one goroutine at a time. Run waits for all of them.
//
// The package must not import a store, an agent system or another connector.
package cron
