package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// The tunnel is one HTTP/2 connection over a pipe, without TLS: the inside is the
// client, and each connection that it carries is a request whose body is what the
// program inside writes, and whose response is what it reads. HTTP/2 brings flow
// control per connection and cancelling. It cannot say "I have written all, but go
// on reading" in both directions, so within a body the bytes stand in pieces with
// their length before them (two bytes, the high one first), and a piece of length
// 0 is that word.

const (
	maxStreams  = 100       // connections at a time; more wait
	streamSpace = 256 << 10 // bytes that one connection may hold back
	pingAfter   = 30 * time.Second
)

// Relay listens on the address, which is host:port of a loopback interface, and
// carries each connection that it accepts over stdio to Proxy.ServeTunnel at the
// other end. It is meant for the network namespace of a container.
//
// Relay returns nil when ctx ends, and an error when it cannot listen or the other
// end is gone. stdio is closed then, the listener too, and all connections have
// ended.
func Relay(ctx context.Context, listen string, stdio io.ReadWriteCloser) error {
	defer stdio.Close()
	if err := loopback(listen); err != nil {
		return fmt.Errorf("egress: relay: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("egress: relay: %w", err)
	}
	defer listener.Close()
	return relay(ctx, listener, stdio)
}

func loopback(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%.80q is not a loopback address with a port", listen)
	}
	return nil
}

func relay(parent context.Context, listener net.Listener, stdio io.ReadWriteCloser) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	pipe := newPipeConn(stdio)
	transport := &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return pipe, nil },
		Protocols:          h2c(),
		HTTP2:              &http.HTTP2Config{MaxReceiveBufferPerStream: streamSpace, SendPingTimeout: pingAfter},
		DisableCompression: true,
	}
	there, err := transport.NewClientConn(ctx, "http", "tunnel:80")
	if err != nil {
		return fmt.Errorf("egress: relay: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
		case <-pipe.gone: // read to its end
			cancel(errGone)
		}
		_ = listener.Close()
		_ = there.Close()
		_ = pipe.Close()
	}()
	var open sync.WaitGroup
	slots := make(chan struct{}, maxStreams)
	for {
		c, err := listener.Accept()
		if err != nil {
			cancel(fmt.Errorf("egress: relay: %w", err))
			break
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			abort(c)
			continue // Accept tells the end
		}
		open.Go(func() {
			defer func() { <-slots }()
			carry(ctx, there, c)
		})
	}
	open.Wait()
	<-ended
	if parent.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

var errGone = errors.New("egress: relay: the other end of the tunnel is gone")

// carry is the inside of one connection.
func carry(ctx context.Context, there *http.ClientConn, c net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, out := io.Pipe()
	defer context.AfterFunc(ctx, func() {
		_ = out.CloseWithError(context.Canceled) // a request that reads its body does not hear ctx
		abort(c)
	})()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://tunnel/", body)
	if err != nil {
		abort(c)
		return
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		switch err := sendPieces(out, c); {
		case err == nil:
			_ = out.Close()
		case !errors.Is(err, io.ErrClosedPipe):
			cancel() // the program inside is gone: not an end, but a break
		}
	})
	defer sending.Wait()
	defer body.Close()
	defer c.Close()
	resp, err := there.RoundTrip(req)
	if err != nil {
		abort(c)
		return
	}
	defer resp.Body.Close()
	err = receivePieces(c, resp.Body)
	if err == nil { // the program inside may go on writing until the outside is done
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err != nil {
		abort(c)
	}
}

// abort ends a connection so that its other side sees an error instead of an end.
func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// ServeTunnel is the outer end of a Relay: each of its connections is served as by
// ServeConn. It returns nil when ctx or the pipe ends; conn is closed then, and
// all connections have ended.
func (p *Proxy) ServeTunnel(ctx context.Context, conn io.ReadWriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pipe := newPipeConn(conn)
	listener := &oneConn{conn: pipe, done: make(chan struct{})}
	gate := new(turnstile)
	server := &http.Server{
		Protocols: h2c(),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: streamSpace,
			SendPingTimeout: pingAfter, WriteByteTimeout: pingAfter,
		},
		ReadHeaderTimeout: pingAfter,
		ErrorLog:          log.New(io.Discard, "", 0), // what it says are words of the container
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !gate.enter() {
				panic(http.ErrAbortHandler)
			}
			defer gate.leave()
			p.serveStream(ctx, w, r)
		}),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
		case <-pipe.gone:
			cancel()
		}
		_ = listener.Close()
		_ = server.Close()
		_ = pipe.Close()
	}()
	err := server.Serve(listener)
	cancel()
	<-ended
	gate.shut()
	if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("egress: tunnel: %w", err)
	}
	return nil
}

// serveStream is the outer end of one connection.
func (p *Proxy) serveStream(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()
	c := &streamConn{in: r.Body, out: w, control: http.NewResponseController(w)}
	if r.ProtoMajor != 2 || c.control.Flush() != nil { // the inside waits for the headers
		return
	}
	defer c.retire()
	p.ServeConn(ctx, c)
	if !c.said() {
		panic(http.ErrAbortHandler) // so that the program sees a break, not an end
	}
}

// sendPieces reads from until its end and writes it in pieces, with the last word.
func sendPieces(to io.Writer, from io.Reader) error {
	piece := make([]byte, 2+16<<10)
	for {
		n, err := from.Read(piece[2:])
		if n > 0 {
			binary.BigEndian.PutUint16(piece, uint16(n))
			if _, err := to.Write(piece[:2+n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			_, err = to.Write([]byte{0, 0})
			return err
		}
		if err != nil {
			return err
		}
	}
}

func receivePieces(to io.Writer, from io.Reader) error {
	piece := make([]byte, 1<<16)
	for {
		if _, err := io.ReadFull(from, piece[:2]); err != nil {
			return noEnd(err)
		}
		n := binary.BigEndian.Uint16(piece)
		if n == 0 {
			return closeWrite(to)
		}
		if _, err := io.ReadFull(from, piece[:n]); err != nil {
			return noEnd(err)
		}
		if _, err := to.Write(piece[:n]); err != nil {
			return err
		}
	}
}

func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func h2c() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}
