package slack

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// works shows a status, as a run does.
func (w *world) works(t *testing.T, channel, thread, message, text string) {
	t.Helper()
	r := claybot.Route{Connector: "slack", ChannelID: "T1/" + channel, ThreadID: thread}
	if _, err := w.Status(t.Context(), r, message, text); err != nil {
		t.Errorf("status %q at %s: %v", text, message, err)
	}
}

// A run shows a session where its status stands, until the status is cleared, with the first words of a
// direct chat as its title; each state is set once.
func TestSession(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.inbox.strangers = []string{"U2"}
		w.start(t)
		wants := func(channel, thread, status, title string) {
			t.Helper()
			if got := w.slack.Session(channel, thread); got != (slacktest.Session{Status: status, Title: title}) {
				t.Errorf("the session at %s is %+v, want %s %q", thread, got, status, title)
			}
		}
		say := func(p slacktest.Post) string {
			ts := w.slack.Write(p)
			w.settled(t)
			synctest.Wait()
			return ts
		}
		direct := say(slacktest.Post{Channel: "DU1", User: "U1", Text: "How is a pot\nmade?"})
		w.works(t, "DU1", "", direct, "is thinking")
		w.works(t, "DU1", "", direct, "uses a tool")
		wants("DU1", direct, "processing", "How is a pot made?")
		w.works(t, "DU1", "", direct, "")
		w.works(t, "DU1", "", direct, "")
		wants("DU1", direct, "active", "How is a pot made?")
		if n := len(w.slack.Calls(methodSession)); n != 2 {
			t.Errorf("%d calls", n)
		}
		w.restart(t) // a process that has ended may have set it
		w.works(t, "DU1", "", direct, "")
		if n := len(w.slack.Calls(methodSession)); n != 3 {
			t.Errorf("%d calls", n)
		}
		reply := say(slacktest.Post{Channel: "DU1", User: "U1", Text: "And a cup?", Thread: direct})
		w.works(t, "DU1", direct, reply, "is thinking")
		wants("DU1", direct, "processing", "How is a pot made?") // people may have renamed it
		for _, text := range []string{"!status", "my token is xoxb-" + "123456789012-1234567890123-abcdefghijklmnopqrstuvwx"} {
			ts := say(slacktest.Post{Channel: "DU1", User: "U1", Text: text})
			w.works(t, "DU1", "", ts, "is thinking")
			wants("DU1", ts, "processing", "")
		}
		stranger := say(slacktest.Post{Channel: "DU2", User: "U2", Text: "let me in"})
		w.works(t, "DU2", "", stranger, "is thinking")
		wants("DU2", stranger, "processing", "")
		first := say(slacktest.Post{Channel: "C1", User: "U1", Text: "<@UBOT> hello"})
		w.works(t, "C1", first, first, "is thinking")
		wants("C1", first, "processing", "")
	})
}

// Slack's button for a session is a stop of what works in its thread, by the person who pressed it.
func TestSessionStopped(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		first := w.slack.Write(slacktest.Post{Channel: "C1", User: "U1", Text: "<@UBOT> hello"})
		w.settled(t)
		if w.slack.StopSession("U1", "C1", first) == nil {
			t.Error("there is a button before the run")
		}
		w.works(t, "C1", first, first, "is thinking")
		if err := w.slack.StopSession("U1", "C1", first); err != nil {
			t.Fatal(err)
		}
		w.settled(t)
		synctest.Wait()
		want := []string{"stop " + first + " true by U1 in T1/C1 group=true"}
		if got := w.inbox.routes; !slices.Equal(got, want) {
			t.Errorf("stopped is %q, want %q", got, want)
		}
		w.slack.Envelope("events_api", map[string]any{"type": "event_callback", "team_id": "T1", "event": map[string]any{
			"type": "agent_session_title_changed", "user": "U1", "channel": "C1", "thread_ts": first, "title": "Pots", "event_ts": "1.2",
		}})
		w.settled(t)
		if w.Ignored() != 0 || len(w.inbox.routes) != 1 {
			t.Errorf("%d events are unknown", w.Ignored())
		}
	})
}

// Where Slack has no sessions for the app, a status is shown without; it is not asked again soon. A pause that
// Slack asks for, and its failures, are repeated as those of a status are.
func TestSessionRefused(t *testing.T) {
	for _, m := range []string{legacy, strings.Replace(Manifest, "      - agent_session_stopped\n", "", 1)} {
		inWorld(t, slacktest.Config{Manifest: m}, func(t *testing.T, w *world) {
			w.start(t)
			ts := w.slack.Write(slacktest.Post{Channel: "D1", User: "U1", Text: "hello"})
			w.slack.Fail(methodSession, slacktest.Fault{Error: "not_agent_app"})
			w.works(t, "D1", "", ts, "is thinking")
			w.works(t, "D1", "", ts, "")
			if n := len(w.slack.Calls(methodSession)); n != 1 {
				t.Errorf("%d calls", n)
			}
			time.Sleep(sessionsAgain)
			w.works(t, "D1", "", ts, "is thinking")
			w.slack.Fail(methodSession, slacktest.Fault{Status: 502})
			r := claybot.Route{Connector: "slack", ChannelID: "T1/D1"}
			if _, err := w.Status(t.Context(), r, ts, ""); err == nil {
				t.Error("a session that could not end is no error")
			}
			w.works(t, "D1", "", ts, "")
			if got := w.slack.Session("D1", ts); got.Status != "active" {
				t.Errorf("the session is %+v", got)
			}
		})
	}
}
