package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"slices"
	"strings"
)

// ErrDiffers means that a copy differs from the original.
var ErrDiffers = errors.New("the copy differs from the original")

// A Portable is a whole store, a data directory or a database, that can be
// exported and imported while it is not in use. All Portables use the same rows
// and files.
type Portable interface {
	// Rows yields all rows of a table of Tables. A row is valid until the next one.
	Rows(ctx context.Context, t Table) iter.Seq2[Row, error]
	// Load adds rows to an empty table. It is called once for each table, in the
	// order of Tables, and stops at the first error that rows yields.
	Load(ctx context.Context, t Table, rows iter.Seq2[Row, error]) error
	// Files yields the files of one agent, or with "" of all agents. Each file must
	// be read before the next.
	Files(ctx context.Context, agent string) iter.Seq2[PortableFile, error]
	// LoadFile adds a file of an agent that Load has added.
	LoadFile(ctx context.Context, f PortableFile) error
	// Remarks returns one sentence for each problem that was found and left
	// unchanged while rows and files were read or written.
	Remarks() []string
}

// A Row has a value for each column of its table: string, int64, []byte or nil.
type Row = []any

// A Table describes one table.
type Table struct {
	Name    string
	Columns []string
	// Sums are columns that a store may split over several rows; Rows yields their
	// sums.
	Sums []string
	// Serial is the auto-increment column; it continues after the largest
	// number.
	Serial string
	// Agent, if set, limits the tables agents, records, results and settings to the
	// rows of one agent.
	Agent string
}

