package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/claybot/claybot/storage"
)

// idleTime is how long a download may receive nothing before it is requested again.
const idleTime = 30 * time.Second

// maxResumes is how often in a row a download resumes without receiving a byte.
const maxResumes = 5

// Open implements storage.Blobs. ctx covers reading as well. An interrupted download
// resumes where it stopped; it returns io.EOF only after all bytes.
func (s *Store) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := storage.CheckBlobKey(key); err != nil {
		return nil, fmt.Errorf("open file: %w", err)
	}
	d := &download{key: key, host: s.host}
	d.open = func() error {
		return s.try(ctx, 0, func(context.Context) error { return s.get(ctx, d) })
	}
	d.pause = func() error { return sleep(ctx, firstPause<<d.resumes) }
	d.ended = func() error { return context.Cause(ctx) }
	if err := d.open(); err != nil {
		return nil, fmt.Errorf("open file %.80q: %w", key, err)
	}
	return d, nil
}

// A download is the body of a file, or of several requests for the rest of one.
type download struct {
	key, host string
	open      func() error // requests the bytes from at on
	pause     func() error
	ended     func() error // returns the cause if the download was canceled

	etag    string
	size    int64 // negative: unknown
	at      int64
	body    io.ReadCloser
	cancel  context.CancelCauseFunc
	resumes int   // since the last byte
	failed  error // why body is unusable
	closed  bool
}

// errUnreadable: the response is not from a file store.
var errUnreadable = errors.New("the answer is not that of a file store")

// get requests the rest of a file. The body outlives the try, so it has its own context,
// which idleTime cancels.
func (s *Store) get(ctx context.Context, d *download) error {
	var opts minio.GetObjectOptions
	if d.at > 0 {
		if err := errors.Join(opts.SetRange(d.at, 0), opts.SetMatchETag(d.etag)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	idle := time.AfterFunc(s.answer, func() { cancel(errStalled) })
	body, info, _, err := s.core.GetObject(ctx, s.bucket, s.prefix+d.key, opts)
	late := !idle.Stop()
	if err != nil || late {
		cancel(errStalled)
		if err == nil {
			_ = body.Close() // its context has ended
		}
		if late {
			return &unanswered{s.host, errStalled}
		}
		if r, ok := errors.AsType[minio.ErrorResponse](err); ok && r.StatusCode == 0 { // from the library itself
			return errUnreadable
		}
		return err
	}
	if d.at == 0 {
		d.size, d.etag = info.Size, info.ETag
	} else if info.Size != d.size-d.at {
		cancel(nil)
		_ = body.Close() // the body is not used
		return errors.New("the store does not send the rest of a file")
	}
	d.body, d.cancel, d.failed = body, cancel, nil
	return nil
}

// Read implements io.Reader. An error other than io.EOF is final.
func (d *download) Read(p []byte) (int, error) {
	for {
		switch {
		case d.closed:
			return 0, fmt.Errorf("read file %.80q: %w", d.key, os.ErrClosed)
		case d.size >= 0 && d.at == d.size:
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		}
		if d.failed == nil {
			n, done := d.some(p)
			if n > 0 {
				d.resumes = 0
				return n, nil
			}
			if done {
				return 0, io.EOF
			}
		}
		if err := d.resume(); err != nil {
			return 0, fmt.Errorf("read file %.80q: %w", d.key, err)
		}
	}
}

// some reads from the current body. done means that a file of unknown size is complete.
func (d *download) some(p []byte) (n int, done bool) {
	if d.size >= 0 {
		p = p[:min(int64(len(p)), d.size-d.at)]
	}
	idle := time.AfterFunc(idleTime, func() { d.cancel(errStalled) })
	n, err := d.body.Read(p)
	if !idle.Stop() && err == nil {
		err = errStalled
	}
	d.at += int64(n)
	if err != nil {
		d.failed = err
	}
	return n, errors.Is(err, io.EOF) && d.size < 0
}

// resume requests the rest after a failure.
func (d *download) resume() error {
	if err := d.ended(); err != nil {
		return err
	}
	if d.resumes >= maxResumes || d.size < 0 {
		return &unanswered{d.host, errCut}
	}
	if err := d.pause(); err != nil {
		return err
	}
	d.resumes++
	_ = d.end() // it has failed already
	return d.open()
}

// Close ends the download. A second call has no effect.
func (d *download) Close() error {
	d.closed = true
	return d.end()
}

// end closes the current response.
func (d *download) end() error {
	if d.cancel == nil {
		return nil
	}
	d.cancel(nil)
	d.cancel = nil
	return d.body.Close()
}
