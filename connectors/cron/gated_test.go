package cron_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/cron"
)

func newCron(cfg cron.Config) *cron.Cron { return cron.New(cfg) }

// Gates run outside of a bubble's time, so the tasks of these tests are started
// by hand or wait for the next minute of a bubble.
func TestGatedTasks(t *testing.T) {
	for _, c := range []struct {
		name, command string
		gates         bool
		ledger, text  string
	}{
		{"yes", "echo 3 mails", true, "2000-01-01T00:01:00Z SUCCEEDED", "The gate command said:\n3 mails"},
		{"no", "exit 1", true, "2000-01-01T00:01:00Z skipped gate", ""},
		{"not here", "exit 1", false, "2000-01-01T00:01:00Z SUCCEEDED", "Gate commands may not run on this machine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.cfg.Gates = c.gates
				r.write("a", taskText("a", "schedule: '* * * * *'", "gate:", "  command: "+c.command))
				r.start()
				pass(time.Minute + time.Second)
				r.is(r.ledger("a"), c.ledger)
				if c.text != "" && (len(r.posts) != 1 || !strings.Contains(r.posts[0].m.Text, c.text)) {
					t.Errorf("posts %+v", r.posts)
				}
				if _, err := r.cron.RunNow(r.t.Context(), "a", "k"); err != nil {
					t.Error(err)
				}
				pass(time.Second)
				if rows := r.ledger("a"); len(rows) != 2 || !strings.HasPrefix(rows[1], "manual/k ") || strings.HasSuffix(rows[1], " gate") != (c.text == "") {
					t.Errorf("ledger %v", rows)
				}
			})
		})
	}
}

// Gates that take their time delay no other task: they end when another task has run.
func TestGatesHoldNobodyUp(t *testing.T) {
	bubble(t, func(r *rig) {
		const gates = 40 // more than firings are posted at once
		mark := filepath.Join(t.TempDir(), "posted")
		// They give up after two minutes, so that a Cron that lets them hold it up fails.
		wait := "for i in $(seq 1200); do test -e " + mark + " && exit 0; sleep 0.1; done; exit 1"
		for i := range gates {
			id := fmt.Sprintf("gate%d", i)
			r.write(id, taskText(id, "schedule: '* * * * *'", "gate: "+wait))
		}
		// Of tasks that are due together this one comes last out of the heap.
		r.write("gate00", taskText("free", "schedule: '* * * * *'"))
		r.posted = func(m claybot.AgentMessage) {
			if m.Firing.Task == uid("free") {
				if err := os.WriteFile(mark, nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		}
		r.start()
		pass(time.Minute + time.Second)
		r.is(r.ledger("gate0"), "2000-01-01T00:01:00Z SUCCEEDED")
		r.is(r.ledger("gate39"), "2000-01-01T00:01:00Z SUCCEEDED")
	})
}
