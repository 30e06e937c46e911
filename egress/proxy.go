package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	maxHead     = 64 << 10         // of a request line with its headers
	maxDrain    = 256 << 10        // of an unread body, to keep the connection
	headLimit   = 2 * time.Minute  // waiting for a request
	answerLimit = 5 * time.Minute  // waiting for a host's first answer
	tunnelIdle  = 15 * time.Minute // a tunnel without a byte in either direction
	lingerLimit = 500 * time.Millisecond
)

// A Proxy is a forward proxy through a door: CONNECT, requests with a whole http
// address, and SOCKS5, all at one port. It sees nothing of what goes through CONNECT
// and SOCKS, so it adds no credentials either: on plain http, where it could, they
// would be readable on their way.
//
// It is safe for concurrent use.
type Proxy struct {
	door *Door
	out  *http.Transport
}

// NewProxy makes a proxy. Close it when nothing uses it any more.
func NewProxy(d *Door) *Proxy {
	out := d.transport()
	out.ResponseHeaderTimeout = answerLimit
	return &Proxy{door: d, out: out}
}

// Close closes the connections to hosts that no request uses.
func (p *Proxy) Close() { p.out.CloseIdleConnections() }

// ServeConn serves a connection of a client until either side ends it, or ctx
// does. The connection is closed then, and nothing of it goes on.
func (p *Proxy) ServeConn(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	head := &bounded{r: conn}
	s := &session{proxy: p, conn: conn, head: head, in: bufio.NewReader(head), out: bufio.NewWriter(conn)}
	if s.asksForSocks() {
		s.socks(ctx)
	} else {
		for s.serve(ctx) {
		}
	}
	if s.out.Flush() != nil || closeWrite(conn) != nil {
		return
	}
	// A connection that is closed with something unread takes back its last words.
	late := time.AfterFunc(lingerLimit, func() { _ = conn.Close() })
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, conn, maxDrain)
}

type session struct {
	proxy *Proxy
	conn  net.Conn
	head  *bounded
	in    *bufio.Reader
	out   *bufio.Writer
}

type bounded struct {
	r    io.Reader
	left int64
}

var errHead = errors.New("the request has too long a head")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errHead
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// serve answers one request, and reports whether another may follow.
func (s *session) serve(ctx context.Context) bool {
	s.head.left = maxHead
	idle := time.AfterFunc(headLimit, func() { _ = s.conn.Close() })
	req, err := http.ReadRequest(s.in)
	if !idle.Stop() {
		return false
	}
	if err != nil {
		switch {
		case errors.Is(err, errHead):
			return s.answer(http.StatusRequestHeaderFieldsTooLarge, err.Error())
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), ctx.Err() != nil:
			return false
		}
		return s.answer(http.StatusBadRequest, "the proxy does not understand this request")
	}
	s.head.left = math.MaxInt64
	entry := &entry{log: s.proxy.door.log, start: time.Now(), Request: Request{Method: shorten(req.Method), Host: shorten(req.Host)}}
	if req.Method == http.MethodConnect {
		s.connect(ctx, req, entry)
		return false
	}
	return s.forward(ctx, req, entry)
}

func (s *session) answer(status int, text string) bool {
	_, _ = fmt.Fprintf(s.out, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, http.StatusText(status), len(text)+1, text)
	_ = s.out.Flush() // a client that is gone hears nothing
	return false
}

func (s *session) fault(err error, e *entry) bool {
	e.end(err)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return s.answer(http.StatusForbidden, refused.Error())
	}
	return s.answer(http.StatusBadGateway, Words(err))
}

func (s *session) connect(ctx context.Context, req *http.Request, e *entry) {
	if t, err := parseTarget(req.RequestURI); err == nil {
		e.Host = t.String()
	}
	there, err := s.proxy.door.DialContext(ctx, "tcp", req.RequestURI)
	if err != nil {
		s.fault(err, e)
		return
	}
	s.carry(ctx, there, "HTTP/1.1 200 Connection established\r\n\r\n", e)
}

