package s3test

import (
	"io"
	"net/http"
	"time"
)

// A Fault makes calls go wrong. Operation chooses the calls, Skip lets the first
// of them pass and Times bounds the rest. Of what follows, the first that is set
// happens.
type Fault struct {
	Operation string // such as PutObject; empty is every one
	Skip      int
	Times     int // 0 is once, below 0 for ever

	Delay time.Duration // before anything else; then the call goes on, well or wrong

	Hang bool // no answer until the client gives up; nothing is done
	Drop bool // the connection ends; nothing is done
	Lost bool // it is done, the connection ends without an answer
	// Cut ends the connection after so many bytes of the answer's body; it is done.
	Cut int64
	// Stall sends nothing more after so many bytes of the answer's body, until the
	// client gives up; it is done.
	Stall int64

	// An answer instead: an error of S3 with a status (200 is possible, as at the
	// end of long uploads), or Body as it is, of type text/html.
	Status int
	Code   string
	Body   string
}

// SlowDown is the fault with which S3 asks for fewer requests.
func SlowDown(operation string, times int) Fault {
	return Fault{Operation: operation, Times: times, Status: http.StatusServiceUnavailable, Code: "SlowDown"}
}

// Fail adds a fault. Faults are tried in the order in which they were added.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults = append(s.faults, &f)
}

// Heal removes all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// begin counts a call and finds the fault that strikes it, if any.
func (s *Server) begin(operation string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[operation]++
	for _, f := range s.faults {
		switch {
		case f.Operation != "" && f.Operation != operation || f.Times == 0:
			continue
		case f.Skip > 0:
			f.Skip--
			continue
		case f.Times > 0:
			f.Times--
		}
		struck := *f
		return &struck
	}
	return nil
}

// before does what happens instead of the call, and reports whether that was
// all.
func (f *Fault) before(c *call) bool {
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	switch {
	case f.Hang:
		c.hang()
	case f.Drop:
		panic(http.ErrAbortHandler)
	case f.Lost || f.Cut > 0 || f.Stall > 0:
		return false
	case f.Code != "":
		refuse(f.Status, f.Code, "This fault was asked for by the test").write(c)
		return true
	case f.Status != 0:
		_, _ = io.Copy(io.Discard, c.r.Body) // as refusals do
		c.w.Header().Set("Content-Type", "text/html")
		c.w.WriteHeader(f.Status)
		_, _ = c.w.Write([]byte(f.Body)) // a client that went away gets nothing
		return true
	}
	return false
}

// hang waits until the client or the server gives up. That a client is gone is
// seen only after its body was read.
func (c *call) hang() {
	_, _ = io.Copy(io.Discard, c.r.Body) // a client that went away
	select {
	case <-c.r.Context().Done():
	case <-c.s.done:
	}
	panic(http.ErrAbortHandler)
}

// wrap makes answers end early.
func (f *Fault) wrap(c *call) http.ResponseWriter {
	switch {
	case f.Lost:
		return &silent{header: make(http.Header)}
	case f.Cut > 0:
		return &limited{ResponseWriter: c.w, left: f.Cut, end: func() { panic(http.ErrAbortHandler) }}
	case f.Stall > 0:
		return &limited{ResponseWriter: c.w, left: f.Stall, end: c.hang}
	default:
		return c.w
	}
}

// silent is the answer that gets lost.
type silent struct{ header http.Header }

func (s *silent) Header() http.Header         { return s.header }
func (s *silent) Write(b []byte) (int, error) { return len(b), nil }
func (s *silent) WriteHeader(int)             {}

// limited is an answer that ends after some bytes.
type limited struct {
	http.ResponseWriter
	left int64
	end  func()
}

func (l *limited) Write(b []byte) (int, error) {
	if int64(len(b)) < l.left {
		l.left -= int64(len(b))
		return l.ResponseWriter.Write(b)
	}
	_, _ = l.ResponseWriter.Write(b[:l.left]) // what comes next ends it anyway
	_ = http.NewResponseController(l.ResponseWriter).Flush()
	l.end()
	return 0, http.ErrAbortHandler
}
