package api

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	pingEvery = 15 * time.Second
	// writeWait bounds one write of at most writePiece bytes: a slower reader is disconnected
	// and can resume by seq.
	writeWait  = 15 * time.Second
	writePiece = 32 << 10
	// pipeLimit is the maximum number of queued bytes for a reader; as many may be in transit.
	pipeLimit = 128 << 10
)

// A pipe carries frames from one goroutine to one reader. It holds pipeLimit bytes, or one
// longer frame; then put blocks.
type pipe struct {
	mu    sync.Mutex
	buf   []byte
	ended bool
	err   error         // the final error
	data  chan struct{} // signals queued data
	room  chan struct{} // signals free space
}

func newPipe() *pipe {
	return &pipe{data: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put adds a frame; it returns false if ctx ends first.
func (p *pipe) put(ctx context.Context, frame []byte) bool {
	for {
		p.mu.Lock()
		fits := len(p.buf) == 0 || len(p.buf)+len(frame) <= pipeLimit
		if fits {
			p.buf = append(p.buf, frame...)
		}
		p.mu.Unlock()
		if fits {
			signal(p.data)
			return true
		}
		select {
		case <-p.room:
		case <-ctx.Done():
			return false
		}
	}
}

// end marks the end of the data.
func (p *pipe) end(err error) {
	p.mu.Lock()
	p.ended, p.err = true, err
	p.mu.Unlock()
	signal(p.data)
}

// take returns the queued bytes and reuses spare as the next buffer.
func (p *pipe) take(spare []byte) (b []byte, ended bool, err error) {
	p.mu.Lock()
	b, p.buf = p.buf, spare[:0]
	ended, err = p.ended, p.err
	p.mu.Unlock()
	signal(p.room)
	return b, ended, err
}

// A sink is the connection to a reader of events.
type sink struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// openSink sends the header of a stream.
func openSink(w http.ResponseWriter, r *http.Request) sink {
	s := sink{w, http.NewResponseController(w)}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies
	if r.ProtoMajor == 1 {           // HTTP/2 connections are shared with other requests
		h.Set("Connection", "close")
	}
	_ = s.rc.SetReadDeadline(time.Time{}) // the server's deadline is for requests; a writer may not support deadlines
	w.WriteHeader(http.StatusOK)
	return s
}

// send writes b at once, each piece within writeWait.
func (s sink) send(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), writePiece)
		_ = s.rc.SetWriteDeadline(time.Now().Add(writeWait)) // without deadlines, TCP detects a dead peer
		if _, err := s.w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return s.rc.Flush()
}

// pour sends what fill puts into a pipe, and keep-alive pings, until fill returns or ctx is
// done. It returns the error of fill or of the connection.
func (s sink) pour(ctx context.Context, fill func(context.Context, *pipe) error) error {
	ctx, cancel := context.WithCancel(ctx)
	p := newPipe()
	var wg sync.WaitGroup
	wg.Go(func() { p.end(fill(ctx, p)) })
	defer wg.Wait()
	defer cancel()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	var spare []byte
	for {
		var b []byte
		var ended bool
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ping.C:
			b = []byte(": ping\n\n")
		case <-p.data:
			b, ended, err = p.take(spare)
			spare = b
		}
		if err := s.send(b); err != nil {
			return err
		}
		if ended {
			return err
		}
	}
}

// frame encodes a Server-Sent Event. The data must not contain line breaks.
func frame(id, event string, data []byte) []byte {
	var b bytes.Buffer
	b.Grow(len(data) + len(id) + len(event) + 24)
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	if event != "" {
		b.WriteString("event: " + event + "\n")
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	return b.Bytes()
}
