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
	"regexp"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/claybot/claybot/storage"
)

// A refusal is an answer of the store that is an error. Of what the store said
// it keeps the code only: messages may repeat parts of a request.
type refusal struct {
	code   string
	status int
	region string // where the bucket is, if the store said so
}

func (r *refusal) Error() string {
	if r.status == 0 {
		return "the store says " + r.code
	}
	return fmt.Sprintf("the store says %s (%d)", r.code, r.status)
}

// Is lets errors.Is find storage.ErrNotFound.
func (r *refusal) Is(target error) bool {
	return target == storage.ErrNotFound && r.code == minio.NoSuchKey
}

// passes reports an answer that may be another one soon.
func (r *refusal) passes() bool {
	switch r.code {
	case minio.InternalError, "RequestTimeout", "SlowDown", "SlowDownRead", "SlowDownWrite", "ServiceUnavailable",
		"Throttling", "ThrottlingException", "RequestLimitExceeded", "RequestThrottled", "OperationAborted",
		"XAmzContentSHA256Mismatch", "BadDigest", "IncompleteBody": // the way damaged the body
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
	codeForm   = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)
	regionForm = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
)

// errCut: a connection ended in the middle.
var errCut = errors.New("the connection was cut")

// errStalled: nothing came for too long.
var errStalled = errors.New("no answer in time")

// unanswered is a request without an answer.
type unanswered struct {
	host string
	err  error
}

func (u *unanswered) Error() string { return u.host + " does not answer: " + u.err.Error() }
func (u *unanswered) Unwrap() error { return u.err }

// fault is err without what a message must not hold: addresses of requests and
// words of the store.
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
		if strings.HasPrefix(err.Error(), "Connection closed by foreign host") { // the library's word, with the address
			err = errCut
		}
		return &unanswered{s.host, err}
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return &unanswered{s.host, err}
	}
	return err
}

// passes reports an error after which the same request may succeed.
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

// untrusted reports a host that answers, but not as the one that is meant.
func untrusted(err error) bool {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	return certificate || notTLS(err)
}

// The time of one try: for the answer, and for the body at 128 KiB/s.
const (
	answerTime  = 30 * time.Second
	timePerByte = time.Second / (128 << 10)
)

// The pauses between tries.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// try does a request that carries size bytes, and does it again while it fails
// for a reason that passes. It gives up when the patience ends, though not before
// the second try, and with the cause of ctx when that does.
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

// once does a request within its time.
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

// sleep waits, unless ctx ends before: then it returns its cause.
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
