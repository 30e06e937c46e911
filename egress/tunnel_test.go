package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// A pipes is one end of a pair of pipes, as a program has them.
type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipes) Close() error { return errors.Join(p.ReadCloser.Close(), p.WriteCloser.Close()) }

func pipePair(t *testing.T) (a, b pipes) {
	t.Helper()
	r1, w1, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return pipes{r1, w2}, pipes{r2, w1}
}

// A tunnel is both ends, running.
type tunnel struct {
	addr            string // where programs inside connect
	inside, outside pipes
	stop            context.CancelFunc // the inside
	stopOutside     context.CancelFunc
	relayed, served chan error
	mu              sync.Mutex
	told            []Request
}

func startTunnel(t *testing.T, p Policy) *tunnel {
	t.Helper()
	tn := &tunnel{relayed: make(chan error, 1), served: make(chan error, 1)}
	p.Log = func(r Request) {
		tn.mu.Lock()
		defer tn.mu.Unlock()
		tn.told = append(tn.told, r)
	}
	door, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	proxy := NewProxy(door)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tn.addr = listener.Addr().String()
	tn.inside, tn.outside = pipePair(t)
	var ctx, outer context.Context
	ctx, tn.stop = context.WithCancel(context.Background())
	outer, tn.stopOutside = context.WithCancel(context.Background())
	var both sync.WaitGroup
	both.Go(func() {
		defer tn.inside.Close()
		tn.relayed <- relay(ctx, listener, tn.inside)
	})
	both.Go(func() { tn.served <- proxy.ServeTunnel(outer, tn.outside) })
	t.Cleanup(func() {
		tn.stop()
		tn.stopOutside()
		both.Wait()
		proxy.Close()
	})
	return tn
}

func (tn *tunnel) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: tn.addr}),
		TLSClientConfig: nil,
	}}
}

func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Method", r.Method)
	all, _ := io.ReadAll(r.Body) // a server of HTTP/1 reads first and answers then
	_, _ = w.Write(all)
}

func TestTunnelCarriesRequests(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(echo))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(echo))
	defer secure.Close()
	tn := startTunnel(t, Policy{Private: []string{plain.Listener.Addr().String(), secure.Listener.Addr().String()}})
	base := secure.Client().Transport.(*http.Transport).Clone()
	base.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: tn.addr})
	client := &http.Client{Transport: base}
	defer client.CloseIdleConnections()

	big := make([]byte, 3<<20)
	_, _ = rand.Read(big)
	var all sync.WaitGroup
	for i := range 30 {
		for _, address := range []string{plain.URL, secure.URL} {
			all.Go(func() {
				sent := big[:i*100_000]
				resp, err := client.Post(address+"/?secret=1", "application/octet-stream", bytes.NewReader(sent))
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				got, err := io.ReadAll(resp.Body)
				if err != nil || !bytes.Equal(got, sent) {
					t.Errorf("%d bytes of %d, %v", len(got), len(sent), err)
				}
			})
		}
	}
	all.Wait()
	client.CloseIdleConnections()
	tn.stop()
	if err := <-tn.relayed; err != nil {
		t.Errorf("relay: %v", err)
	}
	if err := <-tn.served; err != nil {
		t.Errorf("tunnel: %v", err)
	}
	var sent, received int64
	for _, r := range tn.told {
		sent, received = sent+r.Sent, received+r.Received
		if strings.Contains(fmt.Sprint(r), "secret") || r.Host == "" {
			t.Errorf("%+v", r)
		}
	}
	if want := int64(29 * 30 * 100_000); sent < want || received < want {
		t.Errorf("told of %d and %d bytes, want at least %d", sent, received, want)
	}
}

// More connections at a time than the tunnel carries: the rest waits its turn.
func TestTunnelManyConnections(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(echo))
	defer plain.Close()
	tn := startTunnel(t, Policy{Private: []string{plain.Listener.Addr().String()}})
	var all sync.WaitGroup
	for range 3 * maxStreams {
		all.Go(func() {
			client := tn.client()
			defer client.CloseIdleConnections()
			resp, err := client.Post(plain.URL, "text/plain", strings.NewReader("x"))
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		})
	}
	all.Wait()
}

