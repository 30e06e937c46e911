package relational

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A Session runs statements on one connection. The statements use the SQL that
// SQLite and PostgreSQL share, except for the parts in Dialect; parameters are ?
// or ?N.
type Session interface {
	// Exec runs a statement that changes rows and returns how many.
	Exec(q string, args []any) (int64, error)
	// Do runs a statement whose row count is not needed. It may queue the
	// statement, which then runs before the next one with a result and before the
	// commit. changed is false only if it is known that no row changed.
	Do(q string, args []any) (changed bool, err error)
	// Each calls f for every row of a query, and stops at the first error of f or
	// of the connection. f may run other statements.
	Each(q string, f func(r Row) error, args []any) error
	// Ask runs independent queries in order, like Each, in one network round trip.
	// A Row must not run another statement. Each query sees the rows locked by the
	// ones before.
	Ask(asks []Ask) error
	// Later runs a query of a transaction, or queues it like Do. f is called for its
	// rows at the latest after the commit, so it must not fail.
	Later(q string, f func(r Row), args []any) error
}

// An Ask is a query with a function for each of its rows.
type Ask struct {
	Query string
	Row   func(r Row) error
	Args  []any
}

// once returns a Row that handles only the first row, and sets found.
func once(found *bool, f func(r Row) error) func(r Row) error {
	return func(r Row) error {
		if *found {
			return nil
		}
		*found = true
		return f(r)
	}
}

// A Dialect has the differences between databases.
type Dialect struct {
	// Alone means that only one process uses the store.
	Alone bool
	// Agents means that the tables have the states of agents, see the type Agents.
	Agents bool
	// Clock returns the current time in Unix milliseconds, by the clock that
	// all members share.
	Clock func() int64
	// Lock is the suffix of a query that locks its rows, Skip that of one that
	// also skips rows locked by other transactions.
	Lock, Skip string
	// LockName, if set, is the statement that takes a lock with a name until
	// the end of the transaction.
	LockName string
	// Leave, if set, is the statement with which a transaction queues its additions
	// to sums, so that transactions do not wait for each other. Summed is the suffix
	// of a table of sums in queries that include queued additions.
	Leave  func(s Sums) (q string, arg any, err error)
	Summed string
	// MarkSent, if several processes use the store, is the statement that marks attempted
	// messages as sent, if their claims are held, and returns the ids of those it marked.
	MarkSent func(list []Sent) (q string, args []any)
	// Words is the full-text search of notes.
	Words Words
}

// A Conn is a session with the state of the current transaction. The statements of each
// group of tables are functions of a Conn. It must be used by one goroutine at a time.
type Conn struct {
	session Session
	dialect *Dialect
	// wrote is set if a statement of the current call changed something.
	wrote bool
	// writes means that the connection may write, so it locks the rows it
	// reads.
	writes  bool
	touched touch // by the current call
	tally   tally
	flows   tally // counters of workflows, which are added at once
	saved   int   // inboxes
	meter   meter
	// journal records the effects of the current transaction; sinks are the
	// sinks of events.
	journal journal
	sinks   []string
}

// NewConn returns a Conn over a session; writes is false for one that only reads.
func NewConn(s Session, d *Dialect, writes bool) *Conn {
	return &Conn{session: s, dialect: d, writes: writes}
}

// Begin resets the state of the previous attempt. sinks are the sinks of events.
func (c *Conn) Begin(sinks []string) {
	c.wrote = false
	c.tally.reset()
	c.flows.reset()
	c.meter.reset()
	c.journal, c.sinks = journal{}, sinks
}

// Call starts the next of several calls in one transaction.
func (c *Conn) Call() { c.wrote = false }

// Wrote reports whether the call has changed something, or may have.
func (c *Conn) Wrote() bool { return c.wrote }

// Spoiled records that the call may have made changes that must be rolled back.
func (c *Conn) Spoiled() { c.wrote = true }

// Changed records that watchers should be notified of the transaction.
func (c *Conn) Changed() { c.journal.changed = true }

