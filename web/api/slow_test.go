package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/api"
)

// A spring is a desk with one run, which tells what is asked of it.
type spring struct {
	web.Runs
	watch func(ctx context.Context, yield func(runs.Update, error) bool)
}

func (s spring) Run(context.Context, claybot.RunID) (claybot.Run, error) {
	return claybot.Run{ID: "r", State: claybot.RunRunning}, nil
}

func (s spring) Watch(ctx context.Context, _ claybot.RunID, _ int64) iter.Seq2[runs.Update, error] {
	return func(yield func(runs.Update, error) bool) { s.watch(ctx, yield) }
}

// pipes is a listener of connections in memory, which have no buffers of their
// own and live in the time of a bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.done); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial serves the stream of a spring and opens it.
func dial(t *testing.T, s spring) (conn net.Conn, closeAll func()) {
	t.Helper()
	mux := http.NewServeMux()
	for _, route := range api.Routes(api.Config{Backend: web.Backend{Runs: s}}) {
		mux.Handle(route.Pattern, route.Handler)
	}
	l := pipes{make(chan net.Conn), make(chan struct{})}
	srv := &http.Server{Handler: mux, ReadTimeout: 15 * time.Second, WriteTimeout: time.Minute}
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(l) }()
	conn, far := net.Pipe()
	l.conns <- far
	if _, err := fmt.Fprint(conn, "GET /agents/runs/r/stream HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return conn, func() { conn.Close(); _ = srv.Close(); <-served }
}

func event(seq int64, size int) runs.Update {
	data, _ := json.Marshal(map[string]string{"text": strings.Repeat("x", size)})
	return runs.Update{Event: &claybot.Event{V: 1, Run: "r", Seq: seq, Type: claybot.EventAssistantMessage, At: 1, Data: data}}
}

// A reader that reads no event is cut, and until then only a bounded part of what
// there is was made for it.
func TestReaderThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bytes atomic.Int64
		began, left := time.Now(), make(chan time.Duration, 1)
		conn, closeAll := dial(t, spring{watch: func(ctx context.Context, yield func(runs.Update, error) bool) {
			defer func() { left <- time.Since(began) }()
			for seq := int64(1); ; seq++ {
				u := event(seq, 4096)
				bytes.Add(int64(len(runs.Encode(*u.Event))))
				if !yield(u, nil) {
					return
				}
			}
		}})
		defer closeAll()
		if _, err := conn.Read(make([]byte, 1<<10)); err != nil { // the head, and nothing more
			t.Fatal(err)
		}
		d := <-left
		if d > api.WriteWait {
			t.Errorf("it was cut after %v", d)
		}
		if n := bytes.Load(); n > api.PipeBound+64<<10 {
			t.Errorf("%d bytes were made for a reader that never reads", n)
		}
	})
}

// A reader that reads slowly, but does, is not cut, and misses nothing.
func TestReaderThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 400
		conn, closeAll := dial(t, spring{watch: func(ctx context.Context, yield func(runs.Update, error) bool) {
			for seq := int64(1); seq <= events; seq++ {
				if !yield(event(seq, 1024), nil) {
					t.Errorf("cut at %d", seq)
					return
				}
			}
		}})
		defer closeAll()
		n := 0
		lines := bufio.NewScanner(conn)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "id: ") {
				n++
				if lines.Text() != fmt.Sprint("id: ", n) {
					t.Errorf("%s at place %d", lines.Text(), n)
				}
				time.Sleep(200 * time.Millisecond) // 80 s in all: longer than every limit of the server
			}
		}
		if n != events {
			t.Errorf("%d events", n)
		}
	})
}

// A stream without events says every 15 s that it is there, for hours, and ends
// with its reader.
func TestPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		conn, closeAll := dial(t, spring{watch: func(ctx context.Context, _ func(runs.Update, error) bool) {
			<-ctx.Done()
			close(ended)
		}})
		defer closeAll()
		began := time.Now()
		pings := 0
		lines := bufio.NewScanner(conn)
		for pings < 1000 && lines.Scan() {
			if lines.Text() == ": ping" {
				if at, want := time.Since(began), time.Duration(pings)*15*time.Second; at != want {
					t.Fatalf("ping %d after %v", pings, at)
				}
				pings++
			}
		}
		if pings != 1000 {
			t.Errorf("%d pings, then %v", pings, lines.Err())
		}
		conn.Close()
		<-ended
	})
}

// One event may be larger than the buffer.
func TestHugeEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 2 * api.PipeBound
		conn, closeAll := dial(t, spring{watch: func(_ context.Context, yield func(runs.Update, error) bool) {
			_ = yield(event(1, size), nil) && yield(event(2, 1), nil)
		}})
		defer closeAll()
		seen := 0
		lines := bufio.NewScanner(conn)
		lines.Buffer(nil, 2*size)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "id: ") {
				seen++
			}
		}
		if seen != 2 {
			t.Errorf("%d events", seen)
		}
	})
}

// A watcher that fails ends the stream; the reader comes back.
func TestFailingWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, closeAll := dial(t, spring{watch: func(_ context.Context, yield func(runs.Update, error) bool) {
			_ = yield(event(1, 1), nil) && yield(runs.Update{}, context.DeadlineExceeded)
		}})
		defer closeAll()
		all := ""
		lines := bufio.NewScanner(conn)
		for lines.Scan() {
			all += lines.Text() + "\n"
		}
		if !strings.Contains(all, "id: 1") || strings.Contains(all, "deadline") {
			t.Errorf("the stream was\n%s", all)
		}
	})
}