// A PortableFile is one file of an agent.
type PortableFile struct {
	Agent, ID string
	Reference string // JSON
	// Open reads the bytes.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// agentColumns are those of agents. The last one is not in the table of a store that
// keeps agents as directories.
const agentColumns = "id key descriptor last_user_at usage n waiting first_n first_at last_at urgent_n hold_at due_at wake_at node token run " +
	"type owner parent root created_at last_user_n resume_at busy state"

// Names of tables that are files in a data directory.
const (
	TableAgents      = "agents"
	TableQuarantine  = "quarantine"
	TableRecords     = "records"
	TableResults     = "results"
	TableTree        = "tree"
	TableCheckpoints = "marks"
	TableSettings    = "settings"
	TableDocuments   = "documents"
	TableSequences   = "sequences"
	tableFiles       = "attachments"
)

// Tables returns all tables to copy, in the order of loading: agents before the
// data that belongs to them. It excludes members and claims, which describe
// running processes.
func Tables() []Table {
	table := func(name, serial, columns string) Table {
		return Table{Name: name, Serial: serial, Columns: strings.Fields(columns)}
	}
	summed := func(name, key, sums string) Table {
		return Table{Name: name, Columns: strings.Fields(key + " " + sums), Sums: strings.Fields(sums)}
	}
	const amounts = "input output cached written reasoning cost unpriced calls tools estimated runs"
	return []Table{
		table(TableAgents, "", agentColumns),
		table(TableQuarantine, "", "agent at descriptor state"),
		table("messages", "rowid", "rowid id agent n type at album run skipped silent awaited reserved body crc"),
		table("keys", "n", "n key at message"),
		table("parked", "n", "n id key episode at cause descriptor body crc"),
		table(TableSettings, "", "agent body"),
		table("runs", "rowid", "rowid id agent state last_seq attempts cancel draft messages outcome started ended pruned awaiting"),
		table("events", "", "run seq v type at data"),
		table("questions", "", "id run agent asked open body"),
		table("outbox", "n", "n id dest origin state open at attempts tried_at due_at receipt cause body crc"),
		table("grants", "", "connector subject name at"),
		table("pairings", "rowid", "rowid code connector channel user name at expires"),
		table(TableCheckpoints, "", "key value"),
		summed("counters", "name", "n"),
		table("ledger", "n", "n task instant attempt manual planned quiet recovered entered message reason state started ended cost error"),
		table("reminders", "", "agent id due note made context route"),
		table(TableDocuments, "", "scope path text size at"),
		table("sinks", "", "name"),
		table("relays", "", "run sink seq since published_at"),
		summed("spent", "day agent owner model", "type connector channel "+amounts),
		summed("spent_days", "day model type", amounts),
		summed("latencies", "day what bucket", "n"),
		table("workspaces", "", "node provider key agent state image platform last_used ttl data tries next_try problem changed version"),
		table("budgets", "", "key period name unit hard most extension spent reserved unpriced used_at"),
		table("reservations", "", "id node run tokens micro_usd unpriced keys at"),
		table("extensions", "", "id key by who at"),
		table("memories", "n", "n scope path title text size tainted version"),
		table("memory_versions", "version", "version scope path gone text agent run call by tainted at"),
		table(TableRecords, "", "agent n body crc"),
		table(TableResults, "", "agent name text"),
		table(TableTree, "", "path body at"),
		table(TableSequences, "", "name last"),
	}
}

// TableOf returns the table with a name, which must exist.
func TableOf(name string) Table {
	all := Tables()
	return all[slices.IndexFunc(all, func(t Table) bool { return t.Name == name })]
}

// Column returns the index of a column, which must exist.
func (t Table) Column(name string) int {
	i := slices.Index(t.Columns, name)
	if i < 0 {
		panic(fmt.Sprintf("the table %s has no column %s", t.Name, name))
	}
	return i
}

// A Copied describes a copied table: the number of rows, a checksum of them that does
// not depend on their order, and the number of damaged rows.
type Copied struct {
	Table   string
	Rows    int64
	Sum     string
	Damaged []string // descriptions of the first ones
	Broken  int64
}

// mostDamaged is the maximum number of damaged rows that are named.
const mostDamaged = 5

// Copy copies one store to another, which must be empty, and compares both
// afterwards; ErrDiffers names the table. It uses constant memory. It calls said
// for each table after the comparison.
func Copy(ctx context.Context, from, to Portable, said func(Copied)) error {
	var all []*summing
	for _, t := range Tables() {
		s := &summing{table: t}
		if err := to.Load(ctx, t, s.watch(from.Rows(ctx, t))); err != nil {
			return fmt.Errorf("copy %s: %w", t.Name, err)
		}
		all = append(all, s)
	}
	attached, err := copyFiles(ctx, from, to)
	if err != nil {
		return err
	}
	for _, s := range all {
		again := &summing{table: s.table}
		for _, err := range again.watch(to.Rows(ctx, s.table)) {
			if err != nil {
				return fmt.Errorf("compare %s: %w", s.table.Name, err)
			}
		}
		if err := s.compare(again, said); err != nil {
			return err
		}
	}
	again := &summing{table: attached.table}
	for f, err := range to.Files(ctx, "") {
		if err == nil {
			err = again.file(ctx, &f)
		}
		if err != nil {
			return fmt.Errorf("compare files: %w", err)
		}
	}
	return attached.compare(again, said)
}

func copyFiles(ctx context.Context, from, to Portable) (*summing, error) {
	s := &summing{table: Table{Name: tableFiles}}
	for f, err := range from.Files(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("copy files: %w", err)
		}
		// Its bytes are summed while they are written, so they are read once.
		sum, open := sha256.New(), f.Open
		f.Open = func(ctx context.Context) (io.ReadCloser, error) {
			sum.Reset()
			r, err := open(ctx)
			if err != nil {
				return nil, err
			}
			return tee{io.TeeReader(r, sum), r}, nil
		}
		if err := to.LoadFile(ctx, f); err != nil {
			return nil, fmt.Errorf("copy the file %s of agent %s: %w", f.ID, f.Agent, err)
		}
		s.add(Row{f.Agent, f.ID, f.Reference, sum.Sum(nil)})
	}
	return s, nil
}

type tee struct {
	io.Reader
	io.Closer
}

// file adds a file by all its bytes.
func (s *summing) file(ctx context.Context, f *PortableFile) error {
	r, err := f.Open(ctx)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("the file %s of agent %s: %w", f.ID, f.Agent, err)
	}
	s.add(Row{f.Agent, f.ID, f.Reference, sum.Sum(nil)})
	return nil
}

