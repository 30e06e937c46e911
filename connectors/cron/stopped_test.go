package cron_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
)

// While the connector is stopped, its tasks are listed, created and changed, and none runs. Started
// again, it runs what they are then.
func TestTasksOfAStoppedConnector(t *testing.T) {
	bubble(t, func(r *rig) {
		r.write("five", taskText("five", "name: Five", "schedule: '*/5 * * * *'"))
		r.start()
		pass(time.Minute)
		r.stop()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- r.cron.Idle(ctx) }()
		pass(11 * time.Minute)
		r.is(r.fired())
		r.is(r.slugs(), "five")
		if _, err := r.cron.Add(r.t.Context(), connectors.TaskSpec{Name: "Ten", Schedule: "*/10 * * * *", Misfire: "run_once", Prompt: "Do ten."}, false); err != nil {
			t.Error(err)
		}
		off := false
		if got, err := r.cron.Change(r.t.Context(), "five", connectors.TaskChange{Enabled: &off}); err != nil || got.Enabled {
			t.Errorf("the changed task is %+v, %v", got, err)
		}
		r.write("hour", taskText("hour", "name: Hour", "schedule: '0 * * * *'"))
		pass(10 * time.Minute) // at 00:22
		r.is(r.slugs(), "five", "hour", "ten")
		if _, err := r.cron.RunNow(r.t.Context(), "ten", "now"); !errors.Is(err, connectors.ErrNotRunning) {
			t.Errorf("a stopped task runs: %v", err)
		}
		r.is(r.fired())
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Idle ended with %v", err)
		}
		r.start()
		pass(39 * time.Minute)
		r.stop()
		r.is(r.fired(), "2000-01-01T00:20:00Z@00:22:00", "2000-01-01T00:30:00Z@00:30:00", "2000-01-01T00:40:00Z@00:40:00",
			"2000-01-01T00:50:00Z@00:50:00", "2000-01-01T01:00:00Z@01:00:00", "2000-01-01T01:00:00Z@01:00:00")
	})
}
