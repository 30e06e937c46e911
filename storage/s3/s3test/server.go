// Package s3test is an emulator of a file store that speaks the protocol of
// Amazon S3, for tests and demonstrations.
//
// It checks the signature (version 4, in the Authorization header) of every
// request, the hash of every body, and refuses what S3 refuses, with S3's codes
// as XML: unknown buckets, keys and uploads, foreign regions, clocks that are 15
// minutes off, parts below 5 MiB. Contents lie in files, so large ones do not
// fill the memory. It may be used over TCP (Start) or in memory (Transport),
// there also inside a synctest bubble; its only clock is time.Now, moved by
// SetClock.
//
// Known differences from the real platform:
//
//   - Operations: PutObject, GetObject (with Range and If-Match), HeadObject,
//     DeleteObject, DeleteObjects, ListObjectsV2 (without delimiters),
//     CreateMultipartUpload, UploadPart, CompleteMultipartUpload and
//     AbortMultipartUpload. Everything else is 501 NotImplemented.
//   - Payloads that are signed chunk by chunk, presigned addresses and
//     signatures of version 2 are refused.
//   - One key with all rights but those that Deny takes away. No versions,
//     rules, access lists, encryption or metadata beside the type.
//
// Only tests and cmd import this package.
package s3test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// The key of a Server whose Config names none: obviously a fake.
const (
	AccessKey = "FAKEACCESSKEYFORTEST"
	SecretKey = "fake-secret-key-for-tests-only"
)

// Config configures a Server. The zero value has one bucket, "files", in
// us-east-1.
type Config struct {
	Buckets      []string
	Region       string
	AccessKey    string
	SecretKey    string
	SessionToken string // empty: none is taken
	// Domain is the host below which buckets are hosts of their own, without port;
	// empty: they are the first part of paths only.
	Domain string
	// Page is how many keys a list has at most; default 1000.
	Page int
	// MinPart is the size below which only the last part of an upload may be, in
	// bytes; default 5 MiB, as on the real platform.
	MinPart int64
}

// A Server is the emulated store. It is safe for concurrent use.
type Server struct {
	cfg  Config
	dir  string
	done chan struct{} // closed by Close
	// calls that are being answered; none comes to it once done is closed.
	working sync.WaitGroup

	mu      sync.Mutex
	objects map[string]map[string]object // by bucket and key
	uploads map[string]*upload           // by id
	files   int                          // made so far
	faults  []*Fault
	denied  map[string]bool
	calls   map[string]int
	offset  time.Duration // of the clock

	listener net.Listener
	addr     string
	http     *http.Server
	pipes    *pipeListener
	refusing bool
}

// New returns a Server that serves requests as an http.Handler; Start and
// Transport make it reachable. Close removes its files.
func New(cfg Config) (*Server, error) {
	if len(cfg.Buckets) == 0 {
		cfg.Buckets = []string{"files"}
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	if cfg.AccessKey == "" {
		cfg.AccessKey, cfg.SecretKey = AccessKey, SecretKey
	}
	if cfg.Page <= 0 || cfg.Page > maxPage {
		cfg.Page = maxPage
	}
	if cfg.MinPart <= 0 {
		cfg.MinPart = minPart
	}
	dir, err := os.MkdirTemp("", "claybot-s3test-")
	if err != nil {
		return nil, fmt.Errorf("s3test: %w", err)
	}
	s := &Server{
		cfg: cfg, dir: dir, done: make(chan struct{}),
		objects: make(map[string]map[string]object), uploads: make(map[string]*upload),
		denied: make(map[string]bool), calls: make(map[string]int),
	}
	for _, bucket := range cfg.Buckets {
		s.objects[bucket] = make(map[string]object)
	}
	return s, nil
}

// Start listens on a port of 127.0.0.1, the same one when it was stopped
// before, and returns the endpoint.
func (s *Server) Start() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return "http://" + s.addr, nil
	}
	addr := s.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("s3test: listen: %w", err)
	}
	s.listener, s.addr, s.http = l, l.Addr().String(), s.newHTTP()
	go func(h *http.Server) { _ = h.Serve(l) }(s.http) // ends with Stop
	return "http://" + s.addr, nil
}

// Stop refuses connections until Start is called again, and cuts those there
// are. Buckets and uploads are kept.
func (s *Server) Stop() {
	s.mu.Lock()
	h, l := s.http, s.listener
	s.http, s.listener = nil, nil
	s.mu.Unlock()
	if h != nil {
		_, _ = h.Close(), l.Close() // a listener that is closed already
	}
}

// Close ends everything and removes the files.
func (s *Server) Close() error {
	s.Stop()
	s.mu.Lock()
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	if s.pipes != nil {
		_ = s.pipes.http.Close() // only the listener's own error
	}
	s.mu.Unlock()
	s.working.Wait() // a call whose client is gone may still make a file
	return os.RemoveAll(s.dir)
}

// enter counts a call, unless the server is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		return false
	default:
		s.working.Add(1)
		return true
	}
}

// RefuseConnections makes dials of Transport fail, as an unreachable host.
func (s *Server) RefuseConnections(refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusing = refuse
}

// Transport reaches the server in memory, whatever the host of an address, over
// http only. All uses of one Server must be in the same synctest bubble or in
// none.
func (s *Server) Transport() *http.Transport {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pipes == nil {
		s.pipes = &pipeListener{conns: make(chan net.Conn), done: s.done, http: s.newHTTP()}
		go func(l *pipeListener) { _ = l.http.Serve(l) }(s.pipes) // ends with Close
	}
	l := s.pipes
	return &http.Transport{
		MaxIdleConnsPerHost: 16,
		DisableCompression:  true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			s.mu.Lock()
			refusing := s.refusing
			s.mu.Unlock()
			if refusing {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
			}
			here, there := net.Pipe()
			select {
			case l.conns <- there:
				return here, nil
			case <-l.done:
				return nil, net.ErrClosed
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

func (s *Server) newHTTP() *http.Server {
	return &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
}

// A pipeListener hands in-memory connections to an http.Server.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	http  *http.Server
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { return nil }
func (l *pipeListener) Addr() net.Addr { return &net.IPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// SetClock moves the server's clock away from that of the machine.
func (s *Server) SetClock(offset time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset = offset
}

// Deny takes the right to operations such as PutObject away; without any, all
// rights come back.
func (s *Server) Deny(operations ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.denied)
	for _, operation := range operations {
		s.denied[operation] = true
	}
}

// Calls is how often an operation was called; that of "" counts all.
func (s *Server) Calls(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if operation != "" {
		return s.calls[operation]
	}
	n := 0
	for _, calls := range s.calls {
		n += calls
	}
	return n
}

// Keys are those of a bucket, sorted.
func (s *Server) Keys(bucket string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]string, 0, len(s.objects[bucket]))
	for key := range s.objects[bucket] {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Uploads is how many uploads in parts were begun and not ended.
func (s *Server) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

// place finds the bucket and the key of a request.
func (s *Server) place(r *http.Request) (bucket, key string) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	if s.cfg.Domain != "" {
		if bucket, ok := strings.CutSuffix(host, "."+s.cfg.Domain); ok {
			return bucket, path
		}
	}
	bucket, key, _ = strings.Cut(path, "/")
	return bucket, key
}
