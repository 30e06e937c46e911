package main

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// A lookupLog has the names of hosts that this process has asked for, and connected
// for each connection to the server of listen.
type lookupLog struct {
	mu    sync.Mutex
	names []string
}

// recordLookups answers every lookup of a host in this process, without success, and
// keeps the names.
func recordLookups(t *testing.T) *lookupLog {
	t.Helper()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, "")
	}
	l := new(lookupLog)
	old := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go l.serve(theirs)
		return ours, nil
	}}
	t.Cleanup(func() { net.DefaultResolver = old })
	return l
}

// connected stands in a lookupLog for a connection.
const connected = "a connection to this machine"

// listen starts a server that answers nothing, and returns its port with a colon.
func (l *lookupLog) listen(t *testing.T) string {
	t.Helper()
	server, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
			l.mu.Lock()
			l.names = append(l.names, connected)
			l.mu.Unlock()
		}
	}()
	t.Cleanup(func() { _ = server.Close(); <-ended })
	return strings.TrimPrefix(server.Addr().String(), "127.0.0.1")
}

// serve answers one question over a stream: that there is no such name.
func (l *lookupLog) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	var size [2]byte
	for {
		if _, err := readFull(c, size[:]); err != nil {
			return
		}
		b := make([]byte, int(size[0])<<8|int(size[1]))
		if _, err := readFull(c, b); err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b) != nil || len(m.Questions) == 0 {
			return
		}
		l.mu.Lock()
		l.names = append(l.names, strings.TrimSuffix(m.Questions[0].Name.String(), "."))
		l.mu.Unlock()
		m.Response, m.RCode, m.Additionals = true, dnsmessage.RCodeNameError, nil
		b, err := m.Pack()
		if err != nil {
			return
		}
		if _, err := c.Write(append([]byte{byte(len(b) >> 8), byte(len(b))}, b...)); err != nil {
			return
		}
	}
}

func readFull(c net.Conn, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var k int
		k, err = c.Read(b[n:])
		n += k
	}
	if n == len(b) {
		err = nil
	}
	return n, err
}

// take returns the names since the last time.
func (l *lookupLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := l.names
	l.names = nil
	return names
}

// none requires that a message leads to no lookup and to a sentence that says what is
// not configured correctly, and that status says so as well.
func (l *lookupLog) none(t *testing.T, h *harness, name string) {
	t.Helper()
	l.take()
	reply := h.say("hello")
	if names := l.take(); len(names) > 0 {
		t.Errorf("%s: %q were reached for", name, names)
	}
	if !strings.Contains(reply, "is not configured correctly") || !strings.Contains(reply, "claybot status") {
		t.Errorf("%s: the reply is %q", name, reply)
	}
	if strings.Contains(reply, "secret@") || strings.Contains(reply, "key=secret") || strings.Contains(reply, "not-a-real-key") {
		t.Errorf("%s: the reply shows a secret: %q", name, reply)
	}
	if st := h.get("/status"); !strings.Contains(st, `"off":true`) {
		t.Errorf("%s: the status is %s", name, st)
	}
}
