package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/texts"
)

// Who acts in what claybot does not know reads so, wherever Slack offers a way, and the log has each
// kind once.
func TestUnknownInteractions(t *testing.T) {
	const extra = `
    - name: Old
      type: global
      callback_id: old_global
      description: Of an older version
    - name: Older
      type: message
      callback_id: old_message
      description: Of an older version
  slash_commands:`
	manifest := strings.Replace(Manifest, "\n  slash_commands:", extra, 1)
	inWorld(t, slacktest.Config{Manifest: manifest}, func(t *testing.T, w *world) {
		w.start(t)
		w.slack.Leave("C7", true)
		far := w.slack.Write(slacktest.Post{Channel: "C7", User: "U2", Text: "far away"})
		w.slack.Write(slacktest.Post{Channel: "C1", User: "U2", Text: "hello"})
		old := slackapi.NewActionBlock("b", slackapi.NewButtonBlockElement("retired/1", "x", slackapi.NewTextBlockObject(slackapi.PlainTextType, "Old", false, false)))
		_, ts, err := w.api.PostMessageContext(t.Context(), "C1", slackapi.MsgOptionText("old", false), slackapi.MsgOptionBlocks(old))
		if err != nil {
			t.Fatal(err)
		}
		w.settled(t)
		for _, c := range []struct {
			name string
			act  func() (string, error)
			form bool
		}{
			{"a button", func() (string, error) { return w.slack.Click("U1", "C1", ts, "Old") }, false},
			{"a shortcut of a message, without the bot", func() (string, error) { return w.slack.Shortcut("U1", "old_message", "C7", far) }, false},
			{"a global shortcut", func() (string, error) { return w.slack.Shortcut("U1", "old_global", "", "") }, true},
		} {
			for range 2 {
				before := len(w.slack.Whispers("U1"))
				if _, err := c.act(); err != nil {
					t.Fatal(err)
				}
				w.settled(t)
				synctest.Wait()
				said := w.slack.Whispers("U1")[before:]
				v, _ := w.slack.Modal("U1")
				if c.form && (v.Text != texts.SlackUnknown || len(said) != 0) || !c.form && (len(said) != 1 || said[0].Text != texts.SlackUnknown) {
					t.Errorf("%s: %+v, %+v", c.name, said, v)
				}
			}
		}
		if n := strings.Count(w.logs.String(), "unknown slack interaction"); n != 3 || w.Ignored() != 6 {
			t.Errorf("%d lines, %d ignored: %s", n, w.Ignored(), w.logs.String())
		}
		if len(w.inbox.all()) != 0 || len(w.inbox.pressed()) != 0 {
			t.Errorf("something happened: %+v, %+v", w.inbox.all(), w.inbox.pressed())
		}
	})
}

// What takes its answer in the acknowledgement gets it there, and news alone none.
func TestUnknownInteractionsAcknowledged(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		for _, c := range []struct{ payload, ack string }{
			{`{"type":"view_submission","team":{"id":"T1"},"user":{"id":"U1"},"view":{"callback_id":"retired"}}`, texts.SlackUnknown},
			{`{"type":"view_submission","user":{"id":"U1"},"view":{"callback_id":"retired"}}`, ""}, // of no workspace
			{`{"type":"block_suggestion","team":{"id":"T1"},"user":{"id":"U1"},"action_id":"menu"}`, `{"options":[]}`},
			{`{"type":"view_closed","team":{"id":"T1"},"user":{"id":"U1"},"view":{"callback_id":"claybot_question"}}`, ""},
			{`{"type":"block_actions","team":{"id":"T1"},"user":{"id":"U1"},"container":{"type":"view","view_id":"V1"},"view":{"id":"V1","type":"modal"},"trigger_id":"1.2.3","actions":[{"action_id":"x"}]}`, ""},
			{`{"type":"of the future","team":{"id":"T1"},"user":{"id":"U1"},"channel":{"id":"C1"},"trigger_id":"1.2.3"}`, ""},
		} {
			id := w.slack.Envelope("interactive", json.RawMessage(c.payload))
			w.settled(t)
			synctest.Wait()
			all := w.slack.Acks()
			got := all[len(all)-1]
			if got.Envelope != id || c.ack == "" && got.Payload != "" || !strings.Contains(got.Payload, c.ack) {
				t.Errorf("%s: acknowledged with %q", c.payload, got.Payload)
			}
			var a struct{ View json.RawMessage }
			if c.ack == texts.SlackUnknown && (json.Unmarshal([]byte(got.Payload), &a) != nil || slacktest.CheckView(a.View) != nil) {
				t.Errorf("%s: slack cannot show %s", c.payload, got.Payload)
			}
		}
		w.inbox.strangers = []string{"U1"}
		for _, payload := range []string{
			`{"type":"view_submission","team":{"id":"T1"},"user":{"id":"U1"},"view":{"callback_id":"retired"}}`,
			`{"type":"view_submission","team":{"id":"T9"},"user":{"id":"U9"},"view":{"callback_id":"retired"}}`, // of another workspace
			`{"type":"block_actions","team":{"id":"T1"},"user":{"id":"U1"},"channel":{"id":"C1"},"trigger_id":"1.2.3","actions":[{"action_id":"x"}]}`,
			`{"type":"shortcut","team":{"id":"T1"},"user":{"id":"U1"},"callback_id":"retired","trigger_id":"1.2.3"}`,
		} {
			id := w.slack.Envelope("interactive", json.RawMessage(payload))
			w.settled(t)
			synctest.Wait()
			if all := w.slack.Acks(); all[len(all)-1].Envelope != id || all[len(all)-1].Payload != "" {
				t.Errorf("%s of a person without access: acknowledged with %+v", payload, all[len(all)-1])
			}
		}
		if n := len(w.slack.Whispers("U1")) + len(w.slack.Calls(methodWhisper)) + len(w.slack.Calls(methodView)); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

// The log has no more kinds than it can bear, however many a foreign app invents.
func TestUnknownInteractionsLogged(t *testing.T) {
	var s noted
	n := 0
	for i := range 1_000 {
		if s.news(fmt.Sprint("kind", i)) {
			n++
		}
	}
	if n != maxStrange || s.news("kind1") {
		t.Errorf("%d kinds logged", n)
	}
}
