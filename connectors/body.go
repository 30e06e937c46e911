package connectors

import (
	"errors"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"
)

// maxBodies bounds the bytes of all bodies that hooks hold at once: whoever can reach the
// HTTP server can send some, however few of them claybot takes.
const maxBodies = 64 << 20

// ErrBodies reports that the bodies of other requests take all the memory that they may.
var ErrBodies = errors.New("too many requests are being read; send this again later")

var bodies = semaphore.NewWeighted(maxBodies)

// ReadBody reads the body of a request to a hook, of at most limit bytes. The errors are an
// *http.MaxBytesError for a longer one, ErrBodies where the bodies of all hooks take too much
// memory, and those of the connection. release frees the memory; call it once the body is no
// longer used, also after an error.
//
// Check first what the header says of the sender, so that others cost nothing.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, release func(), err error) {
	b := &reserving{r: http.MaxBytesReader(w, r.Body, limit)}
	body, err = io.ReadAll(b)
	return body, func() { bodies.Release(b.held); b.held = 0 }, err
}

// reserving reserves the bytes that it reads.
type reserving struct {
	r    io.Reader
	held int64
}

// Read implements io.Reader.
func (b *reserving) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if n > 0 && !bodies.TryAcquire(int64(n)) {
		return 0, ErrBodies
	}
	b.held += int64(n)
	return n, err
}
