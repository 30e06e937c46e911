package web_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/web"
)

// One credential has so many requests under way and no more; others, and what
// ends credentials, go on.
func TestRequestsOfOneCredential(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	w.ends = make(chan error, web.MaxRequests)
	greedy, other := "Bearer "+w.token(t, "greedy", web.Admin), "Bearer "+w.token(t, "other", web.Read)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	hc := &http.Client{Transport: tr}
	var all []streaming
	for range web.MaxRequests {
		s := open(t, hc, "GET", w.url("/stream"), "Authorization", greedy)
		s.first(t)
		all = append(all, s)
	}
	for _, path := range []string{"/stream", "/data"} {
		got := do(t, hc, "GET", w.url(path), "", "Authorization", greedy)
		if got.code != http.StatusTooManyRequests || got.errorCode() != "too_many" || got.head.Get("Retry-After") == "" {
			t.Errorf("%s of one more = %d %s", path, got.code, got.body)
		}
	}
	if got := do(t, hc, "GET", w.url("/data"), "", "Authorization", other); got.code != http.StatusOK {
		t.Errorf("another token = %d %s", got.code, got.body)
	}
	if got := w.ask(t, "GET", "/data", ""); got.code != http.StatusOK {
		t.Errorf("the unix socket = %d %s", got.code, got.body)
	}
	_ = all[0].resp.Body.Close()
	<-w.ends
	for end := time.Now().Add(time.Minute); ; {
		if do(t, hc, "GET", w.url("/data"), "", "Authorization", greedy).code == http.StatusOK {
			break // the request that ended has been left
		}
		if time.Now().After(end) {
			t.Fatal("no room after the end of a stream")
		}
	}
	open(t, hc, "GET", w.url("/stream"), "Authorization", greedy).first(t)
	if got := do(t, hc, "POST", w.url("/tokens/greedy/rotate"), "", "Authorization", greedy); got.code != http.StatusOK {
		t.Errorf("a caller with too many cannot end them: %d %s", got.code, got.body)
	}
	for _, s := range all[1:] {
		s.rest()
	}
}

// Connections beyond the limit wait until another one is closed, and do not end
// the listener.
func TestConnectionsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := pipes{make(chan net.Conn, 9), make(chan struct{})}
		l := web.Limited(inner, 2)
		for range 5 {
			ours, theirs := net.Pipe()
			defer ours.Close()
			inner.conns <- theirs
		}
		accepted := make(chan net.Conn, 9)
		var wg sync.WaitGroup
		var last error
		wg.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					last = err
					return
				}
				accepted <- c
			}
		})
		want := func(n int) {
			t.Helper()
			synctest.Wait()
			if len(accepted) != n {
				t.Errorf("%d connections, want %d", len(accepted), n)
			}
		}
		want(2)
		c := <-accepted
		_ = c.Close()
		_ = c.Close() // counts once
		want(2)
		_ = (<-accepted).Close()
		_ = (<-accepted).Close()
		want(2)
		_ = l.Close()
		wg.Wait()
		if !errors.Is(last, net.ErrClosed) {
			t.Errorf("a listener that waits ends with %v", last)
		}
		for len(accepted) > 0 {
			_ = (<-accepted).Close()
		}
	})
}

// Connections without a request make room for those with one, those of the address that
// holds the most of them first. Requests under way go on.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	const seats, held = 6, 20
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("tls ", secure), func(t *testing.T) {
			entered, leave := make(chan struct{}, 2), make(chan struct{})
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/long" {
					entered <- struct{}{}
					<-leave
				}
				_, _ = io.WriteString(w, "done")
			}))
			l := web.Limited(srv.Listener, seats)
			srv.Listener = l
			srv.Config.ConnState = func(c net.Conn, state http.ConnState) { web.Watch(l, c, state) }
			if secure {
				srv.StartTLS()
			} else {
				srv.Start()
			}
			defer srv.Close()
			hc := srv.Client()
			hc.Timeout = time.Minute
			ask := func(path string) error {
				resp, err := hc.Get(srv.URL + path)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "done" {
					return fmt.Errorf("read %q, %w", b, err)
				}
				return nil
			}
			long := make(chan error, 2)
			for range cap(long) {
				go func() { long <- ask("/long") }()
				<-entered
			}
			stranger := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
			for range held {
				c, err := stranger.DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
			}
			for i := range 3 {
				if err := ask("/"); err != nil {
					t.Errorf("request %d beside %d idle connections: %v", i, held, err)
				}
			}
			close(leave)
			for range cap(long) {
				if err := <-long; err != nil {
					t.Errorf("a request under way: %v", err)
				}
			}
		})
	}
}

// pipes is a listener of connections that are in a queue.
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
