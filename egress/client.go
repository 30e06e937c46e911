package egress

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Bounds of requests.
const (
	// MaxRedirects is how many redirects a client follows.
	MaxRedirects = 5
	// maxRatio is how many times larger than what was sent a body may become, and
	// freeBytes the size from which that counts.
	maxRatio  = 100
	freeBytes = 1 << 20

	maxHeaders = 256 << 10
)

// Limits bound the requests of a client.
type Limits struct {
	// Timeout bounds one request with its redirects and its body; 0 for none.
	Timeout time.Duration
	// HeaderTimeout bounds the wait for the first answer of each hop; 0 for none.
	HeaderTimeout time.Duration
	// MaxBytes bounds a body after decompression; reading more is a *SizeError. 0
	// for none.
	MaxBytes int64
	// NoRedirects hands redirects to the caller instead of following them.
	NoRedirects bool
}

// A SizeError is a body that is too large, or that becomes too large.
type SizeError struct{ Why string }

func (e *SizeError) Error() string { return "the answer " + e.Why }

// ErrRedirect is an answer that leads where a client does not follow: too often,
// from https to http, or with a body to another place.
var ErrRedirect = errors.New("the redirect is not followed")

// errLoop is the ErrRedirect that is told with its reason; those of the others hold
// words of the server.
var errLoop = fmt.Errorf("%w: there are more than %d", ErrRedirect, MaxRedirects)

// Client makes a client whose every request, also after a redirect, goes through
// the door. It follows at most MaxRedirects of them, never from https to http; to
// another place it sends neither a body nor headers of its own such as
// Authorization. It has no cookies and never sends a Referer. It decompresses gzip
// itself, at most 100 to 1.
//
// Its errors are *url.Error, which hold the whole address; Words makes of them
// what may be shown.
func (d *Door) Client(l Limits) *http.Client {
	c := &http.Client{Transport: d.RoundTripper(l), Timeout: l.Timeout, CheckRedirect: follow}
	if l.NoRedirects {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return c
}

// RoundTripper is the transport of Client alone, for callers that have an
// http.Client of their own; they care for redirects and Limits.Timeout themselves.
// Each hop goes through the door all the same.
func (d *Door) RoundTripper(l Limits) http.RoundTripper {
	base := d.transport()
	base.ResponseHeaderTimeout = l.HeaderTimeout
	return &guarded{door: d, base: base, limits: l}
}

// transport is what connects through the door, without proxies from the
// environment.
func (d *Door) transport() *http.Transport {
	return &http.Transport{
		DialContext: d.DialContext, ForceAttemptHTTP2: true, DisableCompression: true,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 60 * time.Second, ExpectContinueTimeout: time.Second,
		MaxIdleConns: 32, MaxIdleConnsPerHost: 4, MaxResponseHeaderBytes: maxHeaders,
	}
}

// follow decides about a redirect. The door itself is asked when it is followed.
func follow(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) > MaxRedirects {
		return errLoop
	}
	if via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return fmt.Errorf("%w: it leads from https to %s", ErrRedirect, shorten(next.URL.Scheme))
	}
	from, err := targetOf(first)
	if err != nil {
		return err
	}
	to, err := targetOf(next.URL)
	if err != nil {
		return err
	}
	if from == to && first.Scheme == next.URL.Scheme {
		return nil
	}
	if next.Method != http.MethodGet && next.Method != http.MethodHead {
		return fmt.Errorf("%w: it would send what was meant for %s to %s", ErrRedirect, from, to)
	}
	kept := make(http.Header)
	for _, name := range []string{"Accept", "Accept-Encoding", "Accept-Language", "User-Agent"} {
		if v, ok := next.Header[name]; ok {
			kept[name] = v
		}
	}
	next.Header = kept
	return nil
}

// guarded asks the door before each request and tells what became of it.
type guarded struct {
	door   *Door
	base   *http.Transport
	limits Limits
}

func (g *guarded) CloseIdleConnections() { g.base.CloseIdleConnections() }

func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	entry := &entry{log: g.door.log, start: time.Now(), Request: Request{Method: req.Method}}
	out, unzip, err := g.prepare(req, entry)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		entry.end(err)
		return nil, err
	}
	resp, err := g.base.RoundTrip(out)
	if err != nil {
		entry.end(err)
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		entry.end(nil)
		return resp, nil
	}
	resp.Request = req
	raw := &meter{r: resp.Body, n: &entry.received}
	body := &body{Reader: raw, raw: raw, closer: resp.Body, entry: entry, max: g.limits.MaxBytes}
	if unzip && resp.Header.Get("Content-Encoding") == "gzip" && resp.Body != http.NoBody && req.Method != http.MethodHead {
		body.Reader, body.zipped = &unzipped{raw: raw}, true
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	}
	resp.Body = body
	return resp, nil
}

