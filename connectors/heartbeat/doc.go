// Package heartbeat is the connector that wakes one agent at regular intervals, to do
// small recurring tasks. Each of them is a file of Config.Tree, which is a directory
// that users edit or a database that cluster members share:
//
//	heartbeat/<id>.md     settings between two lines of three dashes, or none, then the prompt
//	heartbeat/state.json  what must survive; a data directory keeps it in the mark "heartbeat"
//
// Without such a file nothing happens besides a look at the folder every two
// seconds, and nothing that is not due is ever posted.
//
// # Ticks
//
// A tick is the moment at which a task is due. All tasks that are due then form one
// message, heartbeat/<tick>, and so one run. There is no other tick while the message
// is pending or runs. The durable state is one file: when each task ran, and the
// pending message. It is written before the message is posted and contains the
// message's id, so a crash in between neither loses a tick nor posts one twice: the
// next process checks the state of that message.
//
//	due -> gates asked -> file written -> posted -> run ended -> file written
//	            |              |            |
//	            no: waits      +------------+-- died here: asked at the next start
//	            for `every`
//
// The next tick of a task is its last one plus `every`, by the wall clock; those
// that fall into the run are left out. A task that is overdue runs once. A clock
// that is set back counts as no time passed.
//
// # Pause
//
// After Settings.MaxUnattended ticks without a message of a user, and after a run that
// the model refused, the heartbeat pauses until a user writes. It sends one notice.
//
// # Members
//
// A single process is a cluster of one. All members watch the tasks; the one with the
// claim on the tick runs the gates, records the message by compare-and-set and posts
// it, and the others see that and wait. A message that was recorded but not posted by
// a member without the claim is given up. Each change of the state is a
// compare-and-set (see memory.edit), so a tick whose end two members noticed is
// counted once; the notice of a pause has one key.
//
// The loop, the queue and the lock are those of schedule.Scheduler: a tick is its one
// job.
//
// The package must not import a store, an agent system or another connector.
package heartbeat
