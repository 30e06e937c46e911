package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/claybot/claybot/storage"
)

// The patience of Check with a store that returns errors and one that does not answer.
const (
	checkPatience = 5 * time.Second
	checkAnswer   = 10 * time.Second
)

// Check writes, reads, lists and deletes a small file. Its error is one sentence with
// the problem and the fix.
func (s *Store) Check(ctx context.Context) error {
	c := *s
	c.patience, c.answer = min(s.patience, checkPatience), min(s.answer, checkAnswer)
	key := "claybot-check-" + rand.Text()
	if err := c.put(ctx, key, bytes.NewReader([]byte(key)), int64(len(key))); err != nil {
		return c.advise(ctx, "write", "s3:PutObject", err)
	}
	kept, err := c.read(ctx, key)
	deleted := c.delete(ctx, key) // always clean up
	if err != nil {
		return c.advise(ctx, "read", "s3:GetObject", err)
	}
	if kept != key {
		return fmt.Errorf("what answers at %s gives back other bytes than it got, so it is not a file store: check endpoint in files.url", c.host)
	}
	if deleted != nil {
		return c.advise(ctx, "list and delete", "s3:ListBucket and s3:DeleteObject", deleted)
	}
	if _, err := c.read(ctx, key); !errors.Is(err, storage.ErrNotFound) {
		if err == nil {
			return fmt.Errorf("the store at %s keeps what it was told to delete: check the rules of the bucket %q", c.host, c.bucket)
		}
		return c.advise(ctx, "read", "s3:GetObject", err)
	}
	return nil
}

// read returns the content of a file of a few bytes.
func (s *Store) read(ctx context.Context, key string) (string, error) {
	r, err := s.Open(ctx, key)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(r, 1<<10))
	return string(b), errors.Join(err, r.Close())
}

// advise explains an error of Check and how to fix it.
func (s *Store) advise(ctx context.Context, act, right string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("the file store at %s was not checked: %w", s.host, context.Cause(ctx))
	}
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return s.adviseUnanswered(err)
	}
	switch r.code {
	case minio.NoSuchBucket:
		return fmt.Errorf("there is no bucket %q at %s: create it, or mend its name in files.url", s.bucket, s.host)
	case "InvalidAccessKeyId":
		return fmt.Errorf("the file store at %s does not know the key: check AWS_ACCESS_KEY_ID", s.host)
	case "SignatureDoesNotMatch":
		return fmt.Errorf("the file store at %s refuses the signature: check AWS_SECRET_ACCESS_KEY", s.host)
	case "InvalidToken", "ExpiredToken", "ExpiredTokenException":
		return fmt.Errorf("the file store at %s refuses the session: set a new AWS_SESSION_TOKEN together with its key, or none", s.host)
	case "RequestTimeTooSkewed", "RequestExpired":
		return fmt.Errorf("the clock of this machine is more than 15 minutes away from that of the file store at %s: set it, best by NTP", s.host)
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect", minio.InvalidRegion, "IllegalLocationConstraintException":
		return s.adviseRegion(r)
	case minio.AccessDenied, "AllAccessDisabled", "AccountProblem":
		return fmt.Errorf("the key may not %s files in the bucket %q: allow %s", act, s.bucket, right)
	}
	switch {
	case r.status >= 300 && r.status < 400:
		return s.adviseRegion(r)
	case r.passes():
		return fmt.Errorf("the file store at %s cannot be used now: %w; try again later, or look at its own health", s.host, r)
	default:
		return fmt.Errorf("the file store at %s cannot be used: %w; check endpoint and bucket in files.url", s.host, r)
	}
}

func (s *Store) adviseRegion(r *refusal) error {
	if r.region == "" || r.region == s.region {
		return fmt.Errorf("the bucket %q is not in the region %s: add its own as region=... to files.url", s.bucket, s.region)
	}
	return fmt.Errorf("the bucket %q is in the region %s, not in %s: write region=%s into files.url", s.bucket, r.region, s.region, r.region)
}

func (s *Store) adviseUnanswered(err error) error {
	u, ok := errors.AsType[*unanswered](err)
	switch {
	case !ok:
		return fmt.Errorf("the file store at %s cannot be used: %w; check endpoint in files.url", s.host, err)
	case notTLS(u.err):
		return fmt.Errorf("%s does not speak TLS: write endpoint=http://... into files.url, if its network can be trusted", s.host)
	case untrusted(u.err):
		return fmt.Errorf("the certificate of %s is not trusted: install its authority on this machine, or mend endpoint in files.url", s.host)
	default:
		return fmt.Errorf("the file store at %w: check endpoint in files.url, and the network", u)
	}
}

// notTLS reports a server without TLS at an https address.
func notTLS(err error) bool {
	_, header := errors.AsType[tls.RecordHeaderError](err)
	return header || errors.Is(err, http.ErrSchemeMismatch)
}