// carry says to the client that it is connected, and carries what both sides say until
// they are done.
func (s *session) carry(ctx context.Context, there net.Conn, connected string, e *entry) {
	defer there.Close()
	_, _ = s.out.WriteString(connected)
	if err := s.out.Flush(); err != nil {
		e.end(err)
		return
	}
	end := func() {
		abort(s.conn)
		abort(there)
	}
	defer context.AfterFunc(ctx, end)()
	idle := time.AfterFunc(tunnelIdle, end)
	defer idle.Stop()
	// Each direction ends by itself; when one breaks, both do.
	pass := func(to io.Writer, from io.Reader) {
		_, err := io.Copy(to, &lively{from, idle})
		if err == nil {
			err = closeWrite(to)
		}
		if err != nil {
			end()
		}
	}
	var both sync.WaitGroup
	both.Go(func() { pass(there, &meter{s.in, &e.sent}) })
	both.Go(func() { pass(s.conn, &meter{there, &e.received}) })
	both.Wait()
	e.end(nil)
}

type lively struct {
	io.Reader
	idle *time.Timer
}

func (l *lively) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if n > 0 {
		l.idle.Reset(tunnelIdle)
	}
	return n, err
}

func (s *session) forward(ctx context.Context, req *http.Request, e *entry) bool {
	defer req.Body.Close()
	if req.URL.Scheme != "http" || req.URL.Host == "" {
		return s.answer(http.StatusBadRequest, "the proxy wants CONNECT, or an address that begins with http://")
	}
	t, err := targetOf(req.URL)
	if err != nil {
		return s.fault(err, e)
	}
	e.Host = t.String()
	out := (&http.Request{
		Method: req.Method, URL: req.URL, Header: endToEnd(req.Header),
		ContentLength: req.ContentLength, Body: http.NoBody,
	}).WithContext(ctx)
	out.URL.Host = hostOf(t, "http")
	if _, named := out.Header["User-Agent"]; !named {
		out.Header["User-Agent"] = []string{""} // else one is made up
	}
	if req.ContentLength != 0 {
		out.Body = io.NopCloser(&meter{s.continued(req), &e.sent})
	}
	resp, err := s.proxy.out.RoundTrip(out)
	if err != nil {
		return s.fault(err, e)
	}
	defer resp.Body.Close()
	return s.reply(req, resp, e)
}

// continued is the body of a request, whose client may wait to be told that it is
// wanted.
func (s *session) continued(req *http.Request) io.Reader {
	if !strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
		return req.Body
	}
	return &wanted{Reader: req.Body, ask: func() {
		_, _ = io.WriteString(s.conn, "HTTP/1.1 100 Continue\r\n\r\n")
	}}
}

type wanted struct {
	io.Reader
	once sync.Once
	ask  func()
}

func (w *wanted) Read(b []byte) (int, error) {
	w.once.Do(w.ask)
	return w.Reader.Read(b)
}

func (s *session) reply(req *http.Request, resp *http.Response, e *entry) bool {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		e.end(errors.New("it changes the protocol"))
		return s.answer(http.StatusBadGateway, "the host changes the protocol; use CONNECT for that")
	}
	keep := !req.Close && req.ProtoAtLeast(1, 1)
	back := &http.Response{
		StatusCode: resp.StatusCode, ProtoMajor: 1, ProtoMinor: 1, Header: endToEnd(resp.Header),
		ContentLength: resp.ContentLength, Request: req, Close: !keep,
		// What has come is sent before more is waited for.
		Body: io.NopCloser(&flushing{&meter{resp.Body, &e.received}, s.out}),
	}
	if resp.ContentLength < 0 && keep {
		back.TransferEncoding = []string{"chunked"}
	}
	// The bare writer: reading straight into the buffer of another one that is
	// flushed meanwhile would mix the two up.
	err := back.Write(struct{ io.Writer }{s.out})
	if err == nil {
		err = s.out.Flush()
	}
	e.end(err)
	if err != nil {
		_ = s.conn.Close() // half an answer must not look like a whole one
		return false
	}
	if !keep || strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
		return false
	}
	n, err := io.CopyN(io.Discard, req.Body, maxDrain)
	return n < maxDrain && errors.Is(err, io.EOF)
}

type flushing struct {
	io.Reader
	out *bufio.Writer
}

func (f *flushing) Read(b []byte) (int, error) {
	if err := f.out.Flush(); err != nil {
		return 0, err
	}
	return f.Reader.Read(b)
}

// endToEnd are the headers that are not for the next one on the way alone.
func endToEnd(h http.Header) http.Header {
	out := h.Clone()
	for _, list := range h.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{
		"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
	} {
		out.Del(name)
	}
	return out
}
