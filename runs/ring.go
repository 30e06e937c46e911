package runs

// How many of the newest events a feed keeps for its readers; one that is further
// behind reads the store.
const (
	ringEvents = 256
	ringBytes  = 1 << 20
)

// A ring holds the newest events of a run without gaps. The seq of the last one is
// last, 0 when none is known.
type ring struct {
	events []*sealed
	bytes  int
	last   int64
	ended  bool // last is that of the last event of the run
}

// add puts an event behind the others. Known ones are left out; after a gap
// the ring begins anew.
func (r *ring) add(s *sealed) {
	if s.event.Seq <= r.last {
		return
	}
	if s.event.Seq != r.last+1 {
		r.events, r.bytes = nil, 0
	}
	r.events = append(r.events, s)
	r.bytes += s.size()
	r.last = s.event.Seq
	r.ended = r.ended || s.event.Type.Ends()
	for len(r.events) > ringEvents || r.bytes > ringBytes {
		r.bytes -= r.events[0].size()
		r.events[0] = nil
		r.events = r.events[1:]
	}
}

// before is the seq before the events of the ring.
func (r *ring) before() int64 { return r.last - int64(len(r.events)) }

// reach notes up to which seq events are stored, and whether the run has ended with
// that. It reports whether that is news.
func (r *ring) reach(last int64, ended bool) bool {
	if last <= r.last && (r.ended || !ended) {
		return false
	}
	if last > r.last {
		r.events, r.bytes, r.last = nil, 0, last
	}
	r.ended = r.ended || ended
	return true
}
