// Package schedule is the scheduler under cron and the heartbeat, whose tasks are files
// of a storage.Tree with settings in their front matter.
//
// The Scheduler has the loop: it looks at the files every Config.Poll, takes due jobs
// from a queue, does them in goroutines, pauses those that fail, posts messages to one
// agent in order, holds claims so that one cluster member asks a gate, and reports
// health and problems of files. cron and the heartbeat say what a file means, when the
// next instant is, and what the message says.
//
// It guarantees that one goroutine at a time does a job, that Run returns after all it
// has started, that a gate command leaves no process behind, and that reading a file
// of a task never panics. Only these two connectors import it.
package schedule
