package cron_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Tasks whose route is dead pause with one notice for all of them, across a restart, and
// resume by themselves when the route works again.
func TestDeadRoutePauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var dead atomic.Bool
		var mu sync.Mutex
		var keys []string
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
			mu.Lock()
			defer mu.Unlock()
			keys = append(keys, key)
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
		if len(keys) != 2 || keys[0] != keys[1] || keys[0] != "cron/dead/telegram/42/7/slack/U1" {
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

// A task for one instant, whose route is dead at that instant, runs once when the route
// works again.
func TestDeadRouteAtOneInstant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var dead atomic.Bool
		dead.Store(true)
		r.cfg.Dead = func(claybot.Route) (string, claybot.Time) {
			if dead.Load() {
				return "bot was blocked by the user", 7
			}
			return "", 0
		}
		r.ends = func(claybot.AgentMessage) (claybot.RunState, string) { return claybot.RunSucceeded, "" }
		at := time.Now().Add(20 * time.Minute).UTC().Format(time.RFC3339)
		r.write("one", taskText("one", "name: one", "at: "+at, "owner: slack/U1", "route: telegram/42"))
		r.start()
		time.Sleep(30 * time.Minute)
		if got := r.ledger("one"); len(got) != 0 {
			t.Errorf("ran on a dead route: %q", got)
		}
		dead.Store(false)
		time.Sleep(3 * time.Hour)
		if got := r.ledger("one"); len(got) != 1 || len(r.fired()) != 1 {
			t.Errorf("the ledger has %q", got)
		}
		r.stop()
	})
}

// Each owner of tasks that rest gets a notice, and a task rests only after its owner's
// notice is stored; without a chat of the owner it rests all the same.
func TestDeadRouteNotices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Dead = func(claybot.Route) (string, claybot.Time) { return "chat not found", 7 }
		var broken atomic.Bool
		broken.Store(true)
		var keys sync.Map
		r.cfg.Notice = func(_ context.Context, owner, key string, _ func(texts.Voice) string) error {
			switch {
			case owner == "slack/GONE":
				return fmt.Errorf("no chat: %w", storage.ErrNotFound)
			case broken.Load():
				return errors.New("the store is away")
			}
			keys.Store(key, true)
			return nil
		}
		owners := map[string]string{"gone": "slack/GONE", "one": "slack/U1", "two": "slack/U2"}
		for id, owner := range owners {
			r.write(id, taskText(id, "name: "+id, "every: 10m", "owner: "+owner, "route: telegram/42"))
		}
		paused := func() (names []string) {
			all, _, err := r.cron.Tasks(t.Context())
			if err != nil {
				t.Error(err)
			}
			for _, task := range all {
				if task.Paused != "" {
					names = append(names, task.Name)
				}
			}
			return names
		}
		r.start()
		time.Sleep(11 * time.Minute)
		if got := paused(); !slices.Equal(got, []string{"gone"}) {
			t.Errorf("paused without a notice: %q", got)
		}
		broken.Store(false)
		time.Sleep(time.Hour)
		if got := paused(); !slices.Equal(got, []string{"gone", "one", "two"}) {
			t.Errorf("paused: %q", got)
		}
		var got []string
		keys.Range(func(key, _ any) bool { got = append(got, fmt.Sprint(key)); return true })
		slices.Sort(got)
		if !slices.Equal(got, []string{"cron/dead/telegram/42/7/slack/U1", "cron/dead/telegram/42/7/slack/U2"}) {
			t.Errorf("notices %q", got)
		}
		if got := len(r.fired()); got != 0 {
			t.Errorf("%d runs on a dead route", got)
		}
		r.stop()
	})
}
