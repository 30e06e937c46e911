package egress_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/claybot/claybot/egress"
)

// A nameServer is a real one, on UDP. Answers are given in turn, the last one
// again and again.
type nameServer struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr // name with its dot -> answers
	asked   map[string]int            // of address questions, by name
}

func startNames(t *testing.T, answers map[string][][]string) (*nameServer, *net.Resolver) {
	t.Helper()
	s := &nameServer{answers: make(map[string][][]netip.Addr), asked: make(map[string]int)}
	for name, turns := range answers {
		for _, list := range turns {
			var addrs []netip.Addr
			for _, text := range list {
				addrs = append(addrs, netip.MustParseAddr(text))
			}
			s.answers[name+"."] = append(s.answers[name+"."], addrs)
		}
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { s.serve(conn) })
	t.Cleanup(func() {
		conn.Close()
		serving.Wait()
	})
	return s, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(context.WithoutCancel(ctx), "udp", conn.LocalAddr().String())
		if err != nil {
			return nil, err
		}
		return patient{c.(*net.UDPConn)}, nil
	}}
}

// patient is the way to a name server without an end of patience: a resolver whose
// question is answered late asks again, and the turns of the answers would be others.
type patient struct{ *net.UDPConn }

func (patient) SetDeadline(time.Time) error { return nil }

// count is how many questions for addresses of a name came.
func (s *nameServer) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name+"."]
}

func (s *nameServer) serve(conn net.PacketConn) {
	b := make([]byte, 2048)
	for {
		n, from, err := conn.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		s.answer(&m)
		if packed, err := m.Pack(); err == nil {
			conn.WriteTo(packed, from)
		}
	}
}

func (s *nameServer) answer(m *dnsmessage.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := m.Questions[0]
	name := strings.ToLower(q.Name.String())
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	turns, known := s.answers[name]
	if !known {
		m.RCode = dnsmessage.RCodeNameError
		return
	}
	// The two questions of one lookup, A and AAAA, get the same turn.
	turn := min(s.asked[name]/2, len(turns)-1)
	s.asked[name]++
	for _, a := range turns[turn] {
		h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
}

// A trap listens at every address of this machine. No connection must come.
type trap struct {
	port  string
	came  atomic.Int32
	drops sync.WaitGroup
}

func setTrap(t *testing.T) *trap {
	t.Helper()
	trap := new(trap)
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	_, trap.port, _ = net.SplitHostPort(listener.Addr().String())
	trap.drops.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			trap.came.Add(1)
			c.Close()
		}
	})
	t.Cleanup(func() {
		listener.Close()
		trap.drops.Wait()
	})
	return trap
}

// check proves that the trap works, and that no connection has come.
func (tr *trap) check(t *testing.T) {
	t.Helper()
	if n := tr.came.Load(); n != 0 {
		t.Errorf("%d forbidden connections", n)
	}
	before := tr.came.Load()
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", tr.port))
	if err != nil {
		t.Fatal(err)
	}
	c.Read(make([]byte, 1)) // until it is dropped, so after it was counted
	c.Close()
	if n := tr.came.Load(); n != before+1 {
		t.Errorf("the trap counts %d after one more than %d", n, before)
	}
}

// A ledger keeps what the door told.
type ledger struct {
	mu  sync.Mutex
	all []egress.Request
}

func (l *ledger) add(r egress.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
}

// wait is take once there are n.
func (l *ledger) wait(n int) []egress.Request {
	for {
		l.mu.Lock()
		have := len(l.all)
		l.mu.Unlock()
		if have >= n {
			return l.take()
		}
		runtime.Gosched()
	}
}

func (l *ledger) take() []egress.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

func open(t *testing.T, p egress.Policy) *egress.Door {
	t.Helper()
	d, err := egress.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// serve starts a server and returns it with its "host:port".
func serve(t *testing.T, h http.HandlerFunc) (*httptest.Server, string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s, strings.TrimPrefix(s.URL, "http://")
}
