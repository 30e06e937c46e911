package relational

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/claybot/claybot/storage"
)

// A spanKey is a row of latencies: how often something took about so long on
// one day.
type spanKey struct {
	day, what string
	bucket    int
}

// took notes that something took ms milliseconds.
func (m *meter) took(at int64, what string, ms int64) {
	m.spans[spanKey{day: dayOf(at), what: what, bucket: bucketOf(ms)}]++
}

func (m *meter) flushSpans(c *Conn) error {
	const q = "INSERT INTO latencies (day, what, bucket, n) VALUES (?, ?, ?, ?) ON CONFLICT (day, what, bucket) DO UPDATE SET n = latencies.n + excluded.n"
	for _, k := range slices.SortedFunc(maps.Keys(m.spans), spanKey.compare) {
		if err := c.do(q, k.day, k.what, k.bucket, m.spans[k]); err != nil {
			return err
		}
	}
	return nil
}

func (k spanKey) compare(o spanKey) int {
	return cmp.Or(cmp.Compare(k.day, o.day), cmp.Compare(k.what, o.what), cmp.Compare(k.bucket, o.bucket))
}

// Buckets are eight to an octave, so that the middle of one is off by at most
// 1/16 of a value in it. Values below exact have one each.
const (
	subBits = 3
	exact   = 1 << (subBits + 1)
)

// bucketOf is the bucket of a duration in milliseconds; what is negative counts
// as 0.
func bucketOf(ms int64) int {
	if ms < exact {
		return int(max(ms, 0))
	}
	shift := bits.Len64(uint64(ms)) - subBits - 1
	return shift<<subBits + int(ms>>shift)
}

// bucketValue is the middle of a bucket.
func bucketValue(bucket int) int64 {
	if bucket < exact {
		return int64(bucket)
	}
	shift := bucket>>subBits - 1
	low := int64(bucket-shift<<subBits) << shift
	return low + (int64(1)<<shift)/2
}

// A spread is the buckets of one thing on one day, in their order.
type spread struct {
	buckets []int
	counts  []int64
	n       int64
}

// at is the value that the share p (in percent) of all do not exceed.
func (s spread) at(p int64) int64 {
	rank := (s.n*p + 99) / 100
	for i, n := range s.counts {
		if rank -= n; rank <= 0 {
			return bucketValue(s.buckets[i])
		}
	}
	return 0
}

// Latencies implements storage.Usages, by day and then by thing.
func (db spending) Latencies(ctx context.Context, from, to string) ([]storage.Latency, error) {
	if to == "" {
		to = lastDay
	}
	var (
		list []storage.Latency
		s    spread
	)
	close := func() {
		if len(list) > 0 {
			l := &list[len(list)-1]
			l.N, l.P50, l.P90, l.P99, l.Max = s.n, s.at(50), s.at(90), s.at(99), s.at(100)
		}
	}
	err := db.report(ctx, func(c *Conn) error {
		return c.each("SELECT day, what, bucket, n FROM latencies"+c.dialect.Summed+" WHERE day >= ? AND day <= ? ORDER BY day, what, bucket", func(r Row) error {
			day, what := r.Str(0), r.Str(1)
			if len(list) == 0 || list[len(list)-1].Day != day || list[len(list)-1].What != what {
				close()
				list, s = append(list, storage.Latency{Day: day, What: what}), spread{}
			}
			s.buckets, s.counts, s.n = append(s.buckets, int(r.Int(2))), append(s.counts, r.Int(3)), s.n+r.Int(3)
			return nil
		}, from, to)
	})
	if err != nil {
		return nil, fmt.Errorf("latencies: %w", err)
	}
	close()
	return list, nil
}
