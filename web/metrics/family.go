package metrics

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// A kind is the type of a metric.
type kind string

const (
	counter   kind = "counter"   // only grows
	gauge     kind = "gauge"     // goes up and down
	histogram kind = "histogram" // counts values by their size
)

// A family is all values of one metric. It is either counted along, or read
// anew for each scrape.
type family struct {
	name   string // as exposed: that of a counter ends in _total
	kind   kind
	help   string
	labels []string
	bounds []float64 // of a histogram, growing
	// read yields the values at a scrape; nil for those that are counted.
	read func(s *snapshot, set func(v float64, values ...string))

	mu     sync.Mutex
	series map[string]*series
	order  []string // keys of series, sorted
}

// A series is the values of one set of label values.
type series struct {
	values  []string
	n       float64  // of a counter or a gauge; of a histogram, the sum
	count   uint64   // of a histogram
	buckets []uint64 // of a histogram, by bound; not cumulative
	// examples are the newest values of the buckets that belong to a trace, and of what is above all
	// bounds; nil where there are none.
	examples []exemplar
}

// An exemplar is a value of a histogram with the trace that it belongs to.
type exemplar struct {
	trace string // empty: none
	value float64
	at    time.Time
}

// unit is the unit in the name; empty for plain numbers.
func (f *family) unit() string {
	base := f.base()
	for _, unit := range []string{"seconds", "bytes", "usd"} {
		if strings.HasSuffix(base, "_"+unit) {
			return unit
		}
	}
	return ""
}

// base is the name without what a counter has at its end.
func (f *family) base() string {
	if f.kind == counter {
		return strings.TrimSuffix(f.name, "_total")
	}
	return f.name
}

// add counts n more.
func (f *family) add(n float64, values ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(values).n += n
}

// observe counts a value of a histogram.
func (f *family) observe(v float64, values ...string) { f.observeIn("", v, values...) }

// observeIn counts a value of a histogram that belongs to a trace; empty: to none.
func (f *family) observeIn(trace string, v float64, values ...string) {
	i, _ := slices.BinarySearch(f.bounds, v) // the first bound that is not below v
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.of(values)
	s.n += v
	s.count++
	if i < len(s.buckets) {
		s.buckets[i]++
	}
	if trace == "" {
		return
	}
	if s.examples == nil {
		s.examples = make([]exemplar, len(s.buckets)+1)
	}
	s.examples[i] = exemplar{trace, v, time.Now()}
}

// of finds or makes a series. Called under the lock.
func (f *family) of(values []string) *series {
	key := strings.Join(values, "\x00")
	s := f.series[key]
	if s == nil {
		s = &series{values: slices.Clone(values), buckets: make([]uint64, len(f.bounds))}
		if f.series == nil {
			f.series = make(map[string]*series)
		}
		f.series[key] = s
		at, _ := slices.BinarySearch(f.order, key)
		f.order = slices.Insert(f.order, at, key)
	}
	return s
}

// snapshots copies all series, in the order of their label values.
func (f *family) snapshots() []series {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]series, len(f.order))
	for i, key := range f.order {
		all[i] = *f.series[key]
		all[i].buckets, all[i].examples = slices.Clone(all[i].buckets), slices.Clone(all[i].examples)
	}
	return all
}

// other stands for all names that have no label of their own.
const other = "other"

// names bounds the values of a label that come from outside: the names that are
// always known, and the first ones besides up to a limit. All others are other.
type names struct {
	limit int
	known func() []string // optional

	mu   sync.Mutex
	seen map[string]bool
}

// maxName is the most bytes of a name that becomes a label.
const maxName = 100

// learn gives a name a label of its own while there is room for it.
func (n *names) learn(name string) string {
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c >= 0x7f }) {
		return other // nothing that is configured looks so
	}
	if n.has(name) {
		return name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.seen) >= n.limit {
		return other
	}
	if n.seen == nil {
		n.seen = make(map[string]bool)
	}
	n.seen[name] = true
	return name
}

// of is the label of a name, without learning it.
func (n *names) of(name string) string {
	if n.has(name) {
		return name
	}
	return other
}

func (n *names) has(name string) bool {
	n.mu.Lock()
	seen := n.seen[name]
	n.mu.Unlock()
	return seen || n.known != nil && slices.Contains(n.known(), name)
}
