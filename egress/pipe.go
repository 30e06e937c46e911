package egress

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// A pipeConn is a pipe as a net.Conn. Deadlines do nothing: who waits for too long
// closes it.
type pipeConn struct {
	io.ReadWriteCloser
	gone  chan struct{} // closed when it is closed, and when reading ends
	once  sync.Once
	close sync.Once
	err   error
}

func newPipeConn(c io.ReadWriteCloser) *pipeConn {
	return &pipeConn{ReadWriteCloser: c, gone: make(chan struct{})}
}

func (p *pipeConn) Read(b []byte) (int, error) {
	n, err := p.ReadWriteCloser.Read(b)
	if err != nil {
		p.once.Do(func() { close(p.gone) })
	}
	return n, err
}

func (p *pipeConn) Close() error {
	p.close.Do(func() {
		p.err = p.ReadWriteCloser.Close()
		p.once.Do(func() { close(p.gone) })
	})
	return p.err
}

func (p *pipeConn) LocalAddr() net.Addr              { return pipeAddr{} }
func (p *pipeConn) RemoteAddr() net.Addr             { return pipeAddr{} }
func (p *pipeConn) SetDeadline(time.Time) error      { return nil }
func (p *pipeConn) SetReadDeadline(time.Time) error  { return nil }
func (p *pipeConn) SetWriteDeadline(time.Time) error { return nil }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// A oneConn is a listener that accepts one connection, and then waits until it is
// closed.
type oneConn struct {
	mu   sync.Mutex
	conn net.Conn
	once sync.Once
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	l.mu.Lock()
	c := l.conn
	l.conn = nil
	l.mu.Unlock()
	if c != nil {
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return pipeAddr{} }

// A turnstile counts who is inside, and admits no more callers once it is shut.
type turnstile struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

func (t *turnstile) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.inside.Add(1)
	}
	return !t.closed
}

func (t *turnstile) leave() { t.inside.Done() }

func (t *turnstile) shut() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.inside.Wait()
}

// A streamConn is one connection of a tunnel at its outer end. Close without
// CloseWrite before it is a break. Like a pipe it has no deadlines.
type streamConn struct {
	in      io.ReadCloser
	out     io.Writer
	control *http.ResponseController
	left    int // bytes of the present piece that were not read; -1: there is no more

	mu    sync.Mutex // of writing
	ended bool       // the last word was written
	state sync.Mutex
	shut  bool
}

func (c *streamConn) Read(b []byte) (int, error) {
	if c.left == 0 {
		var head [2]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return 0, noEnd(err)
		}
		if c.left = int(binary.BigEndian.Uint16(head[:])); c.left == 0 {
			c.left = -1
		}
	}
	if c.left < 0 {
		return 0, io.EOF
	}
	n, err := c.in.Read(b[:min(len(b), c.left)])
	c.left -= n
	if n > 0 {
		err = nil // it comes again
	}
	return n, noEnd(err)
}

func (c *streamConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := 0
	for len(b) > 0 {
		if c.ended || c.isShut() {
			return done, net.ErrClosed
		}
		piece := b[:min(len(b), 32<<10)]
		if err := c.write(piece); err != nil {
			return done, err
		}
		done += len(piece)
		b = b[len(piece):]
	}
	return done, nil
}

func (c *streamConn) write(piece []byte) error {
	head := binary.BigEndian.AppendUint16(nil, uint16(len(piece)))
	if _, err := c.out.Write(head); err != nil {
		return err
	}
	if _, err := c.out.Write(piece); err != nil {
		return err
	}
	return c.control.Flush()
}

func (c *streamConn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil
	}
	if c.isShut() {
		return net.ErrClosed
	}
	if err := c.write(nil); err != nil {
		return err
	}
	c.ended = true
	return nil
}

// said reports whether the other side was told that nothing more is written.
func (c *streamConn) said() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

func (c *streamConn) isShut() bool {
	c.state.Lock()
	defer c.state.Unlock()
	return c.shut
}

// Close ends reading and writing that go on at the moment.
func (c *streamConn) Close() error {
	c.state.Lock()
	defer c.state.Unlock()
	if c.shut {
		return nil
	}
	c.shut = true
	err := c.in.Close()
	if c.mu.TryLock() {
		c.mu.Unlock()
	} else { // a write is under way: it may wait for the other side
		_ = c.control.SetWriteDeadline(time.Now())
	}
	return err
}

// retire is Close at the end of the request, after which nothing of it may be
// touched, not by a Close that comes late either.
func (c *streamConn) retire() {
	c.state.Lock()
	defer c.state.Unlock()
	c.shut = true
}

func (c *streamConn) LocalAddr() net.Addr              { return pipeAddr{} }
func (c *streamConn) RemoteAddr() net.Addr             { return pipeAddr{} }
func (c *streamConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *streamConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *streamConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// closeWrite tells the other side of a connection that nothing more comes, where
// connections can; else it does nothing.
func closeWrite(w io.Writer) error {
	half, ok := w.(interface{ CloseWrite() error })
	if !ok {
		return nil
	}
	if err := half.CloseWrite(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
