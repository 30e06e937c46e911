package docker

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/claybot/claybot/workspace"
)

// Pipe implements workspace.Workspace.
func (w *Workspace) Pipe(ctx context.Context, c workspace.Command) (workspace.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	c, err := w.placed(ctx, c)
	if err != nil {
		return nil, err
	}
	w.slot.using.RLock()
	r, err := w.start(ctx, c, true)
	if err != nil {
		w.slot.using.RUnlock()
		return nil, err
	}
	out, in := io.Pipe()
	inner, limits, stop := c.Start(ctx)
	inner, full := context.WithCancelCause(inner)
	leave := w.attend(full)
	p := &process{run: r, out: out, stderr: workspace.NewOutput(nil), done: make(chan struct{})}
	r.said = p.stderr.String
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.broken = frames(r.stream.Reader, lively{in, limits}, lively{p.stderr.Stream(), limits})
		_ = in.CloseWithError(io.EOF)
	}()
	// A process that is ended is not held up by unread output.
	unread := context.AfterFunc(inner, func() { _ = in.CloseWithError(io.EOF) })
	go p.look(inner, func() { unread(); full(nil); stop(); leave(time.Since(r.began)) }, ended)
	return p, nil
}

type process struct {
	run    *run
	out    *io.PipeReader
	stderr *workspace.Output
	once   sync.Once
	done   chan struct{} // closed when it has ended

	code int
	err  error
}

func (p *process) look(inner context.Context, stop func(), ended <-chan struct{}) {
	defer p.run.w.slot.using.RUnlock()
	defer close(p.done)
	defer stop()
	defer p.run.stream.Close()
	p.code, p.err = p.run.wait(inner, ended, func() {})
	if _, known := errors.AsType[*workspace.Error](p.err); p.err != nil && !known {
		p.err = &workspace.Error{Code: workspace.Failed, Text: "the command was ended from outside", Err: p.err}
	}
	p.stderr.Close()
}

func (p *process) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *process) Write(b []byte) (int, error) { return p.run.stream.Conn.Write(b) }
func (p *process) CloseWrite() error           { return p.run.stream.CloseWrite() }
func (p *process) Stderr() string              { return p.stderr.String() }

func (p *process) Close() error {
	p.once.Do(func() {
		_ = p.out.Close() // unread output must not hold up the process
		select {
		case <-p.done:
			return
		default:
		}
		_ = p.run.stream.CloseWrite()
		ctx, cancel := context.WithTimeout(context.Background(), 2*killTime)
		defer cancel()
		p.run.signal(ctx, "TERM")
		if !wait(p.done, askTime) {
			p.run.signal(ctx, "KILL")
			if !wait(p.done, askTime) {
				p.run.stream.Close()
			}
		}
	})
	return nil
}

func (p *process) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
		return p.code, p.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

var _ workspace.Process = (*process)(nil)

// attach joins the streams of a container that was made and not started yet, as
// one stream: what it writes to stderr goes to the log.
func (p *Provider) attach(ctx context.Context, e *engine, id string) (io.ReadWriteCloser, error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := e.streams.ContainerAttach(call, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, err
	}
	out, in := io.Pipe()
	stderr := workspace.NewOutput(nil)
	go func() {
		err := frames(s.Reader, in, stderr.Stream())
		_ = in.CloseWithError(err)
		stderr.Close()
		if text := stderr.String(); text != "" {
			p.log.Warn("workspace relay wrote to stderr", "container", id, "text", clip(text, 500))
		}
	}()
	if err := noDeadline(s.Conn); err != nil {
		s.Close()
		return nil, err
	}
	return &stdio{out: out, in: s.Conn, close: s.Close}, nil
}

func noDeadline(c net.Conn) error { return c.SetDeadline(time.Time{}) }

type stdio struct {
	out   *io.PipeReader
	in    io.Writer
	close func()
}

func (s *stdio) Read(b []byte) (int, error)  { return s.out.Read(b) }
func (s *stdio) Write(b []byte) (int, error) { return s.in.Write(b) }
func (s *stdio) Close() error                { s.close(); return s.out.Close() }

// The streams of a frame. Bytes of another number, or whose header has no zeros
// where it must, are taken as they are: a terminal has no frames.
const (
	streamStdin  = 0
	streamStdout = 1
	streamStderr = 2
	streamSystem = 3 // errors of the engine
)

const headerLen = 8

// frames takes the multiplexed output of a command apart until it ends. Headers
// and contents may be cut anywhere. A stream that ends in the middle of a frame,
// and one without frames, gives what there was. The error is one of reading; that
// of writing ends nothing, as the command must go on.
func frames(r io.Reader, stdout, stderr io.Writer) error {
	buf := make([]byte, 32<<10)
	var header [headerLen]byte
	for {
		n, err := io.ReadFull(r, header[:])
		if n < headerLen || !framed(header) {
			if n > 0 { // a pipe holds up even a write of nothing
				_, _ = stdout.Write(header[:n])
			}
			if err == nil {
				_, err = io.CopyBuffer(only{stdout}, onlyReader{r}, buf)
			}
			return ended(err)
		}
		to := stdout
		if header[0] != streamStdout {
			to = stderr
		}
		left := int64(binary.BigEndian.Uint32(header[4:]))
		if _, err := io.CopyBuffer(only{to}, io.LimitReader(r, left), buf); err != nil {
			return ended(err)
		}
	}
}

// framed reports whether eight bytes are a header.
func framed(h [headerLen]byte) bool {
	return h[0] <= streamSystem && h[1] == 0 && h[2] == 0 && h[3] == 0
}

// ended is nil for the end of a stream, wherever it comes.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// only hides all methods but Write, which never fails: a reader that is gone
// does not stop a command.
type only struct{ w io.Writer }

func (o only) Write(p []byte) (int, error) {
	_, _ = o.w.Write(p)
	return len(p), nil
}

// onlyReader hides all but Read, so that the buffer is used.
type onlyReader struct{ io.Reader }