// Flush writes the sums collected by the transaction. It must be the last
// write.
func (c *Conn) Flush() error {
	if err := c.flows.flush(c); err != nil {
		return err
	}
	if c.dialect.Leave != nil {
		return leaveSums(c)
	}
	if err := c.tally.flush(c); err != nil {
		return err
	}
	return c.meter.flush(c)
}

func (c *Conn) now() int64 { return c.dialect.Clock() }

// exec runs a statement that changes rows and returns how many.
func (c *Conn) exec(q string, args ...any) (int64, error) {
	n, err := c.session.Exec(q, Values(args))
	c.wrote = c.wrote || n > 0 || err != nil // an error may follow a change
	return n, err
}

// do is like exec without the row count. Its error may be returned by a later
// statement.
func (c *Conn) do(q string, args ...any) error {
	changed, err := c.session.Do(q, Values(args))
	c.wrote = c.wrote || changed || err != nil
	return err
}

// each calls f for every row of a query.
//
// Queries use LIMIT 0+? because SQLite recompiles a statement whenever a
// parameter that is the whole limit is bound.
func (c *Conn) each(q string, f func(r Row) error, args ...any) error {
	return c.session.Each(q, f, Values(args))
}

// first calls f for the first row of a query and reports whether there was one.
func (c *Conn) first(q string, f func(r Row) error, args ...any) (found bool, err error) {
	err = c.each(q, once(&found, f), args...)
	return found, err
}

// rowsOf returns the results of f for each row of a query.
func rowsOf[T any](c *Conn, f func(r Row) T, q string, args ...any) (all []T, err error) {
	err = c.each(q, func(r Row) error { all = append(all, f(r)); return nil }, args...)
	return all, err
}

// ask runs queries that do not depend on each other.
func (c *Conn) ask(asks ...Ask) error {
	for i := range asks {
		asks[i].Args = Values(asks[i].Args)
	}
	return c.session.Ask(asks)
}

// insert runs a statement that inserts or updates a row with RETURNING. found
// is false if it did neither.
func (c *Conn) insert(q string, f func(r Row) error, args ...any) (found bool, err error) {
	found, err = c.first(q, f, args...)
	c.wrote = c.wrote || found || err != nil
	return found, err
}

// later is like each for rows that are not needed before the commit.
func (c *Conn) later(q string, f func(r Row), args ...any) error {
	return c.session.Later(q, f, Values(args))
}

// locked returns the suffix of a query that locks its rows.
func (c *Conn) locked() string {
	if !c.writes {
		return ""
	}
	return c.dialect.Lock
}

// skipping is like locked, but skips locked rows.
func (c *Conn) skipping() string {
	if !c.writes {
		return ""
	}
	return c.dialect.Skip
}

// lock locks a name until the end of the transaction. Use it for data without a
// row to lock.
func (c *Conn) lock(name string) error {
	if c.dialect.LockName == "" {
		return nil
	}
	_, err := c.session.Do(c.dialect.LockName, Values([]any{name}))
	return err
}

// A Row is one row of a result, read by position: strings, int64 and nil.
type Row []any

// Str returns a text column; empty for null.
func (r Row) Str(i int) string {
	s, _ := r[i].(string)
	return s
}

// Int returns an integer column; 0 for null.
func (r Row) Int(i int) int64 {
	n, _ := r[i].(int64)
	return n
}

// Null reports whether a column is null.
func (r Row) Null(i int) bool { return r[i] == nil }

// text returns s, or null for the empty string.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Values converts parameters to driver values: string, int64 and nil.
func Values(args []any) []any {
	v := make([]any, len(args))
	for i, a := range args {
		v[i] = value(a)
	}
	return v
}

func value(a any) any {
	switch a := a.(type) {
	case int:
		return int64(a)
	case bool:
		if a {
			return int64(1)
		}
		return int64(0)
	case uint32:
		return int64(a)
	case Bytes:
		return []byte(a)
	case []byte:
		return string(a) // all columns are text or integers
	case claybot.AgentID:
		return string(a)
	case claybot.RunID:
		return string(a)
	case claybot.MessageID:
		return string(a)
	case claybot.AgentType:
		return string(a)
	case claybot.MessageType:
		return string(a)
	case claybot.RunState:
		return string(a)
	case claybot.SendState:
		return string(a)
	case claybot.EventType:
		return string(a)
	case claybot.Time:
		return int64(a)
	default:
		return a
	}
}

