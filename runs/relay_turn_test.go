package runs_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// A turnstile gives the right to tell a sink to one node.
type turnstile struct {
	mu     sync.Mutex
	holder string
	end    context.CancelCauseFunc // of the holder's context
	claims int
}

func (s *turnstile) of(node string) func(context.Context, string) (context.Context, func(), error) {
	return func(ctx context.Context, claim string) (context.Context, func(), error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.claims++
		if claim != runs.SinkClaim("out") {
			return nil, nil, errors.New("another claim")
		}
		if s.holder == "" {
			s.holder = node
		}
		if s.holder != node {
			return nil, nil, storage.ErrHeld
		}
		ctx, s.end = context.WithCancelCause(ctx)
		end := s.end
		return ctx, func() { end(nil) }, nil
	}
}

func (s *turnstile) give(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holder = node
	s.end(errors.New("lapsed"))
}

// A tellSink notes who told it of what.
type tellSink struct {
	mu   *sync.Mutex
	node string
	told *[]string
	seqs *[]int64
}

func (k tellSink) Publish(ctx context.Context, events []claybot.Event) error {
	k.mu.Lock()
	for _, e := range events {
		*k.told, *k.seqs = append(*k.told, k.node), append(*k.seqs, e.Seq)
	}
	k.mu.Unlock()
	return nil
}

// TestRelayTurns: of several nodes one tells the sink, and another goes on when it
// is gone.
func TestRelayTurns(t *testing.T) {
	inCluster(t, 2, func(t *testing.T, c *cluster) {
		var mu sync.Mutex
		var told []string
		var seqs []int64
		turn := &turnstile{holder: "a"}
		ctx, stop := context.WithCancel(t.Context())
		var all []*runs.Relay
		var ended sync.WaitGroup
		for i, node := range []string{"a", "b"} {
			r := working(&runs.Relay{
				Store: c.db, Hub: c.hubs[i], Turn: turn.of(node),
				Sinks: map[string]runs.Sink{"out": tellSink{mu: &mu, node: node, told: &told, seqs: &seqs}},
			})
			all = append(all, r)
			ended.Go(func() { _ = r.Run(ctx) })
		}
		time.Sleep(time.Second)
		l := c.start()
		l.add(4)
		time.Sleep(3 * time.Second)
		mu.Lock()
		for _, node := range told {
			if node != "a" {
				t.Errorf("%s tells, and has not the right", node)
			}
		}
		if len(seqs) != 5 {
			t.Errorf("told %v", seqs)
		}
		mu.Unlock()
		if h := all[1].Health()[0]; !h.Standby || h.Error != "" {
			t.Errorf("the other one: %+v", h)
		}
		turn.give("b")
		l.finish()
		time.Sleep(5 * time.Second)
		mu.Lock()
		if n := len(seqs); n < 6 || seqs[n-1] != 6 || told[n-1] != "b" {
			t.Errorf("after the change: %v by %v", seqs, told)
		}
		mu.Unlock()
		if h := all[1].Health()[0]; h.Standby {
			t.Errorf("the new one: %+v", h)
		}
		turn.mu.Lock()
		before := turn.claims
		turn.mu.Unlock()
		time.Sleep(20 * time.Second)
		turn.mu.Lock()
		if n := turn.claims - before; n > 22 {
			t.Errorf("%d claims in 20 s of rest", n)
		}
		turn.mu.Unlock()
		stop()
		ended.Wait()
		synctest.Wait()
	})
}
