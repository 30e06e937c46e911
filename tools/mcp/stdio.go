package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot/workspace"
)

// start runs the command of a server. The process outlives ctx, which is only
// for its start; Close ends it with all that it started.
func (l *link) start(ctx context.Context) (workspace.Process, error) {
	s := l.server
	if s.Where == Host {
		return startHost(s)
	}
	if l.m.cfg.Pipe == nil {
		return nil, errors.New("there are no workspaces to run it in; set up Docker, or set where: host")
	}
	// A workspace ends a process with the context it was started with. The one
	// here ends with the link, or with ctx as long as the start takes.
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	p, err := l.m.cfg.Pipe(life, s, workspace.Command{Args: slices.Clone(s.Command), Dir: s.Dir, Env: slices.Clone(s.Env)})
	if err != nil {
		stop()
		end(err)
		return nil, err
	}
	if !stop() { // ctx ended meanwhile, and the process with it
		end(context.Cause(ctx))
		return nil, errors.Join(context.Cause(ctx), p.Close())
	}
	return &kept{Process: p, end: end}, nil
}

type kept struct {
	workspace.Process
	end context.CancelCauseFunc
}

func (k *kept) Close() error {
	err := k.Process.Close()
	k.end(errClosed)
	return err
}

var errClosed = errors.New("the connection was closed")

// A pipe is the stream to a process. What is written waits in a queue, so that
// no caller waits for a process that does not read; after a while it is ended.
type pipe struct {
	p      workspace.Process
	queue  chan []byte
	queued atomic.Int64 // bytes
	closed chan struct{}
	once   sync.Once
	err    error
	why    atomic.Pointer[string] // what was wrong with it first, if anything
}

// blame remembers what was wrong with the process, unless something was before.
func (p *pipe) blame(err error) {
	words := err.Error()
	p.why.CompareAndSwap(nil, &words)
}

const (
	maxQueue  = 256
	maxQueued = 2 * MaxMessage // bytes, unless it is one message
)

var errFull = errors.New("the server does not read what it is sent")

func newPipe(p workspace.Process) *pipe {
	s := &pipe{p: p, queue: make(chan []byte, maxQueue), closed: make(chan struct{})}
	go s.drain() // ends with Close
	return s
}

func (p *pipe) drain() {
	for {
		select {
		case b := <-p.queue:
			late := time.AfterFunc(writeTimeout, func() {
				p.blame(errFull)
				_ = p.Close() // the write fails then
			})
			_, err := p.p.Write(b)
			late.Stop()
			p.queued.Add(int64(-len(b)))
			if err != nil {
				p.linger()
				return
			}
		case <-p.closed:
			return
		}
	}
}

// linger lets what the process said last be read, before it is ended.
func (p *pipe) linger() {
	late := time.NewTimer(lastWords)
	defer late.Stop()
	select {
	case <-late.C:
		_ = p.Close() // the reader learns of it
	case <-p.closed:
	}
}

func (p *pipe) Read(b []byte) (int, error) { return p.p.Read(b) }

func (p *pipe) Write(b []byte) (int, error) {
	if n := p.queued.Add(int64(len(b))); n > maxQueued && n > int64(len(b)) {
		p.queued.Add(int64(-len(b)))
		return 0, errFull
	}
	select {
	case <-p.closed:
		return 0, io.ErrClosedPipe
	default:
	}
	select {
	case p.queue <- bytes.Clone(b):
		return len(b), nil
	default:
		p.queued.Add(int64(-len(b)))
		return 0, errFull
	}
}

func (p *pipe) Close() error {
	p.once.Do(func() {
		close(p.closed)
		p.err = p.p.Close()
	})
	return p.err
}

type pipeTransport struct{ pipe *pipe }

func (t pipeTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	inner := &sdk.IOTransport{Reader: t.pipe, Writer: writeHalf{t.pipe}, MaxLineLength: MaxMessage}
	c, err := inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return tolerant{c, t.pipe}, nil
}

// A writeHalf closes nothing: the reading half does.
type writeHalf struct{ io.Writer }

func (writeHalf) Close() error { return nil }

// A tolerant connection makes text of kinds of content that the library does not
// know: it would refuse the whole result.
type tolerant struct {
	sdk.Connection
	pipe *pipe
}

func (c tolerant) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil && ctx.Err() == nil && !ended(err) {
		c.pipe.blame(fmt.Errorf("what the server says is not the protocol: %w", err))
	}
	if r, ok := m.(*jsonrpc.Response); ok && r != nil && len(r.Result) > 0 {
		r.Result = knownContent(r.Result)
	}
	return m, err
}

// knownContent gives back a result in which each entry of content that is of no
// known kind is replaced by its JSON as text. Other results stay as they are.
func knownContent(result json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	var content []json.RawMessage
	if json.Unmarshal(result, &members) != nil || json.Unmarshal(members["content"], &content) != nil {
		return result
	}
	changed := false
	for i, c := range content {
		var head struct {
			Type string `json:"type"`
		}
		known := json.Unmarshal(c, &head) == nil && slices.Contains([]string{"text", "image", "audio", "resource", "resource_link"}, head.Type)
		if known {
			continue
		}
		text, err := json.Marshal(map[string]string{"type": "text", "text": string(c)})
		if err != nil {
			return result
		}
		content[i], changed = text, true
	}
	if !changed {
		return result
	}
	var err error
	if members["content"], err = json.Marshal(content); err != nil {
		return result
	}
	whole, err := json.Marshal(members)
	if err != nil {
		return result
	}
	return whole
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 16 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b[max(0, len(b)-tailBytes):]...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

func exit(p workspace.Process) string {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	code, err := p.Wait(ctx)
	if err != nil {
		return "it was ended"
	}
	return fmt.Sprintf("it ended with exit code %d", code)
}
