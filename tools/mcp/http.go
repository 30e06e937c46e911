package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
)

// errBig says that a server sent more than MaxMessage at once.
var errBig = fmt.Errorf("the server sent a message of more than %d bytes", MaxMessage)

func (l *link) client(life context.Context, wrong *atomic.Pointer[error]) (*http.Client, error) {
	if l.m.cfg.HTTP == nil {
		return nil, errors.New("no server may be reached by HTTP here")
	}
	given := l.m.cfg.HTTP(l.server.Name)
	if given == nil {
		return nil, errors.New("this server may not be reached by HTTP")
	}
	home, err := url.Parse(l.server.URL)
	if err != nil {
		return nil, errors.New("the url cannot be read") // its words would show the url
	}
	base := given.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	c := *given
	c.Timeout = 0 // streams are long; each call has its own
	c.Transport = &fenced{base: base, home: home, server: l.server, life: life, wrong: wrong}
	before := given.CheckRedirect
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) >= 5 {
			return errors.New("more than 5 redirects")
		}
		if was := via[len(via)-1].URL; r.URL.Host != was.Host || r.URL.Scheme != was.Scheme {
			return errors.New("the server sends to another one; write the address of that into the configuration if you trust it")
		}
		if before != nil {
			return before(r, via)
		}
		return nil
	}
	return &c, nil
}

// A fenced transport ends with its life, bounds what servers answer, and sends
// the headers of the configuration to the server alone.
type fenced struct {
	base   http.RoundTripper
	home   *url.URL
	server Server
	life   context.Context        //nolint:containedctx // the end of a transport has no other way in
	wrong  *atomic.Pointer[error] // why the newest answer to a message is none
}

func (f *fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(f.life, func() { cancel(context.Cause(f.life)) })
	end := func() {
		stop()
		cancel(errClosed)
	}
	r = r.Clone(ctx)
	if r.URL.Host == f.home.Host && r.URL.Scheme == f.home.Scheme {
		for name, value := range f.server.Headers {
			r.Header.Set(name, value)
		}
		if f.server.Token != "" {
			r.Header.Set("Authorization", "Bearer "+f.server.Token)
		}
	}
	resp, err := f.base.RoundTrip(r)
	if err != nil {
		end()
		return nil, err
	}
	// A stream is bounded event by event.
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // none is bounded as a whole
	resp.Body = &boundBody{body: resp.Body, left: MaxMessage, stream: kind == "text/event-stream", end: end, wrong: f.wrong}
	if r.Method == http.MethodPost {
		f.wrong.Store(nil)
		if err := unfit(resp, kind); err != nil {
			f.wrong.Store(&err)
		}
	}
	return resp, nil
}

func unfit(resp *http.Response, kind string) error {
	switch {
	case resp.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("the server answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	case resp.StatusCode == http.StatusOK && kind != "application/json" && kind != "text/event-stream":
		return fmt.Errorf("unsupported content type %q", kind)
	}
	return nil
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the transport.
func (f *fenced) CloseIdleConnections() {
	if c, ok := f.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type boundBody struct {
	body   io.ReadCloser
	left   int64
	stream bool
	once   sync.Once
	end    func()
	wrong  *atomic.Pointer[error] // as that of fenced
}

func (b *boundBody) Read(p []byte) (int, error) {
	if b.stream {
		return b.body.Read(p)
	}
	if b.left < 0 {
		return 0, errBig
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	if b.left -= int64(n); b.left < 0 {
		b.wrong.CompareAndSwap(nil, &errBig)
		return n - 1, errBig
	}
	return n, err
}

func (b *boundBody) Close() error {
	err := b.body.Close()
	b.once.Do(b.end)
	return err
}
