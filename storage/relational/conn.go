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

// A Session runs statements on one connection. The statements are written in the
// part of SQL that SQLite and PostgreSQL share, but for what Dialect says;
// parameters are ? or ?N.
type Session interface {
	// Exec runs a statement that changes rows and returns how many.
	Exec(q string, args []any) (int64, error)
	// Do runs a statement of which nobody needs to know how many rows it changes,
	// or notes it down to be run before the next one that has a result, and before
	// the commit. changed is false when it is known to have changed none.
	Do(q string, args []any) (changed bool, err error)
	// Each calls f for every row of a query, and ends early with the error of f or
	// of the connection. f may run other statements.
	Each(q string, f func(r Row) error, args []any) error
	// Ask runs queries that do not depend on each other, one after the other, like
	// Each; over a network they go there and back at once. No Row may run another
	// statement. They see what the ones before have locked.
	Ask(asks []Ask) error
	// Later runs a query of a transaction, or notes it down like Do. f is called for
	// its rows at the latest when the transaction has committed: it must not fail.
	Later(q string, f func(r Row), args []any) error
}

// An Ask is a query, and what is called for each of its rows.
type Ask struct {
	Query string
	Row   func(r Row) error
	Args  []any
}

// once is a Row for the first row alone, which it notes in found.
func once(found *bool, f func(r Row) error) func(r Row) error {
	return func(r Row) error {
		if *found {
			return nil
		}
		*found = true
		return f(r)
	}
}

// A Dialect is how a database differs from the others.
type Dialect struct {
	// Alone says that one process uses the store.
	Alone bool
	// Clock is the present moment in unix milliseconds, by the clock that all
	// nodes share.
	Clock func() int64
	// Lock ends a query of rows that the transaction is going to change, Skip one
	// that leaves out the rows that another transaction has locked.
	Lock, Skip string
	// LockName, when there is one, is the statement that makes transactions
	// wait for each other that name the same thing.
	LockName string
	// Leave, when there is one, is the statement by which a transaction leaves what
	// it adds to sums to be added up later, so that it does not wait for others that
	// add to the same ones. Summed ends the name of a table of sums in queries, with
	// what was left to be added.
	Leave  func(s Sums) (q string, arg any, err error)
	Summed string
	// Words finds notes by their words.
	Words Words
}

// A Conn is what the methods of a Store work in: a session, and what the running
// transaction collects. The statements of each group of tables are functions of a Conn.
// It is used by one goroutine at a time.
type Conn struct {
	session Session
	dialect *Dialect
	// wrote says that a statement of the running call changed something.
	wrote bool
	// writes says that the connection may write, and so locks what it reads.
	writes bool
	tally  tally
	saved  int // inboxes
	meter  meter
	// journal is what the running transaction did, sinks who is told of events.
	journal journal
	sinks   []string
}

// NewConn returns a Conn over a session; writes is false for one that only reads.
func NewConn(s Session, d *Dialect, writes bool) *Conn {
	return &Conn{session: s, dialect: d, writes: writes}
}

// Begin forgets what the last try has collected. sinks are those that are told of
// events.
func (c *Conn) Begin(sinks []string) {
	c.wrote = false
	c.tally.reset()
	c.meter.reset()
	c.journal, c.sinks = journal{}, sinks
}

// Call begins the next of several calls in one transaction.
func (c *Conn) Call() { c.wrote = false }

// Wrote reports whether the call has changed something, or may have.
func (c *Conn) Wrote() bool { return c.wrote }

// Spoiled notes that the call may have changed something that must not stay.
func (c *Conn) Spoiled() { c.wrote = true }

// Changed notes that the transaction is worth telling of.
func (c *Conn) Changed() { c.journal.changed = true }

// Flush writes the sums that the transaction has collected. Nothing else may be
// written after it.
func (c *Conn) Flush() error {
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
	c.wrote = c.wrote || n > 0 || err != nil // an error may come after a change
	return n, err
}

