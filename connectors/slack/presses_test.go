package slack

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/texts"
)

// Payloads as Slack sends them, and spoiled ones. Those beginning with a dash
// are not claybot's.
var pressPayloads = []string{
	`{"type":"block_actions","team":{"id":"T1"},"user":{"id":"U1","team_id":"T1"},"trigger_id":"1.2.3","channel":{"id":"D1"},"message":{"ts":"1.5","text":"Well?"},"actions":[{"type":"button","action_id":"answer/0","block_id":"question/q1","value":"{\"q\":\"q1\",\"v\":\"Yes\"}","action_ts":"9.9"}]}`,
	`{"type":"block_actions","team":null,"enterprise":{"id":"E1"},"user":{"id":"W1","team_id":"T9"},"channel":{"id":"C1"},"message":{"ts":"1.5","thread_ts":"1.1"},"actions":[{"action_id":"something"},{"action_id":"menu","block_id":"question/q1","selected_option":{"value":"\"a \\u0026 b\""}}]}`,
	`{"type":"block_actions","team":{"id":"T1"},"user":{"id":"U1"},"trigger_id":"1.2.3","channel":{"id":"C1"},"container":{"thread_ts":"1.1"},"message":{"ts":"1.5"},"actions":[{"action_id":"form","value":"{\"q\":\"q1\",\"t\":\"date\",\"a\":5,\"o\":[\"x\"]}"}]}`,
	`{"type":"block_actions","team":{"id":"T1"},"user":{"id":"U1","name":"ann"},"channel":{"id":"C1"},"message":{"ts":"1.5"},"actions":[{"action_id":"offer/3","value":"\"/stop all\"","action_ts":"9.9"}]}`,
	`{"type":"view_submission","team":{"id":"T1"},"user":{"id":"U1"},"view":{"callback_id":"claybot_question","private_metadata":"{\"q\":\"q1\",\"t\":\"multiselect\",\"o\":[\"a\",\"b\"],\"c\":\"T1/C1\"}","state":{"values":{"question/q1":{"answer":{"type":"checkboxes","selected_options":[{"value":"1"}]}}}}}}`,
	`{"type":"view_submission","team":{"id":"T1"},"user":{"id":"U1"},"view":{"callback_id":"claybot_question","private_metadata":"{\"q\":\"q1\",\"t\":\"datetime\",\"c\":\"T1/D1\"}","state":{"values":{"question/q1":{"answer":{"selected_date_time":99999999999999}}}}}}`,
	`{"type":"view_submission","team":{"id":"T1"},"user":{"id":"U1"},"view":{"callback_id":"claybot_question","private_metadata":"{\"q\":\"q1\",\"t\":\"text\",\"c\":\"T1/D1\"}","state":{"values":[]}}}`,

	`-null`, `-[]`, `-"x"`, `-{}`, `-{"type":7}`, `-{"type":"block_actions"}`,
	`-{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"channel":{"id":"C1"},"actions":null}`,
	`-{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"channel":{"id":"C1"},"actions":[{"action_id":"answer/0","value":"yes"}]}`,
	`-{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"channel":{"id":"C1"},"actions":[{"action_id":"answer/0","value":"{\"q\":\"\",\"v\":\"yes\"}"}]}`,
	`-{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"channel":{"id":"C1"},"actions":[{"action_id":"answer/0","value":"{\"q\":7}"}]}`,
	`-{"type":"block_actions","user":{},"team":{"id":"T1"},"channel":{"id":"C1"},"actions":[{"action_id":"answer/0","value":"{\"q\":\"q1\"}"}]}`,
	`-{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"channel":{},"actions":[{"action_id":"answer/0","value":"{\"q\":\"q1\"}"}]}`,
	`-{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"channel":{"id":"C1"},"actions":[{"action_id":"menu","block_id":"b1","selected_option":{"value":"\"a\""}}]}`,
	`-{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"channel":{"id":"C1"},"actions":[{"action_id":"menu","block_id":"question/q1","selected_option":null}]}`,
	`-{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"channel":{"id":"C1"},"actions":[{"action_id":"form","value":"{\"q\":\"q1\"}"}]}`, // no trigger
	`-{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"channel":{"id":"C1"},"trigger_id":"1.2.3","actions":[{"action_id":"form","value":"{}"}]}`,
	`-{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"channel":{"id":"C1"},"actions":[{"action_id":"offer/0","value":"\" \"","action_ts":"1"}]}`,
	`-{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"channel":{"id":"C1"},"actions":[{"action_id":"offer/0","value":"\"/help\""}]}`,
	`-{"type":"view_submission","user":{"id":"U1"},"view":{"callback_id":"other","private_metadata":"{\"q\":\"q1\"}"}}`,
	`-{"type":"view_submission","user":{"id":"U1"},"view":{"callback_id":"claybot_question","private_metadata":"q1"}}`,
	`-{"type":"view_submission","user":{"id":"U1"},"view":{"callback_id":"claybot_question","private_metadata":"{\"q\":\"q1\",\"t\":\"select\",\"o\":[\"a\"]}","state":{"values":{"question/q1":{"answer":{"selected_option":{"value":"7"}}}}}}}`,
	`-{"type":"view_submission","team":{"id":"T1"},"user":{"id":"U1"},"view":{"callback_id":"claybot_question","private_metadata":"{\"q\":\"q1\",\"t\":\"text\"}"}}`,                    // from nowhere
	`-{"type":"block_actions","team":null,"user":{"id":"W1"},"channel":{"id":"C1"},"message":{"ts":"1.5"},"actions":[{"action_id":"answer/0","value":"{\"q\":\"q1\",\"v\":\"yes\"}"}]}`, // of no workspace
	`-{"type":"view_closed","user":{"id":"U1"},"view":{"callback_id":"claybot_question"}}`,
	`-{"type":"shortcut","user":{"id":"U1"}}`,
	`-{"type":"shortcut","callback_id":"claybot_ask","team":{"id":"T1"},"user":{"id":"U1"}}`, // no trigger
	`-{"type":"shortcut","callback_id":"other","team":{"id":"T1"},"user":{"id":"U1"},"trigger_id":"1.2.3"}`,
	`-{"type":"message_action","callback_id":"claybot_ask_message","team":{"id":"T1"},"user":{"id":"U1"},"trigger_id":"1.2.3","message":{"ts":"1.5"}}`, // from nowhere
	`-{"type":"view_submission","team":{"id":"T1"},"user":{"id":"U1"},"view":{"id":"V1","callback_id":"claybot_ask","private_metadata":"{\"c\":\"T2/D1\"}"}}`,
	`-{"type":"view_submission","team":{"id":"T1"},"user":{"id":"U1"},"view":{"id":"V1","callback_id":"claybot_ask","private_metadata":"{\"c\":\"T1/C1\"}"}}`,
	`-{"type":"view_submission","team":{"id":"T1"},"user":{"id":"U1"},"view":{"callback_id":"claybot_ask","private_metadata":"{\"c\":\"T1/D1\"}"}}`,
	`-{"type":"block_suggestion","user":{"id":"U1"},"action_id":"menu"}`,
}

