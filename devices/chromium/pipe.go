package chromium

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot/workspace"
)

// maxMessage is the longest message that is taken from a browser in a workspace,
// in bytes. A picture of a large page is the longest of honest ones.
const maxMessage = 64 << 20

// errTooLong ends a browser whose message has no end.
var errTooLong = errors.New("a message of the browser is too long")

// endLimit is how long a browser may take to end by itself when its pipe is
// closed. goodbye is how long it may take until the workspace says how one has
// ended that speaks no more: a busy engine is late.
const (
	endLimit = 2 * time.Second
	goodbye  = 20 * time.Second
)

// A piped starts one browser in a workspace.
type piped struct {
	// start begins the browser. It must not run under the library's context, which
	// ends as soon as the pipe does: the workspace would then end a command whose
	// exit code it is about to tell, and the code would be lost.
	start func() (workspace.Process, error)

	mu   sync.Mutex
	p    workspace.Process // nil: it was not started
	done chan struct{}     // closed when the library has let go of the pipe
	halt context.CancelFunc
}

var (
	_ chromedp.Allocator = (*piped)(nil)
	_ chromedp.Attacher  = (*piped)(nil)
)

// Attaches implements chromedp.Attacher: the process is not the library's.
func (a *piped) Attaches() bool { return true }

func (a *piped) Allocate(ctx context.Context, opts ...chromedp.BrowserOption) (*chromedp.Browser, error) {
	p, err := a.start()
	if err != nil {
		return nil, err
	}
	// The browser is spoken with until it is closed, also while its context ends.
	run, halt := context.WithCancel(context.WithoutCancel(ctx))
	a.mu.Lock()
	a.p, a.halt, a.done = p, halt, make(chan struct{})
	a.mu.Unlock()
	out := &bounded{r: p, max: maxMessage}
	b, err := chromedp.NewBrowserTransport(run, chromedp.NewPipeConn(out, unclosed{p}), opts...)
	if err != nil {
		close(a.done)
		return nil, err
	}
	go func() {
		defer close(a.done)
		<-b.LostConnection
		if !out.over.Load() { // nothing reads any more from a browser that may write on
			_ = p.Close()
		}
	}()
	return b, nil
}

// close ends the browser with all that it started: it is asked to, so that it can
// take its profile away, and then it must.
func (a *piped) close() {
	a.mu.Lock()
	p := a.p
	a.mu.Unlock()
	if p == nil {
		return
	}
	_ = p.CloseWrite() // the browser ends when its pipe is closed
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	_, _ = p.Wait(ctx)
	_ = p.Close()
}

func (a *piped) Wait() {
	a.mu.Lock()
	halt, done := a.halt, a.done
	a.mu.Unlock()
	if done == nil {
		return
	}
	halt()
	<-done
}

// ended waits for the end of a browser that did not start, and says how it ended.
// The code is -1 where that is not known.
func (a *piped) ended() (code int, said string) {
	a.mu.Lock()
	p := a.p
	a.mu.Unlock()
	if p == nil {
		return -1, ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	code, err := p.Wait(ctx)
	if err != nil {
		code = -1
	}
	return code, p.Stderr()
}

// A bounded reads messages that end with a NUL, and fails in one that is too long.
type bounded struct {
	r   io.Reader
	max int
	n   int // of the message so far
	// over: there is no more, as the other side has ended or closed its output.
	over atomic.Bool
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.n >= b.max {
		return 0, errTooLong
	}
	n, err := b.r.Read(p)
	if errors.Is(err, io.EOF) {
		b.over.Store(true)
	}
	if i := bytes.LastIndexByte(p[:n], 0); i >= 0 {
		b.n = n - i - 1
	} else {
		b.n += n
	}
	return n, err
}

// Close leaves the process be: it is ended by its owner.
func (b *bounded) Close() error { return nil }

// unclosed is a writer that others may close as they like.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
