// Package heartbeat is the connector that wakes one agent every so often, to
// look after small things. Each of them is a file of Config.Tree, which is a directory
// that people edit or a database that several nodes share:
//
//	heartbeat/<id>.md     settings between two lines of three dashes, or none, then the prompt
//	heartbeat/state.json  what must survive; a data directory keeps it in the mark "heartbeat"
//
// Without such a file nothing happens besides a look at the folder every two
// seconds, and nothing that is not due is ever posted.
//
// # Ticks
//
// A tick is the moment at which a task is due. All tasks that are due then are
// one message, heartbeat/<tick>, and so one run. While it waits or runs, no
// other tick happens. What survives is one file: when each
// task ran, and the message under way. It is written before the message is
// posted, and the message has the id that it says, so a process that dies
// in between neither loses a tick nor posts one twice: the next one asks what
// became of that message.
//
//	due -> gates asked -> file written -> posted -> run ended -> file written
//	            |              |            |
//	            no: rests      +------------+-- died here: asked at the next start
//	            for `every`
//
// The next tick of a task is its last one plus `every`, by the wall clock; those
// that fall into the run are left out. A task that is overdue beats once. A clock
// that is set back counts as no time passed.
//
// # Rest
//
// After Settings.MaxUnattended beats without a word of a person, and after a run
// that the model refused, the heartbeat rests until somebody writes. It says so
// once.
//
// # Nodes
//
// A single process is a cluster of one. All nodes watch the tasks; the one with the
// claim on the tick asks the gates, writes the message down by compare-and-set and
// posts it, and the others see that and wait. A message that is not stored and whose
// node has no claim any more does not come: it is given up. Changes of two nodes are
// merged (see merge), so that a beat whose end both noticed is counted once; the rest
// is told with one key.
//
// # Goroutines
//
// One loop looks at the files, follows what became of the message under way and
// begins ticks; a tick has a goroutine of its own, because gate commands take
// their time, and each gate has one. Run waits for all of them. Whoever touches
// files holds Heartbeat.edits meanwhile; Heartbeat.mu guards what
// is in memory and is held for moments only.
//
// The package must not import a store, an agent system or another connector.
package heartbeat
