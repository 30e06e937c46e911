package s3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/storage"
)

// A refusal is an error response of the store. It keeps only the code: messages may
// repeat parts of a request.
type refusal struct {
	code   string
	status int
	region string // of the bucket, if the store returned it
}

func (r *refusal) Error() string {
	if r.status == 0 {
		return "the store says " + r.code
	}
	return fmt.Sprintf("the store says %s (%d)", r.code, r.status)
}

// Is makes errors.Is match storage.ErrNotFound.
func (r *refusal) Is(target error) bool {
	return target == storage.ErrNotFound && r.code == minio.NoSuchKey
}

// passes reports whether the error is temporary.
func (r *refusal) passes() bool {
	switch r.code {
	case minio.InternalError, "RequestTimeout", "SlowDown", "SlowDownRead", "SlowDownWrite", "ServiceUnavailable",
		"Throttling", "ThrottlingException", "RequestLimitExceeded", "RequestThrottled", "OperationAborted",
		"XAmzContentSHA256Mismatch", "BadDigest", "IncompleteBody": // the body was damaged in transit
		return true
	}
	switch r.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented:
		return false
	}
	return r.status >= 500
}

var (
	codeForm   = lazyregexp.New(`^[A-Za-z0-9.]{1,64}$`)
	regionForm = lazyregexp.New(`^[a-z0-9-]{1,40}$`)
)

// errCut: the connection closed before the end of the response.
var errCut = errors.New("the connection was cut")

// errStalled: no data arrived within the time limit.
var errStalled = errors.New("no answer in time")

// unanswered is a request without a response.
type unanswered struct {
	host string
	err  error
}

func (u *unanswered) Error() string { return u.host + " does not answer: " + u.err.Error() }
func (u *unanswered) Unwrap() error { return u.err }

// fault returns err without what a message must not contain: the addresses of requests
// and the store's messages.
func (s *Store) fault(err error) error {
	if _, ok := errors.AsType[*unanswered](err); ok {
		return err
	}
	if r, ok := errors.AsType[minio.ErrorResponse](err); ok {
		f := &refusal{code: r.Code, status: r.StatusCode, region: r.Region}
		if !codeForm.MatchString(f.code) {
			f.code = "nothing that is known here"
		}
		if !regionForm.MatchString(f.region) {
			f.region = ""
		}
		return f
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
		if strings.HasPrefix(err.Error(), "Connection closed by foreign host") { // the library's message contains the address
			err = errCut
		}
		return &unanswered{s.host, err}
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return &unanswered{s.host, err}
	}
	return err
}

// passes reports whether the same request may succeed later.
func passes(err error) bool {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.passes()
	}
	u, ok := errors.AsType[*unanswered](err)
	if !ok {
		return errors.Is(err, errStalled)
	}
	return !untrusted(u.err)
}

// untrusted reports whether TLS verification of the host failed.
func untrusted(err error) bool {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	return certificate || notTLS(err)
}

// The time limit of one try: for the response, plus the body at 128 KiB/s.
const (
	answerTime  = 30 * time.Second
	timePerByte = time.Second / (128 << 10)
)

// The pauses between tries.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// try makes a request of size bytes and retries temporary failures. It gives up when
// the patience ends, but not before the second try, or when ctx ends, with its cause.
func (s *Store) try(ctx context.Context, size int64, do func(context.Context) error) error {
	start := time.Now()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		first := pause == firstPause
		err := s.once(ctx, size, do)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !passes(err):
			return err
		}
		wait := pause/2 + rand.N(pause/2)
		if tried := time.Since(start); tried+wait > s.patience && !first {
			return fmt.Errorf("%w; tried for %s", err, tried.Round(time.Second))
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// once makes a request within its time limit.
func (s *Store) once(ctx context.Context, size int64, do func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	within, cancel := context.WithTimeoutCause(ctx, s.answer+time.Duration(size)*timePerByte, errStalled)
	defer cancel()
	err := do(within)
	if err == nil {
		return nil
	}
	if within.Err() != nil && ctx.Err() == nil {
		return &unanswered{s.host, errStalled}
	}
	return s.fault(err)
}

// sleep waits for d. It returns the cause of ctx if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
