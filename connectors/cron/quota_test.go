package cron_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/cron"
)

// byAgent is a task that an agent creates for an owner.
func byAgent(owner string) connectors.TaskSpec {
	return connectors.TaskSpec{Name: "Often", Every: "1h", Prompt: "Do it.", Owner: owner, Limited: true}
}

// limited gives the rig limits that a test may change.
func limited(r *rig, most *cron.Limits) {
	r.cfg.Limits = func() cron.Limits { return *most }
	r.cfg.Person = func(owner string) string { return strings.Replace(owner, "slack/ann", "telegram/1", 1) }
}

// Neither deleting tasks nor a restart makes room within the hour, and nobody else is
// limited.
func TestNewTasksPerHour(t *testing.T) {
	bubble(t, func(r *rig) {
		most := &cron.Limits{Tasks: 5, Hourly: 3}
		limited(r, most)
		r.start()
		pass(time.Second)
		add := func(owner, refusal string) connectors.Task {
			t.Helper()
			if _, err := r.cron.Add(r.t.Context(), byAgent(owner), true); err != nil {
				t.Errorf("a preview: %v", err)
			}
			made, err := r.cron.Add(r.t.Context(), byAgent(owner), false)
			if (err != nil) != (refusal != "") || err != nil && !strings.Contains(err.Error(), refusal) {
				t.Errorf("%s: %v, want %q", owner, err, refusal)
			}
			return made
		}
		for range 3 {
			if err := r.cron.Remove(r.t.Context(), add("telegram/1", "").UID); err != nil {
				t.Error(err)
			}
			pass(time.Minute)
		}
		const hourly = "3 tasks were created within an hour, deleted ones included, and cron.max_new_per_hour allows 3 for each person; try again in 57 minutes"
		add("telegram/1", hourly)
		add("slack/ann", hourly) // the same person
		r.stop()
		r.start()
		pass(time.Second)
		add("telegram/1", "cron.max_new_per_hour")
		add("telegram/2", "")
		byHand := byAgent("telegram/1")
		byHand.Limited = false
		for range 3 {
			if _, err := r.cron.Add(r.t.Context(), byHand, false); err != nil {
				t.Errorf("not by an agent: %v", err)
			}
		}
		pass(57 * time.Minute)
		add("telegram/1", "") // the first of them is an hour old
		add("telegram/1", "cron.max_new_per_hour")
		pass(time.Hour)
		add("telegram/1", "")
		add("telegram/1", "there are 5 tasks already, and cron.max_tasks allows 5 for each person")
		most.Tasks, most.Hourly = 100, 100
		add("telegram/1", "")
		most.Hourly = 0
		add("telegram/1", "agents may create no tasks here")
	})
}

// However many agents create tasks at once, on one member or on several, a person has no
// more than the limits allow.
func TestTasksCreatedAtOnce(t *testing.T) {
	for _, most := range []cron.Limits{{Tasks: 7, Hourly: 20}, {Tasks: 50, Hourly: 6}} {
		for _, members := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d of %d, %d members", most.Hourly, most.Tasks, members), func(t *testing.T) {
				bubble(t, func(r *rig) {
					limited(r, &most)
					r.dir = filepath.Join(r.dir, "x")
					nodes := team(r, members, nil)
					var added atomic.Int64
					var work sync.WaitGroup
					for i := range 24 {
						work.Go(func() {
							_, err := nodes[i%members].cron.Add(r.t.Context(), byAgent("telegram/1"), false)
							if err == nil {
								added.Add(1)
							} else if !strings.Contains(err.Error(), "cron.max_") {
								t.Error(err)
							}
						})
					}
					work.Wait()
					pass(10 * time.Second)
					want := min(most.Tasks, most.Hourly)
					for i, x := range nodes {
						if tasks, _, err := x.cron.Tasks(r.t.Context()); err != nil || len(tasks) != want || added.Load() != int64(want) {
							t.Errorf("member %d has %d tasks of %d added, %v; want %d", i, len(tasks), added.Load(), err, want)
						}
					}
				})
			})
		}
	}
}
