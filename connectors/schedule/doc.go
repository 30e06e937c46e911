// Package schedule is the scheduler under cron and the heartbeat, whose tasks are files
// of a storage.Tree with settings in their front matter.
//
// The Scheduler has the loop: it looks at the files every Config.Poll, takes due jobs
// from a queue, runs them in goroutines, pauses those that fail, posts messages to one
// agent in order, holds claims so that one cluster member asks a gate, and reports
// health and problems of files. cron and the heartbeat define the format of files, the
// next instant, and the message.
//
// It guarantees that a job is never run concurrently with itself, that Run returns
// after all goroutines it started, that a gate command leaves no process behind, and
// that reading a file of a task never panics. Only these two connectors import it.
package schedule
