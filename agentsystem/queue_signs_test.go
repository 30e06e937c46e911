package agentsystem

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// waiting are receipts of messages that wait.
type waiting struct{ storage.Receipts }

func (waiting) Receipt(context.Context, claybot.MessageID) (storage.Receipt, error) {
	return storage.Receipt{}, nil
}

// A sign is a connector of which the test plays the calls of a status.
type sign struct {
	connectors.Connector
	status func(ctx context.Context, text string) error
}

func (s *sign) Status(ctx context.Context, _ claybot.Route, _, text string) (time.Duration, error) {
	return time.Minute, s.status(ctx, text)
}

// A platform that hangs, and a connector that panics, hold neither the worker that ends, nor the process.
func TestQueueOutlivesConnectors(t *testing.T) {
	t.Parallel()
	hangs := func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for name, tt := range map[string]struct {
		shows, clears func(ctx context.Context, text string) error
	}{
		"hangs":                   {hangs, hangs},
		"hangs at the end":        {func(context.Context, string) error { return nil }, hangs},
		"panics":                  {func(context.Context, string) error { panic("show") }, func(context.Context, string) error { panic("clear") }},
		"panics at the end":       {func(context.Context, string) error { return nil }, func(context.Context, string) error { panic("clear") }},
		"panics after the worker": {func(ctx context.Context, text string) error { _ = hangs(ctx, text); panic("show") }, hangs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &sign{status: func(ctx context.Context, text string) error {
					if text == "" {
						return tt.clears(ctx, text)
					}
					return tt.shows(ctx, text)
				}}
				q := &queue{
					receipts: waiting{}, active: func(string) connectors.Connector { return c }, log: slog.New(slog.DiscardHandler),
					dead: func(claybot.Route) bool { return false }, full: func() bool { return true },
				}
				q.works(true)
				agent := claybot.Agent{ID: "01AGENT", Descriptor: claybot.User("chat", "c", "ann")}
				q.enter(t.Context(), agent, claybot.AgentMessage{ID: "m", Type: claybot.MessageUser})
				time.Sleep(queuedAfter)
				synctest.Wait()
				began := time.Now()
				q.leave(agent.ID)
				q.end(agent.ID)
				if took := time.Since(began); took > 0 {
					t.Errorf("the end of a worker took %v", took)
				}
				q.works(false)
				if took := time.Since(began); took > 0 {
					t.Errorf("the queue ended after %v", took)
				}
				q.signs.Wait()
				if len(q.waits) > 0 || len(q.taken) > 0 {
					t.Errorf("left: %v, %v", q.waits, q.taken)
				}
			})
		})
	}
}