// prepare makes the request that is sent, and asks the door. unzip: compression is
// the client's affair, not that of the caller.
func (g *guarded) prepare(req *http.Request, e *entry) (out *http.Request, unzip bool, err error) {
	e.Host = shorten(req.URL.Host)
	t, err := targetOf(req.URL)
	if err != nil {
		return nil, false, err
	}
	e.Host = t.String()
	if _, err := g.door.permit(t); err != nil {
		return nil, false, err
	}
	out = req.Clone(req.Context())
	out.URL.Host = hostOf(t, req.URL.Scheme)
	if out.Host == req.URL.Host {
		out.Host = "" // the same in its usual form
	}
	out.Header.Del("Referer")
	if out.Header.Get("Accept-Encoding") == "" && out.Header.Get("Range") == "" && req.Method != http.MethodHead {
		out.Header.Set("Accept-Encoding", "gzip")
		unzip = true
	}
	if req.Body != nil && req.Body != http.NoBody {
		out.Body = struct {
			io.Reader
			io.Closer
		}{&meter{r: req.Body, n: &e.sent}, req.Body}
	}
	return out, unzip, nil
}

// hostOf is a target as the host of an address, without the usual port.
func hostOf(t target, scheme string) string {
	if scheme == "http" && t.port == 80 || scheme == "https" && t.port == 443 {
		if t.addr.Is6() {
			return "[" + t.name + "]"
		}
		return t.name
	}
	return net.JoinHostPort(t.name, strconv.Itoa(int(t.port)))
}

// An entry is a request until it is told to the log, once.
type entry struct {
	Request
	log            func(Request)
	start          time.Time
	sent, received atomic.Int64
	once           sync.Once
}

func (e *entry) end(err error) {
	e.once.Do(func() {
		e.Sent, e.Received, e.Took = e.sent.Load(), e.received.Load(), time.Since(e.start)
		e.Decision = Allowed
		if err != nil {
			e.Decision, e.Why = Failed, Words(err)
			if refused, ok := errors.AsType[*RefusedError](err); ok {
				e.Decision, e.Why = Refused, refused.Why
			}
		}
		e.log(e.Request)
	})
}

type meter struct {
	r io.Reader
	n *atomic.Int64
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	m.n.Add(int64(n))
	return n, err
}

// unzipped decompresses from the first Read on.
type unzipped struct {
	raw io.Reader
	zip *gzip.Reader
	err error
}

func (u *unzipped) Read(b []byte) (int, error) {
	if u.zip == nil && u.err == nil {
		u.zip, u.err = gzip.NewReader(u.raw)
	}
	if u.err != nil {
		return 0, u.err
	}
	return u.zip.Read(b)
}

// A body is that of an answer, within its bounds.
type body struct {
	io.Reader
	raw    *meter
	zipped bool
	closer io.Closer
	entry  *entry
	max    int64
	out    int64
	fault  error
}

func (b *body) Read(p []byte) (int, error) {
	if b.fault != nil {
		return 0, b.fault
	}
	if b.max > 0 { // one byte more tells a body that is too large from one that fits
		p = p[:min(int64(len(p)), b.max-b.out+1)]
	}
	n, err := b.Reader.Read(p)
	b.out += int64(n)
	switch {
	case b.max > 0 && b.out > b.max:
		n -= int(b.out - b.max)
		err = &SizeError{fmt.Sprintf("is larger than %d bytes", b.max)}
	case b.zipped && b.out > freeBytes && b.out > maxRatio*b.raw.n.Load():
		n, err = 0, &SizeError{fmt.Sprintf("is compressed more than %d to 1", maxRatio)}
	}
	if err != nil {
		b.fault = err
		if errors.Is(err, io.EOF) {
			b.entry.end(nil)
		} else {
			b.entry.end(err)
		}
	}
	return n, err
}

func (b *body) Close() error {
	err := b.closer.Close()
	b.entry.end(nil)
	return err
}

// Words are what may be shown of an error of a client: without the address, which
// may hold what is secret, and without words of the server, which are untrusted.
// An error of no class that is known here is told in general terms.
func Words(err error) string {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused.Error()
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		if e.Timeout() {
			return "it took too long"
		}
		return Words(e.Err)
	}
	if _, ok := errors.AsType[*url.EscapeError](err); ok {
		return "the address is not valid"
	}
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.Canceled):
		return "it was stopped"
	case errors.Is(err, context.DeadlineExceeded), ok && timeout.Timeout():
		return "it took too long"
	}
	return wordsOf(err)
}

// wordsOf are words for each class of errors.
func wordsOf(err error) string {
	if size, ok := errors.AsType[*SizeError](err); ok {
		return size.Error()
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "there is no such host"
		}
		return "the name of the host could not be looked up"
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, op := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, errLoop):
		return errLoop.Error()
	case errors.Is(err, ErrRedirect):
		return ErrRedirect.Error()
	case certificate:
		return "the certificate of the host is not valid"
	case record, alert:
		return "the host does not speak TLS as it should"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the host refuses the connection"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "the host cannot be reached"
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return "the answer is not compressed as it says"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), op:
		return "the connection broke"
	}
	return "the host does not answer as it should"
}
