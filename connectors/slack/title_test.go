package slack

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// titled runs a test with an app that has an assistant_view, which remembers.
func titled(t *testing.T, test func(t *testing.T, w *world, say func(user, thread, text string))) {
	t.Helper()
	inWorld(t, slacktest.Config{Manifest: legacy}, func(t *testing.T, w *world) {
		w.cfg.Marks = &marks{kept: make(map[string]string)}
		w.Connector = New(w.cfg)
		w.inbox.strangers = []string{"U2"}
		w.start(t)
		test(t, w, func(user, thread, text string) {
			w.slack.Write(slacktest.Post{Channel: "D" + user, User: user, Text: text, Thread: thread})
			w.settled(t)
			synctest.Wait()
		})
	})
}

// A thread of the panel gets a title once, from the first words of its person; also after a restart, and not from
// a thread that began before.
func TestTitle(t *testing.T) {
	titled(t, func(t *testing.T, w *world, say func(user, thread, text string)) {
		open := func() string {
			_, thread := w.slack.OpenAssistant("U1")
			w.settled(t)
			synctest.Wait()
			return thread
		}
		wants := func(thread string, want ...string) {
			t.Helper()
			if got := w.slack.Titles("DU1", thread); !slices.Equal(got, want) {
				t.Errorf("titles %q, want %q", got, want)
			}
		}
		first := open()
		say("U1", "", "beside it")
		say("U1", first, "How is a pot\nmade &amp; <!channel> sold?")
		say("U1", first, "And a cup?")
		wants(first, "How is a pot made & @channel sold?")
		long := open()
		w.restart(t)
		say("U1", long, strings.Repeat("word ", 100))
		wants(long, strings.TrimSpace(strings.Repeat("word ", 12))[:59]+"…")
		say("U1", first, "Once more")
		wants(first, "How is a pot made & @channel sold?")
		older, newer := open(), open()
		say("U1", older, "The newest thread alone is noted.")
		say("U1", newer, "!status")
		say("U1", newer, "What now?")
		wants(older)
		wants(newer, "What now?")
		if len(w.inbox.all()) != 8 {
			t.Errorf("got %q", w.inbox.texts())
		}
	})
}

// No secret, no stranger and no forwarded message gives a title, and neither does a message after it.
func TestNoTitle(t *testing.T) {
	for _, c := range []struct{ name, user, text string }{
		{"secret", "U1", "my token is xoxb-" + "123456789012-1234567890123-abcdefghijklmnopqrstuvwx"},
		{"stranger", "U2", "let me in"},
		{"outsider", "T2/U3", "let me in"},
	} {
		titled(t, func(t *testing.T, w *world, say func(user, thread, text string)) {
			user := strings.TrimPrefix(c.user, "T2/")
			channel, thread := w.slack.OpenAssistant(user)
			w.settled(t)
			synctest.Wait()
			post := slacktest.Post{Channel: channel, User: user, Text: c.text, Thread: thread}
			if user != c.user {
				post.UserTeam = "T2"
			}
			for range 2 {
				w.slack.Write(post)
				w.settled(t)
				synctest.Wait()
				post.Text = "later"
			}
			if got := w.slack.Titles(channel, thread); got != nil {
				t.Errorf("%s: titles %q", c.name, got)
			}
		})
	}
}

// What goes wrong with a title is no fault of the connector and is not tried again; the message arrives.
func TestTitleRefused(t *testing.T) {
	for _, fault := range []slacktest.Fault{{Error: "invalid_thread_ts"}, {Error: "missing_scope", Needed: "assistant:write"}, {Status: 502}, {Lost: true}, {RetryAfter: 1e9}} {
		titled(t, func(t *testing.T, w *world, say func(user, thread, text string)) {
			channel, thread := w.slack.OpenAssistant("U1")
			w.settled(t)
			synctest.Wait()
			w.slack.Fail(methodTitle, fault)
			say("U1", thread, "hello")
			say("U1", thread, "again")
			if n := len(w.slack.Calls(methodTitle)); n != 1 || len(w.inbox.all()) != 2 {
				t.Errorf("%+v: %d calls, titles %q, messages %q", fault, n, w.slack.Titles(channel, thread), w.inbox.texts())
			}
			if h := w.Health(); fault.Needed == "" && h.Err != "" {
				t.Errorf("%+v: health %+v", fault, h)
			}
		})
	}
}

// Where else a person reads is acknowledged and not read: docs.slack.dev/reference/events/app_context_changed
// and …/assistant_thread_context_changed, read 2026-11-30.
func TestContextIsIgnored(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		for _, event := range []map[string]any{
			{"type": "app_context_changed", "user": "U1", "channel": "DU1", "context": map[string]any{"entities": []map[string]any{
				{"type": "slack#/types/channel_id", "value": "C9", "team_id": "T1"},
				{"type": "slack#/types/message_context", "value": map[string]any{"channel_id": "C9", "message_ts": "1.2"}},
			}}},
			{"type": "app_context_changed", "user": "U1", "channel": "DU1", "context": map[string]any{}},
			{"type": "assistant_thread_context_changed", "event_ts": "1.2", "assistant_thread": map[string]any{
				"user_id": "U1", "channel_id": "DU1", "thread_ts": "1.1", "context": map[string]any{"channel_id": "C9", "team_id": "T1"},
			}},
		} {
			w.slack.Envelope("events_api", map[string]any{"type": "event_callback", "team_id": "T1", "event": event})
		}
		w.settled(t)
		synctest.Wait()
		if n := w.Ignored(); n != 0 || len(w.inbox.all()) != 0 || strings.Contains(w.logs.String(), "C9") {
			t.Errorf("%d events are unknown, messages %q", n, w.inbox.texts())
		}
	})
}
