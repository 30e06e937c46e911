package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// The moments of a tear.
const (
	tearMost  = 800             // writes to the database, at most, until the process dies
	tearEarly = 40              // of a third of the tears, which fall into the start
	tearLimit = 8 * time.Second // a life without the k-th write ends after so long
)

// tear restarts a node so that it dies of one of its own writes to the database:
// before it, after half of its bytes, or after it. Then the node starts as usual.
func (s *storm) tear(ctx context.Context, n *node) error {
	_, text, err := net.SplitHostPort(n.wire.Addr())
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	mode := []mode{modeBefore, modeHalf, modeAfter}[s.rng.IntN(3)]
	most := tearMost
	if s.rng.IntN(3) == 0 {
		most = tearEarly
	}
	b := s.begin(faultTear, n.name, string(mode))
	defer func() { b.over = time.Now() }()
	if err := n.kill(); err != nil {
		return err
	}
	x := sabotage{
		Data: filepath.Join(n.dir, "data"), Port: port, Class: classSocket, Call: kindWrite,
		K: 1 + s.rng.IntN(most), Mode: mode, Report: filepath.Join(n.dir, "struck.json"),
	}
	if err := os.Remove(x.Report); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	p, err := startStruck(ctx, n.bin, n.dir, x, n.environment()...)
	if err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		p.ended <- err
	case <-time.After(tearLimit):
	case <-ctx.Done():
	}
	if err := p.kill(); err != nil {
		return err
	}
	if r, err := x.readReport(); err != nil {
		return err
	} else if !r.Done {
		b.how += ", the write did not come"
	}
	return n.start(ctx)
}
