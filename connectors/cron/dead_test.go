package cron_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/texts"
)

// Tasks whose route is dead pause with one notice for all of them, across a restart, and
// resume by themselves when the route works again.
func TestDeadRoutePauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var dead atomic.Bool
		var notices, keys []string
		r.cfg.Dead = func(x claybot.Route) (string, claybot.Time) {
			if dead.Load() && x.Connector == "telegram" && x.ChannelID == "42" {
				return "bot was blocked by the user", 7
			}
			return "", 0
		}
		r.cfg.Notice = func(_ context.Context, owner, key string, say func(texts.Voice) string) error {
			text := say(texts.Voice{})
			if owner != "slack/U1" || !strings.Contains(text, "is paused") {
				t.Errorf("%s: %s", owner, text)
			}
			notices, keys = append(notices, text), append(keys, key)
			return nil
		}
		r.ends = func(claybot.AgentMessage) (claybot.RunState, string) { return claybot.RunSucceeded, "" }
		for _, id := range []string{"one", "two"} {
			r.write(id, taskText(id, "name: "+id, "every: 10m", "owner: slack/U1", "route: telegram/42"))
		}
		r.write("free", taskText("free", "name: free", "every: 10m", "route: telegram/43"))
		r.start()
		time.Sleep(11 * time.Minute)
		before := len(r.fired())
		dead.Store(true)
		time.Sleep(time.Hour)
		r.stop()
		r.start()
		time.Sleep(time.Hour)
		if got := len(r.ledger("one")) + len(r.ledger("two")); got != 2 {
			t.Errorf("%d runs of the tasks of a dead route", got)
		}
		if len(r.fired()) < before+10 {
			t.Error("the other task paused as well")
		}
		if len(keys) != 2 || keys[0] != keys[1] || keys[0] != "cron/dead/telegram/42/7" {
			t.Errorf("notices %q", keys)
		}
		all, _, err := r.cron.Tasks(t.Context())
		if err != nil || len(all) != 3 || all[1].Paused != "the route telegram/42 is dead: bot was blocked by the user" {
			t.Errorf("%v: %+v", err, all)
		}
		dead.Store(false)
		time.Sleep(11 * time.Minute)
		if got := len(r.ledger("one")) + len(r.ledger("two")); got != 4 {
			t.Errorf("%d runs after the route works again, want 4", got)
		}
		r.stop()
	})
}
