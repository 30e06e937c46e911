package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/claybot/claybot"
)

// seat opens the streams: each follows one run after the other.
func (h *house) seat(ctx context.Context, g *errgroup.Group, news *news, done <-chan struct{}) {
	for i := range h.size.steady + h.size.hopping {
		back := i % max(1, int(h.size.length()/h.size.every)) // the streams spread over the runs that are under way
		after := never
		if i >= h.size.steady {
			after = often(5, 40)
		}
		g.Go(func() error {
			if err := rest(ctx, h.size.length()*time.Duration(i)/time.Duration(h.size.streams())); err != nil {
				return err
			}
			for at := -1; ; {
				var run claybot.RunID
				if at, run = news.next(ctx, at, back); run == "" {
					return context.Cause(ctx)
				}
				f := h.follower(run)
				if err := f.follow(ctx, after); err != nil {
					return err
				}
			}
		})
	}
	for i := range h.size.asleep {
		g.Go(func() error {
			run := h.long
			if i%2 == 0 {
				if _, run = news.next(ctx, -1, 0); run == "" {
					return context.Cause(ctx)
				}
			}
			return h.follower(run).sleep(ctx, done)
		})
	}
}

func (h *house) follower(run claybot.RunID) *follower {
	f := &follower{door: h.door, run: run}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read = append(h.read, f)
	return f
}

// sleep opens a stream and reads nothing of it until done; then it looks at
// what has come.
func (f *follower) sleep(ctx context.Context, done <-chan struct{}) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(*f.door.base.Load(), "http://"))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		return err
	}
	req, err := f.door.request(ctx, http.MethodGet, f.path(), nil)
	if err != nil {
		return err
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return fmt.Errorf("what came unread: %w", err)
	}
	defer resp.Body.Close()
	err = f.take(resp, 200)
	if errors.Is(err, errCut) {
		return nil // a reader that does not read may be cut
	}
	return err
}

// news is the runs that were begun, for those who look for something to read.
type news struct {
	mu   sync.Mutex
	runs []claybot.RunID
	more chan struct{} // closed with the next one
	over bool
}

func newNews() *news { return &news{more: make(chan struct{})} }

func (n *news) announce(run claybot.RunID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs = append(n.runs, run)
	close(n.more)
	n.more = make(chan struct{})
}

// close says that no more come.
func (n *news) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	close(n.more)
	n.more = make(chan struct{})
}

// next returns a run behind the one at a place, and its place: the newest but so
// many, as far as there are that many. It waits for one; there is none when no
// more come.
func (n *news) next(ctx context.Context, after, back int) (int, claybot.RunID) {
	for {
		n.mu.Lock()
		at, over, more := max(after+1, len(n.runs)-1-back), n.over, n.more
		if at < len(n.runs) && !over {
			defer n.mu.Unlock()
			return at, n.runs[at]
		}
		n.mu.Unlock()
		if over {
			return at, ""
		}
		select {
		case <-more:
		case <-ctx.Done():
			return at, ""
		}
	}
}
