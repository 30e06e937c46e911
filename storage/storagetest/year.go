package storagetest

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// messagesADay is how many messages a day of TestYear has.
var messagesADay = flag.Int("year", 2, "messages a day in the tests of a store that lives for a year")

// A Size is how large a store is.
type Size struct {
	Rows  map[string]int64 // by table
	Bytes int64            // that hold something, without tables that grow if the store knows them apart
}

// Grows reports whether a table may have more rows each month: totals of usage, keys of messages, and the queue of
// sums, which members empty in their own time.
func Grows(table string) bool {
	return table == "keys" || table == "sums" || table == "latencies" || strings.HasPrefix(table, "spent")
}

// A Life is a store that lives for a year.
type Life struct {
	Open Opener
	// Size returns how large the store is, after what its server does by itself meanwhile,
	// such as a vacuum.
	Size func(t *testing.T) Size
	// Now and Pass are the time of the store, and let it pass; Clock is the real one.
	Now   func() time.Time
	Pass  func(d time.Duration)
	Clock func() time.Time
}

// Year lets the store live for a year at *messagesADay, with the default retention, and prunes
// it every day. Once the oldest messages are removed, each table must have as many rows as a
// month before, and the store as many bytes. Only totals of usage are kept for longer than a
// year, and more keys than a test can write; sums is a queue. With -v it prints how the store grew, and
// the real time that a message and the removal of old ones took.
func (l Life) Year(t *testing.T) {
	b := &bed{TB: t, ctx: t.Context()}
	b.Store, b.reopen = l.Open(t, func(storage.Commit) {})
	b.agent = b.newAgent("C1")
	var months []Size
	var busy, pruning time.Duration
	for day := 1; day <= 365; day++ {
		began := l.Clock()
		for n := range *messagesADay {
			b.lives(fmt.Sprintf("%d-%d", day, n))
			l.Pass(24 * time.Hour / time.Duration(*messagesADay))
		}
		said := l.Clock()
		b.noError(b.Prune(b.ctx, l.Now(), Retention))
		busy, pruning = busy+said.Sub(began), pruning+l.Clock().Sub(said)
		if day%30 == 0 {
			s := l.Size(t)
			months = append(months, s)
			n := time.Duration(30 * *messagesADay)
			t.Logf("day %d: %d kB, a message %v, its removal %v, rows: %s", day, s.Bytes>>10, (busy / n).Round(time.Microsecond), (pruning / n).Round(time.Microsecond), s)
			busy, pruning = 0, 0
		}
	}
	flat(t, months)
}

// flat checks that nothing has grown since day 210: by then, retention and a vacuum have had
// their time.
func flat(t *testing.T, months []Size) {
	t.Helper()
	last := months[len(months)-1]
	for _, then := range months[6 : len(months)-1] {
		for table, n := range last.Rows {
			if was := then.Rows[table]; n > was+was/20+10 && !Grows(table) {
				t.Errorf("%s has %d rows, and had %d: it grows", table, n, was)
			}
		}
		if last.Bytes > then.Bytes+then.Bytes/5+200<<10 {
			t.Errorf("the store has %d bytes, and had %d: it grows", last.Bytes, then.Bytes)
		}
	}
}

func (s Size) String() string {
	var all []string
	for _, table := range slices.Sorted(maps.Keys(s.Rows)) {
		if s.Rows[table] > 0 {
			all = append(all, fmt.Sprint(table, " ", s.Rows[table]))
		}
	}
	return strings.Join(all, ", ")
}

// lives takes a message from its arrival to the receipt of its answer, with as many events and
// keys as most have.
func (b *bed) lives(id string) {
	b.Helper()
	m, run := userMessage("m"+id), claybot.RunID("r"+id)
	m.Keys = []string{"k" + id}
	b.deliver(storage.Posting{To: b.agent, Message: m, Wait: instant})
	h := b.hold(nodeOne)
	ok(b.Begin(b.ctx, h.Lease, run, ids(h.Waiting), storage.Beginning{}))(b)
	b.happens(h.Lease, run, 3)
	usage := claybot.Usage{Input: 20, Output: 10, LLMCalls: 1}
	done := success(reply("o" + id))
	done.Usage, done.Calls = usage, []storage.ModelCall{{Model: "m", Usage: usage, MS: 20}}
	ok(b.Finish(b.ctx, h.Lease, run, done))(b)
	b.noError(b.attempt("o" + id))
	b.resolve("o"+id, storage.Resolution{State: claybot.SendSent, Receipt: id})
}
