package slack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// Direct messages of people who are new, or were silent for long, got neither an answer
// nor a notice after a gap. What cannot be found out is reported to the operator.
func TestBackfillFindsNewPeople(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(w *gapWorld)
		people  int      // who write for the first time
		posted  int      // of their messages
		told    []string // chats
		health  []string // what the operator reads; nil: nothing
	}{
		{"new", func(*gapWorld) {}, 3, 3, nil, nil},
		{"more pages than one", func(*gapWorld) {}, maxUnknown - 1, maxUnknown - 1, nil, nil},
		{"too many", func(*gapWorld) {}, maxUnknown + 7, maxUnknown, nil, []string{"7 more conversations or threads were neither read nor notified"}},
		{"chats that claybot does not list", func(w *gapWorld) { w.people.more = 11 }, 1, 1, nil, []string{"11 more conversations or threads were neither read nor notified"}},
		{"no scope", func(w *gapWorld) { w.slack.Lack("im:read", true) }, 3, 0, nil, []string{"may be missing (", "im:read"}},
		{"off", func(w *gapWorld) { w.cfg.NoBackfill = true }, 3, 0, []string{"T1/DUANN"}, []string{"slack.backfill is off", "people who are new"}},
		{"a busy Slack", func(w *gapWorld) {
			w.slack.Fail(methodList, slacktest.Fault{RetryAfter: 5 * time.Second}, slacktest.Fault{Status: 502}, slacktest.Fault{Cut: true})
		}, 3, 3, nil, nil},
		{"a Slack that is too busy", func(w *gapWorld) {
			w.slack.Fail(methodList, slacktest.Fault{RetryAfter: time.Hour})
		}, 3, 0, nil, []string{"people who are new", "the list did not come in time"}},
		{"a history that cannot be read", func(w *gapWorld) {
			w.slack.Fail(methodHistory, repeated(backfillTries, slacktest.Fault{Error: "internal_error"}, "DUANN")...)
			w.slack.Fail(methodHistory, repeated(backfillTries, slacktest.Fault{Error: "internal_error"}, "DUNEW000")...)
		}, 2, 1, []string{"T1/DUANN"}, []string{"messages to 1 conversations may be missing", "1 more conversations or threads were neither read nor notified"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inGapWorld(t, forgetful(), func(w *gapWorld) {
				w.start(w.t)
				w.slack.DM("UANN", "one")
				w.settled(w.t)
				time.Sleep(time.Hour)
				tt.prepare(w)
				w.away(time.Hour, func() {
					for i := range tt.people {
						w.slack.DM(fmt.Sprintf("UNEW%03d", i), "hello")
					}
				})
				time.Sleep(10 * time.Minute)
				if got := w.inbox.texts(); len(got) != 1+tt.posted {
					w.t.Errorf("%d messages are posted, want %d", len(got)-1, tt.posted)
				}
				w.wantsTold(tt.told...)
				h := w.Health()
				for _, want := range tt.health {
					if !strings.Contains(h.Err, want) {
						w.t.Errorf("the operator reads %q, want %q in it", h.Err, want)
					}
				}
				if tt.health == nil && h.Err != "" {
					w.t.Errorf("the operator reads %q", h.Err)
				}
				lists := len(w.slack.Calls(methodList))
				w.away(time.Minute, func() {})
				time.Sleep(time.Hour)
				if got := w.inbox.texts(); len(got) != 1+tt.posted || len(w.slack.Calls(methodList)) != lists {
					w.t.Errorf("after a restart %d messages are posted, with %d more lists", len(got)-1, len(w.slack.Calls(methodList))-lists)
				}
			})
		})
	}
}

// A new message of a new person comes after the older ones.
func TestBackfillOfNewPeopleComesFirst(t *testing.T) {
	inGapWorld(t, forgetful(), func(w *gapWorld) {
		w.start(w.t)
		w.slack.DM("UANN", "one")
		w.settled(w.t)
		time.Sleep(time.Hour)
		w.slack.Fail(methodList, slacktest.Fault{RetryAfter: 10 * time.Second})
		w.away(time.Hour, func() { w.slack.DM("UNEW", "two") })
		w.slack.DM("UNEW", "three")
		time.Sleep(time.Second)
		w.wants("one")
		time.Sleep(time.Minute)
		w.wants("one", "two", "three")
		if got := w.people.told(); !slices.Equal(got, nil) {
			w.t.Errorf("told %q", got)
		}
	})
}
