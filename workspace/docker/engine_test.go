package docker

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"github.com/claybot/claybot/workspace"
)

// A wire is a socket of its own to the engine, which a test can cut.
type wire struct {
	path, engine string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	isCut    bool
}

func newWire(t *testing.T) *wire {
	t.Helper()
	dir, err := os.MkdirTemp("", "wire") // a short path, as sockets need
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	url, err := client.ParseHostURL(raw(t).DaemonHost())
	if err != nil || url.Scheme != "unix" {
		if os.Getenv("CI") == "true" {
			t.Fatal("with CI=true all tests run, and this engine is not on this machine")
		}
		t.Skip("the engine has no socket")
	}
	w := &wire{path: filepath.Join(dir, "s"), engine: url.Host, conns: make(map[net.Conn]bool)}
	w.mend(t)
	t.Cleanup(w.cut)
	return w
}

// mend lets connections through.
func (w *wire) mend(t *testing.T) {
	t.Helper()
	_ = os.Remove(w.path)
	l, err := net.Listen("unix", w.path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	w.mu.Lock()
	w.listener, w.isCut = l, false
	w.mu.Unlock()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", w.engine)
			if err != nil {
				_ = in.Close()
				continue
			}
			w.mu.Lock()
			if w.listener != l || w.isCut { // it was cut meanwhile
				w.mu.Unlock()
				_, _ = in.Close(), out.Close()
				continue
			}
			w.conns[in], w.conns[out] = true, true
			w.mu.Unlock()
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				_ = to.(*net.UnixConn).CloseWrite()
			}
			go pass(in, out)
			go pass(out, in)
		}
	}()
}

// cut ends all connections; new ones are refused.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.listener.Close()
	w.isCut = true
	for c := range w.conns {
		_ = c.Close()
	}
	clear(w.conns)
}

// TestEngineGone loses the engine under commands: each has one clear error, the
// next works when the engine is back, and what was running is ended then.
func TestEngineGone(t *testing.T) {
	t.Parallel()
	provider(t) // there is an engine
	line := newWire(t)
	p := provider(t, func(c *Config) { c.Host = "unix://" + line.path })
	w := opened(t, p, "agent/gone", workspace.Spec{})
	done := make(chan error, 2)
	go func() {
		_, err := w.Exec(t.Context(), workspace.Command{Shell: "echo > begun; sleep 614", Wall: 9 * time.Minute})
		done <- err
	}()
	proc, err := w.Pipe(t.Context(), workspace.Command{Shell: "echo > piped; sleep 615"})
	if err != nil {
		t.Fatal(err)
	}
	sh(t, w, "until [ -e begun ] && [ -e piped ]; do sleep 0.05; done")
	line.cut()
	start := time.Now()
	wantCode(t, "a command under way", <-done, workspace.Unavailable, "Docker engine")
	_, err = proc.Wait(t.Context())
	wantCode(t, "a process that is spoken with", err, workspace.Unavailable, "Docker engine")
	_, err = w.Exec(t.Context(), workspace.Command{Shell: "true"})
	wantCode(t, "the next command", err, workspace.Unavailable, "does not run", "start it")
	wantCode(t, "a file", w.WriteFile(t.Context(), "f", nil), workspace.Unavailable)
	_, err = p.Open(t.Context(), "agent/gone", workspace.Spec{})
	wantCode(t, "an opening", err, workspace.Unavailable)
	wantCode(t, "a removal", p.Remove(t.Context(), "agent/gone", false), workspace.Unavailable)
	if _, err := p.List(t.Context()); !workspace.Is(err, workspace.Unavailable) {
		t.Errorf("a list: %v", err)
	}
	if took := time.Since(start); took > 5*time.Minute { // nine are what the command had
		t.Errorf("the errors took %v", took)
	}
	line.mend(t)
	if r := sh(t, w, "echo back"); r.Output != "back\n" {
		t.Errorf("when it is back: %+v", r)
	}
	if left := leftOver(t, w.box.id); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// TestNoEngine has the texts for each reason why there is none.
func TestNoEngine(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "none")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dead := filepath.Join(dir, "dead")
	l, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close() // the socket stays, as after a crash
	for _, tt := range []struct {
		name, host string
		words      []string
	}{
		{"not installed", "unix://" + filepath.Join(dir, "nothing"), []string{"no Docker engine", "install"}},
		{"not running", "unix://" + dead, []string{"does not run", "start it"}},
		{"not running, by TCP", "tcp://127.0.0.1:1", []string{"does not run", "start it"}},
		{"an address that is none", "what://is:this", []string{"address", "DOCKER_HOST"}},
	} {
		p := New(Config{Host: tt.host})
		wantCode(t, tt.name, p.Check(t.Context()), workspace.Unavailable, tt.words...)
		_, err := p.Open(t.Context(), "agent/none", workspace.Spec{})
		wantCode(t, tt.name+", open", err, workspace.Unavailable, tt.words...)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	e := &engine{host: "unix:///var/run/docker.sock"}
	err = e.fault(t.Context(), "answer", &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)})
	wantCode(t, "no rights", err, workspace.Unavailable, "may not speak", "group docker")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.fault(ctx, "answer", io.EOF); !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the caller's context: %v", err)
	}
	if err := e.fault(t.Context(), "answer", context.DeadlineExceeded); !strings.Contains(err.Error(), "in time") {
		t.Errorf("a deadline: %v", err)
	}
}

// TestNoImage has one clear error for images that are missing or cannot run.
func TestNoImage(t *testing.T) {
	t.Parallel()
	p := provider(t)
	_, err := p.Open(t.Context(), "agent/image", workspace.Spec{Image: "claybot-test.invalid/nothing:here"})
	wantCode(t, "an image that is nowhere", err, workspace.Unavailable, "claybot-test.invalid/nothing:here", "pull")
	_, err = p.Open(t.Context(), "agent/image", workspace.Spec{Runtime: "no-such-runtime"})
	wantCode(t, "a runtime that is not there", err, workspace.Unavailable, "no-such-runtime", "install")
	_, err = p.Open(t.Context(), "agent/image", workspace.Spec{CPUs: 1024})
	wantCode(t, "more processors than there are", err, workspace.Refused, "CPUs")
	if r := sh(t, opened(t, p, "agent/image", workspace.Spec{}), "echo ok"); r.Output != "ok\n" {
		t.Errorf("the next opening: %+v", r)
	}
}