// dialThrough opens a CONNECT tunnel from inside.
func dialThrough(t *testing.T, tn *tunnel, to string) (*net.TCPConn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", tn.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", to)
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	return c.(*net.TCPConn), in
}

// accept listens, and gives the first connection.
func accept(t *testing.T) (addr string, first func() *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String(), func() *net.TCPConn {
		c, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c.(*net.TCPConn)
	}
}

// Each side may say that it has written all and read on.
func TestTunnelHalfClose(t *testing.T) {
	for _, first := range []string{"inside", "outside"} {
		t.Run(first, func(t *testing.T) {
			addr, accepted := accept(t)
			tn := startTunnel(t, Policy{Private: []string{addr}})
			inside, in := dialThrough(t, tn, addr)
			outside := accepted()
			var a, b *net.TCPConn
			var fromA, fromB io.Reader
			if first == "inside" {
				a, b, fromA, fromB = inside, outside, outside, in
			} else {
				a, b, fromA, fromB = outside, inside, in, outside
			}
			io.WriteString(a, "question")
			a.CloseWrite()
			if got, err := io.ReadAll(fromA); string(got) != "question" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			io.WriteString(b, "answer")
			b.CloseWrite()
			if got, err := io.ReadAll(fromB); string(got) != "answer" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// A side that breaks off breaks the other one off too, which sees an error and not
// an end.
func TestTunnelBreak(t *testing.T) {
	for _, first := range []string{"inside", "outside"} {
		t.Run(first, func(t *testing.T) {
			addr, accepted := accept(t)
			tn := startTunnel(t, Policy{Private: []string{addr}})
			inside, in := dialThrough(t, tn, addr)
			outside := accepted()
			a, from := inside, io.Reader(outside)
			if first == "outside" {
				a, from = outside, in
			}
			a.SetLinger(0)
			a.Close()
			if _, err := io.ReadAll(from); err == nil {
				t.Error("the break looks like an end")
			}
		})
	}
}

// One connection whose program does not read does not hold up another.
func TestTunnelSlowReader(t *testing.T) {
	addr, accepted := accept(t)
	plain := httptest.NewServer(http.HandlerFunc(echo))
	defer plain.Close()
	tn := startTunnel(t, Policy{Private: []string{addr, plain.Listener.Addr().String()}})
	_, _ = dialThrough(t, tn, addr)
	outside := accepted()
	full := make(chan struct{})
	go func() { // until no more is taken
		defer close(full)
		_, _ = io.Copy(outside, rand.Reader)
	}()
	client := tn.client()
	defer client.CloseIdleConnections()
	for range 20 {
		resp, err := client.Post(plain.URL, "text/plain", strings.NewReader(strings.Repeat("x", 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, resp.Body); n != 1<<20 || err != nil {
			t.Fatal(n, err)
		}
		resp.Body.Close()
	}
	tn.stop()
	<-full
}

// Whichever end dies, the other one ends, and so does everything between.
func TestTunnelEnds(t *testing.T) {
	tests := []struct {
		name  string
		kill  func(*tunnel)
		relay error // of the inside
	}{
		{"the inside is stopped", func(tn *tunnel) { tn.stop() }, nil},
		{"the inside dies", func(tn *tunnel) { tn.inside.Close() }, errGone},
		{"the outside is stopped", func(tn *tunnel) { tn.stopOutside() }, errGone},
		{"the outside dies", func(tn *tunnel) { tn.outside.Close() }, errGone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr, accepted := accept(t)
			tn := startTunnel(t, Policy{Private: []string{addr}})
			inside, _ := dialThrough(t, tn, addr)
			outside := accepted()
			tt.kill(tn)
			if _, err := io.ReadAll(inside); err == nil {
				t.Error("the program inside sees an end")
			}
			_, _ = io.ReadAll(outside) // it ends
			if err := <-tn.relayed; !errors.Is(err, tt.relay) {
				t.Errorf("relay: %v", err)
			}
			if err := <-tn.served; err != nil {
				t.Errorf("tunnel: %v", err)
			}
			if c, err := net.Dial("tcp", tn.addr); err == nil {
				c.Close()
				t.Error("the relay still listens")
			}
		})
	}
}

// The outside judges; the inside may ask for anything.
func TestTunnelRefuses(t *testing.T) {
	addr, _ := accept(t)
	tn := startTunnel(t, Policy{Allow: []string{"example.com"}})
	for _, request := range []string{
		"CONNECT " + addr + " HTTP/1.1\r\n\r\n",
		"CONNECT example.com:22 HTTP/1.1\r\n\r\n",
		"CONNECT other.example.com:443 HTTP/1.1\r\n\r\n",
		"GET http://" + addr + "/?secret=1 HTTP/1.1\r\nHost: example.com\r\n\r\n",
	} {
		c, err := net.Dial("tcp", tn.addr)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, request)
		text, err := io.ReadAll(c)
		if !strings.HasPrefix(string(text), "HTTP/1.1 403 ") || strings.Contains(string(text), "secret") || err != nil {
			t.Errorf("%q: %q, %v", request, text, err)
		}
		c.Close()
	}
}

// What is no tunnel at all, from a container that was taken over.
func TestTunnelGarbage(t *testing.T) {
	door, err := New(Policy{})
	if err != nil {
		t.Fatal(err)
	}
	for _, garbage := range []string{
		"", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("\x00", 1<<16), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", strings.Repeat("x", 1<<20),
	} {
		inside, outside := pipePair(t)
		done := make(chan error, 1)
		go func() { done <- NewProxy(door).ServeTunnel(t.Context(), outside) }()
		go func() {
			_, _ = io.WriteString(inside.WriteCloser, garbage)
			_ = inside.WriteCloser.Close()
		}()
		_, _ = io.Copy(io.Discard, inside.ReadCloser)
		if err := <-done; err != nil {
			t.Errorf("%.20q: %v", garbage, err)
		}
		inside.Close()
	}
}

func TestRelayListensInsideOnly(t *testing.T) {
	for _, listen := range []string{"", "0.0.0.0:0", ":0", "localhost:0", "10.0.0.1:0", "127.0.0.1", "[::]:0"} {
		inside, outside := pipePair(t)
		if err := Relay(t.Context(), listen, inside); err == nil {
			t.Errorf("%q is taken", listen)
		}
		if _, err := io.ReadAll(outside.ReadCloser); err != nil { // closed
			t.Error(err)
		}
		outside.Close()
	}
}

func TestPieces(t *testing.T) {
	for _, size := range []int{0, 1, 2, 16<<10 - 1, 16 << 10, 16<<10 + 1, 1 << 20} {
		data := make([]byte, size)
		_, _ = rand.Read(data)
		var wire, got bytes.Buffer
		if err := sendPieces(&wire, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		whole := wire.Bytes()
		if err := receivePieces(&got, iotest.OneByteReader(bytes.NewReader(whole))); err != nil || !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%d bytes: %v", size, err)
		}
		c := &streamConn{in: io.NopCloser(iotest.HalfReader(bytes.NewReader(whole)))}
		if back, err := io.ReadAll(c); err != nil || !bytes.Equal(back, data) {
			t.Errorf("%d bytes read: %v", size, err)
		}
		for cut := range min(len(whole), 100) {
			if err := receivePieces(io.Discard, bytes.NewReader(whole[:cut])); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("cut at %d: %v", cut, err)
			}
			if _, err := io.ReadAll(&streamConn{in: io.NopCloser(bytes.NewReader(whole[:cut]))}); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("read, cut at %d: %v", cut, err)
			}
		}
	}
}
