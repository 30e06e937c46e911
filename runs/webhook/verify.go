package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Errors of Verify.
var (
	// ErrSignature: the request does not come from who knows the secret, or was
	// changed on its way.
	ErrSignature = errors.New("the signature is missing or wrong")
	// ErrStale: it was signed too long ago, or in the future.
	ErrStale = errors.New("the timestamp is outside the tolerance")
)

// scheme stands before a signature; another way to sign will have another one.
const scheme = "v1="

// Sign returns the signature of a body that is sent at a time, in unix seconds
// as they stand in the header.
func Sign(secret, timestamp string, body []byte) string {
	return scheme + hex.EncodeToString(digest(secret, timestamp, body))
}

// Verify is for receivers: it returns nil when a request with this header and
// body was signed with the secret, not longer ago than the tolerance and not
// further in the future; ErrSignature or ErrStale otherwise. Five minutes are a
// good tolerance. An empty secret verifies nothing.
//
// Within the tolerance a request can be repeated by who has seen it: keep the
// Claybot-Delivery of what was accepted, or know events by run id and seq.
func Verify(secret string, header http.Header, body []byte, now time.Time, tolerance time.Duration) error {
	stamps, signatures := header.Values(TimestampHeader), header.Values(SignatureHeader)
	if secret == "" || len(stamps) != 1 || len(signatures) != 1 {
		return ErrSignature
	}
	given, ok := strings.CutPrefix(signatures[0], scheme)
	sum, err := hex.DecodeString(given)
	if !ok || err != nil || !hmac.Equal(sum, digest(secret, stamps[0], body)) {
		return ErrSignature
	}
	seconds, err := strconv.ParseInt(stamps[0], 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return ErrStale
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return ErrStale
	}
	return nil
}

func digest(secret, timestamp string, body []byte) []byte {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(timestamp))
	m.Write([]byte("."))
	m.Write(body)
	return m.Sum(nil)
}
