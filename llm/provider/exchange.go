package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// Timeouts bound the phases of a call. Zero fields mean the default.
type Timeouts struct {
	Header time.Duration // request sent to first header, dialing included; 60 s
	Idle   time.Duration // from the head of the answer, or its newest content (Progress), to the next; 120 s
	Step   time.Duration // the whole call; 10 min
}

// Why a timer ended an exchange.
var (
	errHeader = errors.New("the provider did not begin to answer in time")
	errIdle   = errors.New("the answer stalled: no new content came in time")
	errTail   = errors.New("nothing more came after the answer")
)

const (
	maxProblem = 64 << 10 // bytes read of a response that is no answer
	// What may still come after the reason of the end: usage and the end mark.
	tailTime = 5 * time.Second
	// How long the end of the response may take once everything is here; only
	// then can the connection be used again.
	drainTime = 100 * time.Millisecond
)

// A Caller makes the requests of a client to one address. Every exchange ends,
// within Timeouts and MaxAnswer; redirects to other hosts are not followed.
// It may be used by any number of goroutines.
type Caller struct {
	URL      string
	Redactor Redactor
	timeouts Timeouts
	http     *http.Client
}

// NewCaller returns a caller. A nil transport means NewTransport.
func NewCaller(address string, t Timeouts, rt http.RoundTripper, d Redactor) *Caller {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&t.Header, time.Minute)
	def(&t.Idle, 2*time.Minute)
	def(&t.Step, llm.StepTime)
	if rt == nil {
		rt = NewTransport()
	}
	return &Caller{
		URL: address, Redactor: d, timeouts: t,
		http: &http.Client{Transport: rt, CheckRedirect: checkRedirect},
	}
}

// CloseIdleConnections closes the connections that no call uses.
func (c *Caller) CloseIdleConnections() { c.http.CloseIdleConnections() }

// Within bounds a call by Timeouts.Step.
func (c *Caller) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.timeouts.Step, llm.ErrStep)
}

// Post begins an exchange: it sends body and waits for the head of the answer.
// The exchange must be closed when the error is nil.
func (c *Caller) Post(ctx context.Context, body []byte, header http.Header) (*Exchange, *llm.Error) {
	return c.send(ctx, http.MethodPost, c.URL, body, header)
}

func (c *Caller) send(ctx context.Context, method, address string, body []byte, header http.Header) (*Exchange, *llm.Error) {
	x := &Exchange{caller: c, left: MaxAnswer}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.phase(c.timeouts.Header, errHeader)
	req, err := http.NewRequestWithContext(x.ctx, method, address, bytes.NewReader(body))
	if err != nil {
		x.Close()
		return nil, llm.Failed(llm.Permanent, "the base URL is not usable")
	}
	req.Header = header
	if span := claybot.TraceOf(ctx).String(); span != "" {
		req.Header.Set("Traceparent", span)
	}
	resp, err := c.http.Do(req) //nolint:bodyclose // Exchange.Close does
	if err != nil {
		e := x.Broken(err)
		x.Close()
		return nil, e
	}
	x.resp = resp
	x.idle = c.timeouts.Idle
	x.phase(x.idle, errIdle)
	return x, nil
}

// An Exchange is one request whose answer is being read. It bounds the size of
// the answer, and the time without content: bytes alone do not extend it, so a
// server that sends comments, blanks or empty events ends as stalled. A body
// whose reader never calls Progress has to arrive within Timeouts.Idle. An
// Exchange belongs to one goroutine.
type Exchange struct {
	caller *Caller
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	resp   *http.Response
	left   int
	idle   time.Duration
}

// Status is the HTTP status of the answer.
func (x *Exchange) Status() int { return x.resp.StatusCode }

// Header is the header of the answer.
func (x *Exchange) Header() http.Header { return x.resp.Header }

// Kind is the media type of the answer, without parameters; empty for an
// unreadable one.
func (x *Exchange) Kind() string {
	kind, _, _ := mime.ParseMediaType(x.resp.Header.Get("Content-Type")) // an unreadable one is none
	return kind
}

// Read reads the body. ErrTooLarge ends one that is larger than MaxAnswer.
func (x *Exchange) Read(p []byte) (int, error) {
	if x.left <= 0 {
		return 0, ErrTooLarge
	}
	n, err := x.resp.Body.Read(p[:min(len(p), x.left)])
	x.left -= n
	return n, err
}

// Progress says that the answer has grown by content. It restarts the time that
// Timeouts.Idle allows, until Tail or Drain.
func (x *Exchange) Progress() {
	if x.idle > 0 {
		x.timer.Reset(x.idle)
	}
}

// Problem is the beginning of a body that is no answer.
func (x *Exchange) Problem() []byte {
	body, _ := io.ReadAll(io.LimitReader(x, maxProblem)) // a part of it is enough
	return body
}

