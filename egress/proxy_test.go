package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot/egress"
)

// startProxy serves a proxy on TCP and returns its address.
func startProxy(t *testing.T, door *egress.Door) string {
	t.Helper()
	proxy := egress.NewProxy(door)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { proxy.ServeConn(ctx, c) })
		}
	})
	t.Cleanup(func() {
		cancel()
		listener.Close()
		serving.Wait()
		proxy.Close()
	})
	return listener.Addr().String()
}

func through(t *testing.T, proxy string) *http.Client {
	t.Helper()
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy})}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// Requests of one client follow each other on one connection, with bodies of each
// kind, and what is between two programs alone goes no further.
func TestProxyForwards(t *testing.T) {
	_, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Proxy-Authorization", "Proxy-Connection", "Keep-Alive", "X-Hop", "Upgrade", "Connection"} {
			if v := r.Header.Get(name); v != "" {
				t.Errorf("%s: %s arrives", name, v)
			}
		}
		if r.Header.Get("X-End") != "kept" || r.RequestURI != "/p?q=1" {
			t.Errorf("%s, %v", r.RequestURI, r.Header)
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Connection", "X-Back")
		w.Header().Set("X-Back", "1")
		fmt.Fprintf(w, "%s %s", r.Method, body)
	})
	var told ledger
	proxy := startProxy(t, open(t, egress.Policy{Private: []string{server}, Log: told.add}))
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	const headers = "Host: ignored\r\nX-End: kept\r\nX-Hop: 1\r\nConnection: keep-alive, X-Hop\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic bm90LXJlYWw=\r\n"
	for _, tt := range []struct{ method, more, body, want string }{
		{"GET", "", "", "GET "},
		{"POST", "Content-Length: 3\r\n", "abc", "POST abc"},
		{"POST", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "POST abcde"},
		{"HEAD", "", "", ""},
		{"DELETE", "", "", "DELETE "},
	} {
		fmt.Fprintf(c, "%s http://%s/p?q=1 HTTP/1.1\r\n%s%s\r\n%s", tt.method, server, headers, tt.more, tt.body)
		resp, err := http.ReadResponse(in, &http.Request{Method: tt.method})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if string(got) != tt.want || err != nil || resp.Header.Get("X-Back") != "" || resp.Close {
			t.Errorf("%s: %q, %v, %v", tt.method, got, err, resp.Header)
		}
	}
	all := told.wait(5)
	if len(all) != 5 || all[2].Sent != 5 || all[2].Received != int64(len("POST abcde")) || all[2].Host != server {
		t.Errorf("%+v", all)
	}
}

// An answer that comes bit by bit arrives bit by bit.
func TestProxyStreams(t *testing.T) {
	next := make(chan string)
	_, server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for text := range next {
			io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
	})
	client := through(t, startProxy(t, open(t, egress.Policy{Private: []string{server}})))
	sent := []string{"one", "two", "three"}
	go func() { next <- sent[0] }()
	resp, err := client.Get("http://" + server)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for i, want := range sent {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v", got, err)
		}
		if i+1 < len(sent) {
			next <- sent[i+1] // only after the one before has arrived
		}
	}
	close(next)
}

func TestProxyExpectContinue(t *testing.T) {
	_, server := serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	proxy := startProxy(t, open(t, egress.Policy{Private: []string{server}}))
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	fmt.Fprintf(c, "POST http://%s/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", server)
	if line, err := in.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 100") || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	in.ReadString('\n')
	io.WriteString(c, "abc")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(resp.Body); string(got) != "abc" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Half an answer does not arrive as a whole one.
func TestProxyBrokenAnswer(t *testing.T) {
	_, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/known" {
			w.Header().Set("Content-Length", "100")
		}
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	client := through(t, startProxy(t, open(t, egress.Policy{Private: []string{server}})))
	for _, path := range []string{"/known", "/unknown"} {
		resp, err := client.Get("http://" + server + path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%s: %q without an error", path, got)
		}
		resp.Body.Close()
	}
}

func TestProxyBadRequests(t *testing.T) {
	_, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			t.Error("an upgrade is asked for")
		}
	})
	var told ledger
	proxy := startProxy(t, open(t, egress.Policy{Private: []string{server, "127.0.0.1:1"}, Log: told.add}))
	for _, tt := range []struct {
		request string
		status  int
	}{
		{"nonsense\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: " + server + "\r\n\r\n", 400},
		{"GET https://" + server + "/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"GET ftp://" + server + "/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"CONNECT " + strings.Split(server, ":")[0] + " HTTP/1.1\r\n\r\n", 403},
		{"CONNECT x:80:80 HTTP/1.1\r\n\r\n", 0},
		{"GET http://a:b@" + server + "/ HTTP/1.1\r\nHost: x\r\n\r\n", 403},
		{"GET http://other.test/?secret HTTP/1.1\r\nHost: " + server + "\r\n\r\n", 403},
		{"CONNECT other.test:443 HTTP/1.1\r\nHost: " + server + "\r\n\r\n", 403},
		{"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n", 502},
		{"GET http://127.0.0.1:1/?secret HTTP/1.1\r\nHost: x\r\n\r\n", 502},
		{"GET http://" + server + "/ HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("y", 70<<10) + "\r\n\r\n", 431},
		{"GET http://" + server + "/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 200},
		{"GET http://" + server + "/ HTTP/1.0\r\n\r\n", 200},
	} {
		c, err := net.Dial("tcp", proxy)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, tt.request)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		switch {
		case err != nil:
			t.Errorf("%.60q: %v", tt.request, err)
		case tt.status != 0 && resp.StatusCode != tt.status, tt.status == 0 && resp.StatusCode < 400:
			t.Errorf("%.60q: %s", tt.request, resp.Status)
		default:
			if text, _ := io.ReadAll(io.LimitReader(resp.Body, resp.ContentLength)); strings.Contains(string(text), "secret") {
				t.Errorf("%q", text)
			}
		}
		c.Close()
	}
	for _, r := range told.take() {
		if strings.Contains(fmt.Sprint(r), "secret") {
			t.Errorf("%+v", r)
		}
	}
}

// A proxy that is stopped ends its connections, whatever they wait for.
func TestProxyStops(t *testing.T) {
	_, server := serve(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	proxy := egress.NewProxy(open(t, egress.Policy{Private: []string{server}}))
	for _, request := range []string{"", "GET http://" + server, "GET http://" + server + "/ HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT " + server + " HTTP/1.1\r\n\r\n"} {
		ctx, cancel := context.WithCancel(t.Context())
		here, there := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			proxy.ServeConn(ctx, there)
		}()
		if request != "" {
			io.WriteString(here, request)
		}
		cancel()
		<-done
		if _, err := io.ReadAll(here); err != nil {
			t.Error(err)
		}
	}
}
