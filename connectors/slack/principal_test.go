package slack

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// User ids are unique within a workspace only (F5): the same id of another workspace is
// another person, whichever way they act and whatever the envelope says.
func TestPrincipal(t *testing.T) {
	for user, want := range map[string]string{"U1": "U1", "T2/U1": "T2/U1", "T9/U1": "T9/U1"} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.inbox.owner = "U1"
			w.start(t)
			team, id, foreign := strings.Cut(user, "/")
			if !foreign {
				team, id = "T1", user
			}
			w.slack.Say("", "C1", "U7", "hello") // the bot's own workspace has the channel
			w.slack.Write(slacktest.Post{Team: team, Channel: "C1", User: id, Text: "<@UBOT> of the envelope", Mention: true})
			w.slack.Write(slacktest.Post{Team: team, Channel: "D1", User: id, Text: "direct"})
			w.slack.Write(slacktest.Post{Channel: "C1", User: id, UserTeam: team, Text: "<@UBOT> of the event"})
			w.slack.Slash("C1", user, "/claybot", "reset")
			w.slack.Slash("D1", user, "/claybot", "approve")
			ask := func(q claybot.Question) string { return w.ask(t, "C1", "", q) }
			yes := ask(claybot.Question{ID: "q1", Type: claybot.QuestionBoolean})
			menu := ask(claybot.Question{ID: "q2", Type: claybot.QuestionSelect, Options: manyOptions(8, 5)})
			form := ask(claybot.Question{ID: "q3", Type: claybot.QuestionText})
			o := outgoing("C1", "", "Done.")
			o.Offer = []claybot.Offer{{Label: "Undo", Command: "/undo"}}
			offer, err := w.Send(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			w.click(t, user, "C1", yes, "Yes")
			if _, err := w.slack.Select(user, "C1", menu, w.message(t, "C1", menu).Options()[0]); err != nil {
				t.Fatal(err)
			}
			w.click(t, user, "C1", offer, "Undo")
			if _, err := w.slack.Submit(t.Context(), w.modal(t, user, "C1", form, "Answer…").ID, map[string]any{"": "text"}); err != nil {
				t.Fatal(err)
			}
			w.settled(t)
			synctest.Wait()
			if n := len(w.inbox.all()); n != 6 {
				t.Errorf("%s: %d messages, want 6: %q", user, n, w.inbox.texts())
			}
			for _, in := range w.inbox.all() {
				channel := "T1/C1"
				if !in.message.Context.Group {
					channel = "T1/D1"
				}
				if to := claybot.User("slack", channel, want); in.to != to || in.message.From.UserID != want || in.message.From.Outsider != (want != "U1") {
					t.Errorf("%s: %q for %+v from %+v", user, in.message.Text, in.to, in.message.From)
				}
			}
			if n := len(w.inbox.pressed()); n != 3 {
				t.Errorf("%s: %d presses, want 3", user, n)
			}
			for _, p := range w.inbox.pressed() {
				if p.UserID != want || p.ChannelID != "T1/C1" || p.Outsider != (want != "U1") {
					t.Errorf("%s: pressed by %+v", user, p)
				}
			}
			if _, taken := w.inbox.answer("q1"); taken != (want == "U1") {
				t.Errorf("%s: the approval of U1 was given: %v", user, taken)
			}
		})
	}
}

// A payload that does not say who acts, where or of which workspace names no person.
func TestNoPrincipal(t *testing.T) {
	for _, payload := range []string{
		`{"event":{"type":"message","channel":"D1","channel_type":"im","user":"U1","text":"hi","ts":"1.2"}}`,
		`{"team_id":"T1","event":{"type":"message","channel":"D1","channel_type":"im","user":"T2/U1","text":"hi","ts":"1.2"}}`,
		`{"team_id":"T2/U1","event":{"type":"message","channel":"D1","channel_type":"im","user":"U1","text":"hi","ts":"1.2"}}`,
		`{"team_id":"T1","event":{"type":"message","channel":"T1/D1","channel_type":"im","user":"U1","text":"hi","ts":"1.2"}}`,
	} {
		if in, v := read("slack", me, frame{Type: "events_api", Payload: json.RawMessage(payload)}); v != unknown {
			t.Errorf("%s: %d, %+v", payload, v, in)
		}
	}
	for _, self := range []identity{{}, {User: "UBOT"}} {
		if d, _, ok := self.principal("slack", "C1", "U1", "", ""); ok {
			t.Errorf("an unknown workspace: %+v", d)
		}
	}
}

// Two apps in one channel hear the same message, and each has an agent of its own for it.
func TestEachInstanceHasItsIDs(t *testing.T) {
	self := identity{Team: "T1", User: "UBOT"}
	ids := make(map[string]bool)
	for _, name := range []string{"slack", "work"} {
		in, v := read(name, self, frame{Type: "events_api", Payload: json.RawMessage(`{"team_id":"T1","event":{"type":"message","channel":"C1","channel_type":"channel","user":"U1","text":"<@UBOT> hi","ts":"1700000000.000100"}}`)})
		if v != message || in.to.Connector != name || string(in.message.ID) != name+"/T1/C1/1700000000.000100" {
			t.Errorf("%s: %v %+v", name, v, in)
		}
		ids[string(in.message.ID)] = true
	}
	if len(ids) != 2 {
		t.Errorf("ids: %v", ids)
	}
}
