package cron_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// A desk posts into a real store, as the agent system does.
type desk struct {
	*sqlite.DB
	id claybot.AgentID
}

func (d desk) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	if err := d.IndexAgents(ctx, claybot.Agent{ID: d.id, Descriptor: to, CreatedAt: claybot.Now()}); err != nil {
		return err
	}
	_, err := d.DB.Post(ctx, storage.Posting{To: d.id, Message: m})
	return err
}

func (d desk) Hears(_ context.Context, _ claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	return !m.Context.Unaddressed, nil
}

func (d desk) Moved(context.Context, string, string, string, claybot.Time) error { return nil }

func (d desk) Answer(context.Context, connectors.Press) (connectors.PressResult, error) {
	return connectors.PressResult{}, nil
}

// With the real store: what it enters into the ledger is what cron reads there
// at the next start, and an instant that is posted again is a repeat.
func TestSQLite(t *testing.T) {
	bubble(t, func(r *rig) {
		ctx := r.t.Context()
		db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "claybot.db"), sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		id := claybot.NewID()
		start := func() (*cron.Cron, func()) {
			c := cron.New(cron.Config{Dir: r.dir, Tree: r.folder(), Claims: db, Node: r.cfg.Node, Ledger: db, Index: db, Poll: time.Minute})
			ctx, cancel := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx, desk{db, id}) }()
			return c, func() { cancel(); <-ended }
		}
		r.write("a", taskText("a", "schedule: '*/10 * * * *'"))
		c, stop := start()
		pass(25 * time.Minute)
		if _, err := c.RunNow(ctx, "a", "k"); err != nil {
			t.Error(err)
		}
		stop()
		pass(30 * time.Minute)
		c, stop = start()
		pass(10 * time.Minute)
		rows, err := c.Ledger(ctx, "a", 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range rows {
			got = append(got, row.Instant+" "+row.State+" "+row.Reason)
		}
		r.is(got,
			"2000-01-01T01:00:00Z skipped overlap",
			"2000-01-01T00:50:00Z skipped missed (3)",
			"manual/k waiting ",
			"2000-01-01T00:20:00Z skipped overlap",
			"2000-01-01T00:10:00Z waiting ",
		)
		waiting, err := db.Waiting(ctx, id, 10)
		if err != nil || len(waiting) != 2 {
			t.Errorf("%d messages wait, %v, want 2", len(waiting), err)
		}
		stop()
	})
}