// A journal collects the effects of one transaction that are published after
// its commit. Each attempt has a new one.
type journal struct {
	commit       storage.Commit
	notification storage.Notification
	changed      bool      // watchers should look
	sinks        *[]string // set by this transaction; nil: unchanged
	agentsTaken  int
	claimsTaken  int
}

// joined records reserved run ids whose messages went to run.
func (j *journal) joined(run claybot.RunID, reserved []claybot.RunID) {
	for _, id := range reserved {
		if id != run {
			j.commit.Joined = append(j.commit.Joined, id)
		}
	}
}

// Done has the effects of a transaction that are published once it is durable.
type Done struct {
	Commit storage.Commit
	// Notification is for other members; its Member is not set.
	Notification storage.Notification
	// Worth means that Commit is to be published even if it is empty.
	Worth bool
	// Sinks are the new sinks of events; nil: unchanged.
	Sinks *[]string
	// AgentsTaken and ClaimsTaken count what was taken over from members whose memberships
	// had ended.
	AgentsTaken, ClaimsTaken int
}

// Done returns the effects of the transaction. Call it after the commit.
func (c *Conn) Done() Done {
	j := &c.journal
	h := j.notification
	for _, e := range j.commit.Events {
		if n := len(h.Runs); n == 0 || h.Runs[n-1] != e.Run {
			h.Runs = append(h.Runs, e.Run)
		}
	}
	h.Runs = append(h.Runs, j.commit.Joined...)
	slices.Sort(h.Dests)
	h.Dests = slices.Compact(h.Dests)
	return Done{
		Commit: j.commit, Notification: h, Sinks: j.sinks,
		AgentsTaken: j.agentsTaken, ClaimsTaken: j.claimsTaken,
		Worth: j.changed || len(j.commit.Events) > 0 || len(j.commit.Joined) > 0,
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode returns the stored form of a message or outgoing message, and its
// checksum.
func encode(v any) (body string, crc uint32, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", 0, err
	}
	return string(b), crc32.Checksum(b, castagnoli), nil
}

// decode decodes the result of encode. The error wraps storage.ErrDamaged.
func decode(body string, crc int64, v any) error {
	b := []byte(body)
	if int64(crc32.Checksum(b, castagnoli)) != crc {
		return fmt.Errorf("%w: checksum of the stored text is wrong", storage.ErrDamaged)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
	}
	return nil
}

// decodeMessage reads a message; body and crc are the columns from i on.
func decodeMessage(r Row, i int) (m claybot.AgentMessage, err error) {
	err = decode(r.Str(i), r.Int(i+1), &m)
	return m, err
}

// outgoingColumns are what decodeOutgoing reads, in its order.
const outgoingColumns = "n, id, state, attempts, tried_at, due_at, receipt, cause, body, crc"

// decodeOutgoing reads a row of outgoingColumns. If the body is damaged, the
// other fields are still set.
func decodeOutgoing(r Row) (o claybot.Outgoing, err error) {
	err = decode(r.Str(8), r.Int(9), &o)
	o.N, o.ID, o.State, o.Attempts = r.Int(0), r.Str(1), claybot.SendState(r.Str(2)), int(r.Int(3))
	o.Tried, o.Due = claybot.Time(r.Int(4)), claybot.Time(r.Int(5))
	o.Receipt, o.Cause = r.Str(6), r.Str(7)
	return o, err
}

// unmarshal reads a JSON column that has no checksum.
func unmarshal(s string, v any) error {
	if err := json.Unmarshal([]byte(s), v); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
	}
	return nil
}

// need returns storage.ErrNotFound if found is false.
func need(found bool, err error) error {
	if err == nil && !found {
		return storage.ErrNotFound
	}
	return err
}

func ignoreNotFound(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
