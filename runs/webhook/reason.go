package webhook

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
)

// reason says in words why a request got no answer. The errors of net/http hold
// the address, and that may hold a token.
func reason(err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "the name of the receiver's host cannot be resolved"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the certificate of the receiver is not accepted"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return "the receiver does not speak TLS"
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return "no answer in time"
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection is refused: the receiver does not run, or its address or port is another one"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "the receiver's host cannot be reached"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed without an answer"
	}
	return "the request failed"
}
