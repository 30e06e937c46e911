// Package schedule is what cron and the heartbeat stand on: tasks that are files with
// settings in their front matter, commands that are asked before a task runs, and
// claims that let one member of a cluster do what only one may do.
//
// It guarantees that a gate command leaves no process behind, and that reading a file
// of a task never panics. Only these two connectors import it.
package schedule
