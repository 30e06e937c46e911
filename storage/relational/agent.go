package relational

import (
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// albumQuiet and albumMax are how long an agent waits for the parts of an album
// (IN-14), which arrive one by one.
const (
	albumQuiet = 750 * time.Millisecond
	albumMax   = 5 * time.Second
)

// never stands for null in a time column.
const never = -1

// An inboxRow is the state of one agent's inbox in the agents table.
type inboxRow struct {
	id                             claybot.AgentID
	n                              int64
	waiting                        int64
	firstN, firstAt, lastAt        int64 // of the messages that are not silent; firstN 0: there are none
	urgentN, holdAt, dueAt, wakeAt int64
	node                           string
	token                          int64
	run                            claybot.RunID
	lastUserAt                     int64
	lastUser                       claybot.MessageID // its newest user message, when this transaction has it
	resumeAt                       int64             // when a paused run goes on; never: it is not paused
	refused                        []refusal
	found                          bool // it was loaded
	// usage is the total usage of the agent as JSON, if it has changed.
	usage []byte
	// payer, if set, is loaded with the inbox.
	payer *payer
	// agent, if set, is loaded with the inbox; it stays as it is if it cannot be read.
	agent *claybot.Agent
	// recorded is the number of its newest record, if it has changed.
	recorded int64
	// shown are the stored list columns.
	shown shown
	// flow is the workflow of the agent, empty for none, and counted what the counters have of it.
	flow    string
	counted storage.FlowLoad
}

// shown are the columns by which lists of agents are sorted. They are in many
// indexes and rarely change, so they are written only if they do.
type shown struct {
	user claybot.MessageID
	busy bool
}

func (a *inboxRow) show() shown {
	return shown{user: a.lastUser, busy: a.run != "" || a.firstN > 0}
}

func loadInbox(c *Conn, id claybot.AgentID) (*inboxRow, error) {
	a := &inboxRow{id: id}
	if err := c.ask(askInbox(c, a)); err != nil {
		return nil, err
	}
	return a, a.there()
}

// inboxLoaded are the columns that askInbox reads, and ofFlow one more: the descriptor of the agent of a
// workflow.
const (
	inboxLoaded = "n, waiting, first_n, first_at, last_at, urgent_n, hold_at, due_at, wake_at, node, token, run, last_user_at, resume_at, busy"
	ofFlow      = ", CASE own.type WHEN 'flow' THEN own.descriptor END"
)

// askInbox returns the query that loads the inbox of a.id, with a.payer if that is set.
func askInbox(c *Conn, a *inboxRow) Ask {
	load := func(r Row) error {
		a.n, a.waiting, a.firstN, a.firstAt, a.lastAt = r.Int(0), r.Int(1), r.Int(2), r.Int(3), r.Int(4)
		a.urgentN, a.holdAt, a.dueAt, a.wakeAt = r.Int(5), r.Int(6), never, never
		if !r.Null(7) {
			a.dueAt = r.Int(7)
		}
		if !r.Null(8) {
			a.wakeAt = r.Int(8)
		}
		a.node, a.token, a.run, a.lastUserAt = r.Str(9), r.Int(10), claybot.RunID(r.Str(11)), r.Int(12)
		a.resumeAt = never
		if !r.Null(13) {
			a.resumeAt = r.Int(13)
		}
		a.shown = shown{busy: r.Int(14) != 0}
		a.flow = flowOf(r.Str(15))
		a.counted = a.flowLoad()
		return nil
	}
	if a.payer != nil {
		return a.payer.askWith(c, a, load)
	}
	columns := ownInbox
	if a.agent != nil {
		columns += ", " + agentColumns
	}
	return Ask{Query: "SELECT " + columns + " FROM agents own WHERE id = ?" + c.locked(), Args: []any{a.id}, Row: once(&a.found, func(r Row) error {
		if a.agent != nil {
			if whole, err := decodeAgent(r[inboxWidth:]); err == nil {
				*a.agent = whole
			}
		}
		return load(r)
	})}
}

// there returns an error if the inbox was not found.
func (a *inboxRow) there() error {
	if !a.found {
		return fmt.Errorf("agent %s: %w", a.id, storage.ErrNotFound)
	}
	return nil
}

// Statements that save an inbox. They contain the indexed list columns only if
// these have changed.
const (
	inboxColumns = `n = ?2, waiting = ?3, first_n = ?4, first_at = ?5, last_at = ?6, urgent_n = ?7, hold_at = ?8,
		due_at = ?9, wake_at = ?10, node = ?11, token = ?12, run = ?13, resume_at = ?14`
	ofInbox  = " WHERE id = ?1"
	saveSame = "UPDATE agents SET " + inboxColumns + ofInbox
	saveBusy = "UPDATE agents SET " + inboxColumns + ", busy = ?15" + ofInbox
	// The rowid of a message is its position among those of all agents. Only old messages
	// are removed, never the newest of an agent's user.
	saveShown = "UPDATE agents SET " + inboxColumns + ", busy = ?15, last_user_at = ?16, last_user_n = (SELECT rowid FROM messages WHERE id = ?17)" + ofInbox
)

// saveInbox writes a, and then its pending answers to waiting runs.
func saveInbox(c *Conn, a *inboxRow) error {
	c.saved++
	q := saveSame
	args := []any{
		a.id, a.n, a.waiting, a.firstN, a.firstAt, a.lastAt, a.urgentN, a.holdAt,
		moment(a.dueAt), moment(a.wakeAt), text(a.node), a.token, text(string(a.run)), moment(a.resumeAt),
	}
	s := a.show()
	switch {
	case s == a.shown:
	case s.user == a.shown.user:
		q, args = saveBusy, append(args, s.busy)
	default:
		q, args = saveShown, append(args, s.busy, a.lastUserAt, s.user)
	}
	if a.usage != nil {
		q, args = alsoSet(q, args, "usage", a.usage)
		a.usage = nil
	}
	if a.recorded > 0 {
		q, args = alsoSet(q, args, "records", a.recorded)
		a.recorded = 0
	}
	if err := c.do(q, args...); err != nil {
		return err
	}
	if a.node == "" && a.wakeAt != never {
		c.journal.notification.Due = true
	}
	a.shown = s
	a.countFlow(c, a.flowLoad())
	return refuseAll(c, a)
}

// alsoSet adds a column to a statement that saves an inbox.
func alsoSet(q string, args []any, column string, value any) (string, []any) {
	return fmt.Sprintf("%s, %s = ?%d%s", strings.TrimSuffix(q, ofInbox), column, len(args)+1, ofInbox), append(args, value)
}

// moment returns t, or null for never.
func moment(t int64) any {
	if t == never {
		return nil
	}
	return t
}

// leased loads the inbox of l's agent; storage.ErrLeaseLost if l is not its
// lease.
func leased(c *Conn, l storage.Lease) (*inboxRow, error) {
	return leasedWith(c, l)
}

// leasedWith is like leased with additional queries, whose results are valid
// only without an error.
func leasedWith(c *Conn, l storage.Lease, asks ...Ask) (*inboxRow, error) {
	a := &inboxRow{id: l.Agent}
	if err := leasedInto(c, a, l, asks...); err != nil {
		return nil, err
	}
	return a, nil
}

// leasedInto is leasedWith that loads a.
func leasedInto(c *Conn, a *inboxRow, l storage.Lease, asks ...Ask) error {
	if err := c.ask(append([]Ask{askInbox(c, a)}, asks...)...); err != nil {
		return err
	}
	if !a.found {
		return fmt.Errorf("agent %s was removed: %w", l.Agent, storage.ErrLeaseLost)
	}
	if a.node == "" || a.node != l.Node || a.token != l.Token {
		return fmt.Errorf("agent %s, token %d: %w", l.Agent, l.Token, storage.ErrLeaseLost)
	}
	return nil
}

// due returns when the pending messages may be taken under w (IN-11, IN-12, IN-14). It
// is never later than w allows from now, even if the clock was set back since their
// arrival. Silent messages are taken with others and never make an agent due (SA-04).
func (a *inboxRow) due(w storage.Wait, now int64) int64 {
	if a.firstN == 0 {
		return never
	}
	if w.Hold > 0 {
		return now + w.Hold.Milliseconds()
	}
	if a.firstN <= a.urgentN {
		return min(a.firstAt, now)
	}
	quiet, most := w.Quiet.Milliseconds(), w.Max.Milliseconds()
	due := min(a.lastAt+quiet, a.firstAt+most, now+quiet, now+most)
	return max(due, min(a.holdAt, now+albumQuiet.Milliseconds()))
}

// arrive counts message n, which is pending since at.
func (a *inboxRow) arrive(at int64, silent bool) {
	a.waiting++
	if silent {
		return
	}
	if a.firstN == 0 {
		a.firstN, a.firstAt = a.n, at
	}
	a.lastAt = at
}

// rouse makes an agent with a paused run due.
func (a *inboxRow) rouse(at int64) {
	if a.run != "" && a.resumeAt != never {
		a.resumeAt = min(a.resumeAt, at)
		a.wake()
	}
}

// wake sets when Acquire may take an agent that is not held.
func (a *inboxRow) wake() {
	switch {
	case a.node != "":
	case a.run != "" && a.resumeAt != never:
		a.wakeAt = a.resumeAt
	case a.run != "":
		a.wakeAt = 0
	default:
		a.wakeAt = a.dueAt
	}
}

// free ends the lease; pending messages are due according to w.
func (a *inboxRow) free(w storage.Wait, now int64) {
	a.node = ""
	a.dueAt = a.due(w, now)
	a.wake()
}

// reduceWaiting records that k messages are no longer pending.
func reduceWaiting(c *Conn, a *inboxRow, k int) error {
	if k == 0 {
		return nil
	}
	var f front
	if err := c.ask(f.ask(a.id)); err != nil {
		return err
	}
	reduceWaitingTo(c, a, k, f)
	return nil
}

// reduceWaitingTo is reduceWaiting with a known new first message.
func reduceWaitingTo(c *Conn, a *inboxRow, k int, f front) {
	if k == 0 {
		return
	}
	a.waiting -= int64(k)
	c.tally[countWaiting] -= int64(k)
	a.begin(f)
}

// A front is the first pending message that makes an agent due.
type front struct {
	n, at int64
	found bool
}

// ask returns the query for the front among all pending messages.
func (f *front) ask(agent claybot.AgentID) Ask { return f.query("", agent) }

// askBut is like ask, without the messages in a JSON list of ids.
func (f *front) askBut(agent claybot.AgentID, ids []byte) Ask {
	return f.query(" AND id NOT IN (SELECT value FROM json_each(?))", agent, ids)
}

func (f *front) query(but string, args ...any) Ask {
	return Ask{
		Args: args, Query: `SELECT n, at FROM messages INDEXED BY messages_waiting
		WHERE agent = ? AND run IS NULL AND skipped IS NULL AND silent = 0` + but + " ORDER BY n LIMIT 1",
		Row: once(&f.found, func(r Row) error { f.n, f.at = r.Int(0), r.Int(1); return nil }),
	}
}

// begin sets the front of a to f.
func (a *inboxRow) begin(f front) {
	a.firstN, a.firstAt = f.n, f.at
	if !f.found {
		a.firstN, a.firstAt, a.holdAt, a.dueAt = 0, 0, 0, never
	}
}
