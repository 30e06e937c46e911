package connectors

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// maxBodies bounds the bytes of all bodies that a hook holds at once: all that can reach the
// HTTP server can send some, however few of them it takes.
const maxBodies = 64 << 20

// unprovenTime is how long a sender that has proven nothing yet may take for its body.
const unprovenTime = 5 * time.Second

// ErrBodies reports that the bodies of other requests take all the memory that they may.
var ErrBodies = errors.New("too many requests are being read; send this again later")

// Bodies are those of the requests to one hook that are held at the same time: senders that fill
// the memory of one hook keep no other one from its own. The zero value is ready.
type Bodies struct {
	once sync.Once
	pool *semaphore.Weighted
}

// Read reads the body of a request of at most limit bytes. The errors are an
// *http.MaxBytesError for a longer one, ErrBodies where the bodies take too much memory, and
// those of the connection. release frees the memory; call it once the body is no longer used,
// also after an error.
//
// Check first what the header says of the sender, so that others cost nothing. Of one that it
// does not prove, the body must arrive within some seconds.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request, limit int64, proven bool) (body []byte, release func(), err error) {
	b.once.Do(func() { b.pool = semaphore.NewWeighted(maxBodies) })
	if conn := http.NewResponseController(w); !proven && conn.SetReadDeadline(time.Now().Add(unprovenTime)) == nil {
		defer func() { _ = conn.SetReadDeadline(time.Time{}) }() // the next request has its own
	}
	held := &reserving{r: http.MaxBytesReader(w, r.Body, limit), pool: b.pool}
	body, err = io.ReadAll(held)
	return body, func() { b.pool.Release(held.n); held.n = 0 }, err
}

// reserving reserves the bytes that it reads.
type reserving struct {
	r    io.Reader
	pool *semaphore.Weighted
	n    int64
}

// Read implements io.Reader.
func (h *reserving) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	if n > 0 && !h.pool.TryAcquire(int64(n)) {
		return 0, ErrBodies
	}
	h.n += int64(n)
	return n, err
}
