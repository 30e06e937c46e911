package slack

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// repeated returns n faults of calls about a channel, any channel if it is empty.
func repeated(n int, f slacktest.Fault, channel string) []slacktest.Fault {
	f.Channel = channel
	return slices.Repeat([]slacktest.Fault{f}, n)
}

// A conversation that cannot be read, or whose messages cannot be stored, waits behind the
// others: theirs are posted, and new messages there do not run out of patience. Once it works,
// its own are posted.
func TestBackfillFailureDelaysNoOther(t *testing.T) {
	for _, tt := range []struct {
		name   string
		within time.Duration // the others are read
		fail   func(w *gapWorld)
	}{
		{"no answer", time.Second, func(w *gapWorld) {
			w.slack.Fail(methodHistory, repeated(outageTries-1, slacktest.Fault{Status: 502}, "DUANN")...)
		}},
		{"an error", time.Second, func(w *gapWorld) {
			w.slack.Fail(methodHistory, repeated(backfillTries-1, slacktest.Fault{Error: "internal_error"}, "DUANN")...)
		}},
		{"calls that hang", hastyTime + time.Second, func(w *gapWorld) {
			w.slack.Fail(methodHistory, repeated(3, slacktest.Fault{Hang: true}, "DUANN")...)
		}},
		{"a thread", time.Second, func(w *gapWorld) {
			w.slack.Fail(methodReplies, repeated(outageTries-1, slacktest.Fault{Status: 502}, "DUANN")...)
		}},
		{"the store", time.Second, func(w *gapWorld) {
			began := time.Now()
			w.inbox.before = func(_ context.Context, m claybot.AgentMessage) error {
				if m.Text == "two" && time.Since(began) < time.Hour+time.Minute {
					return errors.New("disk full")
				}
				return nil
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inGapWorld(t, forgetful(), func(w *gapWorld) {
				w.start(w.t)
				w.slack.DM("UBOB", "hello")
				w.slack.DM("UCAT", "hi")
				time.Sleep(time.Second)
				w.settled(w.t)
				w.slack.DM("UANN", "one") // the newest comes first
				time.Sleep(time.Hour)
				tt.fail(w)
				w.away(time.Hour, func() {
					_, two := w.slack.DM("UANN", "two")
					w.slack.Write(slacktest.Post{Channel: "DUANN", User: "UANN", Text: "three", Thread: two})
					w.slack.DM("UANN", "four")
					w.slack.DM("UBOB", "are you there?")
					w.slack.DM("UCAT", "hello?")
				})
				w.slack.DM("UBOB", "bob again")
				reads := len(w.slack.Calls(methodHistory))
				time.Sleep(tt.within)
				got := w.inbox.texts()[3:]
				slices.Sort(got)
				if want := []string{"are you there?", "bob again", "hello?"}; !slices.Equal(got, want) {
					w.t.Errorf("posted %q, want %q", got, want)
				}
				time.Sleep(5 * time.Minute)
				w.settled(w.t)
				got = slices.DeleteFunc(w.inbox.texts()[3:], func(s string) bool { return s == "are you there?" || s == "bob again" || s == "hello?" })
				if want := []string{"two", "three", "four"}; !slices.Equal(got, want) {
					w.t.Errorf("posted %q, want %q", got, want)
				}
				w.wantsTold()
				if tt.name == "a thread" && len(w.slack.Calls(methodHistory))-reads > 3 {
					w.t.Errorf("read the same page of history again: %d", len(w.slack.Calls(methodHistory))-reads)
				}
			})
		})
	}
}

// A conversation that waits to be read again keeps the patience of its new messages: these go
// first, it gets the notice at once, and what is read later is not posted.
func TestBackfillRequeuedGivesWay(t *testing.T) {
	inGapWorld(t, forgetful(), func(w *gapWorld) {
		w.start(w.t)
		w.slack.DM("UANN", "one")
		time.Sleep(time.Hour)
		w.slack.Fail(methodHistory, repeated(6, slacktest.Fault{Status: 502}, "DUANN")...) // the last one after more than a minute
		w.away(time.Hour, func() { w.slack.DM("UANN", "two") })
		w.slack.DM("UANN", "three")
		time.Sleep(patience - 2*time.Millisecond)
		w.wants("one")
		time.Sleep(4 * time.Millisecond)
		w.wants("one", "three")
		w.wantsTold("T1/DUANN")
		time.Sleep(time.Hour)
		w.wants("one", "three")
		w.wantsTold("T1/DUANN")
	})
}

// An outage of all of Slack costs no conversation its messages, and few calls.
func TestBackfillOutage(t *testing.T) {
	inGapWorld(t, forgetful(), func(w *gapWorld) {
		w.start(w.t)
		for _, user := range []string{"UANN", "UBOB", "UCAT", "UDAN", "UEVE"} {
			w.slack.DM(user, "hello")
		}
		time.Sleep(time.Hour)
		w.settled(w.t)
		w.away(time.Hour, func() {
			for _, user := range []string{"UANN", "UBOB", "UCAT", "UDAN", "UEVE"} {
				w.slack.DM(user, "there?")
			}
			w.slack.Fail(methodHistory, repeated(1000, slacktest.Fault{Status: 502}, "")...)
		})
		before := len(w.slack.Calls(methodHistory))
		time.Sleep(3 * time.Minute)
		if calls := len(w.slack.Calls(methodHistory)) - before; calls < 10 || calls > 3*20 {
			w.t.Errorf("%d calls in an outage of 3 minutes", calls)
		}
		w.slack.Heal(methodHistory)
		time.Sleep(time.Minute)
		if got := w.inbox.texts(); len(got) != 10 {
			w.t.Errorf("posted %q", got)
		}
		w.wantsTold()
	})
}