// do is exec where the number does not matter. Its error may come with a later
// statement: the transaction fails either way.
func (c *Conn) do(q string, args ...any) error {
	changed, err := c.session.Do(q, Values(args))
	c.wrote = c.wrote || changed || err != nil
	return err
}

// each calls f for every row of a query.
//
// Queries say LIMIT 0+? because SQLite compiles a statement anew whenever a
// parameter that is the whole limit is bound.
func (c *Conn) each(q string, f func(r Row) error, args ...any) error {
	return c.session.Each(q, f, Values(args))
}

// first calls f for the first row of a query and reports whether there was one.
func (c *Conn) first(q string, f func(r Row) error, args ...any) (found bool, err error) {
	err = c.each(q, once(&found, f), args...)
	return found, err
}

// rowsOf returns what f makes of each row of a query.
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

// insert runs a statement that adds a row, or changes one, and RETURNS some
// of it. found is false when it did neither.
func (c *Conn) insert(q string, f func(r Row) error, args ...any) (found bool, err error) {
	found, err = c.first(q, f, args...)
	c.wrote = c.wrote || found || err != nil
	return found, err
}

// later is each where nobody needs the rows before the commit.
func (c *Conn) later(q string, f func(r Row), args ...any) error {
	return c.session.Later(q, f, Values(args))
}

// locked is the end of a query whose rows the transaction is going to change.
func (c *Conn) locked() string {
	if !c.writes {
		return ""
	}
	return c.dialect.Lock
}

// skipping is locked for rows of which any will do.
func (c *Conn) skipping() string {
	if !c.writes {
		return ""
	}
	return c.dialect.Skip
}

// lock makes the transaction wait for others that lock the same name, until
// its end. It is for what has no row yet.
func (c *Conn) lock(name string) error {
	if c.dialect.LockName == "" {
		return nil
	}
	_, err := c.session.Do(c.dialect.LockName, Values([]any{name}))
	return err
}

// A Row is one row of a result, read by position: strings, int64 and nil.
type Row []any

// Str is a text; empty for null.
func (r Row) Str(i int) string {
	s, _ := r[i].(string)
	return s
}

// Int is a number; 0 for null.
func (r Row) Int(i int) int64 {
	n, _ := r[i].(int64)
	return n
}

// Null reports whether there is no value.
func (r Row) Null(i int) bool { return r[i] == nil }

// text is s, or null for the empty string.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Values are parameters as drivers take them: string, int64 and nil.
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

// A journal collects what one transaction does that others are told of after
// its commit. It is made anew for every try.
type journal struct {
	commit       storage.Commit
	notification storage.Notification
	changed      bool      // something was written that is worth a look
	sinks        *[]string // named by this transaction; nil: as before
}

// joined notes the ids that were reserved for runs and whose messages went to
// run.
func (j *journal) joined(run claybot.RunID, reserved []claybot.RunID) {
	for _, id := range reserved {
		if id != run {
			j.commit.Joined = append(j.commit.Joined, id)
		}
	}
}

// Done is what a transaction did that others are told of once it is durable.
type Done struct {
	Commit storage.Commit
	// Hint is for other nodes; its Node is not set.
	Notification storage.Notification
	// Worth says that Commit is to be told although it may be empty: something
	// changed.
	Worth bool
	// Sinks are those that are told of events from now on; nil: as before.
	Sinks *[]string
}

// Done returns what the transaction did. Call it after the commit.
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
		Worth: j.changed || len(j.commit.Events) > 0 || len(j.commit.Joined) > 0,
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode is the stored form of a message or outgoing and its checksum.
func encode(v any) (body string, crc uint32, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", 0, err
	}
	return string(b), crc32.Checksum(b, castagnoli), nil
}

// decode reads what encode wrote. Damage is an error that wraps
// storage.ErrDamaged.
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

// decodeOutgoing reads a row of outgoingColumns. When the body is damaged the
// other fields are right all the same.
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

// need turns a missing row into storage.ErrNotFound.
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
