package slack

import (
	"errors"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// A status stands where the answer goes: below the thread, or below a message of a direct
// chat without threads. What Slack refuses is no error, and a pause is obeyed.
func TestStatus(t *testing.T) {
	t.Parallel()
	in := func(channel, thread string) claybot.Route {
		return claybot.Route{Connector: "slack", ChannelID: "T1/" + channel, ThreadID: thread}
	}
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		direct := w.slack.Write(slacktest.Post{Channel: "D1", User: "U1", Text: "hello"})
		first := w.slack.Write(slacktest.Post{Channel: "C1", User: "U1", Text: "<@UBOT> hello"})
		reply := w.slack.Write(slacktest.Post{Channel: "C1", User: "U1", Text: "and", Thread: first})
		set := func(r claybot.Route, message, text string, want time.Duration) {
			t.Helper()
			if lasts, err := w.Status(t.Context(), r, message, text); lasts != want || err != nil {
				t.Errorf("status at %q of %+v: for %v, %v; want %v", message, r, lasts, err, want)
			}
		}
		shows := func(channel, ts, want string) {
			t.Helper()
			if got := w.slack.Status(channel, ts); got != want {
				t.Errorf("%s shows %q at %s, want %q", channel, got, ts, want)
			}
		}
		set(in("D1", ""), direct, "is thinking", statusLasts)
		shows("D1", direct, "is thinking")
		set(in("C1", first), reply, "is thinking", statusLasts)
		shows("C1", first, "is thinking")
		shows("C1", reply, "")
		time.Sleep(statusLasts)
		shows("D1", direct, "is thinking")
		set(in("D1", ""), direct, "", statusLasts)
		shows("D1", direct, "")

		set(in("D1", ""), "", "is thinking", 0) // a task without a message
		set(in("D1", ""), "1.000000", "is", 0)  // the message was deleted
		set(in("C9", ""), "1.000000", "is", 0)  // the bot is no member
		set(claybot.Route{ChannelID: "C1"}, "1.000000", "is", 0)
		for _, fault := range []slacktest.Fault{{Error: "missing_scope", Needed: "chat:write"}, {Error: "unknown_method"}, {Error: "is_archived"}} {
			w.slack.Fail(methodStatus, fault)
			set(in("D1", ""), direct, "is thinking", 0)
		}
		w.slack.Fail(methodStatus, slacktest.Fault{Status: 502}, slacktest.Fault{RetryAfter: 7 * time.Second})
		if lasts, err := w.Status(t.Context(), in("D1", ""), direct, "is"); lasts != 0 || err == nil {
			t.Errorf("while Slack fails: for %v, %v", lasts, err)
		}
		var retry *connectors.RetryError
		for range 2 {
			if _, err := w.Status(t.Context(), in("D1", ""), direct, "is"); !errors.As(err, &retry) || retry.After != 7*time.Second {
				t.Errorf("after 429: %v", err)
			}
		}
		time.Sleep(7 * time.Second)
		set(in("D1", ""), direct, "", statusLasts)
	})
}