// What is not claybot's is acknowledged and counted, whatever it is.
func TestStrangePresses(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		strange := int64(0)
		for _, p := range pressPayloads {
			payload, foreign := strings.CutPrefix(p, "-")
			_, ok := readPress("slack", me, []byte(payload))
			if ok == foreign {
				t.Errorf("understood %v: %s", ok, payload)
			}
			if foreign {
				strange++
				w.slack.Envelope("interactive", json.RawMessage(payload))
			}
		}
		w.settled(t)
		synctest.Wait()
		if n := w.Ignored(); n != strange {
			t.Errorf("%d ignored, want %d", n, strange)
		}
		if len(w.inbox.pressed()) != 0 || len(w.inbox.all()) != 0 || w.slack.Traffic().Stray != 0 {
			t.Errorf("presses %+v, messages %+v, %+v", w.inbox.pressed(), w.inbox.all(), w.slack.Traffic())
		}
	})
}

func TestReadPress(t *testing.T) {
	for i, want := range []press{
		{kind: answered, user: "U1", channel: "D1"},
		{kind: answered, user: "W1", channel: "C1", thread: "1.1"},
		{kind: asks, user: "U1", channel: "C1", thread: "1.1"},
		{kind: commanded, user: "U1", channel: "C1"},
		{kind: submitted, user: "U1"},
		{kind: submitted, user: "U1"},
		{kind: submitted, user: "U1"},
	} {
		got, ok := readPress("slack", me, []byte(pressPayloads[i]))
		if !ok || got.kind != want.kind || got.user != want.user || got.channel != want.channel || got.thread != want.thread {
			t.Errorf("payload %d: %+v, %v", i, got, ok)
		}
		values := []string{"Yes", "a & b", "", "", `["b"]`, "5138-11-16T09:46:39Z", ""}
		if i != 5 && got.press.Answer.Text != values[i] {
			t.Errorf("payload %d: value %q", i, got.press.Answer.Text)
		}
	}
	if got, _ := readPress("slack", me, []byte(pressPayloads[1])); got.press.UserID != "T9/W1" || got.press.ChannelID != "T1/C1" {
		t.Errorf("of an organization: %+v", got.press)
	}
	if got, _ := readPress("slack", me, []byte(pressPayloads[3])); got.in.message.Type != claybot.MessageCancel || got.in.message.Text != "all" || got.in.message.From.Name != "ann" {
		t.Errorf("an offer: %+v", got.in)
	}
	if got, _ := readPress("slack", me, []byte(pressPayloads[4])); got.press.ChannelID != "T1/C1" {
		t.Errorf("a form: %+v", got.press)
	}
}

