// Package sqlite keeps inbox, runs, outbox, agent index, access, marks, the
// ledger of cron, reminders and documents in one SQLite file, claybot.db, for
// one process.
//
// It guarantees what package storage asks: a method returns nil only after the
// commit that carries its effect was synced, and one that returns an error has
// changed nothing. Only cmd and tests may import it; whoever opens the file
// holds the lock of the data directory, because Open takes every lease back.
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
// Reads use up to two connections of their own and see committed data only;
// reports, which may have to read very many rows, use a third one. A read ends
// when its context does.
//
// # Tables
//
//	agents    one row per agent: descriptor, figures, the state of its inbox, its lease
//	messages  every message ever posted; waiting while run and skipped are null
//	keys      further identities of messages, for a week at least
//	settings  what an operator changed for one agent; goes with it
//	runs      every run, for 90 days after its end; one_unfinished_run allows an
//	          agent one that has not ended
//	events    what happened in a run, seq 1..n, for a week after its end
//	questions what paused runs asked; open = 1 while one waits for the answer
//	sinks, relays   who is told of events, and up to which one, of each run that
//	          has not ended or of which a sink does not know all
//	spent, spent_days, latencies   what models took and how long things took, summed up by
//	          day, for 400 days
//	outbox    every outgoing message in order; open = 1 until it is sent or failed
//	ledger    one row per instant of a cron task, for 90 days; the newest for good
//	reminders, documents      what agents put aside; those of an agent go with it
//	grants, pairings, marks   who may speak, who asked, small facts
//	counters  the figures of status, moved by the commits that change them
//
// # Damage
//
// A row that cannot be read affects its own agent or destination alone: a
// message is skipped, an outgoing message fails, and an unfinished run ends as
// failed when its agent is acquired, with a notice to the chat it came from, or
// to the parent of a subagent. Whoever waits for a message that no run will
// answer gets an answer of the store's own that says so.
//
// # Lists
//
// Every list by pages has an index in its order, and goes on behind the last row
// of the page before. The columns of agents by which they are listed are written
// only when they change, because each is in many indexes.
//
// # Reserved runs
//
// A message may reserve the id of the run that will take it. Until then the run
// is PENDING, in messages alone; a run that begins with the message has the id,
// another run that takes the message is found by it; and a message that ends
// without a run leaves a row in runs that is CANCELED.
//
// # When an agent is due
//
// due_at is when its waiting messages may be taken, null when none waits but
// silent ones. resume_at is when a paused run goes on: at its end at the latest,
// at once when it has all its answers or somebody asked to cancel it. wake_at is
// when Acquire may take the agent:
//
//	               wake_at              node
//	idle           null                 null
//	waiting        due_at               null
//	unfinished run 0                    null
//	paused run     resume_at            null
//	held           end of the lease     the holder
//
// A message that arrives while the agent is held moves due_at alone; Finish,
// Settle and Release copy it to wake_at. Times are unix milliseconds.
package sqlite