// A summing computes a Copied.
type summing struct {
	table   Table
	rows    int64
	sum     [4]uint64
	damaged []string
	broken  int64
	buf     []byte
}

// watch passes rows through and counts them.
func (s *summing) watch(rows iter.Seq2[Row, error]) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for r, err := range rows {
			if err == nil {
				s.add(r)
				s.inspect(r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// add counts a row. The sums of rows are added up, so their order does not count.
func (s *summing) add(r Row) {
	s.rows++
	s.buf = s.buf[:0]
	for i, v := range r {
		switch v := s.comparable(i, v).(type) {
		case nil:
			s.buf = append(s.buf, 'n')
		case int64:
			s.buf = binary.BigEndian.AppendUint64(append(s.buf, 'i'), uint64(v)) //nolint:gosec // its bits
		case string:
			s.buf = binary.BigEndian.AppendUint64(append(s.buf, 's'), uint64(len(v)))
			s.buf = append(s.buf, v...)
		case []byte:
			s.buf = binary.BigEndian.AppendUint64(append(s.buf, 'b'), uint64(len(v)))
			s.buf = append(s.buf, v...)
		default:
			s.buf = fmt.Appendf(s.buf, "?%T%v", v, v)
		}
	}
	sum := sha256.Sum256(s.buf)
	for i := range s.sum {
		s.sum[i] += binary.BigEndian.Uint64(sum[8*i:])
	}
}

// comparable normalizes a value for comparison between stores, which may differ
// in the order of JSON members and in modification times of tree files.
func (s *summing) comparable(i int, v any) any {
	if i >= len(s.table.Columns) {
		return v
	}
	switch column := s.table.Columns[i]; {
	case s.table.Name == TableTree && column == "at":
		return nil
	case column == "state" && (s.table.Name == TableAgents || s.table.Name == TableQuarantine), s.table.Name == TableQuarantine && column == "descriptor":
		if text, ok := v.(string); ok {
			return sorted(text)
		}
	case s.table.Name == TableTree && column == "body":
		if b, ok := v.([]byte); ok && bytes.HasPrefix(b, []byte("{")) {
			return sorted(string(b))
		}
	}
	return v
}

// sorted returns a JSON object with sorted members, and any other text unchanged.
func sorted(text string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) != nil || members == nil {
		return text
	}
	var buf bytes.Buffer
	for k, v := range members {
		buf.Reset()
		if json.Compact(&buf, v) != nil {
			return text
		}
		members[k] = bytes.Clone(buf.Bytes())
	}
	b, err := json.Marshal(members)
	if err != nil {
		return text
	}
	return string(b)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// inspect checks a text against its checksum.
func (s *summing) inspect(r Row) {
	body, crc := slices.Index(s.table.Columns, "body"), slices.Index(s.table.Columns, "crc")
	if body < 0 || crc < 0 {
		return
	}
	text, _ := r[body].(string)
	if sum, _ := r[crc].(int64); int64(crc32.Checksum([]byte(text), castagnoli)) == sum && json.Valid([]byte(text)) {
		return
	}
	s.broken++
	if len(s.damaged) < mostDamaged {
		s.damaged = append(s.damaged, fmt.Sprint(r[0], " ", r[1]))
	}
}

// compare calls said for the table, or returns how the copy differs.
func (s *summing) compare(again *summing, said func(Copied)) error {
	if s.rows != again.rows || s.sum != again.sum {
		return fmt.Errorf("%w: %s had %d rows with the checksum %s, and has %d with %s", ErrDiffers,
			s.table.Name, s.rows, s.hex(), again.rows, again.hex())
	}
	said(Copied{Table: s.table.Name, Rows: s.rows, Sum: s.hex(), Damaged: s.damaged, Broken: s.broken})
	return nil
}

func (s *summing) hex() string {
	var all []byte
	for _, v := range s.sum {
		all = binary.BigEndian.AppendUint64(all, v)
	}
	return hex.EncodeToString(all[:8])
}