// Tail says that the reason of the end was read: only a short time is left for
// what may follow it.
func (x *Exchange) Tail() {
	x.idle = 0
	x.phase(tailTime, errTail)
}

// Drain reads what may be left of a complete answer, so that the connection can
// be used again.
func (x *Exchange) Drain() {
	x.idle = 0
	x.phase(drainTime, errTail)
	_, _ = io.Copy(io.Discard, io.LimitReader(x.resp.Body, maxProblem)) // the answer is complete whatever comes
}

// Close ends the exchange.
func (x *Exchange) Close() {
	x.timer.Stop()
	if x.resp != nil {
		_ = x.resp.Body.Close() // read to the end where that matters
	}
	x.cancel(nil)
}

// Ended reports that a timer or the caller ended the exchange, other than the
// timer that Tail sets.
func (x *Exchange) Ended() bool {
	return x.ctx.Err() != nil && !errors.Is(context.Cause(x.ctx), errTail)
}

func (x *Exchange) phase(d time.Duration, cause error) {
	if x.timer != nil {
		x.timer.Stop()
	}
	cancel := x.cancel
	x.timer = time.AfterFunc(d, func() { cancel(cause) })
}

// Broken says why an answer broke with err. Its text names no address.
func (x *Exchange) Broken(err error) *llm.Error {
	if x.ctx.Err() != nil {
		switch cause := context.Cause(x.ctx); {
		case errors.Is(cause, errHeader), errors.Is(cause, errIdle), errors.Is(cause, llm.ErrStep):
			return llm.Failed(llm.Transient, "%s", cause.Error())
		default:
			return llm.Failed(llm.Transient, "the call was ended")
		}
	}
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case errors.Is(err, errRedirect):
		_, reason, _ := strings.Cut(err.Error(), errRedirect.Error())
		return llm.Failed(llm.Permanent, "the provider's redirect is not followed%s; check the base URL", x.caller.Redactor.Short(reason))
	case errors.Is(err, ErrLineTooLong), errors.Is(err, ErrTooLarge):
		return llm.Failed(llm.Permanent, "%s", err.Error())
	case errors.As(err, &dns):
		return llm.Failed(llm.Transient, "the provider's host name cannot be resolved")
	case errors.As(err, &cert):
		return llm.Failed(llm.Transient, "the provider's certificate is not trusted")
	case errors.Is(err, syscall.ECONNREFUSED):
		return llm.Failed(llm.Transient, "the provider cannot be reached: connection refused")
	case errors.As(err, &timeout) && timeout.Timeout():
		return llm.Failed(llm.Transient, "the provider cannot be reached: timeout")
	}
	return llm.Failed(llm.Transient, "the connection to the provider broke")
}

// Cut says what became of an answer that broke with err after some of it came,
// or none: it is never a shorter success.
func (x *Exchange) Cut(err error, nothing bool) *llm.Error {
	switch {
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrLineTooLong), x.Ended():
		return x.Broken(err)
	case nothing && x.ctx.Err() == nil && (err == nil || errors.Is(err, io.EOF)):
		return llm.Failed(llm.Transient, "the provider's answer was empty")
	}
	return llm.Failed(llm.Transient, "the answer was cut off")
}

// Endpoint returns the address of path below a base URL, which may have it
// already. The error does not show the base URL: it may hold a password.
func Endpoint(base, path string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("base URL is not an http or https address")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), path) + path
	u.RawPath, u.Fragment = "", ""
	return u, nil
}

// NewTransport returns a transport for many calls at once to few hosts: one
// HTTP/1.1 connection for each call in flight, kept for the next ones. It
// honours the proxy and certificate settings of the environment.
func NewTransport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true) // a stuck HTTP/2 connection would stall every agent
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 512,
		IdleConnTimeout:     90 * time.Second,
		WriteBufferSize:     8 << 10, // most requests are written at once
		// Compression saves nothing on small pieces, delays them, and hides
		// how large an answer is.
		DisableCompression: true,
		Protocols:          &protocols,
	}
}

var errRedirect = errors.New("redirect refused")

// checkRedirect follows redirects on the same host only, without loss of
// encryption, and only those that repeat the POST. So the key goes nowhere else.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 3:
		return fmt.Errorf("%w: too many", errRedirect)
	case req.URL.Host != first.URL.Host:
		return fmt.Errorf("%w: to another host", errRedirect)
	case first.URL.Scheme == "https" && req.URL.Scheme != "https":
		return fmt.Errorf("%w: to an address without encryption", errRedirect)
	case req.Method != first.Method:
		return fmt.Errorf("%w: it turns the request into another", errRedirect)
	}
	return nil
}
