package openai

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
	"strings"
	"syscall"
	"time"

	"github.com/claybot/claybot/llm"
)

// Why a timer ended an attempt.
var (
	errHeader = errors.New("the provider did not begin to answer in time")
	errIdle   = errors.New("the answer stopped in the middle")
	errStep   = errors.New("the call took too long")
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

// A failure is a failed attempt.
type failure struct {
	*llm.Error
	refused uint32 // optional fields that the server does not accept
}

func failed(class llm.Class, format string, args ...any) *failure {
	return &failure{Error: &llm.Error{Class: class, Text: fmt.Sprintf(format, args...)}}
}

// attempt makes one request, without the given optional fields, and reads its
// answer to the end.
func (c *Client) attempt(ctx context.Context, r llm.Request, without uint32) (llm.Response, *failure) {
	body, err := c.encode(r, without)
	if err != nil {
		return llm.Response{}, failed(llm.Permanent, "the request cannot be encoded; a tool's parameters may be no JSON")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := newWatch(cancel, c.cfg.Timeouts.Header, errHeader)
	defer watch.stop()

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return llm.Response{}, failed(llm.Permanent, "the base URL is not usable")
	}
	c.setHeaders(req.Header)
	resp, err := c.http.Do(req)
	if err != nil {
		return llm.Response{}, c.broken(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // read to the end where that matters
	watch.next(c.cfg.Timeouts.Idle, errIdle)

	in := &limitedBody{r: resp.Body, left: maxBody, watch: watch, idle: c.cfg.Timeouts.Idle}
	if resp.StatusCode != http.StatusOK {
		return llm.Response{}, c.refusal(resp, in)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // an unreadable one is no stream
	if kind != "text/event-stream" {
		return llm.Response{}, c.noStream(kind, in)
	}
	out, fail := c.read(ctx, in, r)
	if fail == nil {
		watch.next(drainTime, errTail)
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxProblem)) // the answer is complete whatever comes
	}
	return out, fail
}

func (c *Client) setHeaders(h http.Header) {
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream")
	h.Set("User-Agent", "claybot")
	if c.cfg.Key != "" {
		h.Set("Authorization", "Bearer "+c.cfg.Key)
	}
	for name, value := range c.cfg.Headers {
		h.Set(name, value)
	}
}

// refusal is the failure that a response with an error status stands for.
func (c *Client) refusal(resp *http.Response, in io.Reader) *failure {
	body, _ := io.ReadAll(io.LimitReader(in, maxProblem)) // a part of it is enough
	p := parseProblem(resp.StatusCode, body)
	f := c.problem(p)
	f.Status = p.status
	f.RetryAfter = retryAfter(resp.Header, time.Now())
	if f.Class == llm.Transient && p.status == http.StatusServiceUnavailable && f.RetryAfter > 0 {
		f.Class = llm.Rate
	}
	switch resp.Header.Get("X-Should-Retry") {
	case "true":
		if f.Class == llm.Permanent {
			f.Class = llm.Transient
		}
	case "false":
		if f.Class != llm.Context {
			f.Class = llm.Permanent
		}
	}
	return f
}

// problem turns what the server says into a failure.
func (c *Client) problem(p problem) *failure {
	text := p.sentence()
	if m := c.short(p.message); m != "" {
		text += ": " + m
	}
	return &failure{Error: &llm.Error{Class: p.class(), Text: text}, refused: p.refused()}
}

// noStream is the failure of a response that is no event stream.
func (c *Client) noStream(kind string, in io.Reader) *failure {
	body, _ := io.ReadAll(io.LimitReader(in, maxProblem)) // a part of it is enough
	switch {
	case kind == "application/json" && bytes.Contains(body, []byte(`"choices"`)):
		return failed(llm.Transient, "the server ignores \"stream\": it sent its answer as one JSON object")
	case kind == "application/json" && bytes.Contains(body, []byte(`"error"`)):
		p := parseProblem(0, body)
		p.inStream()
		return c.problem(p)
	case kind == "text/html":
		return failed(llm.Transient, "the server sent a web page instead of an event stream; check the base URL")
	}
	return failed(llm.Transient, "the server sent %q instead of an event stream; check the base URL", c.short(kind))
}

// broken is the failure of a connection. Its text names no address.
func (c *Client) broken(ctx context.Context, err error) *failure {
	if ctx.Err() != nil {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errHeader), errors.Is(cause, errIdle), errors.Is(cause, errStep):
			return failed(llm.Transient, "%s", cause.Error())
		default:
			return failed(llm.Transient, "the call was ended")
		}
	}
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case errors.Is(err, errRedirect):
		_, reason, _ := strings.Cut(err.Error(), errRedirect.Error())
		return failed(llm.Permanent, "the provider's redirect is not followed%s; check the base URL", c.short(reason))
	case errors.Is(err, errLineTooLong), errors.Is(err, errTooLarge), errors.Is(err, errTooManyCalls):
		return failed(llm.Permanent, "%s", err.Error())
	case errors.As(err, &dns):
		return failed(llm.Transient, "the provider's host name cannot be resolved")
	case errors.As(err, &cert):
		return failed(llm.Transient, "the provider's certificate is not trusted")
	case errors.Is(err, syscall.ECONNREFUSED):
		return failed(llm.Transient, "the provider cannot be reached: connection refused")
	case errors.As(err, &timeout) && timeout.Timeout():
		return failed(llm.Transient, "the provider cannot be reached: timeout")
	}
	return failed(llm.Transient, "the connection to the provider broke")
}

// A watch ends an attempt that makes no progress.
type watch struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func newWatch(cancel context.CancelCauseFunc, d time.Duration, cause error) *watch {
	w := &watch{cancel: cancel}
	w.next(d, cause)
	return w
}

// next begins another phase, which may take d.
func (w *watch) next(d time.Duration, cause error) {
	w.stop()
	w.timer = time.AfterFunc(d, func() { w.cancel(cause) })
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// A limitedBody is the body of a response, bounded in size and, as long as idle
// is not 0, in the time between two reads.
type limitedBody struct {
	r     io.Reader
	left  int
	watch *watch
	idle  time.Duration
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	if n > 0 && b.idle > 0 {
		b.watch.timer.Reset(b.idle)
	}
	return n, err
}
