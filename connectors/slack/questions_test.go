package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

func bound(x float64) *float64 { return &x }

// ask sends a question to a channel and returns the ts of its message.
func (w *world) ask(t *testing.T, channel, thread string, q claybot.Question) string {
	t.Helper()
	if q.Text == "" {
		q.Text = "What now?"
	}
	if err := q.Valid(); err != nil {
		t.Fatal(err)
	}
	w.inbox.asked(q)
	o := outgoing(channel, thread, q.Text)
	o.ID, o.Question = "question/"+q.ID+"/1", &q
	ts, err := w.Send(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

// message is what the bot wrote at ts.
func (w *world) message(t *testing.T, channel, ts string) slacktest.Message {
	t.Helper()
	for _, m := range w.slack.Posted(channel) {
		if m.TS == ts {
			return m
		}
	}
	t.Fatalf("no message %s in %s", ts, channel)
	return slacktest.Message{}
}

// click presses a button and waits until the press is handled.
func (w *world) click(t *testing.T, user, channel, ts, button string) {
	t.Helper()
	if _, err := w.slack.Click(user, channel, ts, button); err != nil {
		t.Fatal(err)
	}
	w.settled(t)
	synctest.Wait()
}

// modal opens the form behind a button.
func (w *world) modal(t *testing.T, user, channel, ts, button string) slacktest.View {
	t.Helper()
	w.click(t, user, channel, ts, button)
	v, ok := w.slack.Modal(user)
	if !ok {
		t.Fatalf("no form opened; %+v, log %s", w.slack.Calls(methodView), w.logs)
	}
	return v
}

// wantWhisper fails unless a person was told just this.
func (w *world) wantWhisper(t *testing.T, user string, texts ...string) {
	t.Helper()
	var got []string
	for _, h := range w.slack.Whispers(user) {
		got = append(got, h.Text)
	}
	if !slices.Equal(got, texts) {
		t.Errorf("%s was told %q, want %q", user, got, texts)
	}
}

func manyOptions(n, length int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%02d ", i)+strings.Repeat("x", length-3))
	}
	return all
}

// Every type of question is answered by its buttons and forms.
func TestQuestionTypes(t *testing.T) {
	odd := []string{`a & b`, `<c>`, "d, e", `"f"`, "g; h", "&amp;", "🇩🇪"}
	long := []string{strings.Repeat("é", 100), strings.Repeat("é", 99) + "f", "short"}
	for _, c := range []struct {
		name  string
		q     claybot.Question
		press string // a button; of a form, when there is an input
		pick  string // of a menu
		input string // the type of the field
		fill  any
		want  string
		more  func(claybot.Answer) bool
	}{
		{name: "approve", q: claybot.Question{Type: claybot.QuestionConfirm}, press: "Approve", want: "true", more: func(a claybot.Answer) bool { return a.Scope == claybot.ApproveOnce }},
		{name: "deny", q: claybot.Question{Type: claybot.QuestionConfirm}, press: "Deny", want: "false"},
		{name: "session", q: claybot.Question{Type: claybot.QuestionConfirm, Tool: "shell"}, press: "Approve for this session", want: "true", more: func(a claybot.Answer) bool { return a.Scope == claybot.ApproveSession }},
		{name: "deny with a reason", q: claybot.Question{Type: claybot.QuestionConfirm}, press: "Deny with a reason…", input: "plain_text_input", fill: " too <risky> & late ", want: "false", more: func(a claybot.Answer) bool { return a.Reason == "too <risky> & late" }},
		{name: "deny without one after all", q: claybot.Question{Type: claybot.QuestionConfirm}, press: "Deny with a reason…", input: "plain_text_input", fill: "", want: "false"},
		{name: "yes", q: claybot.Question{Type: claybot.QuestionBoolean, Required: true}, press: "Yes", want: "true"},
		{name: "no", q: claybot.Question{Type: claybot.QuestionBoolean}, press: "No", want: "false"},
		{name: "skip", q: claybot.Question{Type: claybot.QuestionBoolean}, press: "Skip", want: "null"},
		{name: "few options", q: claybot.Question{Type: claybot.QuestionSelect, Required: true, Options: []string{"2", "1", "<b> & c"}}, press: "<b> & c", want: `"<b> & c"`},
		{name: "options that are numbers", q: claybot.Question{Type: claybot.QuestionSelect, Required: true, Options: []string{"2", "1"}}, press: "1", want: `"1"`},
		{name: "many options", q: claybot.Question{Type: claybot.QuestionSelect, Required: true, Options: odd}, pick: "&amp;", want: `"&amp;"`},
		{name: "long options", q: claybot.Question{Type: claybot.QuestionSelect, Required: true, Options: long}, pick: strings.Repeat("é", 74) + "…", want: `"` + long[0] + `"`},
		{name: "options that fit no menu", q: claybot.Question{Type: claybot.QuestionSelect, Options: append([]string{strings.Repeat("&", 80)}, odd...)}, press: "Answer…", input: "static_select", fill: "<c>", want: `"<c>"`},
		{name: "most options", q: claybot.Question{Type: claybot.QuestionSelect, Required: true, Options: manyOptions(50, 100)}, pick: "49 " + strings.Repeat("x", 71) + "…", want: `"49 ` + strings.Repeat("x", 97) + `"`},
		{name: "some", q: claybot.Question{Type: claybot.QuestionMultiselect, Required: true, Options: odd}, press: "Answer…", input: "checkboxes", fill: []string{"d, e", "a & b", "g; h"}, want: `["d, e","a & b","g; h"]`},
		{name: "none", q: claybot.Question{Type: claybot.QuestionMultiselect, Options: odd}, press: "Answer…", input: "checkboxes", fill: []string{}, want: `null`},
		{name: "some of many", q: claybot.Question{Type: claybot.QuestionMultiselect, Required: true, Options: manyOptions(20, 10), Max: bound(2)}, press: "Answer…", input: "multi_static_select", fill: []string{"03 xxxxxxx", "19 xxxxxxx"}, want: `["03 xxxxxxx","19 xxxxxxx"]`},
		{name: "some of more than a button holds", q: claybot.Question{Type: claybot.QuestionMultiselect, Required: true, Options: manyOptions(50, 100)}, press: "Answer…", input: "plain_text_input", fill: "2\n50", want: `["01 ` + strings.Repeat("x", 97) + `","49 ` + strings.Repeat("x", 97) + `"]`},
		{name: "text", q: claybot.Question{Type: claybot.QuestionText, Required: true, Min: bound(2), Max: bound(5), Format: "[a-z]+"}, press: "Answer…", input: "plain_text_input", fill: "hello", want: `"hello"`},
		{name: "no text", q: claybot.Question{Type: claybot.QuestionText, Min: bound(2)}, press: "Answer…", input: "plain_text_input", fill: "", want: `null`},
		{name: "textarea", q: claybot.Question{Type: claybot.QuestionTextarea, Required: true}, press: "Answer…", input: "plain_text_input", fill: "one\n<two> & 3", want: `"one\n<two> & 3"`},
		{name: "email", q: claybot.Question{Type: claybot.QuestionEmail, Required: true}, press: "Answer…", input: "email_text_input", fill: "Ann@Example.org", want: `"ann@example.org"`},
		{name: "emails", q: claybot.Question{Type: claybot.QuestionEmailList, Required: true}, press: "Answer…", input: "plain_text_input", fill: "ann@example.org\nbob@example.org", want: `["ann@example.org","bob@example.org"]`},
		{name: "number", q: claybot.Question{Type: claybot.QuestionNumber, Required: true, Min: bound(-1.5), Max: bound(10)}, press: "Answer…", input: "number_input", fill: "2.50", want: `2.5`},
		{name: "date", q: claybot.Question{Type: claybot.QuestionDate, Required: true}, press: "Answer…", input: "datepicker", fill: "2026-03-31", want: `"2026-03-31"`},
		{name: "time", q: claybot.Question{Type: claybot.QuestionTime, Required: true}, press: "Answer…", input: "timepicker", fill: "15:04", want: `"15:04"`},
		{name: "datetime", q: claybot.Question{Type: claybot.QuestionDatetime, Required: true}, press: "Answer…", input: "datetimepicker", fill: time.Date(2026, 3, 31, 15, 4, 0, 0, time.FixedZone("", 7200)), want: `"2026-03-31T13:04:00Z"`},
		{name: "no datetime", q: claybot.Question{Type: claybot.QuestionDatetime}, press: "Answer…", input: "datetimepicker", fill: "", want: `null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				w.start(t)
				channel, _ := w.slack.DM("U1", "hi")
				c.q.ID = "01ABC"
				ts := w.ask(t, channel, "", c.q)
				switch {
				case c.pick != "":
					if _, err := w.slack.Select("U1", channel, ts, c.pick); err != nil {
						t.Fatal(err)
					}
					w.settled(t)
				case c.input == "":
					w.click(t, "U1", channel, ts, c.press)
				default:
					v := w.modal(t, "U1", channel, ts, c.press)
					if len(v.Inputs) != 1 || v.Inputs[0].Type != c.input || v.Text != "What now?" {
						t.Errorf("the form %+v, want one input of type %s", v, c.input)
					}
					if got, err := w.slack.Submit(t.Context(), v.ID, map[string]any{"": c.fill}); err != nil || !got.Closed {
						t.Fatalf("sent: %+v, %v", got, err)
					}
				}
				a, _ := w.inbox.answer("01ABC")
				if string(a.Value) != compactJSON(t, c.want) || a.By != "U1" || c.more != nil && !c.more(a) {
					t.Errorf("the answer is %+v (%s), want %s", a, a.Value, c.want)
				}
				if presses := w.inbox.pressed(); len(presses) != 1 || presses[0].Connector != "slack" || presses[0].ChannelID != "T1/"+channel {
					t.Errorf("presses %+v", presses)
				}
				w.wantWhisper(t, "U1") // the edit says it
				o := outgoing(channel, "", "**Answered.**")
				o.Edit = ts
				if _, err := w.Send(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				if m := w.message(t, channel, ts); len(m.Blocks) != 0 || m.Shown() != "*Answered.*" {
					t.Errorf("after the edit there is %+v", m)
				}
			})
		})
	}
}

func compactJSON(t *testing.T, s string) string {
	t.Helper()
	var x any
	if err := json.Unmarshal([]byte(s), &x); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Nothing is remembered: what was asked before a restart is answered after it,
// and so is a form that was open then.
func TestRestartBetweenAskAndPress(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		channel, _ := w.slack.DM("U1", "hi")
		pressed := w.ask(t, channel, "", claybot.Question{ID: "q1", Type: claybot.QuestionConfirm, Tool: "shell"})
		chosen := w.ask(t, channel, "", claybot.Question{ID: "q2", Type: claybot.QuestionSelect, Options: manyOptions(9, 9)})
		filled := w.ask(t, channel, "", claybot.Question{ID: "q3", Type: claybot.QuestionMultiselect, Options: []string{"a", "b"}, Required: true})
		w.restart(t)
		w.click(t, "U1", channel, pressed, "Approve for this session")
		if _, err := w.slack.Select("U1", channel, chosen, "04 xxxxxx"); err != nil {
			t.Fatal(err)
		}
		v := w.modal(t, "U1", channel, filled, "Answer…")
		w.restart(t)
		if got, err := w.slack.Submit(t.Context(), v.ID, map[string]any{"": []string{"b"}}); err != nil || !got.Closed {
			t.Fatalf("sent: %+v, %v", got, err)
		}
		for id, want := range map[string]string{"q1": "true", "q2": `"04 xxxxxx"`, "q3": `["b"]`} {
			if a, _ := w.inbox.answer(id); string(a.Value) != want {
				t.Errorf("%s: %+v, want %s", id, a, want)
			}
		}
	})
}

// The first answer counts; a second button press is told so, and so is a form.
func TestDoublePress(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		root := w.slack.Mention("C1", "U1", "do it", false)
		ts := w.ask(t, "C1", root, claybot.Question{ID: "q1", Type: claybot.QuestionConfirm})
		v := w.modal(t, "U1", "C1", ts, "Deny with a reason…")
		for range 2 {
			if _, err := w.slack.Click("U1", "C1", ts, "Approve"); err != nil {
				t.Fatal(err)
			}
		}
		w.settled(t)
		synctest.Wait()
		w.wantWhisper(t, "U1", "Already answered.")
		if h := w.slack.Whispers("U1")[0]; h.Thread != root || h.Channel != "C1" {
			t.Errorf("told at %+v, want it in the thread", h)
		}
		got, err := w.slack.Submit(t.Context(), v.ID, map[string]any{"": "no"})
		if err != nil || got.View == nil || got.View.Text != "Already answered." || len(got.View.Inputs) != 0 {
			t.Errorf("the form became %+v, %v", got, err)
		}
		if a, _ := w.inbox.answer("q1"); string(a.Value) != "true" || len(w.inbox.pressed()) != 3 {
			t.Errorf("the answer is %+v after %d presses", a, len(w.inbox.pressed()))
		}
	})
}

// Who may not answer is told in private, is named as in messages, and changes
// nothing.
func TestWrongPerson(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		root := w.slack.Mention("C1", "U1", "do it", false)
		ts := w.ask(t, "C1", root, claybot.Question{ID: "q1", Type: claybot.QuestionConfirm})
		w.click(t, "U2", "C1", ts, "Approve")
		w.click(t, "T9/U1", "C1", ts, "Approve") // another person
		v := w.modal(t, "U3", "C1", ts, "Deny with a reason…")
		if got, err := w.slack.Submit(t.Context(), v.ID, map[string]any{"": "mine"}); err != nil || got.View == nil || got.View.Text != "This is not for you." {
			t.Errorf("the form became %+v, %v", got, err)
		}
		w.wantWhisper(t, "U2", "This is not for you.")
		w.wantWhisper(t, "U1", "This is not for you.")
		if _, ok := w.inbox.answer("q1"); ok {
			t.Error("answered")
		}
		var who []string
		for _, press := range w.inbox.pressed() {
			who = append(who, press.UserID+" "+press.ChannelID)
		}
		if want := []string{"U2 T1/C1", "T9/U1 T1/C1", "U3 T1/C1"}; !slices.Equal(who, want) {
			t.Errorf("presses of %q, want %q", who, want)
		}
		if !strings.Contains(w.logs.String(), "answer not taken") || !strings.Contains(w.logs.String(), "T9/U1") {
			t.Error("the log does not name who was refused")
		}
	})
}

// A slow answer of one person holds up neither their messages nor other button presses.
func TestPressesDoNotWait(t *testing.T) {
	inWorld(t, slacktest.Config{Redeliver: time.Hour}, func(t *testing.T, w *world) {
		w.start(t)
		channel, _ := w.slack.DM("U1", "hi")
		w.settled(t)
		stuck := make(chan struct{})
		w.inbox.before = func(context.Context, claybot.AgentMessage) error { <-stuck; return nil }
		w.slack.DM("U1", "slow to store")
		ts := w.ask(t, channel, "", claybot.Question{ID: "q1", Type: claybot.QuestionBoolean})
		if _, err := w.slack.Click("U1", channel, ts, "Yes"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, ok := w.inbox.answer("q1"); !ok {
			t.Error("a button press waits for a message")
		}
		close(stuck)
		w.settled(t)
	})
}

// A word that cannot be said is logged, and nothing else breaks.
func TestWhisperFails(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		root := w.slack.Mention("C1", "U1", "do it", false)
		ts := w.ask(t, "C1", root, claybot.Question{ID: "q1", Type: claybot.QuestionBoolean})
		w.slack.Fail(slacktest.Respond, slacktest.Fault{Error: "used_url"})
		w.slack.Fail(methodWhisper, slacktest.Fault{Error: "user_not_in_channel"})
		w.click(t, "U2", "C1", ts, "Yes")
		w.click(t, "U1", "C1", ts, "Yes")
		if _, ok := w.inbox.answer("q1"); !ok || !strings.Contains(w.logs.String(), "user_not_in_channel") {
			t.Errorf("answered %v, log %s", ok, w.logs)
		}
	})
}
