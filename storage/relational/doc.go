// Package relational is claybot's tables in a database: inbox, runs, outbox, agent index, access,
// marks, the ledger of cron, reminders, documents, notes, sums, nodes and, with Agents, what agents
// remember. Its statements use the SQL that SQLite and PostgreSQL share, so that both behave the
// same. Packages storage/sqlite and storage/postgres provide the transactions, the schema, and a
// Dialect with the differences; only they may import it.
//
// It guarantees what package storage requires, provided that its Driver keeps its
// contract: a method returns nil only after its commit, and one that returns an
// error has changed nothing. A transaction may be attempted more than once before it
// commits, so it changes only rows and the results for its caller: notifications go
// into the journal of the Conn, counters into its tally, sums into its meter, and
// each attempt starts with empty ones.
//
// A Store consists of parts, one for each group of tables (relational.go lists them).
// They share only the core: a part never calls another one, except that upkeep ends
// restored work through the outbox. What several parts do in their transactions (post,
// enqueue, end a run) is a function of a Conn in the file of its table.
//
// # Tables
//
//	agents    one row per agent: descriptor, usage, the state of its inbox, its lease
//	messages  every message until it is old; pending while run and skipped are null
//	keys      further identities of messages, for a week at least
//	parked    messages whose agent cannot be used, until they are posted
//	settings  settings of single agents, deleted with their agent
//	runs      every run, for 90 days after its end; one_unfinished_run allows an
//	          agent one that has not ended
//	events    what happened in a run, seq 1..n, for a week after its end
//	questions what paused runs asked; open = 1 while one waits for the answer
//	sinks, relays   the sinks of events, and the last published event of each run that
//	          has not ended or is not fully published
//	spent, spent_days, latencies   usage, cost and durations, summed up by
//	          day, for 400 days
//	budgets, reservations, extensions   budgets, the reservations of calls in flight,
//	          and extensions
//	outbox    every outgoing message in order until it is old; open = 1 until it is sent or failed
//	ledger    one row per instant of a cron task, for 90 days; the newest for good
//	reminders, documents      reminders and texts; those of an agent are deleted with it
//	memories, memory_versions notes and their versions
//	workspaces                the workspaces of each member
//	grants, pairings, marks   access, pairing requests, checkpoints
//	counters  the counts of status, updated by the commits that change them
//	nodes, claims             the members of the cluster and their claims;
//	          a store that one process uses alone writes neither
//	records, attachments, chunks, results, quarantine   histories and files of
//	          agents, where those are in the database (Agents)
//
// # Locks
//
// One goroutine writes to SQLite, so the rules below hold there without locks. In
// PostgreSQL transactions run concurrently, and these rules give them the same
// effect:
//
//   - A write for an agent first locks the agent's row (FOR UPDATE) and then reads and
//     writes everything else: messages, runs, events, its lease. So the order of an
//     agent's messages and events is that of the commits, and a lease token that was
//     checked under the lock is still valid at the commit.
//   - Data without a row, or with several rows, is locked by name (Conn.lock) until the
//     end of the transaction: a destination ("out/") while messages are added to
//     it, so that their positions come in the order of the commits; a budget
//     ("budget/"); the scope of notes ("memories/") and of documents ("documents/"),
//     whose sizes are summed up.
//   - A second agent (a parent, or an agent that waits for an answer) is locked after
//     the first, and names after rows; several budgets and counters are locked in the
//     order of their names.
//   - Additions to shared rows (counters, sums of the day) are collected and written
//     last, by Conn.Flush. In a cluster they are queued in rows of their own
//     (Dialect.Leave), so that no transaction waits, and added up later.
//   - A claim is locked before the outgoing message that it is for.
//   - Acquire skips agents whose rows another transaction has locked (Skip): they are
//     being acquired, or are checked again soon.
//
// Two transactions may still deadlock: two agents that answer each other. Then the
// database aborts one of them, and the driver retries it.
//
// A write with an ended lease, claim or membership fails with
// storage.ErrLeaseLost in its own transaction.
//
// # Damage
//
// A row that cannot be read affects only its own agent or destination: a
// message is skipped, an outgoing message fails, and an unfinished run ends as
// failed when its agent is acquired, with a notice to the chat it came from, or
// to the parent of a subagent. A run that waits for a message that no run will
// answer gets an answer from the store.
//
// # Lists
//
// Every paged list has an index in its order, and continues after the last row
// of the previous page. The list columns of agents are written only if they
// change, because each is in many indexes. INDEXED BY fixes the index for
// SQLite; it is removed for PostgreSQL.
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
// due_at is when its pending messages may be taken, null if there are none but
// silent ones. resume_at is when a paused run is resumed: at its deadline, or at
// once if it has all its answers or is to be canceled. wake_at is when Acquire
// may take the agent:
//
//	               wake_at              node
//	idle           null                 null
//	waiting        due_at               null
//	unfinished run 0                    null
//	paused run     resume_at            null
//	held           end of the lease     the holder
//
// A message that arrives while the agent is held only changes due_at; Finish,
// Settle and Release copy it to wake_at. Times are Unix milliseconds, by the clock
// of the Dialect.
package relational