// Reading a button press is total, and what it finds is whole.
func FuzzPress(f *testing.F) {
	for _, p := range pressPayloads {
		f.Add([]byte(strings.TrimPrefix(p, "-")))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		got, ok := readPress("slack", me, payload)
		if !ok {
			return
		}
		m := got.in.message
		switch got.kind {
		case answered, submitted:
			if got.press.Answer.Question == "" || got.press.UserID == "" || got.press.Connector == "" || got.kind == answered && got.press.ChannelID == "" {
				t.Errorf("incomplete: %+v", got.press)
			}
		case asks:
			if got.trigger == "" || got.form.Question == "" || got.channel == "" || got.user == "" {
				t.Errorf("incomplete: %+v", got)
			}
			got.form.view(texts.Voice{}, got.asked)
		case commanded:
			if m.ID == "" || m.Type == "" || got.in.to.ChannelID == "" || got.in.to.UserID == "" || !utf8.ValidString(m.Text) {
				t.Errorf("incomplete: %+v", got.in)
			}
		}
	})
}

// Slack takes what a question becomes, whatever the question is, and what it
// gives back for the form is what was put in.
func FuzzLayout(f *testing.F) {
	f.Add("Well?", "select", "a\nb & c\n<d>", "hint", "b", "/undo 1", 0.0, 5.0, true)
	f.Add("```\ncode\n```", "multiselect", strings.Repeat("x\ny", 40), "", "", "", 1.0, 2.0, false)
	f.Add("", "datetime", "", "\u202e", "2026-03-31T15:04Z", "", -1.0, 1e300, true)
	f.Add("x", "confirm", "", "", "", strings.Repeat("/c", 2000), 0.0, 0.0, true)
	f.Add("x", "number", "", "", "7", "/x", 3.0, -4.0, true)
	f.Add("x", "text", "", "", "seven", "/x", 9000.0, 2.0, true)
	f.Fuzz(func(t *testing.T, text, kind, options, hint, initial, command string, low, high float64, required bool) {
		q := claybot.Question{
			ID: "q1", Text: text, Type: claybot.QuestionType(kind), Required: required, Placeholder: hint, Default: initial, Min: &low, Max: &high, Tool: hint,
		}
		if options != "" {
			q.Options = strings.Split(options, "\n")
		}
		if q.Valid() != nil {
			q.Min, q.Max = nil, nil
			if q.Valid() != nil {
				return
			}
		}
		o := claybot.Outgoing{Text: text, Question: &q, Offer: []claybot.Offer{{Label: hint, Command: command}, {Label: command, Command: hint}}}
		blocks, err := json.Marshal((&Connector{}).layouts(texts.Voice{}, o, text)[0])
		if err != nil {
			t.Fatal(err)
		}
		if utf8.RuneCountInString(text) <= maxTextChars {
			if err := slacktest.CheckBlocks(blocks); err != nil {
				t.Errorf("%v: %s", err, blocks)
			}
		}
		fit, ok := formOf(q).fitted()
		if !ok {
			return
		}
		var back form
		if err := json.Unmarshal([]byte(compact(fit)), &back); err != nil {
			t.Fatal(err)
		}
		back.Channel = "T0123456789/C0123456789"
		view, err := json.Marshal(back.view(texts.Voice{}, text))
		if err != nil {
			t.Fatal(err)
		}
		if err := slacktest.CheckView(view); err != nil {
			t.Errorf("%v: %s", err, view)
		}
		for i, o := range back.Options {
			if o != q.Options[i] {
				t.Errorf("option %q became %q", q.Options[i], o)
			}
		}
	})
}
